//! The transition table, in two forms behind one `step`.
//!
//! * **Dense rows**, one load a step, for the first nodes in breadth-first order. A list that a request brings is dense throughout.
//! * **The trie itself** with failure links for the nodes behind them, when all rows together would exceed [`DENSE_BYTES`]: linear in
//!   the list. Breadth-first order puts the shallow nodes, where text nearly always is, into the dense part; a step deep in the trie
//!   tries the node's children and else follows failure links until it is in the dense part again, amortised two moves a unit.
//!
//! Entries carry [`MATCH`] when the node they lead to ends a stop, so a walk needs no second load to find out.
#![forbid(unsafe_code)]

use super::alphabet::{Alphabet, OTHER};
use super::trie::{NONE, Trie, find_child};
use super::unit::Unit;

/// Set in a state that ends a stop. Node numbers stay below 2^30.
pub(crate) const MATCH: u32 = 1 << 31;

/// The dense part's size at the most, unless one row is larger. Fits the second-level cache of current machines; measured with
/// 256 and 10,000 stops, where 256 KiB made tokens slower and 4 MiB no faster.
const DENSE_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Table {
    dense: Vec<u32>,
    /// A dense row has `1 << shift` entries.
    shift: u32,
    /// Nodes below this have a dense row.
    rows: u32,
    /// The trie, when not every node has a dense row.
    deep: Option<Deep>,
}

#[derive(Debug)]
struct Deep {
    first_child: Vec<u32>,
    label: Vec<u32>,
    fail: Vec<u32>,
    /// Which nodes end a stop.
    ends: Vec<bool>,
}

impl Table {
    /// The table of a trie; `ends` says which nodes end a stop (the root never does).
    pub(crate) fn new(trie: Trie, alphabet: &Alphabet, dense_bytes: Option<usize>, ends: impl Fn(u32) -> bool) -> Self {
        let shift = alphabet.len().next_power_of_two().trailing_zeros();
        let rows = (dense_bytes.unwrap_or(DENSE_BYTES) / 4 >> shift).clamp(1, trie.len());
        let mut dense = vec![0; rows << shift];
        for node in 0..rows {
            let row = node << shift;
            if node != 0 {
                // The failure node has a smaller number, so its row is complete.
                let fail = (trie.fail[node] as usize) << shift;
                dense.copy_within(fail..fail + (1 << shift), row);
            }
            for child in trie.first_child[node]..trie.first_child[node + 1] {
                dense[row + trie.label[child as usize] as usize] = flagged(child, ends(child));
            }
        }
        let deep = (rows < trie.len()).then(|| {
            let ends = (0..u32::try_from(trie.len()).unwrap_or(NONE)).map(ends).collect();
            Deep { first_child: trie.first_child, label: trie.label, fail: trie.fail, ends }
        });
        Self { dense, shift, rows: u32::try_from(rows).unwrap_or(NONE), deep }
    }

    /// The state after `class` in `state`, with [`MATCH`] set when a stop ends there. `state` must not have it.
    pub(crate) fn step(&self, state: u32, class: u32) -> u32 {
        match &self.deep {
            None => self.dense_step(state, class),
            Some(deep) => self.deep_step(deep, state, class),
        }
    }

    #[inline]
    fn dense_step(&self, state: u32, class: u32) -> u32 {
        self.dense[((state as usize) << self.shift) | class as usize]
    }

    #[inline]
    fn deep_step(&self, deep: &Deep, mut state: u32, class: u32) -> u32 {
        while state >= self.rows {
            if class == OTHER {
                return 0;
            }
            let child = find_child(&deep.first_child, &deep.label, state as usize, class);
            if child != NONE {
                return flagged(child, deep.ends[child as usize]);
            }
            state = deep.fail[state as usize];
        }
        self.dense_step(state, class)
    }

    /// Walks `units` from `state` until a stop ends; gives the state and how many units were read.
    ///
    /// The loops are two so that the usual list pays nothing for the other form.
    #[inline]
    pub(crate) fn walk<U: Unit>(&self, alphabet: &Alphabet, mut state: u32, units: &[U]) -> (u32, usize) {
        match &self.deep {
            None => {
                for (at, &unit) in units.iter().enumerate() {
                    state = self.dense_step(state, alphabet.class(unit));
                    if state & MATCH != 0 {
                        return (state, at + 1);
                    }
                }
            }
            Some(deep) => {
                for (at, &unit) in units.iter().enumerate() {
                    state = self.deep_step(deep, state, alphabet.class(unit));
                    if state & MATCH != 0 {
                        return (state, at + 1);
                    }
                }
            }
        }
        (state, units.len())
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let deep = self
            .deep
            .as_ref()
            .map_or(0, |d| (d.first_child.capacity() + d.label.capacity() + d.fail.capacity()) * 4 + d.ends.capacity());
        self.dense.capacity() * 4 + deep
    }
}

#[inline]
fn flagged(node: u32, ends: bool) -> u32 {
    if ends { node | MATCH } else { node }
}
