//! The compiled form of a stop list: an Aho-Corasick automaton whose state *is* the hold-back buffer.
//!
//! A state stands for the longest suffix of the text that is a proper prefix of a stop, so its depth is the number of units to
//! hold back and the text held is the beginning of any stop below it. Unreachable stops are pruned first; what is left has
//! two properties that everything else leans on:
//!
//! * no stop lies strictly inside another, so **states that end a stop are exactly the leaves** and there are no output chains;
//! * **the order of starts and of ends is the same**: if one occurrence ended first and began later, it would lie inside the other.
// `deny`, since `forbid` would reach into `filter`; every other file below says `forbid` for itself.
#![deny(unsafe_code)]

mod alphabet;
#[allow(unsafe_code, reason = "vector instructions")]
mod filter;
mod scan;
mod table;
mod trie;
mod unit;

pub(crate) use alphabet::Alphabet;
pub(crate) use scan::LONG;
pub(crate) use table::{MATCH, Table};
pub(crate) use trie::{NONE, Patterns, Trie, depth};
pub use unit::Unit;

use std::sync::OnceLock;

use crate::stops::{Limits, StopList, Tie};

/// A pruned, immutable automaton over characters or bytes.
#[derive(Debug)]
pub(crate) struct Automaton {
    alphabet: Alphabet,
    table: Table,
    /// For each node a stop that begins with its string; for a leaf, the stop that ends there.
    sample: Vec<u32>,
    levels: Vec<u32>,
    /// Where states of depth 2 and of depth 3 begin, for the start filter.
    second: u32,
    third: u32,
    /// Made when the first long chunk comes; `None` inside where it would not pay, or is switched off.
    filter: OnceLock<Option<filter::Filter>>,
}

/// Switches that no caller needs, for tests: every fast path has a slow twin that must give the same answers.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Paths {
    /// Bytes of the dense part of the table at the most; 0 forces the compact form.
    pub dense_bytes: Option<usize>,
    /// Walk every unit of long text.
    pub no_filter: bool,
}

/// What the units of an automaton are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Characters,
    Bytes,
}

impl Over {
    /// Bytes of the first `count` units of `text`; nothing behind them is looked at.
    pub(crate) fn prefix_len(self, text: &[u8], count: usize) -> usize {
        match self {
            Self::Bytes => count.min(text.len()),
            // `text` is UTF-8: a character begins at every byte that does not continue one.
            Self::Characters => {
                let mut begins = text.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80);
                begins.nth(count).map_or(text.len(), |(at, _)| at)
            }
        }
    }

    /// The units of a stop. In a text automaton every stop is valid UTF-8.
    pub(crate) fn units(self, stop: &[u8]) -> impl Iterator<Item = u32> + Clone {
        let (text, bytes) = match self {
            Self::Characters => (std::str::from_utf8(stop).unwrap_or(""), [].as_slice()),
            Self::Bytes => ("", stop),
        };
        text.chars().map(u32::from).chain(bytes.iter().map(|&b| u32::from(b)))
    }
}

impl Automaton {
    /// Compiles markers, every one of which is a legal stop.
    pub(crate) fn of_markers<'a>(markers: impl Iterator<Item = &'a [u8]>, over: Over) -> Self {
        let mut list = StopList::new(Limits { max_stops: usize::MAX, max_bytes: usize::MAX });
        for marker in markers {
            let pushed = list.push_bytes(marker);
            debug_assert!(pushed.is_ok(), "markers are validated before");
        }
        Self::new(&list, over, Tie::Longest, Paths::default()).0
    }

    /// Compiles `stops`; gives the automaton and the indices of unreachable stops, ascending.
    pub(crate) fn new(stops: &StopList, over: Over, tie: Tie, paths: Paths) -> (Self, Vec<usize>) {
        // For ASCII, bytes are characters.
        let over = if stops.is_ascii() { Over::Bytes } else { over };
        let (alphabet, patterns) = match over {
            Over::Bytes => Patterns::of_bytes(stops.arena(), stops.ends()),
            Over::Characters => compile_patterns(stops.iter(), stops.arena().len(), over),
        };
        let trie = Trie::new(&patterns, &alphabet, true);
        let (dead, inside) = unreachable(&trie, &patterns, tie);
        // A stop behind the end of another was pruned on the way; one with another inside must be taken out.
        let mut trie = if inside { trie.without(|i| !dead[i as usize]) } else { trie };
        let (sample, levels) = (std::mem::take(&mut trie.sample), std::mem::take(&mut trie.levels));
        let leaves: Vec<bool> = trie.first_child.windows(2).map(|w| w[0] == w[1]).collect();
        let table = Table::new(trie, &alphabet, paths.dense_bytes, |node| leaves[node as usize]);
        let unreachable = dead.iter().enumerate().filter_map(|(i, &dead)| dead.then_some(i)).collect();
        let level = |depth: usize| table.state(levels[depth.min(levels.len() - 1)]);
        let (second, third) = (level(2), level(3));
        let filter = if paths.no_filter { OnceLock::from(None) } else { OnceLock::new() };
        (Self { alphabet, table, sample, levels, second, third, filter }, unreachable)
    }

    /// Walks `units` from `state`; gives the new state, with [`MATCH`] set if a stop ended, and how many units were read.
    #[inline]
    pub(crate) fn walk<U: Unit>(&self, state: u32, units: &[U]) -> (u32, usize) {
        self.table.walk(&self.alphabet, state, units)
    }

    /// How many units `state` stands for.
    #[inline]
    pub(crate) fn depth(&self, state: u32) -> u32 {
        depth(&self.levels, self.table.node(state))
    }

    /// A stop that begins with what `state` stands for; the stop that ends there if `state` has [`MATCH`].
    #[inline]
    pub(crate) fn stop(&self, state: u32) -> usize {
        self.sample[self.table.node(state) as usize] as usize
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.alphabet.heap_bytes()
            + self.table.heap_bytes()
            + (self.sample.capacity() + self.levels.capacity()) * 4
            + self.filter.get().and_then(Option::as_ref).map_or(0, filter::Filter::heap_bytes)
    }
}

/// The alphabet and the class strings of a list of patterns.
pub(crate) fn compile_patterns<'a>(
    list: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    total_bytes: usize,
    over: Over,
) -> (Alphabet, Patterns) {
    let alphabet = Alphabet::new(list.clone().flat_map(|p| over.units(p)));
    let mut patterns = Patterns::with_capacity(list.len(), total_bytes);
    for pattern in list {
        patterns.push(&alphabet, over.units(pattern));
    }
    (alphabet, patterns)
}

/// Marks the stops that can never be the match, and says whether one of them is still in the trie.
fn unreachable(trie: &Trie, patterns: &Patterns, tie: Tie) -> (Vec<bool>, bool) {
    let mut dead = vec![false; patterns.len()];
    let mut inside = false;
    // The best stop that is a suffix of each node's string: by `tie`, over the whole chain of failure links.
    let mut best = vec![NONE; trie.len()];
    for (node, own) in trie.terminals(patterns) {
        let shorter = best[trie.fail[node] as usize];
        let (from, to) = trie.range[node];
        let below = &trie.order[from as usize..to as usize];
        best[node] = own.unwrap_or(shorter);
        if let Some(own) = own {
            // Equal stops and longer ones behind this one; the first in order is the stop itself.
            for &i in &below[1..] {
                dead[i as usize] = true;
            }
            if tie == Tie::First && shorter != NONE {
                best[node] = own.min(shorter);
                if shorter < own {
                    dead[own as usize] = true;
                    inside = true;
                }
            }
        } else if shorter != NONE {
            for &i in below {
                dead[i as usize] = true;
            }
            inside = true;
        }
    }
    (dead, inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(stops: &[&str]) -> StopList {
        let mut list = StopList::new(Limits::default());
        for stop in stops {
            list.push(stop).unwrap();
        }
        list
    }

    fn unreachable_of(stops: &[&str], tie: Tie) -> Vec<usize> {
        Automaton::new(&list(stops), Over::Characters, tie, Paths::default()).1
    }

    #[test]
    fn unreachable_stops() {
        assert_eq!(unreachable_of(&["bcd", "c"], Tie::Longest), [0]);
        assert_eq!(unreachable_of(&["abc", "ab"], Tie::Longest), [0]);
        assert_eq!(unreachable_of(&["bc", "abc"], Tie::Longest), [] as [usize; 0]);
        assert_eq!(unreachable_of(&["bc", "abc"], Tie::First), [1]);
        assert_eq!(unreachable_of(&["abc", "bc"], Tie::First), [] as [usize; 0]);
        assert_eq!(unreachable_of(&["a", "b", "a"], Tie::Longest), [2]);
        assert_eq!(unreachable_of(&["xaby", "ab", "zab", "ab"], Tie::Longest), [0, 3]);
        // `b` is inside `abc`, which is inside `xabcy`: all but `b` go.
        assert_eq!(unreachable_of(&["xabcy", "abc", "b"], Tie::First), [0, 1]);
    }

    #[test]
    fn a_compact_table_walks_like_a_dense_one() {
        let stops = ["hers", "he's", "she", "語彙", "語る", "aaaab", "baaa!"];
        let dense = Automaton::new(&list(&stops), Over::Characters, Tie::Longest, Paths::default()).0;
        let compact =
            Automaton::new(&list(&stops), Over::Characters, Tie::Longest, Paths { dense_bytes: Some(0), ..Paths::default() }).0;
        for text in ["ushers he's", "aaaaaaab", "語語彙", "baaaaaaab!baaa!", "hhehehers", ""] {
            let units: Vec<u32> = text.chars().map(u32::from).collect();
            let answer = |automaton: &Automaton| {
                let (state, read) = automaton.walk(0, &units);
                (automaton.table.node(state), state & MATCH, read)
            };
            assert_eq!(answer(&dense), answer(&compact), "{text}");
        }
    }
}
