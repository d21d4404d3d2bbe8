//! The compiled form of a stop list: an Aho-Corasick automaton whose state *is* the hold-back
//! buffer.
//!
//! A state stands for the longest suffix of the text that is a proper prefix of a stop, so its
//! depth is the number of units to hold back and the text held is the beginning of any stop below
//! it. Unreachable stops are pruned first; what is left has two properties that everything else
//! leans on:
//!
//! * no stop lies strictly inside another, so **states that end a stop are exactly the leaves** and
//!   there are no output chains;
//! * **the order of starts and of ends is the same**: if one occurrence ended first and began
//!   later, it would lie inside the other.
// `deny`, since `forbid` would reach into `filter`; every other file below says `forbid` for
// itself.
#![deny(unsafe_code)]

mod alphabet;
#[allow(unsafe_code, reason = "vector instructions")]
mod filter;
mod ids;
mod scan;
mod table;
mod trie;
mod unit;

pub(crate) use alphabet::Alphabet;
pub(crate) use ids::{Node, State};
pub(crate) use scan::{LONG, Pace, Scanner};
pub(crate) use table::Table;
pub(crate) use trie::{NONE, Patterns, Trie, depth};
pub use unit::CodeUnit;

use crate::stops::{Limits, StopList, Tie};

/// A pruned, immutable automaton over characters or bytes.
#[derive(Debug)]
pub(crate) struct Automaton {
    alphabet: Alphabet,
    table: Table,
    representative: Representative,
    depth_starts: Vec<u32>,
    scanner: Scanner,
}

/// For each node a stop that begins with its string; for a leaf, the stop that ends there.
#[derive(Debug)]
struct Representative {
    /// Of the nodes that have a dense row, where text nearly always is.
    shallow: Vec<u32>,
    /// The leaves after them, ascending, and their stops: a node there has the stop of the first
    /// leaf below it. To keep a stop for each of a million nodes would cost as much as their links.
    leaves: Vec<u32>,
    stops: Vec<u32>,
}

impl Representative {
    fn new(mut all: Vec<u32>, leaves: &[bool], table: &Table) -> Self {
        let rows = table.rows() as usize;
        let behind = leaves.iter().zip(0..).skip(rows).filter(|(leaf, _)| **leaf);
        let mut leaves: Vec<u32> = behind.map(|(_, node)| node).collect();
        leaves.shrink_to_fit();
        let stops = leaves.iter().map(|&leaf| all[leaf as usize]).collect();
        all.truncate(rows);
        if all.capacity() > 1 << 12 {
            all.shrink_to_fit();
        }
        Self { shallow: all, leaves, stops }
    }

    #[inline]
    fn stop(&self, table: &Table, node: Node) -> u32 {
        self.shallow.get(node.index()).copied().unwrap_or_else(|| self.deep(table, node))
    }

    #[cold]
    fn deep(&self, table: &Table, node: Node) -> u32 {
        // It is there: every path down ends in a leaf.
        self.leaves.binary_search(&table.leaf_below(node).0).map_or(0, |at| self.stops[at])
    }

    fn heap_bytes(&self) -> usize {
        (self.shallow.capacity() + self.leaves.capacity() + self.stops.capacity()) * 4
    }
}

/// Switches that no caller needs, for tests: every fast path has a slow twin that must give the
/// same answers.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TestKnobs {
    /// Bytes of the dense part of the table at the most; 0 forces the compact form.
    pub dense_bytes: Option<usize>,
    /// Walk every unit of long text.
    pub no_filter: bool,
}

/// What the units of an automaton are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitKind {
    Characters,
    Bytes,
}

impl UnitKind {
    /// Bytes of the first `count` units of `text`; nothing after them is looked at.
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
    pub(crate) fn of_markers<'a>(
        markers: impl Iterator<Item = &'a [u8]>,
        kind: UnitKind,
        knobs: TestKnobs,
    ) -> Self {
        let mut list = StopList::new(Limits { max_stops: usize::MAX, max_bytes: usize::MAX });
        for marker in markers {
            let pushed = list.push_bytes(marker);
            debug_assert!(pushed.is_ok(), "markers are validated before");
        }
        Self::new(&list, kind, Tie::Longest, knobs).0
    }

    /// Compiles `stops`; gives the automaton and the indices of unreachable stops, ascending.
    pub(crate) fn new(
        stops: &StopList,
        kind: UnitKind,
        tie: Tie,
        knobs: TestKnobs,
    ) -> (Self, Vec<usize>) {
        // For ASCII, bytes are characters.
        let kind = if stops.is_ascii() { UnitKind::Bytes } else { kind };
        let (alphabet, patterns) = match kind {
            UnitKind::Bytes => Patterns::of_bytes(stops.arena(), stops.ends()),
            UnitKind::Characters => compile_patterns(stops.iter(), stops.arena().len(), kind),
        };
        let trie = Trie::new(&patterns, &alphabet, true);
        let (dead, inside) = unreachable(&trie, &patterns, tie);
        // A stop that goes on after the end of another was pruned on the way; one with another inside must be
        // taken out.
        let mut trie = if inside { trie.without(|i| !dead[i as usize]) } else { trie };
        let (representative, depth_starts) =
            (std::mem::take(&mut trie.representative), std::mem::take(&mut trie.depth_starts));
        let leaves: Vec<bool> = trie.first_child.windows(2).map(|w| w[0] == w[1]).collect();
        let table = Table::new(trie, &alphabet, knobs.dense_bytes, |node| leaves[node as usize]);
        let representative = Representative::new(representative, &leaves, &table);
        let unreachable =
            dead.iter().enumerate().filter_map(|(i, &dead)| dead.then_some(i)).collect();
        let scanner = Scanner::new(&table, &depth_starts, knobs);
        (Self { alphabet, table, representative, depth_starts, scanner }, unreachable)
    }

    /// Walks `units` from `state` until a stop ends; gives the state there, and how many units were
    /// read.
    #[inline]
    pub(crate) fn walk<U: CodeUnit>(&self, state: State, units: &[U]) -> (State, usize) {
        self.table.walk(&self.alphabet, state, units)
    }

    /// The same for long text; `stops` are those that were compiled. Out of line, so that a token does
    /// not carry its registers.
    #[inline(never)]
    pub(crate) fn scan<'a, U: CodeUnit>(
        &self,
        stops: impl ExactSizeIterator<Item = &'a [u8]>,
        kind: UnitKind,
        state: State,
        units: &[U],
    ) -> (State, usize) {
        self.scanner.scan((&self.table, &self.alphabet), || stops, kind, state, units)
    }

    /// How many units `state` stands for.
    #[inline]
    pub(crate) fn depth(&self, state: State) -> u32 {
        depth(&self.depth_starts, self.table.node(state).0)
    }

    /// A stop that begins with what `state` stands for; the stop that ends there, if one does.
    #[inline]
    pub(crate) fn stop(&self, state: State) -> usize {
        self.representative.stop(&self.table, self.table.node(state)) as usize
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.alphabet.heap_bytes()
            + self.table.heap_bytes()
            + self.representative.heap_bytes()
            + self.depth_starts.capacity() * 4
            + self.scanner.heap_bytes()
    }
}

/// The alphabet and the class strings of a list of patterns.
pub(crate) fn compile_patterns<'a>(
    list: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    total_bytes: usize,
    kind: UnitKind,
) -> (Alphabet, Patterns) {
    let alphabet = Alphabet::new(list.clone().flat_map(|p| kind.units(p)));
    let mut patterns = Patterns::with_capacity(list.len(), total_bytes);
    for pattern in list {
        patterns.push(&alphabet, kind.units(pattern));
    }
    (alphabet, patterns)
}

/// Marks the stops that can never be the match, and says whether one of them is still in the trie.
fn unreachable(trie: &Trie, patterns: &Patterns, tie: Tie) -> (Vec<bool>, bool) {
    let mut dead = vec![false; patterns.len()];
    let mut inside = false;
    // The best stop that is a suffix of each node's string: by `tie`, over the whole chain of
    // failure links.
    let mut best = vec![NONE; trie.len()];
    for (node, own) in trie.terminals(patterns) {
        let shorter = best[trie.fail[node] as usize];
        let (from, to) = trie.range[node];
        let below = &trie.order[from as usize..to as usize];
        best[node] = own.unwrap_or(shorter);
        if let Some(own) = own {
            // Equal stops and longer ones after this one; the first in order is the stop itself.
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
        Automaton::new(&list(stops), UnitKind::Characters, tie, TestKnobs::default()).1
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
        let stops = ["hers", "he's", "she", "語彙", "語る", "aaaab", "baaa!"].map(str::to_owned);
        compare(&stops, &["ushers he's", "aaaaaaab", "語語彙", "baaaaaaab!baaa!", "hhehehers", ""]);
        // More classes than a byte has, more nodes than a block.
        let letter = |n: u32| char::from_u32(0x4e00 + n * 7).unwrap();
        let stops: Vec<String> =
            (0..300).map(|n| [n, n / 2, n / 3 + 1, 299 - n].map(letter).iter().collect()).collect();
        let text: String =
            (0..2000).map(|n| letter(n * n % 300)).chain(stops[77].chars()).collect();
        let near: String = (0..300).flat_map(|n| [n, n / 2, n / 3 + 1, n].map(letter)).collect();
        compare(&stops, &[&text, &near, &stops.concat()]);
    }

    /// Both forms give the same node, text and stop after every unit.
    fn compare(stops: &[String], texts: &[&str]) {
        let stops: Vec<&str> = stops.iter().map(String::as_str).collect();
        let compile = |dense_bytes| {
            Automaton::new(
                &list(&stops),
                UnitKind::Characters,
                Tie::Longest,
                TestKnobs { dense_bytes, ..TestKnobs::default() },
            )
            .0
        };
        let (dense, compact) = (compile(Some(usize::MAX)), compile(Some(0)));
        for text in texts {
            let units: Vec<u32> = text.chars().map(u32::from).collect();
            let walked = |automaton: &Automaton| {
                let mut state = State::ROOT;
                let mut answers = Vec::new();
                for unit in &units {
                    state = automaton.walk(state.resting(), &[*unit]).0;
                    let held: Vec<char> = stops[automaton.stop(state)]
                        .chars()
                        .take(automaton.depth(state) as usize)
                        .collect();
                    answers.push((automaton.table.node(state), state.is_match(), held));
                    if state.is_match() {
                        state = State::ROOT;
                    }
                }
                answers
            };
            assert_eq!(walked(&dense), walked(&compact), "{text}");
        }
    }
}
