//! The words in which no stop ends before their own end, as a deterministic automaton.
//!
//! A candidate is a place where a stop may have begun. Its state is a pair of sets of nodes: what
//! the candidate itself may be in, and what it and everything that began after it may be in. Where
//! the second ends a stop and the first does not, the candidate can never be the match: the other
//! one ends the stream. Where the first ends a stop, it is the match, unless one that began earlier
//! ends there too. What cannot come to an end any more is cut off, so **a candidate that is alive
//! can still be the match**, and the earliest of them is where held text begins.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use super::classes::spend;
use super::nfa::{NodeId, SIDES, Side};
use super::subsets::{Exhausted, Set, Subsets};
use crate::stops::Tie;

/// No candidate any more.
pub(crate) const DEAD: u32 = 0;
/// A stop ended: in the low bits which.
pub(crate) const FINAL: u32 = 1 << 31;
/// With [`FINAL`]: it ended before the unit that was read.
pub(crate) const LATE: u32 = 1 << 30;
/// No stop.
pub(crate) const NONE: u32 = u32::MAX;
/// No limit to how long a candidate is held.
pub(crate) const UNLIMITED: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Firsts {
    /// Rows one after the other; an entry is where the next row begins, [`DEAD`] (whose row is the
    /// first), or [`FINAL`] with a stop.
    table: Vec<u32>,
    stride: usize,
    /// The row of a candidate that begins after each side.
    starts: [u32; SIDES],
    /// For each state the stop that the end of the text completes.
    end: Vec<u32>,
    /// For each state for how many units a candidate in it is held.
    limit: Vec<u32>,
    /// Whether any state has a limit.
    limited: bool,
    /// For each stop what it can hold at the most; `None` without end.
    bounds: Vec<Option<u32>>,
    reachable: Vec<bool>,
}

impl Firsts {
    /// `most` states at the most; `limits` are the stops' own.
    pub(super) fn new(
        subsets: &mut Subsets,
        tie: Tie,
        most: usize,
        limits: &[u32],
    ) -> Result<Self, Exhausted> {
        let mut pairs = Pairs::new(subsets, tie, most);
        let starts = pairs.explore()?;
        let Pairs { table, end, .. } = pairs;
        let stride = subsets.classes();
        Ok(Self::trimmed(&table, stride, starts, &end, limits))
    }

    /// Leaves out the states from which no stop can be reached, and finds out the rest.
    fn trimmed(
        table: &[u32],
        stride: usize,
        starts: [u32; SIDES],
        end: &[u32],
        limits: &[u32],
    ) -> Self {
        let limit = longest_limits(table, stride, end, limits);
        let alive = |state: u32| limit[state as usize].is_some();
        let mut number = vec![DEAD; end.len()];
        let mut order = vec![0];
        for state in 1..end.len() {
            if limit[state].is_some() {
                number[state] = row(order.len(), stride);
                order.push(state);
            }
        }
        let mut kept = Vec::with_capacity(order.len() * stride);
        kept.resize(stride, DEAD);
        for &state in &order[1..] {
            let entries = &table[state * stride..][..stride];
            kept.extend(entries.iter().map(|&entry| match entry & FINAL {
                0 if alive(entry) => number[entry as usize],
                0 => DEAD,
                _ => entry,
            }));
        }
        let limit: Vec<u32> = order.iter().map(|&state| limit[state].unwrap_or(0)).collect();
        let mut firsts = Self {
            table: kept,
            stride,
            starts: starts.map(|start| number[start as usize]),
            end: order.iter().map(|&state| end[state]).collect(),
            limited: limit[1..].iter().any(|&limit| limit != UNLIMITED),
            limit,
            bounds: vec![Some(0); limits.len()],
            reachable: vec![false; limits.len()],
        };
        firsts.measure(limits);
        firsts
    }

    /// How far it is at most to each end of a stop; what is on a loop, or after one, is endless.
    fn measure(&mut self, limits: &[u32]) {
        let states = self.end.len();
        let mut before = vec![0u32; states];
        for state in 1..states {
            for next in self.nexts(state) {
                before[next] += 1;
            }
        }
        let mut depth: Vec<Option<u32>> = vec![None; states];
        let mut longest = vec![0u32; states];
        let mut todo: Vec<usize> = (1..states).filter(|&state| before[state] == 0).collect();
        while let Some(state) = todo.pop() {
            depth[state] = Some(longest[state]);
            for next in self.nexts(state) {
                longest[next] = longest[next].max(longest[state] + 1);
                before[next] -= 1;
                if before[next] == 0 {
                    todo.push(next);
                }
            }
        }
        for state in 1..states {
            let entries = self.table[state * self.stride..][..self.stride].iter();
            let finals = entries.filter(|&&entry| entry & FINAL != 0).map(|&e| e & !(FINAL | LATE));
            let ends = finals.chain((self.end[state] != NONE).then_some(self.end[state]));
            for stop in ends {
                let (stop, depth) = (stop as usize, depth[state]);
                self.reachable[stop] = true;
                let most = depth.map(|depth| depth.min(limits[stop]));
                let most = most.or((limits[stop] != UNLIMITED).then_some(limits[stop]));
                self.bounds[stop] = self.bounds[stop].zip(most).map(|(a, b)| a.max(b));
            }
        }
    }

    /// The states after `state`, each as often as classes lead to it.
    fn nexts(&self, state: usize) -> impl Iterator<Item = usize> {
        let entries = self.table[state * self.stride..][..self.stride].iter();
        let stride = self.stride;
        entries
            .filter(|&&entry| entry & FINAL == 0 && entry != DEAD)
            .map(move |&entry| entry as usize / stride)
    }

    /// The shortest text after which a candidate may stay uncertain without end because of `stop`,
    /// as classes. Only for a stop without a bound.
    #[allow(clippy::needless_range_loop, reason = "a state is a number")]
    pub(super) fn endless_after(&self, stop: u32) -> Vec<u16> {
        let states = self.end.len();
        // States from which the stop can be reached.
        let mut parents: Vec<Vec<usize>> = vec![Vec::new(); states];
        let mut reaches = vec![false; states];
        let mut todo = Vec::new();
        for state in 1..states {
            for next in self.nexts(state) {
                parents[next].push(state);
            }
            let entries = self.table[state * self.stride..][..self.stride].iter();
            let here = entries
                .into_iter()
                .any(|&entry| entry & FINAL != 0 && entry & !(FINAL | LATE) == stop)
                || self.end[state] == stop;
            if here {
                reaches[state] = true;
                todo.push(state);
            }
        }
        while let Some(state) = todo.pop() {
            for &parent in &parents[state] {
                if !std::mem::replace(&mut reaches[parent], true) {
                    todo.push(parent);
                }
            }
        }
        // Breadth first: the first state that is on a loop of such states.
        let mut from: Vec<Option<(usize, u16)>> = vec![None; states];
        let mut seen = vec![false; states];
        let mut queue: std::collections::VecDeque<usize> = std::collections::VecDeque::new();
        for start in self.starts.map(|start| start as usize / self.stride) {
            if start != 0 && !std::mem::replace(&mut seen[start], true) {
                queue.push_back(start);
            }
        }
        // Looking whether a state is on a loop is linear; a state that is on none is left for good.
        let mut budget = 64usize;
        while let Some(state) = queue.pop_front() {
            if reaches[state] {
                if budget == 0 || self.loops(state, &reaches) {
                    let mut text = Vec::new();
                    let mut at = state;
                    while let Some((parent, class)) = from[at] {
                        text.push(class);
                        at = parent;
                    }
                    text.reverse();
                    return text;
                }
                budget -= 1;
            }
            for class in 0..self.stride {
                let entry = self.table[state * self.stride + class];
                let next = entry as usize / self.stride;
                if entry & FINAL == 0 && next != 0 && !std::mem::replace(&mut seen[next], true) {
                    from[next] = Some((state, u16::try_from(class).unwrap_or(0)));
                    queue.push_back(next);
                }
            }
        }
        Vec::new()
    }

    fn loops(&self, state: usize, among: &[bool]) -> bool {
        let mut seen = vec![false; self.end.len()];
        let mut todo = vec![state];
        while let Some(at) = todo.pop() {
            for next in self.nexts(at).filter(|&next| among[next]) {
                if next == state {
                    return true;
                }
                if !std::mem::replace(&mut seen[next], true) {
                    todo.push(next);
                }
            }
        }
        false
    }

    #[inline]
    pub(crate) fn step(&self, state: u32, class: usize) -> u32 {
        self.table[state as usize + class]
    }

    /// The state of a candidate that begins after `before`.
    #[inline]
    pub(crate) fn start(&self, before: Side) -> u32 {
        self.starts[before as usize]
    }

    /// The stop that the end of the text completes in `state`.
    pub(crate) fn end(&self, state: u32) -> Option<u32> {
        let stop = self.end[state as usize / self.stride];
        (stop != NONE).then_some(stop)
    }

    /// For how many units a candidate in `state` is held.
    pub(crate) fn limit(&self, state: u32) -> u64 {
        match self.limit[state as usize / self.stride] {
            UNLIMITED => u64::MAX,
            limit => limit.into(),
        }
    }

    /// Whether any candidate is held for a limited time only.
    pub(crate) fn is_limited(&self) -> bool {
        self.limited
    }

    /// For each stop what it can hold at the most.
    pub(crate) fn bounds(&self) -> &[Option<u32>] {
        &self.bounds
    }

    /// For each stop whether it can ever be the match.
    pub(crate) fn reachable(&self) -> &[bool] {
        &self.reachable
    }

    /// Number of states, the dead one included.
    pub(crate) fn states(&self) -> usize {
        self.end.len()
    }

    /// Whether `state` is a row of a candidate that is alive.
    pub(crate) fn is_state(&self, state: u32) -> bool {
        state != DEAD && (state as usize) < self.table.len() && state as usize % self.stride == 0
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        (self.table.len() + self.end.len() + self.limit.len()) * 4 + self.bounds.len() * 9
    }
}

fn row(state: usize, stride: usize) -> u32 {
    // The table is bounded far below.
    u32::try_from(state * stride).unwrap_or(DEAD)
}

/// For each state the longest limit of the stops that can be reached from it; `None` where none can.
fn longest_limits(table: &[u32], stride: usize, end: &[u32], limits: &[u32]) -> Vec<Option<u32>> {
    let states = end.len();
    // Who leads to a state, as one list with the places where each state's part begins.
    let mut first = vec![0usize; states + 1];
    let edges = || {
        table.chunks_exact(stride).enumerate().flat_map(|(state, row)| {
            row.iter()
                .filter(|&&entry| entry & FINAL == 0 && entry != DEAD)
                .map(move |&entry| (state, entry as usize))
        })
    };
    for (_, to) in edges() {
        first[to] += 1;
    }
    let mut sum = 0;
    for count in &mut first {
        sum += *count;
        *count = sum;
    }
    let mut parents = vec![0u32; sum];
    for (from, to) in edges() {
        first[to] -= 1;
        parents[first[to]] = u32::try_from(from).unwrap_or(0);
    }
    let mut ends: Vec<(u32, usize)> = Vec::new();
    for (state, row) in table.chunks_exact(stride).enumerate() {
        let here = row.iter().filter(|&&entry| entry & FINAL != 0).map(|e| e & !(FINAL | LATE));
        let here = here.chain((end[state] != NONE).then_some(end[state]));
        if let Some(most) = here.map(|stop| limits[stop as usize]).max() {
            ends.push((most, state));
        }
    }
    ends.sort_unstable_by(|a, b| b.cmp(a));
    let mut found: Vec<Option<u32>> = vec![None; states];
    let mut todo = Vec::new();
    for (limit, state) in ends {
        if found[state].is_none() {
            found[state] = Some(limit);
            todo.push(state);
        }
        while let Some(at) = todo.pop() {
            for &parent in &parents[first[at]..first[at + 1]] {
                let parent = parent as usize;
                if found[parent].is_none() {
                    found[parent] = Some(limit);
                    todo.push(parent);
                }
            }
        }
    }
    found
}

/// The construction: pairs of sets, numbered as they are found.
struct Pairs<'s, 'a> {
    subsets: &'s mut Subsets<'a>,
    tie: Tie,
    most: usize,
    known: HashMap<Box<[NodeId]>, u32>,
    found: Vec<Pair>,
    /// Entries are state numbers here, not places.
    table: Vec<u32>,
    end: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Pair {
    own: Set,
    all: Set,
    before: Side,
}

impl<'s, 'a> Pairs<'s, 'a> {
    fn new(subsets: &'s mut Subsets<'a>, tie: Tie, most: usize) -> Self {
        let dead = Pair { own: Set::new(), all: Set::new(), before: Side::Other };
        let table = vec![DEAD; subsets.classes()];
        let (found, end) = (vec![dead], vec![NONE]);
        Self { subsets, tie, most, known: HashMap::new(), found, table, end }
    }

    fn explore(&mut self) -> Result<[u32; SIDES], Exhausted> {
        let mut starts = [DEAD; SIDES];
        for side in Side::ALL {
            let own = self.subsets.start(side)?;
            starts[side as usize] = self.number(Pair { all: own.clone(), own, before: side })?;
        }
        let classes = self.subsets.classes();
        let mut own: Vec<Vec<NodeId>> = vec![Vec::new(); classes];
        let mut all: Vec<Vec<NodeId>> = vec![Vec::new(); classes];
        let mut at = 1;
        while at < self.found.len() {
            let pair = self.found[at].clone();
            let pending = self.subsets.is_pending(&pair.all);
            let mut entries = vec![DEAD; classes];
            let mut end = NONE;
            // Without looks that wait, what follows makes no difference.
            let sides: &[Side] = if pending { &Side::ALL } else { &[Side::Other] };
            for &side in sides {
                let matters = |class: &usize| !pending || self.subsets.sides[*class] == side;
                let here: Vec<usize> = (0..classes).filter(matters).collect();
                if here.is_empty() && side != Side::Edge {
                    continue;
                }
                let decided;
                let Pair { own: mine, all: any, before } = &pair;
                let (mine, any) = if pending {
                    decided = (
                        self.subsets.decided(mine, *before, side)?,
                        self.subsets.decided(any, *before, side)?,
                    );
                    (&decided.0, &decided.1)
                } else {
                    (mine, any)
                };
                if pending {
                    if let Some(ended) = self.ended(mine, any) {
                        if side == Side::Edge {
                            end = ended & !(FINAL | LATE);
                            if ended == DEAD {
                                end = NONE;
                            }
                        }
                        let entry = if ended == DEAD { DEAD } else { ended | LATE };
                        for &class in &here {
                            entries[class] = entry;
                        }
                        continue;
                    }
                }
                own.iter_mut().chain(&mut all).for_each(Vec::clear);
                self.subsets.steps(mine, &mut own)?;
                self.subsets.steps(any, &mut all)?;
                // Many classes lead to the same pair; those that were looked at, one of a kind.
                let mut kinds: Vec<usize> = Vec::new();
                for &class in &here {
                    if own[class].is_empty() {
                        continue;
                    }
                    let same = |&&kind: &&usize| {
                        self.subsets.sides[kind] == self.subsets.sides[class]
                            && own[kind] == own[class]
                            && all[kind] == all[class]
                    };
                    spend(&mut self.subsets.work, 1 + kinds.len()).ok_or(Exhausted)?;
                    entries[class] = if let Some(&kind) = kinds.iter().find(same) {
                        entries[kind]
                    } else {
                        kinds.push(class);
                        let before = self.subsets.sides[class];
                        self.next(&own[class], &all[class], before)?
                    };
                }
            }
            self.table.extend(entries);
            self.end.push(end);
            at += 1;
        }
        Ok(starts)
    }

    /// Where a pair leads that read a unit like `before` to these nodes.
    fn next(&mut self, own: &[NodeId], all: &[NodeId], before: Side) -> Result<u32, Exhausted> {
        let own = self.subsets.moved(own, before, false)?;
        let all = self.subsets.moved(all, before, true)?;
        match self.ended(&own, &all) {
            Some(ended) => Ok(ended),
            None => self.number(Pair { own, all, before }),
        }
    }

    /// What it means that stops end in these sets; `None` if none does.
    fn ended(&self, own: &Set, all: &Set) -> Option<u32> {
        let best = *self.subsets.accepted(all).first()?;
        match self.subsets.accepted(own).first() {
            // A stop that began later is shorter; by `first` it can still win.
            Some(&stop) if self.tie == Tie::Longest || stop == best => Some(FINAL | stop),
            _ => Some(DEAD),
        }
    }

    fn number(&mut self, pair: Pair) -> Result<u32, Exhausted> {
        if pair.own.is_empty() {
            return Ok(DEAD);
        }
        let pending = self.subsets.is_pending(&pair.all);
        let mut key = Vec::with_capacity(pair.own.len() + pair.all.len() + 2);
        key.push(if pending { pair.before as NodeId } else { NodeId::MAX });
        key.extend(&pair.own);
        key.push(NodeId::MAX);
        key.extend(&pair.all);
        spend(&mut self.subsets.work, key.len()).ok_or(Exhausted)?;
        let fresh = self.found.len();
        if let Some(&known) = self.known.get(key.as_slice()) {
            return Ok(known);
        }
        if fresh > self.most {
            return Err(Exhausted);
        }
        let number = u32::try_from(fresh).map_err(|_| Exhausted)?;
        self.known.insert(key.into_boxed_slice(), number);
        self.found.push(pair);
        Ok(number)
    }
}
