//! The one place where the wire meets the core: text in, counts of characters out.
#![forbid(unsafe_code)]

use crate::error::Error;
use crate::set::StopSet;
use crate::stream::{self, Advance, Match, StreamOptions};

/// What a chunk lets out.
#[derive(Debug)]
pub(super) struct Released {
    /// Characters that may leave: of those held before, then of the chunk.
    pub(super) emitted: usize,
    /// Characters of the chunk.
    pub(super) read: usize,
    /// The whole chunk may leave.
    pub(super) whole: bool,
    pub(super) matched: Option<Match>,
}

impl Released {
    #[inline]
    fn of(advance: Advance, units: usize) -> Self {
        let Advance { released, passed, matched, .. } = advance;
        Self { emitted: released + passed, read: units, whole: passed == units, matched }
    }
}

/// One message text's matcher.
#[derive(Clone, Debug)]
pub(super) struct CharMatcher {
    inner: stream::Matcher,
    /// Code points of a chunk that is not ASCII; kept for its allocation.
    codes: Vec<u32>,
}

impl CharMatcher {
    pub(super) fn new(set: &StopSet, options: &StreamOptions) -> Result<Self, Error> {
        Ok(Self { inner: stream::Matcher::text(set.clone(), options)?, codes: Vec::new() })
    }

    /// Reads a chunk and says how many characters may leave.
    #[inline]
    pub(super) fn advance(&mut self, text: &str) -> Released {
        if text.is_ascii() {
            return Released::of(self.inner.advance(text.as_bytes()), text.len());
        }
        self.codes.clear();
        self.codes.extend(text.chars().map(u32::from));
        Released::of(self.inner.advance(&self.codes), self.codes.len())
    }

    /// Reads one more U+FFFD as part of the last chunk.
    pub(super) fn advance_lone_half(&mut self) -> Released {
        Released::of(self.inner.advance_last_chunk(u32::from(char::REPLACEMENT_CHARACTER)), 1)
    }

    /// Ends a text: nothing is held any more.
    pub(super) fn flush(&mut self) {
        // What it releases was taken from `held` above.
        let _ = self.inner.flush();
    }
}
