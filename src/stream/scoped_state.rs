//! The state of a stream with scopes.
//!
//! Two automata walk side by side: one for stops and region markers, one for markers kept whole.
//! After each chunk their answers are put together: text is held from the earlier of the two
//! places. The held text is in a small buffer, since it may be a marker *and* the beginning of a
//! stop, which no single state stands for. The automaton is unpruned: a stop that is unreachable
//! for an armed stream can fire for one that was disarmed when the inner stop ended.
#![forbid(unsafe_code)]

use super::markers::MarkerTracker;
use super::progress::Progress;
use super::{Advance, Match, ScopedSnapshot};
use crate::automaton::{CodeUnit, Pace, State, UnitKind};
use crate::scope::{Hold, Scope, ScopeProgram};
use crate::stops::StopList;

/// What a state walks: a program, and the stops that it was compiled from.
type Compiled<'a> = (&'a ScopeProgram, &'a StopList);

/// When stops count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arming {
    /// A stop counts if it ends after this offset.
    After(u64),
    /// The caller disarmed by hand.
    Disarmed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScopedState {
    /// State of the automaton in use: the one for outside of regions, or the region's own.
    state: State,
    /// The region the stream is in.
    region: Option<usize>,
    arming: Arming,
    /// Text before this offset was emitted when the caller last armed or disarmed.
    floor: u64,
    markers: MarkerTracker,
    /// The text held, as (UTF-8) bytes, and its length in units.
    held: Vec<u8>,
    held_len: usize,
    /// What the last chunk released of it.
    released: Vec<u8>,
    pub(super) progress: Progress,
}

impl ScopedState {
    pub(super) fn new(min_chars: u64, start_inside: bool) -> Self {
        Self {
            state: State::ROOT,
            region: start_inside.then_some(0),
            arming: Arming::After(min_chars),
            floor: 0,
            markers: MarkerTracker::default(),
            held: Vec::new(),
            held_len: 0,
            released: Vec::new(),
            progress: Progress::default(),
        }
    }

    /// The scoped twin of a plain stream whose state stands for `window`, all of which it holds, or
    /// nothing if stops are included.
    pub(super) fn take_over(
        program: &ScopeProgram,
        window: &[u8],
        holds: bool,
        progress: Progress,
    ) -> Self {
        let units: Vec<u32> = program.kind.units(window).collect();
        let mut scoped = Self { progress, ..Self::new(0, false) };
        if holds {
            scoped.held = window.to_vec();
            scoped.held_len = units.len();
        }
        scoped.state = replay(|state, units| program.outside.walk(state, units), &units);
        scoped
    }

    pub(super) fn held(&self) -> (&[u8], usize) {
        (&self.held, self.held_len)
    }

    /// What the last chunk, or `flush`, released.
    pub(super) fn released(&self) -> &[u8] {
        &self.released
    }

    pub(super) fn region(&self) -> Option<usize> {
        self.region
    }

    /// Whether a stop that ends at the next unit would count.
    pub(super) fn is_armed(&self) -> bool {
        self.counts(self.progress.seen + 1)
    }

    fn counts(&self, end: u64) -> bool {
        matches!(self.arming, Arming::After(offset) if end > offset)
    }

    /// From here on stops count, or do not, until the next call.
    pub(super) fn set_armed(&mut self, program: &ScopeProgram, armed: bool) {
        // What was emitted by the rule so far is out of reach from now on; what only markers hold
        // back counts as emitted.
        self.floor = self.floor.max(self.progress.seen - self.stop_hold(program));
        self.arming = if armed { Arming::After(self.progress.seen) } else { Arming::Disarmed };
    }

    /// Units held for stops.
    fn stop_hold(&self, program: &ScopeProgram) -> u64 {
        if self.region.is_some() || self.state.is_root() {
            return 0;
        }
        let rule = match self.arming {
            Arming::Disarmed => Hold::Disarmed,
            // What begins now, or a little before, ends before stops count.
            Arming::After(offset) if offset > self.progress.seen + program.longest => return 0,
            Arming::After(offset) if offset > self.progress.seen => {
                Hold::ArmsAfter { units: offset - self.progress.seen }
            }
            Arming::After(_) => Hold::Armed,
        };
        program.outside.hold_len(
            program.outside.node(self.state),
            rule,
            self.progress.seen - self.floor,
        )
    }

    /// Reads units until a stop fires; gives it and how many were read.
    fn read<U: CodeUnit>(
        &mut self,
        (program, stops): Compiled<'_>,
        units: &[U],
    ) -> (Option<usize>, usize) {
        let (mut at, mut pace) = (0, Pace::default());
        loop {
            let (part, long) = pace.part(units, at);
            let (state, read) = match self.region {
                _ if long => program.scan(stops, self.region, self.state, part),
                None => program.outside.walk(self.state, part),
                Some(region) => program.closers[region].walk(self.state, part),
            };
            at += read;
            self.state = state.resting();
            if !state.is_match() {
                if at == units.len() {
                    return (None, at);
                }
                continue;
            }
            pace.matched(at);
            if self.region.is_some() {
                self.region = None;
                self.state = State::ROOT;
                continue;
            }
            let (end, node) = (self.progress.seen + at as u64, program.outside.node(self.state));
            if self.counts(end) {
                if let Some(stop) = program.outside.stop(node, end - self.floor) {
                    return (Some(stop), at);
                }
            }
            if let Some(region) = program.outside.opener(node) {
                self.region = Some(region);
                self.state = State::ROOT;
            }
        }
    }

    /// Reads one chunk if no stop fires in it; `None`, with nothing changed, if one does.
    #[inline]
    pub(super) fn advance_unmatched<U: CodeUnit>(
        &mut self,
        compiled: Compiled<'_>,
        chunk: &[U],
    ) -> Option<Advance> {
        let before = (self.state, self.region);
        let (found, read) = self.read(compiled, chunk);
        if found.is_some() {
            (self.state, self.region) = before;
            return None;
        }
        if self.state.is_root() && self.held_len == 0 && compiled.0.markers.is_none() {
            // Nothing was held and nothing is: the common token.
            self.progress.seen += read as u64;
            self.progress.chunks += 1;
            return Some(Advance { released: 0, passed: read });
        }
        Some(self.settle(compiled.0, chunk, None, read).0)
    }

    /// The same in slices, with `pause` between them; what it refuses leaves the state as it was.
    pub(super) fn advance_in_slices<U: CodeUnit, E>(
        &mut self,
        compiled: Compiled<'_>,
        chunk: &[U],
        slice: usize,
        mut pause: impl FnMut() -> Result<(), E>,
    ) -> Result<(Advance, Option<Match>), E> {
        let before = (self.state, self.region, self.progress.seen);
        let (mut found, mut read) = (None, 0);
        for part in chunk.chunks(slice.max(1)) {
            if read > 0 {
                if let Err(refused) = pause() {
                    (self.state, self.region, self.progress.seen) = before;
                    return Err(refused);
                }
            }
            // Offsets of ends are counted from `seen`.
            self.progress.seen = before.2 + read as u64;
            let (stop, count) = self.read(compiled, part);
            read += count;
            found = stop;
            if found.is_some() {
                break;
            }
        }
        self.progress.seen = before.2;
        Ok(self.settle(compiled.0, chunk, found, read))
    }

    /// Counts what was read and decides what may go out.
    fn settle<U: CodeUnit>(
        &mut self,
        program: &ScopeProgram,
        chunk: &[U],
        found: Option<usize>,
        read: usize,
    ) -> (Advance, Option<Match>) {
        let (kind, offset) = (program.kind, self.progress.seen);
        let emitted_before = offset - self.held_len as u64;
        if let Some(stop) = found {
            let mut found = self.progress.end(stop, program.outside.stop_len(stop), read);
            found.cut = if program.outside.is_included(stop) { found.end } else { found.start };
            let advance = self.emit(kind, chunk, offset, read, found.cut.max(emitted_before));
            // What is still held is the stop.
            self.held.clear();
            self.held_len = 0;
            self.state = State::ROOT;
            self.markers = MarkerTracker::default();
            return (advance, Some(found));
        }
        let window = if self.region.is_some() {
            0
        } else {
            program.outside.depth(program.outside.node(self.state))
        };
        self.progress.pass(read, window.into());
        let hold = self.progress.seen - self.stop_hold(program);
        let border = match &program.markers {
            Some(markers) => self.markers.read(program, markers, offset, &chunk[..read], hold),
            None => hold,
        };
        // The border never moves back; `max` is there for a restored state that lies.
        (self.emit(kind, chunk, offset, read, border.max(emitted_before)), None)
    }

    /// Emits all text before `border`, and holds what was read after it.
    fn emit<U: CodeUnit>(
        &mut self,
        kind: UnitKind,
        chunk: &[U],
        offset: u64,
        read: usize,
        border: u64,
    ) -> Advance {
        let held_from = offset - self.held_len as u64;
        // Both fit: the border is at most `held_len + read` units after the held text's beginning.
        let emitted = usize::try_from(border - held_from).unwrap_or(usize::MAX);
        let released = emitted.min(self.held_len);
        let passed = emitted - released;
        self.released.clear();
        if released > 0 {
            let bytes = kind.prefix_len(&self.held, released);
            self.released.extend(self.held.drain(..bytes));
            self.held_len -= released;
        }
        for unit in &chunk[passed..read] {
            push_unit(&mut self.held, kind, unit.code());
        }
        self.held_len += read - passed;
        Advance { released, passed }
    }

    /// Ends the text: what is held moves to `released`.
    pub(super) fn flush(&mut self) {
        self.released = std::mem::take(&mut self.held);
        self.held_len = 0;
        self.state = State::ROOT;
        self.markers = MarkerTracker::default();
    }

    /// The state as plain values.
    pub(super) fn snapshot(
        &self,
        program: &ScopeProgram,
        list: &StopList,
        scope: &Scope,
    ) -> ScopedSnapshot {
        let prefix = |pattern: &[u8], kind: UnitKind, units: usize| {
            pattern[..kind.prefix_len(pattern, units)].to_vec()
        };
        let kind = program.kind;
        let stops = program.outside.stops();
        let window = if let Some(region) = self.region {
            prefix(
                &scope.ignore_inside[region].1,
                kind,
                program.closers[region].depth(self.state) as usize,
            )
        } else {
            let node = program.outside.node(self.state);
            let depth = program.outside.depth(node) as usize;
            match program.outside.representative(node) as usize {
                _ if depth == 0 => Vec::new(),
                stop if stop < stops => prefix(list.get(stop), kind, depth),
                opener => prefix(&scope.ignore_inside[opener - stops].0, kind, depth),
            }
        };
        let partial = program.markers.as_ref().map_or_else(Vec::new, |markers| {
            match markers.depth(self.markers.state) as usize {
                0 => Vec::new(),
                depth => prefix(&scope.atomic[markers.stop(self.markers.state)], kind, depth),
            }
        });
        ScopedSnapshot {
            window,
            region: self.region,
            armed_after: match self.arming {
                Arming::After(offset) => Some(offset),
                Arming::Disarmed => None,
            },
            floor: self.floor,
            partial,
            whole: self.markers.whole.iter().copied().collect(),
            held: self.held.clone(),
        }
    }

    /// The reverse of [`ScopedState::snapshot`]; `None` for what no stream of this program could be.
    pub(super) fn restore(
        program: &ScopeProgram,
        snapshot: ScopedSnapshot,
        progress: Progress,
    ) -> Option<Self> {
        let kind = program.kind;
        let units = |text: &[u8]| -> Option<Vec<u32>> {
            let valid = kind == UnitKind::Bytes || std::str::from_utf8(text).is_ok();
            valid.then(|| kind.units(text).collect())
        };
        let (window, partial, held) =
            (units(&snapshot.window)?, units(&snapshot.partial)?, units(&snapshot.held)?);
        let seen = progress.seen;
        let (state, depth) = match snapshot.region {
            None => {
                let state = replay(|state, units| program.outside.walk(state, units), &window);
                (state, program.outside.depth(program.outside.node(state)))
            }
            Some(region) => {
                let closer = program.closers.get(region)?;
                let state = replay(|state, units| closer.walk(state, units), &window);
                (state, closer.depth(state))
            }
        };
        let (marker, marker_depth) = match &program.markers {
            None => (State::ROOT, 0),
            Some(markers) => {
                let state = replay(|state, units| markers.walk(state, units), &partial);
                (state, markers.depth(state))
            }
        };
        let longest = window.len().max(partial.len()).max(held.len()) as u64;
        let bound = snapshot.whole.iter().all(|&(start, end)| start < end && end <= seen);
        let sound = depth as usize == window.len()
            && marker_depth as usize == partial.len()
            && longest <= seen
            && snapshot.floor <= seen
            && bound
            && snapshot.whole.len() as u64 <= program.longest;
        sound.then(|| Self {
            state,
            region: snapshot.region,
            arming: snapshot.armed_after.map_or(Arming::Disarmed, Arming::After),
            floor: snapshot.floor,
            markers: MarkerTracker { state: marker, whole: snapshot.whole.into() },
            held_len: held.len(),
            held: snapshot.held,
            released: Vec::new(),
            progress,
        })
    }
}

/// The state after `units`, whatever ends on the way.
fn replay(walk: impl Fn(State, &[u32]) -> (State, usize), units: &[u32]) -> State {
    let (mut state, mut at) = (State::ROOT, 0);
    while at < units.len() {
        let (next, read) = walk(state, &units[at..]);
        state = next.resting();
        at += read;
    }
    state
}

fn push_unit(text: &mut Vec<u8>, kind: UnitKind, code: u32) {
    match kind {
        // Units of a byte stream are below 256.
        UnitKind::Bytes => text.push(u8::try_from(code).unwrap_or(u8::MAX)),
        UnitKind::Characters => {
            let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}
