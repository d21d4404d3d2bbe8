//! The machine of a stream without scopes: a state number and counters. No text.
//!
//! For text, a state's string begins and ends on a character boundary because the automaton's units
//! are characters; nothing here ever cuts one.
#![forbid(unsafe_code)]

use super::machine::Machine;
use super::progress::Progress;
use super::{Advance, Held, Match, Place, StreamOptions};
use crate::automaton::{Automaton, CodeUnit, LONG, State, UnitKind};
use crate::set::StopSet;

#[derive(Clone, Debug)]
pub(super) struct Plain {
    /// The automaton's state; never one in which a stop ends.
    state: State,
    pub(super) kind: UnitKind,
    /// With it nothing is held, since the stop itself is emitted.
    pub(super) include_stop: bool,
    pub(super) progress: Progress,
}

impl Plain {
    pub(super) fn new(kind: UnitKind, include_stop: bool) -> Self {
        Self { state: State::ROOT, kind, include_stop, progress: Progress::default() }
    }

    /// How many units are held back in `state`.
    #[inline]
    fn hold(&self, automaton: &Automaton, state: State) -> usize {
        if state.is_root() || self.include_stop { 0 } else { automaton.depth(state) as usize }
    }

    #[inline]
    fn walk<U: CodeUnit>(
        &self,
        set: &StopSet,
        automaton: &Automaton,
        state: State,
        chunk: &[U],
    ) -> (State, usize) {
        if chunk.len() < LONG {
            automaton.walk(state, chunk)
        } else {
            automaton.scan(set.stops().iter(), self.kind, state, chunk)
        }
    }

    /// Counts `read` units of a chunk that led to `state`, in which no stop ended.
    #[inline(never)]
    fn pass(&mut self, automaton: &Automaton, state: State, read: usize) -> Advance {
        let held = self.hold(automaton, self.state);
        let depth = automaton.depth(state);
        self.progress.pass(read, depth.into());
        self.state = state;
        // The held text is a suffix of what was held before and what was read, so the difference is
        // not negative.
        Advance::of(held + read - if self.include_stop { 0 } else { depth as usize }, held)
    }

    /// The same for any state.
    fn settle(
        &mut self,
        automaton: &Automaton,
        state: State,
        read: usize,
    ) -> (Advance, Option<Match>) {
        if !state.is_match() {
            return (self.pass(automaton, state, read), None);
        }
        let held = self.hold(automaton, self.state);
        let depth = automaton.depth(state.resting());
        let mut found = self.progress.end(automaton.stop(state), depth.into(), read);
        found.cut = if self.include_stop { found.end } else { found.start };
        self.state = State::ROOT;
        let emitted = held + read - if self.include_stop { 0 } else { depth as usize };
        (Advance::of(emitted, held), Some(found))
    }

    /// What the state stands for, as (UTF-8) bytes: the held text, or what would be held if stops
    /// were not included.
    pub(super) fn window<'a>(&self, set: &'a StopSet) -> &'a [u8] {
        self.prefix(set, self.state, set.automaton(self.kind).depth(self.state) as usize)
    }

    /// The first `count` units of what `state` stands for.
    fn prefix<'a>(&self, set: &'a StopSet, state: State, count: usize) -> &'a [u8] {
        if count == 0 {
            return &[];
        }
        let stop = set.get(set.automaton(self.kind).stop(state));
        let kind = if set.stops().is_ascii() { UnitKind::Bytes } else { self.kind };
        &stop[..kind.prefix_len(stop, count)]
    }
}

impl Machine for Plain {
    fn options(&self) -> StreamOptions {
        StreamOptions { include_stop: self.include_stop.into(), ..StreamOptions::default() }
    }

    #[inline]
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    #[inline]
    fn held(&self) -> Held {
        Held { state: self.state }
    }

    fn held_len(&self, set: &StopSet) -> usize {
        self.hold(set.automaton(self.kind), self.state)
    }

    fn held_bytes<'a>(&'a self, set: &'a StopSet) -> &'a [u8] {
        self.prefix(set, self.state, self.held_len(set))
    }

    #[inline]
    fn released<'a>(&'a self, set: &'a StopSet, held: Held, count: usize) -> &'a [u8] {
        self.prefix(set, held.state, count)
    }

    #[inline]
    fn advance_unmatched<U: CodeUnit>(&mut self, set: &StopSet, chunk: &[U]) -> Option<Advance> {
        let automaton = set.automaton(self.kind);
        let (state, read) = self.walk(set, automaton, self.state, chunk);
        if state.is_root() && self.state.is_root() {
            // Nothing was held and nothing is: the common token.
            self.progress.seen += chunk.len() as u64;
            self.progress.chunks += 1;
            return Some(Advance { released: 0, passed: chunk.len() });
        }
        (!state.is_match()).then(|| self.pass(automaton, state, read))
    }

    fn advance_in_slices<U: CodeUnit, E>(
        &mut self,
        set: &StopSet,
        chunk: &[U],
        slice: usize,
        mut pause: impl FnMut() -> Result<(), E>,
    ) -> Result<(Advance, Option<Match>), E> {
        let automaton = set.automaton(self.kind);
        let (mut state, mut read) = (self.state, 0);
        for part in chunk.chunks(slice.max(1)) {
            if read > 0 {
                pause()?;
            }
            let (next, count) = self.walk(set, automaton, state, part);
            (state, read) = (next, read + count);
            if state.is_match() {
                break;
            }
        }
        Ok(self.settle(automaton, state, read))
    }

    fn flush(&mut self) {
        self.state = State::ROOT;
    }

    fn reset(&mut self) {
        *self = Self::new(self.kind, self.include_stop);
    }

    fn is_armed(&self) -> bool {
        true
    }

    /// Nothing: the matcher makes a scoped stream of one that is disarmed.
    fn set_armed(&mut self, armed: bool) {
        debug_assert!(armed);
    }

    fn region(&self) -> Option<usize> {
        None
    }

    fn place(&self, set: &StopSet) -> Place {
        Place::Plain(self.window(set).to_vec())
    }

    fn at(mut self, set: &StopSet, place: Place, progress: Progress) -> Option<Self> {
        let Place::Plain(window) = place else { return None };
        let automaton = set.automaton(self.kind);
        let units: Vec<u32> = self.kind.units(&window).collect();
        let (state, read) = automaton.walk(State::ROOT, &units);
        // A state at which a stop ends is no place to go on from: its stream is over.
        let whole =
            read == units.len() && !state.is_match() && automaton.depth(state) as usize == read;
        let lossless = units.is_empty() == window.is_empty();
        if !whole || !lossless || read as u64 > progress.seen {
            return None;
        }
        (self.state, self.progress) = (state, progress);
        Some(self)
    }
}
