//! All words of all stops as a deterministic automaton, whatever else ends inside them.
//!
//! What streams need in which a stop that ends is not always the end: scopes, stops that are
//! included, and whatever covers text and goes on.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use super::classes::spend;
use super::firsts::DEAD;
use super::nfa::{NodeId, SIDES, Side};
use super::subsets::{Exhausted, Set, Subsets};

#[derive(Debug)]
pub(crate) struct Words {
    /// Rows one after the other; an entry is where the next row begins, or [`DEAD`].
    table: Vec<u32>,
    stride: usize,
    starts: [u32; SIDES],
    /// For each state which list of stops ends there.
    ends: Vec<u32>,
    /// For each state and side which list of stops has ended if that side follows; empty when no
    /// look waits for what follows.
    late: Vec<u32>,
    /// Lists of stops, each ascending; the first is empty.
    lists: Vec<Box<[u32]>>,
}

impl Words {
    /// `most` states at the most.
    pub(super) fn new(subsets: &mut Subsets, most: usize) -> Result<Self, Exhausted> {
        let mut search = Search {
            known: HashMap::new(),
            sets: vec![(Set::new(), Side::Other)],
            lists: vec![Box::default()],
            list_of: HashMap::from([(Box::default(), 0)]),
            subsets,
            most,
        };
        search.explore()
    }

    #[inline]
    pub(crate) fn step(&self, state: u32, class: usize) -> u32 {
        self.table[state as usize + class]
    }

    #[inline]
    pub(crate) fn start(&self, before: Side) -> u32 {
        self.starts[before as usize]
    }

    /// The stops that end in `state`, ascending.
    #[inline]
    pub(crate) fn ended(&self, state: u32) -> &[u32] {
        &self.lists[self.ends[state as usize / self.stride] as usize]
    }

    /// The stops that have ended in `state` if `after` follows, ascending.
    #[inline]
    pub(crate) fn ended_before(&self, state: u32, after: Side) -> &[u32] {
        match self.late.get(state as usize / self.stride * SIDES + after as usize) {
            Some(&list) => &self.lists[list as usize],
            None => &[],
        }
    }

    /// Number of classes.
    pub(crate) fn classes(&self) -> usize {
        self.stride
    }

    /// Whether `state` is a row of a candidate that is alive.
    pub(crate) fn is_state(&self, state: u32) -> bool {
        state != DEAD && (state as usize) < self.table.len() && state as usize % self.stride == 0
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let lists: usize = self.lists.iter().map(|list| 16 + list.len() * 4).sum();
        (self.table.len() + self.ends.len() + self.late.len()) * 4 + lists
    }
}

struct Search<'s, 'a> {
    known: HashMap<Box<[NodeId]>, u32>,
    sets: Vec<(Set, Side)>,
    lists: Vec<Box<[u32]>>,
    list_of: HashMap<Box<[u32]>, u32>,
    subsets: &'s mut Subsets<'a>,
    most: usize,
}

impl Search<'_, '_> {
    fn explore(&mut self) -> Result<Words, Exhausted> {
        let classes = self.subsets.classes();
        let mut starts = [DEAD; SIDES];
        for side in Side::ALL {
            let set = self.subsets.start(side)?;
            starts[side as usize] = self.number(set, side)?;
        }
        let ahead = self.subsets.nfa.looks_ahead;
        let (mut table, mut ends) = (vec![DEAD; classes], vec![0]);
        let mut late = if ahead { vec![0; SIDES] } else { Vec::new() };
        let mut targets: Vec<Vec<NodeId>> = vec![Vec::new(); classes];
        let mut at = 1;
        while at < self.sets.len() {
            let (set, before) = self.sets[at].clone();
            ends.push(self.list(&set));
            let pending = self.subsets.is_pending(&set);
            let mut entries = vec![DEAD; classes];
            let mut after = [0; SIDES];
            let sides: &[Side] = if pending { &Side::ALL } else { &[Side::Other] };
            for &side in sides {
                let decided =
                    if pending { self.subsets.decided(&set, before, side)? } else { set.clone() };
                if pending {
                    // What ends here by a look; what ends here in any case has ended already.
                    let whole: Vec<NodeId> =
                        decided.iter().copied().filter(|id| !set.contains(id)).collect();
                    after[side as usize] = self.list(&whole);
                }
                targets.iter_mut().for_each(Vec::clear);
                self.subsets.steps(&decided, &mut targets)?;
                let mut kinds: Vec<usize> = Vec::new();
                for class in 0..classes {
                    let looks_like = self.subsets.sides[class];
                    if targets[class].is_empty() || (pending && looks_like != side) {
                        continue;
                    }
                    let same = |&&kind: &&usize| {
                        self.subsets.sides[kind] == looks_like && targets[kind] == targets[class]
                    };
                    spend(&mut self.subsets.work, 1 + kinds.len()).ok_or(Exhausted)?;
                    entries[class] = if let Some(&kind) = kinds.iter().find(same) {
                        entries[kind]
                    } else {
                        kinds.push(class);
                        let next = self.subsets.moved(&targets[class], looks_like, false)?;
                        self.number(next, looks_like)?
                    };
                }
            }
            table.extend(entries);
            if ahead {
                late.extend(after);
            }
            at += 1;
        }
        Ok(self.trimmed(&table, &starts, &ends, &late))
    }

    fn list(&mut self, set: &[NodeId]) -> u32 {
        let stops = self.subsets.accepted(set).into_boxed_slice();
        let fresh = u32::try_from(self.lists.len()).unwrap_or(0);
        *self.list_of.entry(stops).or_insert_with_key(|stops| {
            self.lists.push(stops.clone());
            fresh
        })
    }

    fn number(&mut self, set: Set, before: Side) -> Result<u32, Exhausted> {
        if set.is_empty() {
            return Ok(DEAD);
        }
        let mut key = Vec::with_capacity(set.len() + 1);
        key.push(if self.subsets.is_pending(&set) { before as NodeId } else { NodeId::MAX });
        key.extend(&set);
        spend(&mut self.subsets.work, key.len()).ok_or(Exhausted)?;
        if let Some(&known) = self.known.get(key.as_slice()) {
            return Ok(known);
        }
        if self.sets.len() > self.most {
            return Err(Exhausted);
        }
        let number = u32::try_from(self.sets.len()).map_err(|_| Exhausted)?;
        self.known.insert(key.into_boxed_slice(), number);
        self.sets.push((set, before));
        Ok(number)
    }

    /// Leaves out states that lead to no end. Entries were numbers and become places of rows.
    fn trimmed(&mut self, table: &[u32], starts: &[u32], ends: &[u32], late: &[u32]) -> Words {
        let (states, stride) = (ends.len(), self.subsets.classes());
        let mut parents: Vec<Vec<u32>> = vec![Vec::new(); states];
        for (state, row) in table.chunks_exact(stride).enumerate() {
            for &next in row.iter().filter(|&&next| next != DEAD) {
                let state = u32::try_from(state).unwrap_or(0);
                if parents[next as usize].last() != Some(&state) {
                    parents[next as usize].push(state);
                }
            }
        }
        let ending = |state: usize| {
            let late = late.get(state * SIDES..(state + 1) * SIDES).unwrap_or(&[]);
            ends[state] != 0 || late.iter().any(|&list| list != 0)
        };
        let mut alive: Vec<bool> = (0..states).map(ending).collect();
        let mut todo: Vec<usize> = (0..states).filter(|&state| alive[state]).collect();
        while let Some(state) = todo.pop() {
            for &parent in &parents[state] {
                if !std::mem::replace(&mut alive[parent as usize], true) {
                    todo.push(parent as usize);
                }
            }
        }
        let mut number = vec![DEAD; states];
        let mut order = vec![0];
        for state in 1..states {
            if alive[state] {
                number[state] = u32::try_from(order.len() * stride).unwrap_or(DEAD);
                order.push(state);
            }
        }
        let row = |&state: &usize| table[state * stride..][..stride].iter();
        let mut start_rows = [DEAD; SIDES];
        for (place, &start) in start_rows.iter_mut().zip(starts) {
            *place = number[start as usize];
        }
        Words {
            table: order.iter().flat_map(row).map(|&next| number[next as usize]).collect(),
            stride,
            starts: start_rows,
            ends: order.iter().map(|&state| ends[state]).collect(),
            late: if late.is_empty() {
                Vec::new()
            } else {
                order.iter().flat_map(|&s| late[s * SIDES..][..SIDES].iter().copied()).collect()
            },
            lists: std::mem::take(&mut self.lists),
        }
    }
}
