//! Numbers that are told apart by their types: where a walk is, and which node that stands for.
#![forbid(unsafe_code)]

/// Where a walk is: an index into the table, with one bit that says whether a stop ends there.
///
/// Only the table that gave a state can read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State(pub(super) u32);

/// Set in a state in which a stop ends. Node numbers stay below 2^30.
pub(super) const MATCH: u32 = 1 << 31;

impl State {
    /// Nothing of any stop has been read.
    pub(crate) const ROOT: Self = Self(0);

    #[inline]
    pub(crate) fn is_root(self) -> bool {
        self.0 == 0
    }

    /// A stop ends here. Nothing can be walked from such a state: see [`State::resting`].
    #[inline]
    pub(crate) fn is_match(self) -> bool {
        self.0 & MATCH != 0
    }

    /// The same place without the bit.
    #[inline]
    pub(crate) fn resting(self) -> Self {
        Self(self.0 & !MATCH)
    }
}

/// A node of the trie, in breadth-first order: what tables other than the transitions are indexed
/// by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node(pub(crate) u32);

impl Node {
    pub(crate) const ROOT: Self = Self(0);

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}
