//! A matcher in mid-flight as plain values, so that it can move to another process and go on there.
//!
//! A snapshot carries text and counters, never state numbers: restoring walks the text again, so a
//! snapshot that was tampered with can be refused, or be some other valid stream, but never an
//! index out of range.
#![forbid(unsafe_code)]

use super::chunk_index::ChunkIndex;
use super::machine::Machine;
use super::matcher::Engine;
use super::progress::Progress;
use super::{Match, Matcher};

/// What [`Matcher::snapshot`] gives and [`Matcher::restore`] takes, beside the set and the options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Units read.
    pub seen: u64,
    /// Chunks read.
    pub chunks: u64,
    /// The chunk of the first unit at which a match could begin, and (offset, chunk) of each later
    /// chunk.
    pub chunk_index: (u64, Vec<(u64, u64)>),
    /// Where the stream is.
    pub place: Place,
    /// The match, if the stream has ended.
    pub matched: Option<Match>,
}

/// Where a machine is, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// What the state of a stream without scopes stands for, as (UTF-8) bytes.
    Plain(Vec<u8>),
    /// The same for a stream with scopes.
    Scoped(ScopedSnapshot),
    /// The same for a stream of a set with patterns.
    Patterned(PatternedSnapshot),
}

/// The state of a stream with scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopedSnapshot {
    /// What the state of the automaton in use stands for.
    pub window: Vec<u8>,
    /// The number of the region the stream is in.
    pub region: Option<usize>,
    /// A stop counts if it ends after this offset; `None` when disarmed by hand.
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

/// The state of a stream of a set with patterns. Numbers of states are those of this version of the
/// crate; one that is none is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternedSnapshot {
    /// Where a stop may have begun: offset, chunk, and state.
    pub candidates: Vec<(u64, u64, u32)>,
    /// What a look would see before the next unit.
    pub before: u8,
    /// With `max_hold`: where held text begins.
    pub border: u64,
    /// The held text.
    pub held: Vec<u8>,
    /// The chunk that brought the last unit.
    pub last_chunk: u64,
    /// The number of states of the compiled set.
    pub states: usize,
}

/// Far beyond any stream, and far from where counters would overflow.
const COUNTABLE: u64 = 1 << 62;

impl Matcher {
    /// The state as plain values.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (progress, place) = match &self.engine {
            Engine::Plain(machine) => (machine.progress(), machine.place(&self.set)),
            Engine::Scoped(machine) => (machine.progress(), machine.place(&self.set)),
            Engine::Patterned(machine) => (machine.progress(), machine.place(&self.set)),
        };
        Snapshot {
            seen: progress.seen,
            chunks: progress.chunks,
            chunk_index: progress.index.export(),
            place,
            matched: self.matched().cloned(),
        }
    }

    /// Goes on from a snapshot; `None` if no stream of this set and these options could be in that
    /// state.
    #[must_use]
    pub fn restore(mut self, snapshot: Snapshot) -> Option<Self> {
        let Snapshot { seen, chunks, chunk_index: (first, later), place, matched } = snapshot;
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
        let progress = Progress { seen, chunks, index: ChunkIndex::import(first, later) };
        self.engine = match self.engine {
            Engine::Plain(machine) => Engine::Plain(machine.at(&self.set, place, progress)?),
            Engine::Scoped(machine) => {
                Engine::Scoped(Box::new(machine.at(&self.set, place, progress)?))
            }
            Engine::Patterned(machine) => {
                Engine::Patterned(Box::new(machine.at(&self.set, place, progress)?))
            }
        };
        self.matched = matched.map(Box::new);
        Some(self)
    }
}
