//! One response, without text of its own: chunks of units in, and out comes how much may be emitted.
//!
//! This is what [`Stream`](super::Stream), [`ByteStream`](super::ByteStream), the wire cutter and the Python binding share. It does
//! not touch the caller's text: [`Advance`] counts, and [`Matcher::released`] gives what had been held back.
#![forbid(unsafe_code)]

use super::plain::Plain;
use super::{Advance, Match, StreamOptions};
use crate::automaton::{Over, Unit};
use crate::error::Error;
use crate::set::StopSet;

/// The state of one response. A copy goes on independently of the original.
#[derive(Clone, Debug)]
pub struct Matcher {
    pub(super) set: StopSet,
    pub(super) over: Over,
    pub(super) engine: Plain,
    pub(super) matched: Option<Box<Match>>,
}

/// A reference to what was held back before a chunk, to be asked for after it.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// A stop that begins with the held text; meaningless when `len` is 0.
    stop: u32,
    len: u32,
}

impl Held {
    /// Units held back.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// True when nothing is held back.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

impl Matcher {
    /// A matcher over the characters of a text.
    ///
    /// # Errors
    /// When a stop was given as bytes, or an option contradicts the set.
    pub fn text(set: StopSet, options: &StreamOptions) -> Result<Self, Error> {
        set.stops().check_text()?;
        Self::new(set, Over::Characters, options)
    }

    /// A matcher over raw bytes.
    ///
    /// # Errors
    /// When an option contradicts the set.
    pub fn bytes(set: StopSet, options: &StreamOptions) -> Result<Self, Error> {
        Self::new(set, Over::Bytes, options)
    }

    fn new(set: StopSet, over: Over, options: &StreamOptions) -> Result<Self, Error> {
        let engine = Plain { include_stop: options.include_stop, ..Plain::default() };
        Ok(Self { set, over, engine, matched: None })
    }

    /// The compiled set.
    #[must_use]
    pub fn set(&self) -> &StopSet {
        &self.set
    }

    /// The options it was made with, as far as they concern matching.
    #[must_use]
    pub fn options(&self) -> StreamOptions {
        StreamOptions { include_stop: self.engine.include_stop, ..StreamOptions::default() }
    }

    /// The match that ended the stream, if one did.
    #[inline]
    #[must_use]
    pub fn matched(&self) -> Option<&Match> {
        self.matched.as_deref()
    }

    /// Units read, over all chunks.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.engine.seen
    }

    /// Chunks read.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.engine.chunks
    }

    /// What is held back now.
    #[inline]
    #[must_use]
    pub fn held(&self) -> Held {
        let automaton = self.set.automaton(self.over);
        let len = self.engine.held_len(automaton);
        if len == 0 {
            return Held { stop: 0, len: 0 };
        }
        Held { stop: u32::try_from(automaton.stop(self.engine.state)).unwrap_or(0), len: u32::try_from(len).unwrap_or(0) }
    }

    /// The first `count` units of what was held back: the (UTF-8) bytes of a stop's beginning.
    #[must_use]
    pub fn released(&self, held: Held, count: usize) -> &[u8] {
        if count == 0 {
            return &[];
        }
        self.prefix_of(held.stop as usize, count)
    }

    /// The first `count` units of a stop, as (UTF-8) bytes.
    pub(super) fn prefix_of(&self, stop: usize, count: usize) -> &[u8] {
        let stop = self.set.get(stop);
        if self.over == Over::Bytes || self.set.stops().is_ascii() {
            return &stop[..count];
        }
        let text = str::from_utf8(stop).unwrap_or("");
        let end = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
        &stop[..end]
    }

    /// Reads one chunk: characters of a text in whatever storage (no surrogates), or bytes.
    ///
    /// After a match nothing passes and the same match is given.
    #[inline]
    pub fn advance<U: Unit>(&mut self, chunk: &[U]) -> Advance {
        if let Some(found) = &self.matched {
            return Advance { released: 0, passed: 0, matched: Some((**found).clone()) };
        }
        let advance = self.engine.advance(self.set.automaton(self.over), chunk);
        self.note(advance)
    }

    /// The same in slices of `slice` units with `pause` called between them, which can end the work: the matcher is as
    /// before then.
    ///
    /// # Errors
    /// Whatever `pause` returns.
    pub fn advance_in_slices<U: Unit, E>(
        &mut self,
        chunk: &[U],
        slice: usize,
        pause: impl FnMut() -> Result<(), E>,
    ) -> Result<Advance, E> {
        if self.matched.is_some() {
            return Ok(self.advance(chunk));
        }
        let advance = self.engine.advance_in_slices(self.set.automaton(self.over), chunk, slice, pause)?;
        Ok(self.note(advance))
    }

    /// Reads one more unit as part of the last chunk: the U+FFFD that the end of the text makes of an unfinished character.
    pub fn advance_last_chunk(&mut self, unit: u32) -> Advance {
        let advance = self.engine.advance_last_chunk(self.set.automaton(self.over), unit);
        self.note(advance)
    }

    #[inline]
    fn note(&mut self, advance: Advance) -> Advance {
        if let Some(found) = &advance.matched {
            self.matched = Some(Box::new(found.clone()));
        }
        advance
    }

    /// Ends the text: everything held is released. What the caller feeds after it is matched afresh.
    pub fn flush(&mut self) -> Held {
        let held = self.held();
        self.engine.state = 0;
        held
    }

    /// Back to the state in which the matcher was made.
    pub fn reset(&mut self) {
        self.engine = Plain { include_stop: self.engine.include_stop, ..Plain::default() };
        self.matched = None;
    }
}
