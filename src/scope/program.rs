//! The compiled form of a scope: what a stream walks outside of regions, inside of one, and to keep
//! markers whole.
//!
//! The automaton for outside holds every stop that could ever fire and every opener, unpruned. For each
//! node it knows which stop or opener ends there and how long the held text is, so that a token
//! costs no walk of any chain.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Include, Scope};
use crate::automaton::{
    Alphabet, Automaton, CodeUnit, NONE, Node, Patterns, Scanner, State, Table, TestKnobs, Trie,
    UnitKind, compile_patterns, depth,
};
use crate::error::Error;
use crate::stops::{StopList, Tie};

/// What one scope needs that does not change while a stream is read.
#[derive(Debug)]
pub(crate) struct ScopeProgram {
    pub(crate) kind: UnitKind,
    pub(crate) outside: Outside,
    /// For each region, an automaton that finds its closing marker.
    pub(crate) closers: Vec<Automaton>,
    /// Finds complete markers that are to be kept whole, and says how much of one has come.
    pub(crate) markers: Option<Automaton>,
    /// The markers themselves: (opener, closer), and those kept whole.
    regions: Vec<(Vec<u8>, Vec<u8>)>,
    atomic: Vec<Vec<u8>>,
    /// Length of the longest stop in units: no hold for stops is longer.
    pub(crate) longest: u64,
}

/// Stops and openers, with what a state means.
#[derive(Debug)]
pub(crate) struct Outside {
    alphabet: Alphabet,
    patterns: Patterns,
    table: Table,
    scanner: Scanner,
    depth_starts: Vec<u32>,
    fail: Vec<u32>,
    /// Sorted patterns, and the range of them that begin with a node's string.
    order: Vec<u32>,
    range: Vec<(u32, u32)>,
    /// The best stop that ends at a node, by the tie rule over all its suffixes.
    best: Vec<u32>,
    /// The opener that ends at a node.
    opener: Vec<u32>,
    /// The length of the longest stop that begins with a node's string.
    longest_below: Vec<u32>,
    /// Units to hold at a node when armed, and when disarmed by hand, as far as asked for already;
    /// [`UNKNOWN`] else.
    hold_armed: Vec<AtomicU32>,
    hold_disarmed: Vec<AtomicU32>,
    stops: Vec<Stop>,
    tie: Tie,
    /// Text that holds nothing can get in the way of text that would: some stops are included and
    /// others not, or there are openers.
    contextual: bool,
}

/// Units to try out for one hold at the most.
const STEPS: u32 = 1 << 14;

/// No node is that deep.
const UNKNOWN: u32 = u32::MAX;

/// What the hold rule needs to know of a stop. Patterns after the stops are openers.
#[derive(Clone, Copy, Debug)]
struct Stop {
    len: u32,
    /// Where the last other stop inside this one ends, in units from its start; 0 if there is none.
    inner_end: u32,
    included: bool,
    /// It can never fire in this scope, armed or not.
    dead: bool,
}

impl ScopeProgram {
    pub(crate) fn new(
        (stops, tie, knobs): (&StopList, Tie, TestKnobs),
        kind: UnitKind,
        include: &Include,
        scope: &Scope,
    ) -> Result<Self, Error> {
        scope.check(stops, kind)?;
        let included = included(stops, include)?;
        let outside = Outside::new((stops, tie, knobs), kind, &included, scope);
        let closers = scope
            .ignore_inside
            .iter()
            .map(|(_, closer)| Automaton::of_markers([closer.as_slice()].into_iter(), kind, knobs));
        let keep = scope.atomic.iter().map(Vec::as_slice);
        let markers = (!scope.atomic.is_empty()).then(|| Automaton::of_markers(keep, kind, knobs));
        let longest = outside.stops.iter().map(|stop| u64::from(stop.len)).max().unwrap_or(0);
        let closers = closers.collect();
        let (regions, atomic) = (scope.ignore_inside.clone(), scope.atomic.clone());
        Ok(Self { kind, outside, closers, markers, regions, atomic, longest })
    }

    /// Walks long text until a stop or an opener ends, or inside a region until its closer does;
    /// gives the state and how many units were read. `stops` is the compiled list.
    #[inline(never)]
    pub(crate) fn scan<U: CodeUnit>(
        &self,
        stops: &StopList,
        region: Option<usize>,
        state: State,
        units: &[U],
    ) -> (State, usize) {
        let Some(region) = region else {
            return self.outside.scan(stops, &self.regions, self.kind, state, units);
        };
        let closer = [self.regions[region].1.as_slice()].into_iter();
        self.closers[region].scan(closer, self.kind, state, units)
    }

    /// Walks, or scans if they are `long`, until a marker that is to be kept whole ends.
    #[inline]
    pub(crate) fn walk_markers<U: CodeUnit>(
        &self,
        markers: &Automaton,
        state: State,
        (units, long): (&[U], bool),
    ) -> (State, usize) {
        if long {
            markers.scan(self.atomic.iter().map(Vec::as_slice), self.kind, state, units)
        } else {
            markers.walk(state, units)
        }
    }

    /// Heap bytes of this program.
    pub(crate) fn heap_bytes(&self) -> usize {
        let outside = &self.outside;
        let words = outside.depth_starts.len()
            + outside.fail.len() * 8
            + outside.order.len()
            + outside.stops.len() * 3;
        let others: usize =
            self.closers.iter().chain(&self.markers).map(Automaton::heap_bytes).sum();
        outside.alphabet.heap_bytes()
            + outside.patterns.heap_bytes()
            + outside.table.heap_bytes()
            + outside.scanner.heap_bytes()
            + words * 4
            + others
    }
}

/// For each stop whether it is emitted itself.
fn included(stops: &StopList, include: &Include) -> Result<Vec<bool>, Error> {
    match include {
        Include::None => Ok(vec![false; stops.len()]),
        Include::All => Ok(vec![true; stops.len()]),
        Include::Only(some) => {
            let included: Vec<bool> = stops.iter().map(|stop| some.contains(stop)).collect();
            let known: HashSet<&[u8]> = stops.iter().collect();
            match some.iter().find(|stop| !known.contains(stop.as_slice())) {
                Some(stranger) => Err(Error::option(format!(
                    "include_stop has {}, which is no stop of the set",
                    super::show(stranger)
                ))),
                None => Ok(included),
            }
        }
    }
}

impl Outside {
    fn new(
        (list, tie, knobs): (&StopList, Tie, TestKnobs),
        kind: UnitKind,
        included: &[bool],
        scope: &Scope,
    ) -> Self {
        let openers = scope.ignore_inside.iter().map(|(opener, _)| opener.as_slice());
        let all: Vec<&[u8]> = list.iter().chain(openers).collect();
        let bytes = all.iter().map(|p| p.len()).sum();
        let (alphabet, patterns) = compile_patterns(all.iter().copied(), bytes, kind);
        let full = Trie::new(&patterns, &alphabet, false);
        let stops = survey(&full, &patterns, list.len(), included, tie);
        // A stop that holds an opener, or that always loses a tie, is taken out: it holds nothing
        // and never fires.
        let trie = full.without(|i| stops.get(i as usize).is_none_or(|stop| !stop.dead));
        let (best, opener) = ends(&trie, &patterns, list.len(), tie);
        let (depth_starts, fail) = (trie.depth_starts.clone(), trie.fail.clone());
        let (order, range) = (trie.order.clone(), trie.range.clone());
        let first_child = trie.first_child.clone();
        let table = Table::new(trie, &alphabet, None, |n| {
            best[n as usize] != NONE || opener[n as usize] != NONE
        });
        let scanner = Scanner::new(&table, &depth_starts, knobs);
        let mut longest_below = vec![0; fail.len()];
        for node in (0..fail.len()).rev() {
            let (from, to) = range[node];
            // A node's stops are its children's, and its own.
            let children = first_child[node]..first_child[node + 1];
            let own = order[from as usize..to as usize]
                .first()
                .and_then(|&p| stops.get(p as usize))
                .map_or(0, |stop| stop.len);
            longest_below[node] =
                children.map(|child| longest_below[child as usize]).max().unwrap_or(0).max(own);
        }
        let unknown = || (0..fail.len()).map(|_| AtomicU32::new(UNKNOWN)).collect();
        let mixed = included.contains(&true) && included.contains(&false);
        Self {
            longest_below,
            hold_armed: unknown(),
            hold_disarmed: unknown(),
            contextual: mixed || !scope.ignore_inside.is_empty(),
            alphabet,
            patterns,
            table,
            scanner,
            depth_starts,
            fail,
            order,
            range,
            best,
            opener,
            stops,
            tie,
        }
    }

    /// Stops longer than `depth` that begin with the string of `node`, which is `depth` long, and
    /// are not emitted themselves.
    fn below(&self, node: Node, depth: u32) -> impl Iterator<Item = u32> {
        let (from, to) = self.range[node.index()];
        let order = &self.order[from as usize..to as usize];
        let holds = move |stop: &Stop| stop.len > depth && !stop.included;
        order
            .iter()
            .copied()
            .filter(move |&pattern| self.stops.get(pattern as usize).is_some_and(holds))
    }

    /// Walks until a stop or an opener ends; gives the state and how many units were read.
    #[inline]
    pub(crate) fn walk<U: CodeUnit>(&self, state: State, units: &[U]) -> (State, usize) {
        self.table.walk(&self.alphabet, state, units)
    }

    /// The same for long text; `stops` and the openers of `regions` are the patterns.
    fn scan<U: CodeUnit>(
        &self,
        stops: &StopList,
        regions: &[(Vec<u8>, Vec<u8>)],
        kind: UnitKind,
        state: State,
        units: &[U],
    ) -> (State, usize) {
        let patterns = || -> Vec<&[u8]> {
            let openers = regions.iter().map(|(opener, _)| opener.as_slice());
            stops.iter().chain(openers).collect()
        };
        self.scanner.scan((&self.table, &self.alphabet), patterns, kind, state, units)
    }

    /// The node that a state stands for.
    pub(crate) fn node(&self, state: State) -> Node {
        self.table.node(state)
    }

    #[inline]
    pub(crate) fn depth(&self, node: Node) -> u32 {
        depth(&self.depth_starts, node.0)
    }

    /// A pattern that begins with the string of `node`: below the number of stops a stop, else an
    /// opener.
    pub(crate) fn representative(&self, node: Node) -> u32 {
        self.order.get(self.range[node.index()].0 as usize).copied().unwrap_or(NONE)
    }

    /// The opener that ends at `node`.
    pub(crate) fn opener(&self, node: Node) -> Option<usize> {
        let opener = self.opener[node.index()];
        (opener != NONE).then(|| opener as usize - self.stops.len())
    }

    /// The stop that ends at `node`, if it may reach back `room` units: an included one always may.
    pub(crate) fn stop(&self, node: Node, room: u64) -> Option<usize> {
        let best = self.best[node.index()];
        let fits = |stop: u32| {
            self.stops[stop as usize].included || u64::from(self.stops[stop as usize].len) <= room
        };
        if best == NONE || fits(best) {
            return (best != NONE).then_some(best as usize);
        }
        // The best one begins in text that is gone; look at the shorter ones. Only after arm() or
        // disarm(), near the call.
        let mut found = None;
        let mut at = node;
        while at != Node::ROOT {
            let own = self.own(at).filter(|&own| fits(own));
            found = match (found, own, self.tie) {
                (Some(a), Some(b), Tie::First) => Some(b.min(a)),
                (Some(a), _, _) => Some(a),
                (None, b, _) => b,
            };
            at = Node(self.fail[at.index()]);
        }
        found.map(|stop| stop as usize)
    }

    /// The stop whose string is exactly the node's, of equal ones the first.
    fn own(&self, node: Node) -> Option<u32> {
        let representative = self.representative(node);
        self.stops
            .get(representative as usize)
            .filter(|stop| stop.len == self.depth(node))
            .map(|_| representative)
    }

    pub(crate) fn is_included(&self, stop: usize) -> bool {
        self.stops[stop].included
    }

    /// Number of stops; patterns from this number on are openers.
    pub(crate) fn stops(&self) -> usize {
        self.stops.len()
    }

    pub(crate) fn stop_len(&self, stop: usize) -> u64 {
        self.stops[stop].len.into()
    }

    /// Units to hold at `node`, none of which may lie further back than `room` units: see [`Hold`].
    pub(crate) fn hold_len(&self, node: Node, rule: Hold, room: u64) -> u64 {
        let known = match rule {
            Hold::Armed => &self.hold_armed,
            Hold::Disarmed => &self.hold_disarmed,
            Hold::ArmsAfter { .. } => return self.find_hold(node, rule, room),
        };
        if room < u64::from(self.depth(node)) {
            return self.find_hold(node, rule, room);
        }
        // Threads may race to find the same number; it is the same number.
        let known = &known[node.index()];
        let mut hold = known.load(Ordering::Relaxed);
        if hold == UNKNOWN {
            hold = u32::try_from(self.find_hold(node, rule, room)).unwrap_or(0);
            known.store(hold, Ordering::Relaxed);
        }
        hold.into()
    }

    /// The longest suffix of a node's string from which a stop can still come to fire.
    ///
    /// Stops can be made so that this takes long to find out. Where it would take more than
    /// [`STEPS`], the answer is the longest suffix that was not ruled out by then: held a little
    /// longer than need be, and nothing leaks.
    fn find_hold(&self, node: Node, rule: Hold, room: u64) -> u64 {
        let (mut at, mut steps) = (node, STEPS);
        while at != Node::ROOT {
            let depth = self.depth(at);
            let near =
                u64::from(depth) <= room && rule.reaches(depth, self.longest_below[at.index()]);
            if near
                && self
                    .below(at, depth)
                    .any(|pattern| self.can_fire(node, pattern, depth, rule, room, &mut steps))
            {
                return depth.into();
            }
            at = Node(self.fail[at.index()]);
        }
        0
    }

    /// Whether a stop, the first `depth` units of which were just read, fires if its other units
    /// come now; yes, if `steps` run out.
    fn can_fire(
        &self,
        node: Node,
        pattern: u32,
        depth: u32,
        rule: Hold,
        room: u64,
        steps: &mut u32,
    ) -> bool {
        let stop = &self.stops[pattern as usize];
        let mut step = || {
            *steps = steps.saturating_sub(1);
            *steps == 0
        };
        if step() {
            return true;
        }
        if !rule.lets(stop, depth) || !self.contextual {
            return rule.lets(stop, depth);
        }
        // Something that began earlier and holds nothing, an opener or an included stop, may end
        // first. Try it out.
        let (mut state, mut read) = (self.table.state(node), 0);
        for &class in &self.patterns.get(pattern)[depth as usize..] {
            if step() {
                return true;
            }
            state = self.table.step(state, class).resting();
            read += 1;
            let last = depth + read == stop.len;
            let counts = match rule {
                Hold::Armed => true,
                Hold::Disarmed => last,
                Hold::ArmsAfter { units } => u64::from(read) > units,
            };
            let here = self.table.node(state);
            match self.stop(here, room + u64::from(read)).filter(|_| counts) {
                Some(first) => return last && first == pattern as usize,
                None if self.opener[here.index()] != NONE => return false,
                None => {}
            }
        }
        false
    }
}

/// When a stop whose beginning was just seen could still fire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hold {
    /// Stops count from now on: those do in which no other stop can end any more.
    Armed,
    /// The caller may arm at any moment.
    Disarmed,
    /// Stops count after `units` more units.
    ArmsAfter { units: u64 },
}

impl Hold {
    /// Whether a stop of `longest` units, of which `depth` were read, can end when stops count: a
    /// bound for many stops at once.
    fn reaches(self, depth: u32, longest: u32) -> bool {
        match self {
            Self::ArmsAfter { units } => u64::from(longest) > u64::from(depth) + units,
            _ => longest > depth,
        }
    }

    fn lets(self, stop: &Stop, depth: u32) -> bool {
        match self {
            Self::Armed => stop.inner_end <= depth,
            Self::Disarmed => true,
            Self::ArmsAfter { units } => {
                // Where stops begin to count, in units from this stop's beginning.
                let armed_at = u64::from(depth) + units;
                u64::from(stop.len) > armed_at && u64::from(stop.inner_end) <= armed_at
            }
        }
    }
}

fn id(node: usize) -> u32 {
    u32::try_from(node).unwrap_or(NONE)
}

/// The best stop and the opener that end at each node, over all suffixes of its string.
fn ends(trie: &Trie, patterns: &Patterns, stops: usize, tie: Tie) -> (Vec<u32>, Vec<u32>) {
    let mut best = vec![NONE; trie.len()];
    let mut opener = vec![NONE; trie.len()];
    for (node, own) in trie.terminals(patterns) {
        let shorter = trie.fail[node] as usize;
        (best[node], opener[node]) = (best[shorter], opener[shorter]);
        match own {
            Some(own) if (own as usize) < stops => {
                best[node] = if tie == Tie::First { own.min(best[node]) } else { own }
            }
            // No marker contains another, so at most one opener ends at any place.
            Some(own) => opener[node] = own,
            None => {}
        }
    }
    (best, opener)
}

/// What can be said of each stop from the list alone.
fn survey(
    trie: &Trie,
    patterns: &Patterns,
    stops: usize,
    included: &[bool],
    tie: Tie,
) -> Vec<Stop> {
    let (best, opener) = ends(trie, patterns, stops, tie);
    let own: Vec<Option<u32>> =
        std::iter::once(None).chain(trie.terminals(patterns).map(|(_, own)| own)).collect();
    let mut found = Vec::with_capacity(stops);
    for index in 0..id(stops) {
        let units = patterns.get(index);
        let mut stop = Stop {
            len: id(units.len()),
            inner_end: 0,
            included: included[index as usize],
            dead: false,
        };
        let mut node = 0;
        for (at, &class) in units.iter().enumerate() {
            // Every pattern is in the unpruned trie, so the child exists.
            node = trie.child(node, class) as usize;
            if at + 1 < units.len() {
                stop.dead |= opener[node] != NONE;
                if best[node] != NONE {
                    stop.inner_end = id(at + 1);
                }
            } else {
                // An equal stop listed earlier, or by `first` a suffix listed earlier, always wins.
                let equal = own[node].is_some_and(|own| own < index);
                stop.dead |= equal || (tie == Tie::First && best[node] < index);
            }
        }
        found.push(stop);
    }
    found
}
