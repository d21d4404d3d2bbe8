//! The state of a stream without scopes: a state number and counters. No text.
//!
//! For text, a state's string begins and ends on a character boundary because the automaton's units
//! are characters; nothing here ever cuts one.
#![forbid(unsafe_code)]

use super::{Advance, Match, marks::Marks};
use crate::automaton::{Automaton, LONG, MATCH, Over, Unit};
use crate::set::StopSet;

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

/// What a chunk in which no stop ends lets out; see [`Advance`].
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// Units of the text held before.
    pub released: usize,
    /// Units of the chunk.
    pub passed: usize,
}

impl Plain {
    pub(crate) fn new(over: Over, include_stop: bool) -> Self {
        Self { state: 0, over, include_stop, seen: 0, chunks: 0, marks: Marks::default() }
    }

    /// How many units are held back.
    pub(crate) fn held_len(&self, set: &StopSet) -> usize {
        self.hold(set.automaton(self.over), self.state)
    }

    /// How many units are held back in `state`.
    #[inline]
    fn hold(&self, automaton: &Automaton, state: u32) -> usize {
        if state == 0 || self.include_stop { 0 } else { automaton.depth(state) as usize }
    }

    #[inline]
    fn walk<U: Unit>(
        &self,
        set: &StopSet,
        automaton: &Automaton,
        state: u32,
        chunk: &[U],
    ) -> (u32, usize) {
        if chunk.len() < LONG {
            automaton.walk(state, chunk)
        } else {
            automaton.scan(set.stops(), self.over, state, chunk)
        }
    }

    /// Reads one chunk.
    pub(crate) fn advance<U: Unit>(&mut self, set: &StopSet, chunk: &[U]) -> Advance {
        let automaton = set.automaton(self.over);
        let (state, read) = self.walk(set, automaton, self.state, chunk);
        self.settle(automaton, state, read)
    }

    /// Reads one chunk if no stop ends in it; `None`, with nothing changed, if one does.
    #[inline]
    pub(crate) fn advance_unmatched<U: Unit>(
        &mut self,
        set: &StopSet,
        chunk: &[U],
    ) -> Option<Passed> {
        let automaton = set.automaton(self.over);
        let (state, read) = self.walk(set, automaton, self.state, chunk);
        if state | self.state == 0 {
            // Nothing was held and nothing is: the common token.
            self.seen += chunk.len() as u64;
            self.chunks += 1;
            return Some(Passed { released: 0, passed: chunk.len() });
        }
        (state & MATCH == 0).then(|| self.pass(automaton, state, read))
    }

    /// Reads one long chunk; `pause` is called between slices, and what it refuses leaves the state
    /// as it was.
    pub(crate) fn advance_in_slices<U: Unit, E>(
        &mut self,
        set: &StopSet,
        chunk: &[U],
        slice: usize,
        mut pause: impl FnMut() -> Result<(), E>,
    ) -> Result<Advance, E> {
        let automaton = set.automaton(self.over);
        let (mut state, mut read) = (self.state, 0);
        for part in chunk.chunks(slice.max(1)) {
            if read > 0 {
                pause()?;
            }
            let (next, count) = self.walk(set, automaton, state, part);
            (state, read) = (next, read + count);
            if state & MATCH != 0 {
                break;
            }
        }
        Ok(self.settle(automaton, state, read))
    }

    /// Reads one more unit as part of the last chunk.
    pub(crate) fn advance_last_chunk(&mut self, set: &StopSet, unit: u32) -> Advance {
        self.chunks = self.chunks.saturating_sub(1);
        self.advance(set, &[unit])
    }

    /// Counts `read` units of a chunk that led to `state`, in which no stop ended.
    #[inline(never)]
    fn pass(&mut self, automaton: &Automaton, state: u32, read: usize) -> Passed {
        let held = self.hold(automaton, self.state);
        let depth = automaton.depth(state) as usize;
        let (offset, chunk) = (self.seen, self.chunks);
        self.seen += read as u64;
        self.chunks += 1;
        self.state = state;
        if read > 0 {
            // An empty chunk brings no character, so no match can begin in it.
            self.marks.note(self.seen - depth as u64, offset, chunk);
        }
        // The held text is a suffix of what was held before and what was read, so the difference is
        // not negative.
        let emitted = held + read - if self.include_stop { 0 } else { depth };
        let released = emitted.min(held);
        Passed { released, passed: emitted - released }
    }

    /// The same for any state.
    fn settle(&mut self, automaton: &Automaton, state: u32, read: usize) -> Advance {
        if state & MATCH == 0 {
            let Passed { released, passed } = self.pass(automaton, state, read);
            return Advance { released, passed, matched: None };
        }
        let held = self.hold(automaton, self.state);
        let (offset, chunk) = (self.seen, self.chunks);
        let depth = automaton.depth(state & !MATCH) as usize;
        self.seen += read as u64;
        self.chunks += 1;
        self.state = 0;
        let start = self.seen - depth as u64;
        let found = Match {
            index: automaton.stop(state),
            start,
            end: self.seen,
            start_chunk: if start >= offset { chunk } else { self.marks.chunk_of(start) },
            end_chunk: chunk,
            read,
        };
        let emitted = held + read - if self.include_stop { 0 } else { depth };
        let released = emitted.min(held);
        Advance { released, passed: emitted - released, matched: Some(found) }
    }
}
