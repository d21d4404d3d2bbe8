//! Markers kept whole: where text may be cut without cutting a marker.
//!
//! Occurrences are found one after the other: when a marker is complete, looking starts afresh
//! after it. The beginning of one that may still become complete is held like the beginning of a
//! stop; a complete one only matters while the hold for stops begins inside it.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use crate::automaton::{Automaton, CodeUnit, Pace, State};
use crate::scope::ScopeProgram;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MarkerTracker {
    /// State of the marker automaton.
    pub(super) state: State,
    /// Complete markers that reach into what is held, as (start, end) offsets, ascending and apart
    /// from each other. Bounded: each ends inside the hold for stops, which is no longer than the
    /// longest stop.
    pub(super) whole: VecDeque<(u64, u64)>,
}

impl MarkerTracker {
    /// Reads `units`, the first of which is at `offset`; text from `hold` on is held for stops.
    /// Gives where held text begins.
    pub(super) fn read<U: CodeUnit>(
        &mut self,
        program: &ScopeProgram,
        markers: &Automaton,
        offset: u64,
        units: &[U],
        hold: u64,
    ) -> u64 {
        let (mut at, mut pace) = (0, Pace::default());
        while at < units.len() {
            let (state, read) = program.walk_markers(markers, self.state, pace.part(units, at));
            at += read;
            self.state = state;
            if state.is_match() {
                pace.matched(at);
                self.state = State::ROOT;
                let end = offset + at as u64;
                if end > hold {
                    self.whole.push_back((end - u64::from(markers.depth(state.resting())), end));
                }
            }
        }
        while self.whole.front().is_some_and(|&(_, end)| end <= hold) {
            self.whole.pop_front();
        }
        let partial = offset + units.len() as u64 - u64::from(markers.depth(self.state));
        match self.whole.front() {
            Some(&(start, _)) if start < hold => start.min(partial),
            _ => hold.min(partial),
        }
    }
}
