//! The transition table, in two forms behind one `step`.
//!
//! * **Dense rows**, one load a step, for the first nodes in breadth-first order. A list that a
//!   request brings is dense throughout.
//! * **The trie itself** with failure links for the nodes after them, when all rows together would
//!   exceed [`DENSE_BYTES`]: linear in the list. Breadth-first order puts the shallow nodes, where
//!   text nearly always is, into the dense part; a step deep in the trie tries the node's children
//!   and else follows failure links until it is in the dense part again, amortised two moves a
//!   unit.
//!
//! Entries carry `MATCH` when the node they lead to ends a stop, so a walk needs no second load
//! to find out.
#![forbid(unsafe_code)]

use super::alphabet::{Alphabet, OTHER};
use super::ids::{MATCH, Node, State};
use super::trie::{NONE, Trie, find_child};
use super::unit::CodeUnit;

/// The dense part's size at the most, unless one row is larger. Fits the second-level cache of
/// current machines; measured with 256 and 10,000 stops, where 256 KiB made tokens slower and 4 MiB
/// no faster.
const DENSE_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Table {
    /// Rows one after the other; an entry is a state, with [`MATCH`] if a stop ends there.
    dense: Vec<u32>,
    /// Entries in a row: the classes.
    stride: u32,
    /// The trie, when not every node has a dense row.
    deep: Option<Deep>,
}

#[derive(Debug)]
struct Deep {
    /// Nodes below this have a dense row.
    rows: u32,
    children: Children,
    fail: Vec<u32>,
    /// Which nodes end a stop, a bit each.
    ends: Vec<u64>,
}

impl Deep {
    fn ends(&self, node: u32) -> bool {
        self.ends[node as usize / 64] >> (node % 64) & 1 != 0
    }
}

/// The children of every node, and the classes that lead to them. A list of 100,000 stops is more
/// than a million nodes, so where all classes fit a byte, which they nearly always do, a node takes
/// three bytes and not eight.
#[derive(Debug)]
enum Children {
    Narrow {
        /// For each [`BLOCK`] of nodes, its first child; for each node, how far its first child is
        /// from there. At most 63 nodes of at most 256 children stand before a node in its block,
        /// so 16 bits are enough.
        base: Vec<u32>,
        behind: Vec<u16>,
        label: Vec<u8>,
    },
    Wide {
        first: Vec<u32>,
        label: Vec<u32>,
    },
}

const BLOCK: usize = 64;

impl Children {
    /// `first` has one entry more than there are nodes.
    fn new(mut first: Vec<u32>, mut label: Vec<u32>, classes: u32) -> Self {
        if classes > 1 << 8 {
            first.shrink_to_fit();
            label.shrink_to_fit();
            return Self::Wide { first, label };
        }
        let base: Vec<u32> = first.iter().copied().step_by(BLOCK).collect();
        let behind = first
            .iter()
            .zip(0..)
            .map(|(child, node)| u16::try_from(child - base[node / BLOCK]).unwrap_or(0))
            .collect();
        let label = label.iter().map(|&class| u8::try_from(class).unwrap_or(0)).collect();
        Self::Narrow { base, behind, label }
    }

    /// The children of a node: the nodes from the first to before the second.
    #[inline]
    fn of(&self, node: u32) -> (u32, u32) {
        let node = node as usize;
        match self {
            Self::Narrow { base, behind, .. } => {
                let first = |node: usize| base[node / BLOCK] + u32::from(behind[node]);
                (first(node), first(node + 1))
            }
            Self::Wide { first, .. } => (first[node], first[node + 1]),
        }
    }

    /// The child of `node` on `class`, or [`NONE`].
    #[inline]
    fn on(&self, node: u32, class: u32) -> u32 {
        match self {
            // A class of this alphabet, so it fits.
            Self::Narrow { label, .. } => {
                find_child(self.of(node), label, u8::try_from(class).unwrap_or(0))
            }
            Self::Wide { label, .. } => find_child(self.of(node), label, class),
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Self::Narrow { base, behind, label } => {
                base.capacity() * 4 + behind.capacity() * 2 + label.capacity()
            }
            Self::Wide { first, label } => (first.capacity() + label.capacity()) * 4,
        }
    }
}

/// A state is where a dense row begins, or, after the dense part, a node without one: a step is
/// then one load and no arithmetic.
impl Table {
    /// The table of a trie; `ends` says which nodes end a stop (the root never does).
    pub(crate) fn new(
        mut trie: Trie,
        alphabet: &Alphabet,
        dense_bytes: Option<usize>,
        ends: impl Fn(u32) -> bool,
    ) -> Self {
        let stride = alphabet.len() as usize;
        let rows = (dense_bytes.unwrap_or(DENSE_BYTES) / 4 / stride).clamp(1, trie.len());
        let mut dense = vec![0; rows * stride];
        let state = |node: u32| to_state(node, rows, stride);
        for node in 0..rows {
            let row = node * stride;
            if node != 0 {
                // The failure node has a smaller number, so its row is complete.
                let fail = trie.fail[node] as usize * stride;
                dense.copy_within(fail..fail + stride, row);
            }
            for child in trie.first_child[node]..trie.first_child[node + 1] {
                dense[row + trie.label[child as usize] as usize] =
                    flagged(state(child), ends(child));
            }
        }
        let deep = (rows < trie.len()).then(|| {
            let mut bits = vec![0; trie.len().div_ceil(64)];
            for node in (0..u32::try_from(trie.len()).unwrap_or(NONE)).filter(|&node| ends(node)) {
                bits[node as usize / 64] |= 1 << (node % 64);
            }
            let rows = u32::try_from(rows).unwrap_or(NONE);
            trie.fail.shrink_to_fit();
            let children = Children::new(trie.first_child, trie.label, alphabet.len());
            Deep { rows, children, fail: trie.fail, ends: bits }
        });
        Self { dense, stride: alphabet.len(), deep }
    }

    /// The node that a state stands for, [`MATCH`] or not.
    #[inline]
    pub(crate) fn node(&self, state: State) -> Node {
        let (State(state), dense) = (state.resting(), self.dense_len());
        Node(if state < dense { state / self.stride } else { state - dense + dense / self.stride })
    }

    /// Nodes with a row: those that are numbered below this.
    pub(crate) fn rows(&self) -> u32 {
        self.dense_len() / self.stride
    }

    /// The first leaf below a node without a row.
    pub(crate) fn leaf_below(&self, Node(mut node): Node) -> Node {
        if let Some(deep) = &self.deep {
            loop {
                let (from, to) = deep.children.of(node);
                if from == to {
                    break;
                }
                node = from;
            }
        }
        Node(node)
    }

    /// The state of a node.
    pub(crate) fn state(&self, node: Node) -> State {
        State(to_state(node.0, self.rows() as usize, self.stride as usize))
    }

    #[inline]
    fn dense_len(&self) -> u32 {
        // At most `DENSE_BYTES / 4`, or one row.
        u32::try_from(self.dense.len()).unwrap_or(NONE)
    }

    /// The state after `class` in `state`, [`State::is_match`] when a stop ends there. `state` must
    /// not be one of those.
    #[inline]
    pub(crate) fn step(&self, State(state): State, class: u32) -> State {
        State(match &self.deep {
            None => self.dense_step(state, class),
            Some(deep) => self.deep_step(deep, state, class),
        })
    }

    #[inline]
    fn dense_step(&self, state: u32, class: u32) -> u32 {
        self.dense[(state + class) as usize]
    }

    #[inline]
    fn deep_step(&self, deep: &Deep, state: u32, class: u32) -> u32 {
        if state < self.dense_len() {
            self.dense_step(state, class)
        } else {
            self.climb(deep, state, class)
        }
    }

    /// A step from a node without a row: to a child, or else along failure links until there is a
    /// row.
    fn climb(&self, deep: &Deep, state: u32, class: u32) -> u32 {
        if class == OTHER {
            return 0;
        }
        let Node(mut node) = self.node(State(state));
        while node >= deep.rows {
            let child = deep.children.on(node, class);
            if child != NONE {
                return flagged(self.state(Node(child)).0, deep.ends(child));
            }
            node = deep.fail[node as usize];
        }
        self.dense_step(node * self.stride, class)
    }

    /// Walks `units` from `state` until a stop ends; gives the state and how many units were read.
    ///
    /// The loops are two so that the usual list pays nothing for the other form.
    #[inline]
    pub(crate) fn walk<U: CodeUnit>(
        &self,
        alphabet: &Alphabet,
        State(mut state): State,
        units: &[U],
    ) -> (State, usize) {
        let dense = self.dense.as_slice();
        match &self.deep {
            None => {
                for (at, &unit) in units.iter().enumerate() {
                    state = dense[(state + alphabet.class(unit)) as usize];
                    if state & MATCH != 0 {
                        return (State(state), at + 1);
                    }
                }
            }
            Some(deep) => {
                for (at, &unit) in units.iter().enumerate() {
                    let class = alphabet.class(unit);
                    state = match dense.get((state + class) as usize) {
                        Some(&next) => next,
                        None => self.climb(deep, state, class),
                    };
                    if state & MATCH != 0 {
                        return (State(state), at + 1);
                    }
                }
            }
        }
        (State(state), units.len())
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let deep = self.deep.as_ref();
        let deep = deep.map_or(0, |deep| {
            deep.children.heap_bytes() + deep.fail.capacity() * 4 + deep.ends.capacity() * 8
        });
        self.dense.capacity() * 4 + deep
    }
}

/// Where the row of `node` begins, or its place after the dense part.
fn to_state(node: u32, rows: usize, stride: usize) -> u32 {
    let node = node as usize;
    // Below 2^31: the dense part is bounded, and nodes are numbered below 2^30.
    u32::try_from(if node < rows { node * stride } else { rows * stride + node - rows })
        .unwrap_or(0)
}

#[inline]
fn flagged(node: u32, ends: bool) -> u32 {
    if ends { node | MATCH } else { node }
}
