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

use std::sync::OnceLock;

use super::alphabet::Alphabet;
use super::filter::{Filter, WIDTH, narrow};
use super::table::Table;
use super::{CodeUnit, Node, State, TestKnobs, UnitKind};

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

/// What a scan needs beside the table. It is right for any automaton of which a state is the longest
/// suffix that begins a pattern, pruned or not.
#[derive(Debug)]
pub(crate) struct Scanner {
    /// Where states of depth 2 and of depth 3 begin.
    depth2: State,
    depth3: State,
    /// There is no pattern.
    empty: bool,
    /// Made when the first long chunk comes; `None` inside where it would not pay, or is switched
    /// off.
    filter: OnceLock<Option<Filter>>,
}

impl Scanner {
    pub(crate) fn new(table: &Table, depth_starts: &[u32], knobs: TestKnobs) -> Self {
        let last = depth_starts.len() - 1;
        let start = |depth: usize| table.state(Node(depth_starts[depth.min(last)]));
        let filter = if knobs.no_filter { OnceLock::from(None) } else { OnceLock::new() };
        // Only the root has a depth then.
        let empty = depth_starts.len() == 2;
        Self { depth2: start(2), depth3: start(3), empty, filter }
    }

    /// The same as [`Table::walk`], for long text. `patterns` are those of the table.
    pub(crate) fn scan<'a, U: CodeUnit, P>(
        &self,
        (table, alphabet): (&Table, &Alphabet),
        patterns: impl FnOnce() -> P,
        kind: UnitKind,
        state: State,
        units: &[U],
    ) -> (State, usize)
    where
        P: IntoIterator<Item = &'a [u8], IntoIter: ExactSizeIterator>,
    {
        if self.empty {
            return (State::ROOT, units.len());
        }
        let filter = self.filter.get_or_init(|| Filter::new(patterns().into_iter(), kind));
        Scan { table, alphabet, depth2: self.depth2, depth3: self.depth3 }.run(
            filter.as_ref(),
            state,
            units,
        )
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.filter.get().and_then(Option::as_ref).map_or(0, Filter::heap_bytes)
    }
}

/// For walks that go on after a match: which part of the text to scan, and which to walk.
///
/// Where matches are dense a scan would set itself up for each of them, so after one a stretch is
/// walked.
#[derive(Default)]
pub(crate) struct Pace {
    walk_until: usize,
}

impl Pace {
    /// The units to read next from `at` on, and whether by a scan.
    #[inline]
    pub(crate) fn part<'a, U>(&self, units: &'a [U], at: usize) -> (&'a [U], bool) {
        let rest = &units[at..];
        if rest.len() < LONG {
            return (rest, false);
        }
        if at < self.walk_until {
            return (&units[at..units.len().min(self.walk_until)], false);
        }
        (rest, true)
    }

    /// A match ended before `at`.
    #[inline]
    pub(crate) fn matched(&mut self, at: usize) {
        self.walk_until = at + BUFFER;
    }
}

/// One scan.
#[derive(Clone, Copy)]
struct Scan<'a> {
    table: &'a Table,
    alphabet: &'a Alphabet,
    depth2: State,
    depth3: State,
}

impl Scan<'_> {
    fn run<U: CodeUnit>(
        self,
        filter: Option<&Filter>,
        mut state: State,
        units: &[U],
    ) -> (State, usize) {
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
    fn walk_far<U: CodeUnit>(self, state: State, units: &[U]) -> (State, usize) {
        self.table.walk(self.alphabet, state, units)
    }

    /// `bytes` are `units` as the filter sees them.
    #[inline(never)]
    fn scan_bytes<U: CodeUnit>(
        self,
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
