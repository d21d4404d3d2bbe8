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
    fn of(advance: Advance, units: usize, matched: Option<&Match>) -> Self {
        let Advance { released, passed } = advance;
        let matched = matched.cloned();
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
            let advance = self.inner.advance(text.as_bytes());
            return Released::of(advance, text.len(), self.inner.matched());
        }
        self.codes.clear();
        self.codes.extend(text.chars().map(u32::from));
        let advance = self.inner.advance(&self.codes);
        Released::of(advance, self.codes.len(), self.inner.matched())
    }

    /// Reads one more U+FFFD as part of the last chunk.
    pub(super) fn advance_lone_half(&mut self) -> Released {
        let advance = self.inner.advance_last_chunk(u32::from(char::REPLACEMENT_CHARACTER));
        Released::of(advance, 1, self.inner.matched())
    }

    /// Ends a text: nothing is held any more.
    pub(super) fn flush(&mut self) {
        // What it releases was taken from `held` above.
        let _ = self.inner.flush();
    }
}
