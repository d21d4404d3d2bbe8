//! One response: feed, flush, copy; what may be emitted and which stop ended it.
//!
//! From the inside out: a [machine](machine) knows which stop ends where and what to hold back, a
//! [`Matcher`] stops it at a match, a [`Reader`] decodes what comes in and knows where a text ends,
//! and [`Stream`] and [`ByteStream`] put the text into a buffer of the caller's.
#![forbid(unsafe_code)]

mod chunk_index;
mod held_text;
mod machine;
mod markers;
mod matcher;
mod patterned;
mod plain;
mod progress;
mod reader;
mod scoped;
mod scoped_state;
mod snapshot;
mod text;

pub use matcher::{Held, Matcher};
#[cfg(feature = "python")]
pub(crate) use reader::prefix;
pub use reader::{End, Reader, Step};
pub use snapshot::{PatternedSnapshot, Place, ScopedSnapshot, Snapshot};
pub use text::{ByteStream, Stream};

use crate::decode::Errors;
use crate::scope::{Include, Scope};

/// How a stream is to behave.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// Which stops are emitted themselves; they hold nothing back.
    pub include_stop: Include,
    /// Where stops apply.
    pub scope: Scope,
    /// What becomes of bytes that are not UTF-8.
    pub errors: Errors,
}

/// The stop that ended a stream, and where. Offsets are in characters (raw streams: bytes) from the
/// stream's beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Match {
    /// Position of the stop in the list.
    pub index: usize,
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// The chunk (from 0) that brought its first unit.
    pub start_chunk: u64,
    /// The chunk that brought its last one.
    pub end_chunk: u64,
    /// Units of chunk `end_chunk` up to and with the stop's last one; what follows in that chunk
    /// was not looked at. 0 if the chunk only brought the character that decided.
    pub read: usize,
    /// How much of the text was emitted: `end` if the stop is emitted itself, else `start`, or more
    /// if a pattern's `max_hold` let text go.
    pub cut: u64,
}

impl Match {
    /// A match as it was reported before, for restoring an ended stream. How much of its chunk was read
    /// is not known any more.
    #[doc(hidden)]
    #[must_use]
    pub fn new(
        index: usize,
        span: std::ops::Range<u64>,
        chunks: std::ops::RangeInclusive<u64>,
    ) -> Self {
        let (start_chunk, end_chunk) = chunks.into_inner();
        let (start, end) = (span.start, span.end);
        Self { index, start, end, start_chunk, end_chunk, read: 0, cut: start }
    }
}

/// What one chunk lets out, counted in units: first `released` of what was held, then `passed` of
/// the chunk.
#[must_use = "text that is not sent on is lost"]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advance {
    /// Units of the text held before this chunk that may be emitted now, from its front.
    pub released: usize,
    /// Units of this chunk that may be emitted now, from its front; 0 unless everything held was
    /// released.
    pub passed: usize,
}

impl Advance {
    /// `emitted` units in all, of which `held` were held before.
    #[inline]
    fn of(emitted: usize, held: usize) -> Self {
        let released = emitted.min(held);
        Self { released, passed: emitted - released }
    }
}
