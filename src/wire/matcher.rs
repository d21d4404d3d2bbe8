//! The one place where the wire meets the core: text in, counts of characters out.
#![forbid(unsafe_code)]

use crate::error::Error;
use crate::set::StopSet;
use crate::stream::{self, Advance, StreamOptions};

/// One message text's matcher.
#[derive(Clone, Debug)]
pub(super) struct Matcher {
    inner: stream::Matcher,
    /// Code points of a chunk that is not ASCII; kept for its allocation.
    codes: Vec<u32>,
}

impl Matcher {
    pub(super) fn new(set: &StopSet, options: &StreamOptions) -> Result<Self, Error> {
        Ok(Self { inner: stream::Matcher::text(set.clone(), options)?, codes: Vec::new() })
    }

    /// Reads a chunk and says how many characters may leave: of those held before, then of the chunk.
    #[inline]
    pub(super) fn advance(&mut self, text: &str) -> Advance {
        if text.is_ascii() {
            return self.inner.advance(text.as_bytes());
        }
        self.codes.clear();
        self.codes.extend(text.chars().map(u32::from));
        self.inner.advance(&self.codes)
    }

    /// Characters held back now.
    #[inline]
    pub(super) fn held(&self) -> usize {
        self.inner.held().len()
    }

    /// Reads one more U+FFFD as part of the last chunk.
    pub(super) fn advance_lone_half(&mut self) -> Advance {
        self.inner.advance_last_chunk(u32::from(char::REPLACEMENT_CHARACTER))
    }

    /// Ends a text: nothing is held any more.
    pub(super) fn flush(&mut self) {
        self.inner.flush();
    }
}
