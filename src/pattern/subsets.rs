//! Sets of nodes and how they move: what both languages of a set of stops are built from.
//!
//! A set of nodes is a sorted list. Looks that only need what stands before are decided when a set
//! is made; the others stay in it until the next unit (or the end of the text) is known.
#![forbid(unsafe_code)]

use super::classes::{Classes, spend};
use super::nfa::{Nfa, Node, NodeId, Side};

pub(super) type Set = Vec<NodeId>;

pub(super) struct Subsets<'a> {
    pub(super) nfa: &'a Nfa,
    /// For each set of units its classes.
    members: Vec<Vec<u16>>,
    /// For each class what a look sees of it.
    pub(super) sides: Vec<Side>,
    /// Nodes seen in the closure being made: the number of the closure.
    seen: Vec<u32>,
    round: u32,
    todo: Vec<NodeId>,
    /// Work that may still be done, in visits of nodes.
    pub(super) work: usize,
}

/// There was more to do than allowed.
#[derive(Debug)]
pub(super) struct Exhausted;

impl<'a> Subsets<'a> {
    pub(super) fn new(
        nfa: &'a Nfa,
        classes: &Classes,
        members: Vec<Vec<u16>>,
        work: usize,
    ) -> Self {
        let mut sides = vec![Side::Other; classes.len()];
        for (set, side) in nfa.sides.iter().zip([Side::Newline, Side::Word]) {
            for &class in set.iter().flat_map(|&set| &members[set as usize]) {
                sides[class as usize] = side;
            }
        }
        let seen = vec![0; nfa.nodes.len()];
        Self { nfa, members, sides, seen, round: 0, todo: Vec::new(), work }
    }

    fn begin(&mut self) {
        self.round += 1;
    }

    /// Adds to `set` all that `from` reaches without reading, between `before` and, if it is known,
    /// `after`.
    fn close(
        &mut self,
        from: impl IntoIterator<Item = NodeId>,
        before: Side,
        after: Option<Side>,
        set: &mut Set,
    ) -> Result<(), Exhausted> {
        self.todo.extend(from);
        while let Some(id) = self.todo.pop() {
            if self.seen[id as usize] == self.round {
                continue;
            }
            self.seen[id as usize] = self.round;
            spend(&mut self.work, 1).ok_or(Exhausted)?;
            match &self.nfa.nodes[id as usize] {
                Node::Split(nodes) => self.todo.extend(nodes.iter().copied()),
                Node::Look { look, next } => match after {
                    None if !look.is_behind() => set.push(id),
                    _ => {
                        // A look behind holds or not, whatever follows.
                        if look.holds(before, after.unwrap_or(Side::Other)) {
                            self.todo.push(*next);
                        }
                    }
                },
                Node::Step { .. } | Node::Fork(_) | Node::Accept(_) => set.push(id),
            }
        }
        Ok(())
    }

    /// What a candidate that begins after `before` is in.
    pub(super) fn start(&mut self, before: Side) -> Result<Set, Exhausted> {
        self.moved(&[], before, true)
    }

    /// The set that `targets` are, after a unit that looks like `before`; with `start`, together
    /// with what begins there.
    pub(super) fn moved(
        &mut self,
        targets: &[NodeId],
        before: Side,
        start: bool,
    ) -> Result<Set, Exhausted> {
        self.begin();
        let mut set = Set::new();
        let root = start.then_some(self.nfa.start);
        self.close(targets.iter().copied().chain(root), before, None, &mut set)?;
        set.sort_unstable();
        Ok(set)
    }

    /// Whether what follows matters to a set.
    pub(super) fn is_pending(&self, set: &[NodeId]) -> bool {
        self.nfa.looks_ahead
            && set.iter().any(|&id| matches!(self.nfa.nodes[id as usize], Node::Look { .. }))
    }

    /// A set with its looks decided.
    pub(super) fn decided(
        &mut self,
        set: &[NodeId],
        before: Side,
        after: Side,
    ) -> Result<Set, Exhausted> {
        self.begin();
        let mut decided = Set::new();
        self.close(set.iter().copied(), before, Some(after), &mut decided)?;
        decided.sort_unstable();
        Ok(decided)
    }

    /// The stops that end in a set, ascending.
    pub(super) fn accepted(&self, set: &[NodeId]) -> Vec<u32> {
        let mut stops: Vec<u32> = set
            .iter()
            .filter_map(|&id| match self.nfa.nodes[id as usize] {
                Node::Accept(stop) => Some(stop),
                _ => None,
            })
            .collect();
        stops.sort_unstable();
        stops.dedup();
        stops
    }

    /// Where the nodes of a decided set go, for each class: appended to `targets`.
    pub(super) fn steps(
        &mut self,
        set: &[NodeId],
        targets: &mut [Vec<NodeId>],
    ) -> Result<(), Exhausted> {
        for &id in set {
            let edges: &[(u32, NodeId)] = match &self.nfa.nodes[id as usize] {
                Node::Step { set, next } => &[(*set, *next)],
                Node::Fork(edges) => edges,
                _ => &[],
            };
            for &(set, next) in edges {
                let members = &self.members[set as usize];
                spend(&mut self.work, members.len()).ok_or(Exhausted)?;
                for &class in members {
                    targets[class as usize].push(next);
                }
            }
        }
        Ok(())
    }

    pub(super) fn classes(&self) -> usize {
        self.sides.len()
    }
}
