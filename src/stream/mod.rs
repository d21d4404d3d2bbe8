//! One response: feed, flush, copy; what may be emitted and which stop ended it.
//!
//! [`Stream`] takes text, or UTF-8 cut anywhere, and appends what may be emitted to a `String`;
//! [`ByteStream`] is its raw twin. Both are a [`Matcher`] with a place to put the text.
#![forbid(unsafe_code)]

mod marks;
mod matcher;
mod plain;
mod snapshot;

pub use matcher::{Held, Matcher};
pub use plain::Passed;
pub use snapshot::{Place, Snapshot};

pub(crate) use marks::Marks;

use crate::decode::{Decoded, Decoder, Errors, Fault, REPLACEMENT};
use crate::error::Error;
use crate::scope::{Include, Scope};
use crate::set::StopSet;

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
    /// was not looked at.
    pub read: usize,
}

impl Match {
    /// A match as it was told before, for restoring an ended stream. How much of its chunk was read
    /// is not known any more.
    #[must_use]
    pub fn new(
        index: usize,
        span: std::ops::Range<u64>,
        chunks: std::ops::RangeInclusive<u64>,
    ) -> Self {
        let (start_chunk, end_chunk) = chunks.into_inner();
        Self { index, start: span.start, end: span.end, start_chunk, end_chunk, read: 0 }
    }
}

/// What one chunk lets out, counted in units: first `released` of what was held, then `passed` of
/// the chunk.
#[must_use = "text that is not sent on is lost"]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Advance {
    /// Units of the text held before this chunk that may be emitted now, from its front.
    pub released: usize,
    /// Units of this chunk that may be emitted now, from its front; 0 unless everything held was
    /// released.
    pub passed: usize,
    /// The stop that ended the stream.
    pub matched: Option<Match>,
}

/// One response of text.
#[derive(Clone, Debug)]
pub struct Stream {
    matcher: Matcher,
    decoder: Decoder,
    errors: Errors,
}

impl Stream {
    /// A stream of `set`.
    ///
    /// # Errors
    /// When a stop was given as bytes, or an option contradicts the set.
    pub fn new(set: StopSet, options: &StreamOptions) -> Result<Self, Error> {
        Ok(Self {
            matcher: Matcher::text(set, options)?,
            decoder: Decoder::default(),
            errors: options.errors,
        })
    }

    /// Reads text and appends to `out` what may be emitted. After a match it appends nothing and
    /// gives the same match.
    pub fn feed(&mut self, chunk: &str, out: &mut String) -> Option<Match> {
        if !self.decoder.is_empty() && self.matcher.matched().is_none() {
            // Text ends an incomplete character. Under `Errors::Strict` that is a fault only for
            // whoever feeds bytes.
            let _ = self.decoder.finish(Errors::Replace);
            let joined = ["\u{fffd}", chunk].concat();
            return self.feed_text(&joined, out);
        }
        self.feed_text(chunk, out)
    }

    /// Reads UTF-8 cut anywhere; an incomplete character waits for the next chunk.
    ///
    /// ```
    /// let mut stream = holdback::StopSet::new(["。"])?.stream()?;
    /// let mut out = String::new();
    /// for byte in "終わり".bytes() {
    ///     assert!(stream.feed_bytes(&[byte], &mut out)?.is_none());
    /// }
    /// assert!(stream.feed_bytes("。".as_bytes(), &mut out)?.is_some());
    /// assert_eq!(out, "終わり");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Under [`Errors::Strict`], for bytes that are not UTF-8; the stream is left as it was.
    pub fn feed_bytes(&mut self, chunk: &[u8], out: &mut String) -> Result<Option<Match>, Fault> {
        if let Some(found) = self.matcher.matched() {
            return Ok(Some(found.clone()));
        }
        let Decoded { text, next, fault } = self.decoder.decode(chunk, self.errors);
        if let Some(fault) = fault {
            // A fault behind a stop is never looked at, so it must not matter that it came in the
            // same chunk.
            let mut ahead = self.clone();
            let emitted = out.len();
            let found = ahead.feed_text(&text, out);
            if found.is_none() {
                out.truncate(emitted);
                return Err(fault);
            }
            *self = ahead;
            return Ok(found);
        }
        self.decoder = next;
        Ok(self.feed_text(&text, out))
    }

    fn feed_text(&mut self, chunk: &str, out: &mut String) -> Option<Match> {
        let held = self.matcher.held();
        let advance = self.advance(chunk);
        self.release(held, advance.released, out);
        out.push_str(prefix(chunk, advance.passed));
        advance.matched
    }

    fn release(&self, held: Held, count: usize, out: &mut String) {
        out.push_str(std::str::from_utf8(self.matcher.released(held, count)).unwrap_or(""));
    }

    /// Reads text and only counts what may be emitted, in characters: for callers that edit their
    /// own buffer.
    ///
    /// [`Stream::held_text`] before the call has what `released` counts.
    pub fn advance(&mut self, chunk: &str) -> Advance {
        if chunk.is_ascii() {
            return self.matcher.advance(chunk.as_bytes());
        }
        let codes: Vec<u32> = chunk.chars().map(u32::from).collect();
        self.matcher.advance(&codes)
    }

    /// Ends the text: appends all that was held, and U+FFFD for a character that never became
    /// complete. If that completes a stop, the match is given.
    pub fn flush(&mut self, out: &mut String) -> Option<Match> {
        if self.matcher.matched().is_none() && self.decoder.finish(Errors::Replace).unwrap_or(false)
        {
            let held = self.matcher.held();
            let advance = self.matcher.advance_last_chunk(REPLACEMENT);
            self.release(held, advance.released, out);
            out.push_str(prefix("\u{fffd}", advance.passed));
            if advance.matched.is_some() {
                return advance.matched;
            }
        }
        let held = self.matcher.held();
        let count = self.matcher.flush();
        self.release(held, count, out);
        None
    }

    /// What is held back now.
    #[must_use]
    pub fn held_text(&self) -> &str {
        std::str::from_utf8(self.matcher.held_bytes()).unwrap_or("")
    }

    /// Characters held back now.
    #[must_use]
    pub fn held_len(&self) -> usize {
        self.matcher.held_len()
    }

    /// The matcher inside: arming, regions, counters.
    #[must_use]
    pub fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    /// From the next character on stops count, or do not, until the next call.
    pub fn set_armed(&mut self, armed: bool) {
        self.matcher.set_armed(armed);
    }

    /// The match that ended the stream, if one did.
    #[must_use]
    pub fn matched(&self) -> Option<&Match> {
        self.matcher.matched()
    }
}

/// One response of raw bytes, where stops may be any bytes.
#[derive(Clone, Debug)]
pub struct ByteStream {
    matcher: Matcher,
}

impl ByteStream {
    /// A raw stream of `set`.
    ///
    /// # Errors
    /// When an option contradicts the set.
    pub fn new(set: StopSet, options: &StreamOptions) -> Result<Self, Error> {
        Ok(Self { matcher: Matcher::bytes(set, options)? })
    }

    /// Reads bytes and appends to `out` what may be emitted.
    pub fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Option<Match> {
        let held = self.matcher.held();
        let advance = self.matcher.advance(chunk);
        out.extend_from_slice(self.matcher.released(held, advance.released));
        out.extend_from_slice(&chunk[..advance.passed]);
        advance.matched
    }

    /// Ends the stream: appends all that was held.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        let held = self.matcher.held();
        let count = self.matcher.flush();
        out.extend_from_slice(self.matcher.released(held, count));
    }

    /// What is held back now.
    #[must_use]
    pub fn held(&self) -> &[u8] {
        self.matcher.held_bytes()
    }
}

/// The first `count` characters of `text`. As many bytes, if they are ASCII: which is seen at many
/// bytes a cycle, while counting characters is slower than the search for stops.
fn prefix(text: &str, count: usize) -> &str {
    if let Some(head) = text.get(..count).filter(|head| head.is_ascii()) {
        return head;
    }
    text.char_indices().nth(count).map_or(text, |(at, _)| &text[..at])
}
