//! Candidates on their way: which places a stop may have begun at, and what a unit makes of them.
//!
//! A list of candidates, the earliest first. Two in the same state have the same future, so the
//! later one is of no use; it is taken out when the list has doubled since that was done last, which
//! keeps the list as short as there are states and the time linear in the text.
#![forbid(unsafe_code)]

use std::collections::HashSet;

use super::Compiled;
use super::firsts::{DEAD, FINAL, Firsts, LATE, UNLIMITED};
use super::nfa::Side;
use crate::automaton::CodeUnit;
use crate::stops::Tie;

/// A place at which a stop may have begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) start: u64,
    /// The chunk that brought its first unit.
    pub(crate) chunk: u64,
    pub(crate) state: u32,
}

/// A stop that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) stop: u32,
    pub(crate) start: u64,
    pub(crate) start_chunk: u64,
    /// It ended before the unit that was read last.
    pub(crate) late: bool,
}

/// The candidates of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) candidates: Vec<Candidate>,
    /// What stands before the next unit.
    pub(crate) before: Side,
    /// With stops that are held for a limited time: where held text begins, after each unit.
    pub(crate) border: u64,
    /// How long the list may become before equal states are looked for.
    pub(crate) due: usize,
}

/// The shortest list that is worth looking through for equal states.
const DUE: usize = 16;

impl Live {
    pub(crate) fn new() -> Self {
        Self { candidates: Vec::new(), before: Side::Edge, border: 0, due: DUE }
    }

    /// Reads units, the first of which is at `offset` and in `chunk`, until a stop ends; gives it
    /// and how many units were read, the one that decided included.
    #[inline]
    pub(crate) fn read<U: CodeUnit>(
        &mut self,
        compiled: &Compiled,
        units: &[U],
        offset: u64,
        chunk: u64,
    ) -> (Option<Found>, usize) {
        let mut at = 0;
        while at < units.len() {
            if self.candidates.is_empty() {
                let skipped = compiled.skip(&units[at..]);
                if skipped > 0 {
                    at += skipped;
                    self.before = compiled.side(compiled.classes.class(units[at - 1]));
                    if at == units.len() {
                        break;
                    }
                }
            }
            let class = compiled.classes.class(units[at]);
            let found = self.step(compiled, class, offset + at as u64, chunk);
            at += 1;
            if found.is_some() {
                return (found, at);
            }
        }
        if compiled.firsts.is_limited() && self.candidates.is_empty() {
            self.border = offset + units.len() as u64;
        }
        (None, at)
    }

    /// Reads one unit, at `position`.
    #[inline]
    fn step(
        &mut self,
        compiled: &Compiled,
        class: usize,
        position: u64,
        chunk: u64,
    ) -> Option<Found> {
        let firsts = &compiled.firsts;
        let mut ended: Option<(u32, Candidate)> = None;
        let mut kept = 0;
        for at in 0..self.candidates.len() {
            let candidate = self.candidates[at];
            let next = firsts.step(candidate.state, class);
            if next & FINAL == 0 {
                self.candidates[kept] = Candidate { state: next, ..candidate };
                kept += usize::from(next != DEAD);
            } else {
                ended = Some(better(compiled.tie, ended, (next, candidate)));
            }
        }
        self.candidates.truncate(kept);
        let start = firsts.start(self.before);
        let next = firsts.step(start, class);
        if next != DEAD {
            let fresh = Candidate { start: position, chunk, state: next };
            if next & FINAL == 0 {
                self.push(fresh);
            } else {
                ended = Some(better(compiled.tie, ended, (next, fresh)));
            }
        }
        if let Some((entry, candidate)) = ended {
            return Some(Found {
                stop: entry & !(FINAL | LATE),
                start: candidate.start,
                start_chunk: candidate.chunk,
                late: entry & LATE != 0,
            });
        }
        self.before = compiled.side(class);
        if firsts.is_limited() {
            self.border = self.border.max(self.hold(compiled, position + 1));
        }
        None
    }

    fn push(&mut self, candidate: Candidate) {
        if self.candidates.len() >= self.due {
            let mut seen = HashSet::with_capacity(self.candidates.len());
            self.candidates.retain(|candidate| seen.insert(candidate.state));
            self.due = DUE.max(self.candidates.len() * 2);
        }
        self.candidates.push(candidate);
    }

    /// The stop that the end of the text completes.
    pub(crate) fn end(&self, compiled: &Compiled) -> Option<Found> {
        let ends = self.candidates.iter().filter_map(|candidate| {
            compiled.firsts.end(candidate.state).map(|stop| (stop | FINAL | LATE, *candidate))
        });
        let (entry, candidate) =
            ends.fold(None, |best, end| Some(better(compiled.tie, best, end)))?;
        Some(Found {
            stop: entry & !(FINAL | LATE),
            start: candidate.start,
            start_chunk: candidate.chunk,
            late: true,
        })
    }

    /// Where held text begins when the text seen ends at `now`.
    fn hold(&self, compiled: &Compiled, now: u64) -> u64 {
        let firsts = &compiled.firsts;
        for (at, candidate) in self.candidates.iter().enumerate() {
            let age = now - candidate.start;
            if candidate.start < self.border || firsts.limit(candidate.state) < age {
                continue;
            }
            // The first of all can be the match; one after it only if none before it, which hold
            // nothing any more, is in its way.
            if at == 0 || can_win(compiled, &self.candidates[..=at], age) {
                return candidate.start;
            }
        }
        now
    }

    /// Where held text begins when the text seen ends at `now`.
    #[inline]
    pub(crate) fn border(&self, compiled: &Compiled, now: u64) -> u64 {
        if compiled.firsts.is_limited() {
            self.border
        } else {
            self.candidates.first().map_or(now, |candidate| candidate.start)
        }
    }
}

/// Which of two ends is the match; the first one is of the earlier candidate.
#[inline]
fn better(tie: Tie, best: Option<(u32, Candidate)>, other: (u32, Candidate)) -> (u32, Candidate) {
    let Some(first) = best else { return other };
    // What ended before the unit ended first.
    let rank = |(entry, _): (u32, Candidate)| {
        let stop = entry & !(FINAL | LATE);
        (entry & LATE == 0, if tie == Tie::First { stop } else { 0 })
    };
    if rank(other) < rank(first) { other } else { first }
}

/// Configurations to look at for one hold at the most. Where it would take more, the answer is yes:
/// held a little longer than need be, and nothing leaks.
const STEPS: usize = 1 << 12;

/// Whether the last of `candidates` can come to be the match, of a stop that is held for `age` units
/// or more.
fn can_win(compiled: &Compiled, candidates: &[Candidate], age: u64) -> bool {
    let mut states: Vec<u32> = Vec::with_capacity(candidates.len() + 1);
    let own = candidates.last().map_or(DEAD, |candidate| candidate.state);
    for state in candidates.iter().map(|candidate| candidate.state) {
        if !states.contains(&state) {
            states.push(state);
        } else if state == own {
            // The other one has the same future and is longer.
            return false;
        }
    }
    let threshold = compiled.limits.iter().filter(|&&limit| u64::from(limit) < age).max();
    let mut key = states.clone();
    key.push(threshold.copied().unwrap_or(0));
    let known = |memo: &super::Memo| memo.get(&key);
    if let Some(answer) = known(&compiled.memo) {
        return answer;
    }
    let answer = search(compiled, states, age);
    compiled.memo.set(key, answer);
    answer
}

fn search(compiled: &Compiled, states: Vec<u32>, age: u64) -> bool {
    let firsts = &compiled.firsts;
    let wins = |stop: u32| {
        u64::from(compiled.limits[stop as usize]) >= age
            || compiled.limits[stop as usize] == UNLIMITED
    };
    let mut steps = STEPS;
    let mut seen: HashSet<Vec<u32>> = HashSet::from([states.clone()]);
    let mut todo = std::collections::VecDeque::from([states]);
    while let Some(states) = todo.pop_front() {
        let last = states.len() - 1;
        // Of several ends, which is the match: as place in the list and stop.
        let best = |ends: &mut dyn Iterator<Item = (usize, u32)>| match compiled.tie {
            Tie::Longest => ends.next(),
            Tie::First => ends.min_by_key(|&(place, stop)| (stop, place)),
        };
        let mut ends = states
            .iter()
            .enumerate()
            .filter_map(|(place, &state)| firsts.end(state).map(|stop| (place, stop)));
        if best(&mut ends).is_some_and(|(place, stop)| place == last && wins(stop)) {
            return true;
        }
        for class in 0..compiled.classes.len() {
            steps = steps.saturating_sub(1);
            if steps == 0 {
                return true;
            }
            let entries: Vec<u32> = states.iter().map(|&state| firsts.step(state, class)).collect();
            let stop_of = |late: u32| {
                entries.iter().enumerate().filter_map(move |(place, &entry)| {
                    (entry & (FINAL | LATE) == FINAL | late)
                        .then_some((place, entry & !(FINAL | LATE)))
                })
            };
            let ended = best(&mut stop_of(LATE)).or_else(|| best(&mut stop_of(0)));
            if let Some((place, stop)) = ended {
                if place == last && wins(stop) {
                    return true;
                }
                continue;
            }
            let own = entries[last];
            if own == DEAD || entries[..last].contains(&own) {
                continue;
            }
            let mut next: Vec<u32> = Vec::with_capacity(entries.len());
            for &entry in &entries {
                if entry != DEAD && !next.contains(&entry) {
                    next.push(entry);
                }
            }
            if seen.insert(next.clone()) {
                todo.push_back(next);
            }
        }
    }
    false
}

impl Firsts {
    /// The class of units of which at least one candidate begins after some side.
    pub(super) fn begins(&self, class: usize) -> bool {
        Side::ALL.iter().any(|&side| self.step(self.start(side), class) != DEAD)
    }
}
