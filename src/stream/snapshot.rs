//! A matcher in mid-flight as plain values, so that it can move to another process and go on there.
//!
//! A snapshot carries text and counters, never state numbers: restoring walks the text again, so a
//! snapshot that was tampered with can be refused, or be some other valid stream, but never an
//! index out of range.
#![forbid(unsafe_code)]

use super::marks::Marks;
use super::matcher::Engine;
use super::{Match, Matcher};
use crate::automaton::MATCH;
use crate::scope::{Frozen, Scoped};

/// What [`Matcher::snapshot`] gives and [`Matcher::restore`] takes, beside the set and the options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Units read.
    pub seen: u64,
    /// Chunks read.
    pub chunks: u64,
    /// The chunk of the first unit at which a match could begin, and (offset, chunk) of each later
    /// chunk.
    pub marks: (u64, Vec<(u64, u64)>),
    /// Where the stream is.
    pub place: Place,
    /// The match, if the stream has ended.
    pub matched: Option<Match>,
}

/// Where a stream is, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// What the state of a stream without scopes stands for, as (UTF-8) bytes.
    Plain(Vec<u8>),
    /// The same for a stream with scopes.
    Scoped(Frozen),
}

/// Far beyond any stream, and far from where counters would overflow.
const COUNTABLE: u64 = 1 << 62;

impl Matcher {
    /// The state as plain values.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (marks, place) = match &self.engine {
            Engine::Plain(plain) => (plain.marks.export(), Place::Plain(self.window())),
            Engine::Scoped(scoping) => {
                let text_of = |stop, units| self.prefix_of(stop, units).to_vec();
                let frozen = scoping.state.freeze(&scoping.program, text_of, &scoping.scope);
                (scoping.state.marks().export(), Place::Scoped(frozen))
            }
        };
        Snapshot {
            seen: self.seen(),
            chunks: self.chunks(),
            marks,
            place,
            matched: self.matched().cloned(),
        }
    }

    /// Goes on from a snapshot; `None` if no stream of this set and these options could be in that
    /// state.
    #[must_use]
    pub fn restore(mut self, snapshot: Snapshot) -> Option<Self> {
        let Snapshot { seen, chunks, marks: (first, later), place, matched } = snapshot;
        if seen > COUNTABLE
            || chunks > COUNTABLE
            || later.len() as u64 > seen
            || matched.as_ref().is_some_and(|found| found.index >= self.set.stops().len())
        {
            return None;
        }
        let ascending = later.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1);
        if !ascending
            || later
                .iter()
                .any(|&(offset, chunk)| offset > seen || chunk >= chunks || chunk <= first)
            || first > chunks
        {
            return None;
        }
        if matches!((&self.engine, &place), (Engine::Plain(_), Place::Scoped(_))) {
            // The stream became a scoped one when it was first disarmed.
            self.set_armed(false);
        }
        let marks = Marks::import(first, later);
        match (&mut self.engine, place) {
            (Engine::Plain(plain), Place::Plain(window)) => {
                let automaton = self.set.automaton(plain.over);
                let units: Vec<u32> = plain.over.units(&window).collect();
                let (state, read) = automaton.walk(0, &units);
                // A state at which a stop ends is no place to go on from: its stream is over.
                let whole = read == units.len()
                    && state & MATCH == 0
                    && automaton.depth(state) as usize == read;
                let lossless = units.is_empty() == window.is_empty();
                if !whole || !lossless || read as u64 > seen {
                    return None;
                }
                (plain.state, plain.seen, plain.chunks, plain.marks) = (state, seen, chunks, marks);
            }
            (Engine::Scoped(scoping), Place::Scoped(frozen)) => {
                scoping.state = Scoped::thaw(&scoping.program, frozen, (seen, chunks, marks))?;
            }
            _ => return None,
        }
        self.matched = matched.map(Box::new);
        Some(self)
    }
}
