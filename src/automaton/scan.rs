//! Walking long text: the start filter finds where a stop may begin, the automaton walks from
//! there.
//!
//! The walk hands back to the filter as soon as the place where it began is out of the question and
//! what it is in is shallow. Then everything that could still become a stop begins at `position -
//! depth` or later, and the filter looks from there on. Nothing that begins before can: it would be
//! part of the state. A state is shallow up to a depth of two, so a hand-over looks again at two
//! units at most.
//!
//! A filter that keeps finding candidates costs more than it saves, so it is given up for a stretch
//! whenever it does.
#![forbid(unsafe_code)]

use super::filter::{Filter, WIDTH, narrow};
use super::{Automaton, CodeUnit, State, UnitKind};
use crate::stops::StopList;

/// Shorter chunks are walked: setting the filter up costs as much as walking a line.
pub(crate) const LONG: usize = 96;
/// A candidate is worth this many units of text; where more is used up, text is walked.
const WORTH: usize = 8;
/// What a filter may use up at first, and at most save up: it has to pay in every stretch of text.
const ADVANCE: usize = 64 * WORTH;
/// How far to walk without the filter once it does not pay.
const STRETCH: usize = 16 << 10;
/// Text that is stored wider than a byte goes through a buffer of this size.
const BUFFER: usize = 4 << 10;

impl Automaton {
    /// The same as [`Automaton::walk`], for long text.
    pub(crate) fn scan<U: CodeUnit>(
        &self,
        stops: &StopList,
        kind: UnitKind,
        mut state: State,
        units: &[U],
    ) -> (State, usize) {
        if self.depth_starts.len() == 2 {
            // The root is all there is: no stop, nothing to look for.
            return (State::ROOT, units.len());
        }
        let filter = self.filter.get_or_init(|| Filter::new(stops, kind));
        let Some(filter) = filter else { return self.walk_far(state, units) };
        if let Some(bytes) = U::bytes(units) {
            return self.scan_bytes(filter, state, units, bytes);
        }
        let mut buffer = [0u8; BUFFER];
        let mut read = 0;
        for part in units.chunks(BUFFER) {
            let narrowed = &mut buffer[..part.len()];
            narrowed.iter_mut().zip(part).for_each(|(byte, unit)| *byte = narrow(unit.code()));
            let (next, count) = self.scan_bytes(filter, state, part, narrowed);
            (state, read) = (next, read + count);
            if state.is_match() {
                break;
            }
        }
        (state, read)
    }

    /// The walk by itself, out of line: a long loop wants all registers.
    #[inline(never)]
    fn walk_far<U: CodeUnit>(&self, state: State, units: &[U]) -> (State, usize) {
        self.walk(state, units)
    }

    /// `bytes` are `units` as the filter sees them.
    #[inline(never)]
    fn scan_bytes<U: CodeUnit>(
        &self,
        filter: &Filter,
        mut state: State,
        units: &[U],
        bytes: &[u8],
    ) -> (State, usize) {
        let mut at = 0usize;
        // Where the filter found its last candidate: what begins there or earlier is left to the
        // automaton.
        let mut candidate: Option<usize> = None;
        let mut credit = ADVANCE;
        loop {
            // Until all that is alive begins in this chunk, after the last candidate, and not long
            // ago.
            let from = loop {
                if state.is_root() {
                    break at;
                }
                if state.0 < self.depth3.0 {
                    let depth = if state.0 < self.depth2.0 { 1 } else { 2 };
                    let origin = at.checked_sub(depth);
                    if let Some(origin) =
                        origin.filter(|&origin| candidate.is_none_or(|found| origin > found))
                    {
                        break origin;
                    }
                }
                let Some(&unit) = units.get(at) else { return (state, at) };
                state = self.table.step(state, self.alphabet.class(unit));
                at += 1;
                if state.is_match() {
                    return (state, at);
                }
            };
            let Some(found) = filter.find(bytes, from) else {
                // The last few positions are too near the end for the filter.
                let tail = from.max((bytes.len() + 1).saturating_sub(WIDTH));
                let (state, read) = self.walk_far(State::ROOT, &units[tail..]);
                return (state, tail + read);
            };
            candidate = Some(found);
            credit += found - from;
            // One unit at least, so that the walk gets somewhere.
            (state, at) =
                (self.table.step(State::ROOT, self.alphabet.class(units[found])), found + 1);
            if credit < WORTH && !state.is_match() {
                let end = units.len().min(found + STRETCH);
                let (next, read) = self.walk_far(state, &units[at..end]);
                (state, at) = (next, at + read);
                credit = ADVANCE;
            } else {
                credit = credit.saturating_sub(WORTH).min(ADVANCE);
            }
            if state.is_match() {
                return (state, at);
            }
        }
    }
}
