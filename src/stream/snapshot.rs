//! A matcher in mid-flight as plain values, so that it can move to another process and go on there.
//!
//! A snapshot carries text and counters, never state numbers: restoring walks the text again, so a snapshot that was tampered with
//! can be refused, or be some other valid stream, but never an index out of range.
#![forbid(unsafe_code)]

use super::marks::Marks;
use super::{Match, Matcher};

/// What [`Matcher::snapshot`] gives and [`Matcher::restore`] takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The text that the state stands for, as (UTF-8) bytes: what is held, or would be if the stop were not included.
    pub window: Vec<u8>,
    /// Units read.
    pub seen: u64,
    /// Chunks read.
    pub chunks: u64,
    /// The chunk of the window's first unit, and (offset, chunk) of each later chunk in it.
    pub marks: (u64, Vec<(u64, u64)>),
    /// The match, if the stream has ended.
    pub matched: Option<Match>,
}

impl Matcher {
    /// The state as plain values.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let automaton = self.set.automaton(self.over);
        let depth = automaton.depth(self.engine.state) as usize;
        let window = if depth == 0 { &[] } else { self.prefix_of(automaton.stop(self.engine.state), depth) };
        Snapshot {
            window: window.to_vec(),
            seen: self.engine.seen,
            chunks: self.engine.chunks,
            marks: self.engine.marks.export(),
            matched: self.matched().cloned(),
        }
    }

    /// Goes on from a snapshot; `None` if no stream of this set could be in that state.
    #[must_use]
    pub fn restore(mut self, snapshot: Snapshot) -> Option<Self> {
        self.reset();
        let automaton = self.set.automaton(self.over);
        let window: Vec<u32> = self.over.units(&snapshot.window).collect();
        let (state, read) = automaton.walk(0, &window);
        let stops = self.set.stops();
        let sound = read == window.len()
            && automaton.depth(state) as usize == window.len()
            && window.len() as u64 <= snapshot.seen
            && snapshot.marks.1.len() <= window.len()
            && snapshot.matched.as_ref().is_none_or(|found| found.index < stops.len());
        if !sound || (window.is_empty() && !snapshot.window.is_empty()) {
            return None;
        }
        self.engine.state = state;
        self.engine.seen = snapshot.seen;
        self.engine.chunks = snapshot.chunks;
        self.engine.marks = Marks::import(snapshot.marks.0, snapshot.marks.1);
        self.matched = snapshot.matched.map(Box::new);
        Some(self)
    }
}
