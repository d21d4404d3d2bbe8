//! The state of a stream without scopes: a state number and counters. No text.
//!
//! For text, a state's string begins and ends on a character boundary because the automaton's units are characters; nothing here
//! ever cuts one.
#![forbid(unsafe_code)]

use super::{Advance, Match, marks::Marks};
use crate::automaton::{Automaton, MATCH, Over, Unit};

#[derive(Clone, Debug)]
pub(crate) struct Plain {
    /// The automaton's state; never one with [`MATCH`].
    pub(crate) state: u32,
    pub(crate) over: Over,
    /// With it nothing is held, since the stop itself is emitted.
    pub(crate) include_stop: bool,
    /// Units read.
    pub(crate) seen: u64,
    /// Chunks read.
    pub(crate) chunks: u64,
    pub(crate) marks: Marks,
}

impl Plain {
    pub(crate) fn new(over: Over, include_stop: bool) -> Self {
        Self { state: 0, over, include_stop, seen: 0, chunks: 0, marks: Marks::default() }
    }

    /// How many units are held back.
    #[inline]
    pub(crate) fn held_len(&self, automaton: &Automaton) -> usize {
        if self.state == 0 || self.include_stop { 0 } else { automaton.depth(self.state) as usize }
    }

    /// Reads one chunk.
    #[inline]
    pub(crate) fn advance<U: Unit>(&mut self, automaton: &Automaton, chunk: &[U]) -> Advance {
        let (state, read) = automaton.walk(self.state, chunk);
        if state | self.state == 0 {
            // Nothing was held and nothing is: the common token.
            self.seen += chunk.len() as u64;
            self.chunks += 1;
            return Advance { released: 0, passed: chunk.len(), matched: None };
        }
        self.settle(automaton, state, read)
    }

    /// Reads one chunk if no stop ends in it; `None`, with nothing changed, if one does.
    #[inline]
    pub(crate) fn advance_unmatched<U: Unit>(&mut self, automaton: &Automaton, chunk: &[U]) -> Option<Advance> {
        let (state, read) = automaton.walk(self.state, chunk);
        if state | self.state == 0 {
            self.seen += chunk.len() as u64;
            self.chunks += 1;
            return Some(Advance { released: 0, passed: chunk.len(), matched: None });
        }
        (state & MATCH == 0).then(|| self.settle(automaton, state, read))
    }

    /// Reads one long chunk; `pause` is called between slices, and what it refuses leaves the state as it was.
    pub(crate) fn advance_in_slices<U: Unit, E>(
        &mut self,
        automaton: &Automaton,
        chunk: &[U],
        slice: usize,
        mut pause: impl FnMut() -> Result<(), E>,
    ) -> Result<Advance, E> {
        let (mut state, mut read) = (self.state, 0);
        for part in chunk.chunks(slice.max(1)) {
            if read > 0 {
                pause()?;
            }
            let (next, count) = automaton.walk(state, part);
            (state, read) = (next, read + count);
            if state & MATCH != 0 {
                break;
            }
        }
        Ok(self.settle(automaton, state, read))
    }

    /// Reads one more unit as part of the last chunk.
    pub(crate) fn advance_last_chunk(&mut self, automaton: &Automaton, unit: u32) -> Advance {
        self.chunks = self.chunks.saturating_sub(1);
        self.advance(automaton, &[unit])
    }

    #[inline(never)]
    fn settle(&mut self, automaton: &Automaton, state: u32, read: usize) -> Advance {
        let held = self.held_len(automaton);
        let depth = automaton.depth(state & !MATCH) as usize;
        let offset = self.seen;
        let chunk = self.chunks;
        self.seen += read as u64;
        self.chunks += 1;
        // What stays behind the emitted text: the stop, or the held suffix. It is part of `held` and what was read.
        let kept = if self.include_stop { 0 } else { depth };
        let emitted = held + read - kept;
        let released = emitted.min(held);
        let mut advance = Advance { released, passed: emitted - released, matched: None };
        let window = self.seen - depth as u64;
        if state & MATCH == 0 {
            self.state = state;
            if read > 0 {
                // An empty chunk brings no character, so no match can begin in it.
                self.marks.note(window, offset, chunk);
            }
        } else {
            self.state = 0;
            advance.matched = Some(Match {
                index: automaton.stop(state),
                start: window,
                end: self.seen,
                start_chunk: if window >= offset { chunk } else { self.marks.chunk_of(window) },
                end_chunk: chunk,
                read,
            });
        }
        advance
    }
}
