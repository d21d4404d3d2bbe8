//! The machine of a set that has a pattern: candidates, and the text that they hold.
//!
//! It knows the stream that is always armed, in which all stops are included or none is. What asks
//! for more is refused when the stream is made.
#![forbid(unsafe_code)]

use std::sync::Arc;

use super::held_text::HeldText;
use super::machine::Machine;
use super::progress::Progress;
use super::snapshot::PatternedSnapshot;
use super::{Advance, Held, Match, Place, StreamOptions};
use crate::automaton::{CodeUnit, State, UnitKind};
use crate::error::Error;
use crate::pattern::{Candidate, Compiled, Found, Live, Side};
use crate::scope::{Include, Scope};
use crate::set::StopSet;

#[derive(Clone, Debug)]
pub(super) struct Patterned {
    compiled: Arc<Compiled>,
    pub(super) kind: UnitKind,
    /// With it nothing is held, since the stop itself is emitted.
    include_stop: bool,
    live: Live,
    text: HeldText,
    progress: Progress,
    /// The chunk that brought the last unit.
    last_chunk: u64,
}

impl Patterned {
    pub(super) fn new(
        set: &StopSet,
        kind: UnitKind,
        include: &Include,
        scope: &Scope,
    ) -> Result<Self, Error> {
        let refuse = |what: &str| {
            Err(Error::option(format!(
                "{what} in a stream of a set with patterns is not supported"
            )))
        };
        if !scope.is_default() {
            return refuse("a scope (min_chars, ignore_inside, atomic)");
        }
        let include_stop = match include {
            Include::None => false,
            Include::All => true,
            Include::Only(_) => return refuse("include_stop with some of the stops"),
        };
        let compiled = set.compiled(kind)?;
        if !include_stop {
            set.check_bounds(&compiled)?;
        }
        Ok(Self {
            compiled,
            kind,
            include_stop,
            live: Live::new(),
            text: HeldText::default(),
            progress: Progress::default(),
            last_chunk: 0,
        })
    }

    /// Where held text begins.
    fn border(&self) -> u64 {
        if self.include_stop {
            self.progress.seen
        } else {
            self.live.border(&self.compiled, self.progress.seen)
        }
    }

    /// Counts a chunk of which `read` units were read without a match.
    fn pass<U: CodeUnit>(&mut self, chunk: &[U]) -> Advance {
        let held_from = self.progress.seen - self.text.len() as u64;
        self.progress.seen += chunk.len() as u64;
        if !chunk.is_empty() {
            self.last_chunk = self.progress.chunks;
        }
        self.progress.chunks += 1;
        self.text.emit(self.kind, chunk, units(self.border() - held_from))
    }

    /// Counts a chunk in which a stop became known with its `read`th unit.
    fn end<U: CodeUnit>(&mut self, found: Found, chunk: &[U], read: usize) -> (Advance, Match) {
        let held_from = self.progress.seen - self.text.len() as u64;
        // The unit that decides is not part of the stop.
        let read = read - usize::from(found.late);
        if read > 0 {
            self.last_chunk = self.progress.chunks;
        }
        self.progress.seen += read as u64;
        self.progress.chunks += 1;
        let found = self.matched(found, read);
        let advance = self.text.emit(self.kind, &chunk[..read], units(found.cut - held_from));
        self.text.drop_held();
        (advance, found)
    }

    fn matched(&self, found: Found, read: usize) -> Match {
        let end = self.progress.seen;
        let sent = if self.compiled.firsts.is_limited() { self.live.border } else { 0 };
        Match {
            index: found.stop as usize,
            start: found.start,
            end,
            start_chunk: found.start_chunk,
            end_chunk: self.last_chunk,
            read,
            cut: if self.include_stop { end } else { found.start.max(sent) },
        }
    }
}

/// Bounded by what is held and the chunk, so it fits.
fn units(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

impl Machine for Patterned {
    fn options(&self) -> StreamOptions {
        StreamOptions { include_stop: self.include_stop.into(), ..StreamOptions::default() }
    }

    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    /// Nothing: the machine keeps the text that it released.
    fn held(&self) -> Held {
        Held { state: State::ROOT }
    }

    fn held_len(&self, _: &StopSet) -> usize {
        self.text.len()
    }

    fn held_bytes<'a>(&'a self, _: &'a StopSet) -> &'a [u8] {
        self.text.bytes()
    }

    fn released<'a>(&'a self, _: &'a StopSet, _: Held, _: usize) -> &'a [u8] {
        self.text.released()
    }

    #[inline]
    fn advance_unmatched<U: CodeUnit>(&mut self, _: &StopSet, chunk: &[U]) -> Option<Advance> {
        // Usually there is no candidate, and nothing to copy.
        let before = self.live.clone();
        let Progress { seen, chunks, .. } = self.progress;
        let (found, _) = self.live.read(&self.compiled, chunk, seen, chunks);
        if found.is_some() {
            self.live = before;
            return None;
        }
        Some(self.pass(chunk))
    }

    fn advance_in_slices<U: CodeUnit, E>(
        &mut self,
        _: &StopSet,
        chunk: &[U],
        slice: usize,
        mut pause: impl FnMut() -> Result<(), E>,
    ) -> Result<(Advance, Option<Match>), E> {
        let before = self.live.clone();
        let Progress { seen, chunks, .. } = self.progress;
        let mut read = 0;
        for part in chunk.chunks(slice.max(1)) {
            if read > 0 {
                if let Err(refused) = pause() {
                    self.live = before;
                    return Err(refused);
                }
            }
            let (found, count) = self.live.read(&self.compiled, part, seen + read as u64, chunks);
            read += count;
            if let Some(found) = found {
                let (advance, found) = self.end(found, chunk, read);
                return Ok((advance, Some(found)));
            }
        }
        Ok((self.pass(chunk), None))
    }

    fn end_of_text(&mut self) -> Option<(usize, Match)> {
        let found = self.live.end(&self.compiled)?;
        let held_from = self.progress.seen - self.text.len() as u64;
        let found = self.matched(found, 0);
        let advance = self.text.emit::<u8>(self.kind, &[], units(found.cut - held_from));
        self.text.drop_held();
        Some((advance.released, found))
    }

    fn flush(&mut self) {
        self.text.flush();
        // Looks still see what stands before.
        let before = self.live.before;
        self.live = Live { before, border: self.progress.seen, ..Live::new() };
    }

    fn reset(&mut self) {
        self.live = Live::new();
        self.text = HeldText::default();
        self.progress = Progress::default();
        self.last_chunk = 0;
    }

    fn is_armed(&self) -> bool {
        true
    }

    /// Not supported: see [`Matcher::set_armed`](super::Matcher::set_armed).
    fn set_armed(&mut self, _: bool) {}

    fn region(&self) -> Option<usize> {
        None
    }

    fn place(&self, _: &StopSet) -> Place {
        let candidates = self.live.candidates.iter();
        Place::Patterned(PatternedSnapshot {
            candidates: candidates.map(|c| (c.start, c.chunk, c.state)).collect(),
            before: self.live.before as u8,
            border: self.live.border,
            held: self.text.bytes().to_vec(),
            last_chunk: self.last_chunk,
            states: self.compiled.firsts.states(),
        })
    }

    fn at(mut self, _: &StopSet, place: Place, progress: Progress) -> Option<Self> {
        let Place::Patterned(snapshot) = place else { return None };
        let PatternedSnapshot { candidates, before, border, held, last_chunk, states } = snapshot;
        let firsts = &self.compiled.firsts;
        let (seen, chunks) = (progress.seen, progress.chunks);
        let ascending = candidates.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let known = candidates
            .iter()
            .all(|&(start, chunk, state)| start < seen && chunk < chunks && firsts.is_state(state));
        if !ascending || !known || border > seen || states != firsts.states() {
            return None;
        }
        self.text = HeldText::new(held, self.kind)?;
        self.live = Live::new();
        self.live.before = Side::ALL.into_iter().find(|&side| side as u8 == before)?;
        self.live.border = border;
        self.live.candidates = candidates
            .into_iter()
            .map(|(start, chunk, state)| Candidate { start, chunk, state })
            .collect();
        (self.progress, self.last_chunk) = (progress, last_chunk);
        // What is held follows from the rest.
        (self.text.len() as u64 == seen - self.border()).then_some(self)
    }
}
