//! The state of a stream with scopes.
//!
//! Two automata walk side by side: one for stops and region markers (awake or asleep), one for
//! markers kept whole. After each chunk their answers are put together: text is held from the
//! earlier of the two places.
#![forbid(unsafe_code)]

use super::keeper::Keeper;
use super::program::{Hold, Program};
use crate::automaton::{MATCH, Over, Unit};
use crate::stream::{Advance, Marks, Match, Passed};

/// When stops count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arming {
    /// A stop counts if it ends behind this offset.
    After(u64),
    /// The caller disarmed by hand.
    Disarmed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scoped {
    /// State of the automaton in use, awake or asleep.
    state: u32,
    /// The region the stream is asleep in.
    region: Option<usize>,
    arming: Arming,
    /// Text before this offset was emitted when the caller last armed or disarmed.
    floor: u64,
    keeper: Keeper,
    /// The text held, as (UTF-8) bytes, and its length in units.
    held: Vec<u8>,
    held_len: usize,
    /// What the last chunk released of it.
    released: Vec<u8>,
    seen: u64,
    chunks: u64,
    marks: Marks,
}

/// A scoped state as plain values; see `stream::Snapshot`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frozen {
    /// What the state of the automaton in use stands for.
    pub window: Vec<u8>,
    /// The number of the region the stream is asleep in.
    pub region: Option<usize>,
    /// A stop counts if it ends behind this offset; `None` when disarmed by hand.
    pub armed_after: Option<u64>,
    /// Text before this offset was emitted when the caller last armed or disarmed.
    pub floor: u64,
    /// The beginning of a marker that is to be kept whole.
    pub partial: Vec<u8>,
    /// Complete markers that reach into the held text, as offsets.
    pub whole: Vec<(u64, u64)>,
    /// The held text.
    pub held: Vec<u8>,
}

impl Scoped {
    pub(crate) fn new(min_chars: u64, start_inside: bool) -> Self {
        Self {
            state: 0,
            region: start_inside.then_some(0),
            arming: Arming::After(min_chars),
            floor: 0,
            keeper: Keeper::default(),
            held: Vec::new(),
            held_len: 0,
            released: Vec::new(),
            seen: 0,
            chunks: 0,
            marks: Marks::default(),
        }
    }

    /// The scoped twin of a plain stream whose state stands for `window`, all of which it holds, or
    /// nothing if stops are included.
    pub(crate) fn take_over(
        program: &Program,
        window: &[u8],
        holds: bool,
        counters: (u64, u64, Marks),
    ) -> Self {
        let units: Vec<u32> = program.over.units(window).collect();
        let (seen, chunks, marks) = counters;
        let mut scoped = Self { seen, chunks, marks, ..Self::new(0, false) };
        if holds {
            scoped.held = window.to_vec();
            scoped.held_len = units.len();
        }
        scoped.state = replay(|state, units| program.awake.walk(state, units), &units);
        scoped
    }

    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    pub(crate) fn chunks(&self) -> u64 {
        self.chunks
    }

    pub(crate) fn held(&self) -> (&[u8], usize) {
        (&self.held, self.held_len)
    }

    /// What the last chunk, or `flush`, released.
    pub(crate) fn released(&self) -> &[u8] {
        &self.released
    }

    pub(crate) fn marks(&self) -> &Marks {
        &self.marks
    }

    pub(crate) fn region(&self) -> Option<usize> {
        self.region
    }

    /// Whether a stop that ends at the next unit would count.
    pub(crate) fn is_armed(&self) -> bool {
        self.counts(self.seen + 1)
    }

    fn counts(&self, end: u64) -> bool {
        matches!(self.arming, Arming::After(offset) if end > offset)
    }

    /// From here on stops count, or do not, until the next call.
    pub(crate) fn set_armed(&mut self, program: &Program, armed: bool) {
        // What was emitted by the rule so far is out of reach from now on; what only markers hold
        // back counts as emitted.
        self.floor = self.floor.max(self.seen - self.stop_hold(program));
        self.arming = if armed { Arming::After(self.seen) } else { Arming::Disarmed };
    }

    /// Units held for stops.
    fn stop_hold(&self, program: &Program) -> u64 {
        if self.region.is_some() || self.state == 0 {
            return 0;
        }
        let rule = match self.arming {
            Arming::Disarmed => Hold::Disarmed,
            // What begins now, or a little before, ends before stops count.
            Arming::After(offset) if offset > self.seen + program.longest => return 0,
            Arming::After(offset) if offset > self.seen => {
                Hold::ArmsAfter { units: offset - self.seen }
            }
            Arming::After(_) => Hold::Armed,
        };
        program.awake.hold_len(program.awake.node(self.state), rule, self.seen - self.floor)
    }

    /// Reads units until a stop fires; gives it and how many were read.
    fn read<U: Unit>(&mut self, program: &Program, units: &[U]) -> (Option<usize>, usize) {
        let mut at = 0;
        loop {
            let walked = match self.region {
                None => program.awake.walk(self.state, &units[at..]),
                Some(region) => program.closers[region].walk(self.state, &units[at..]),
            };
            at += walked.1;
            self.state = walked.0 & !MATCH;
            if walked.0 & MATCH == 0 {
                return (None, at);
            }
            if self.region.is_some() {
                self.region = None;
                self.state = 0;
                continue;
            }
            let (end, node) = (self.seen + at as u64, program.awake.node(self.state));
            if self.counts(end) {
                if let Some(stop) = program.awake.stop(node, end - self.floor) {
                    return (Some(stop), at);
                }
            }
            if let Some(region) = program.awake.opener(node) {
                self.region = Some(region);
                self.state = 0;
            }
        }
    }

    pub(crate) fn advance<U: Unit>(&mut self, program: &Program, chunk: &[U]) -> Advance {
        let (found, read) = self.read(program, chunk);
        self.settle(program, chunk, found, read)
    }

    /// Reads one chunk if no stop fires in it; `None`, with nothing changed, if one does.
    #[inline]
    pub(crate) fn advance_unmatched<U: Unit>(
        &mut self,
        program: &Program,
        chunk: &[U],
    ) -> Option<Passed> {
        let before = (self.state, self.region);
        let (found, read) = self.read(program, chunk);
        if found.is_some() {
            (self.state, self.region) = before;
            return None;
        }
        if self.state == 0 && self.held_len == 0 && program.keeper.is_none() {
            // Nothing was held and nothing is: the common token.
            self.seen += read as u64;
            self.chunks += 1;
            return Some(Passed { released: 0, passed: read });
        }
        let Advance { released, passed, .. } = self.settle(program, chunk, None, read);
        Some(Passed { released, passed })
    }

    /// The same in slices, with `pause` between them; what it refuses leaves the state as it was.
    pub(crate) fn advance_in_slices<U: Unit, E>(
        &mut self,
        program: &Program,
        chunk: &[U],
        slice: usize,
        mut pause: impl FnMut() -> Result<(), E>,
    ) -> Result<Advance, E> {
        let before = (self.state, self.region, self.seen);
        let (mut found, mut read) = (None, 0);
        for part in chunk.chunks(slice.max(1)) {
            if read > 0 {
                if let Err(refused) = pause() {
                    (self.state, self.region, self.seen) = before;
                    return Err(refused);
                }
            }
            // Offsets of ends are counted from `seen`.
            self.seen = before.2 + read as u64;
            let (stop, count) = self.read(program, part);
            read += count;
            found = stop;
            if found.is_some() {
                break;
            }
        }
        self.seen = before.2;
        Ok(self.settle(program, chunk, found, read))
    }

    /// Counts what was read and decides what may go out.
    fn settle<U: Unit>(
        &mut self,
        program: &Program,
        chunk: &[U],
        found: Option<usize>,
        read: usize,
    ) -> Advance {
        let over = program.over;
        let (offset, index) = (self.seen, self.chunks);
        self.seen += read as u64;
        self.chunks += 1;
        let emitted_before = offset - self.held_len as u64;
        if let Some(stop) = found {
            let (start, end) = (self.seen - program.awake.stop_len(stop), self.seen);
            let cut = if program.awake.is_included(stop) { end } else { start };
            let found = Match {
                index: stop,
                start,
                end,
                start_chunk: if start >= offset { index } else { self.marks.chunk_of(start) },
                end_chunk: index,
                read,
            };
            let mut advance = self.emit(over, chunk, offset, read, cut.max(emitted_before));
            // What is still held is the stop.
            self.held.clear();
            self.held_len = 0;
            self.state = 0;
            self.keeper = Keeper::default();
            advance.matched = Some(found);
            return advance;
        }
        let hold = self.seen - self.stop_hold(program);
        let border = match &program.keeper {
            Some(markers) => self.keeper.read(markers, offset, &chunk[..read], hold),
            None => hold,
        };
        let window = if self.region.is_some() {
            0
        } else {
            program.awake.depth(program.awake.node(self.state))
        };
        if read > 0 {
            self.marks.note(self.seen - u64::from(window), offset, index);
        }
        // The border never moves back; `max` says so to whoever doubts it.
        self.emit(over, chunk, offset, read, border.max(emitted_before))
    }

    /// Emits all text before `border`, and holds what was read behind it.
    fn emit<U: Unit>(
        &mut self,
        over: Over,
        chunk: &[U],
        offset: u64,
        read: usize,
        border: u64,
    ) -> Advance {
        let held_from = offset - self.held_len as u64;
        // Both fit: the border is at most `held_len + read` units behind the held text's beginning.
        let emitted = usize::try_from(border - held_from).unwrap_or(usize::MAX);
        let released = emitted.min(self.held_len);
        let passed = emitted - released;
        self.released.clear();
        if released > 0 {
            let bytes = over.prefix_len(&self.held, released);
            self.released.extend(self.held.drain(..bytes));
            self.held_len -= released;
        }
        for unit in &chunk[passed..read] {
            push_unit(&mut self.held, over, unit.code());
        }
        self.held_len += read - passed;
        Advance { released, passed, matched: None }
    }

    pub(crate) fn advance_last_chunk(&mut self, program: &Program, unit: u32) -> Advance {
        self.chunks = self.chunks.saturating_sub(1);
        self.advance(program, &[unit])
    }

    /// Ends the text: what is held moves to `released`.
    pub(crate) fn flush(&mut self) {
        self.released = std::mem::take(&mut self.held);
        self.held_len = 0;
        self.state = 0;
        self.keeper = Keeper::default();
    }

    /// The state as plain values.
    pub(crate) fn freeze(
        &self,
        program: &Program,
        text_of: impl Fn(usize, usize) -> Vec<u8>,
        scope: &super::Scope,
    ) -> Frozen {
        let prefix = |pattern: &[u8], over: Over, units: usize| {
            pattern[..over.prefix_len(pattern, units)].to_vec()
        };
        let over = program.over;
        let stops = program.awake.stops();
        let window = if let Some(region) = self.region {
            prefix(
                &scope.ignore_inside[region].1,
                over,
                program.closers[region].depth(self.state) as usize,
            )
        } else {
            let node = program.awake.node(self.state);
            let depth = program.awake.depth(node) as usize;
            match program.awake.sample(node) as usize {
                _ if depth == 0 => Vec::new(),
                stop if stop < stops => text_of(stop, depth),
                opener => prefix(&scope.ignore_inside[opener - stops].0, over, depth),
            }
        };
        let partial = program.keeper.as_ref().map_or_else(Vec::new, |markers| {
            match markers.depth(self.keeper.state) as usize {
                0 => Vec::new(),
                depth => prefix(&scope.atomic[markers.stop(self.keeper.state)], over, depth),
            }
        });
        Frozen {
            window,
            region: self.region,
            armed_after: match self.arming {
                Arming::After(offset) => Some(offset),
                Arming::Disarmed => None,
            },
            floor: self.floor,
            partial,
            whole: self.keeper.whole.iter().copied().collect(),
            held: self.held.clone(),
        }
    }

    /// The reverse of [`Scoped::freeze`]; `None` for what no stream of this program could be.
    pub(crate) fn thaw(
        program: &Program,
        frozen: Frozen,
        counters: (u64, u64, Marks),
    ) -> Option<Self> {
        let over = program.over;
        let units = |text: &[u8]| -> Option<Vec<u32>> {
            let valid = over == Over::Bytes || std::str::from_utf8(text).is_ok();
            valid.then(|| over.units(text).collect())
        };
        let (window, partial, held) =
            (units(&frozen.window)?, units(&frozen.partial)?, units(&frozen.held)?);
        let (seen, chunks, marks) = counters;
        let (state, depth) = match frozen.region {
            None => {
                let state = replay(|state, units| program.awake.walk(state, units), &window);
                (state, program.awake.depth(program.awake.node(state)))
            }
            Some(region) => {
                let closer = program.closers.get(region)?;
                let state = replay(|state, units| closer.walk(state, units), &window);
                (state, closer.depth(state))
            }
        };
        let (marker, marker_depth) = match &program.keeper {
            None => (0, 0),
            Some(markers) => {
                let state = replay(|state, units| markers.walk(state, units), &partial);
                (state, markers.depth(state))
            }
        };
        let longest = window.len().max(partial.len()).max(held.len()) as u64;
        let bound = frozen.whole.iter().all(|&(start, end)| start < end && end <= seen);
        let sound = depth as usize == window.len()
            && marker_depth as usize == partial.len()
            && longest <= seen
            && frozen.floor <= seen
            && bound
            && frozen.whole.len() as u64 <= program.longest;
        sound.then(|| Self {
            state,
            region: frozen.region,
            arming: frozen.armed_after.map_or(Arming::Disarmed, Arming::After),
            floor: frozen.floor,
            keeper: Keeper { state: marker, whole: frozen.whole.into() },
            held_len: held.len(),
            held: frozen.held,
            released: Vec::new(),
            seen,
            chunks,
            marks,
        })
    }
}

/// The state behind `units`, whatever ends on the way.
fn replay(walk: impl Fn(u32, &[u32]) -> (u32, usize), units: &[u32]) -> u32 {
    let (mut state, mut at) = (0, 0);
    while at < units.len() {
        let (next, read) = walk(state, &units[at..]);
        state = next & !MATCH;
        at += read;
    }
    state
}

fn push_unit(text: &mut Vec<u8>, over: Over, code: u32) {
    match over {
        // Units of a byte stream are below 256.
        Over::Bytes => text.push(u8::try_from(code).unwrap_or(u8::MAX)),
        Over::Characters => {
            let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}
