//! The stop list as a trie, breadth first: what both automata (plain and scoped) are made from.
//!
//! Built from the *sorted* list, so no hash map is needed: a node is a range of sorted stops that share a prefix, and its children
//! are the runs of equal next classes in that range. Breadth-first numbers give three things for nothing: the children of a node
//! are neighbours, the depth of a node follows from its number, and every node's failure link has a smaller number.
#![forbid(unsafe_code)]

use super::alphabet::Alphabet;

/// No stop, no node.
pub(crate) const NONE: u32 = u32::MAX;

/// Class strings of a list of patterns, in one arena.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    classes: Vec<u32>,
    ends: Vec<u32>,
}

impl Patterns {
    pub(crate) fn with_capacity(patterns: usize, units: usize) -> Self {
        Self { classes: Vec::with_capacity(units), ends: Vec::with_capacity(patterns) }
    }

    /// Appends a pattern of `units`, every one of which is in `alphabet`.
    pub(crate) fn push(&mut self, alphabet: &Alphabet, units: impl Iterator<Item = u32>) {
        self.classes.extend(units.map(|u| alphabet.class(u)));
        // The list's limits keep the number of units below 2^30.
        self.ends.push(u32::try_from(self.classes.len()).unwrap_or(NONE));
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, index: u32) -> &[u32] {
        let index = index as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.classes[start..self.ends[index] as usize]
    }

    /// Indices sorted by class string, equal ones by index.
    ///
    /// The first classes packed into one integer decide nearly every comparison; only ties look at the strings.
    fn sorted(&self, keep: impl Fn(u32) -> bool) -> Vec<u32> {
        let count = u32::try_from(self.len()).unwrap_or(NONE);
        let mut keyed: Vec<(u64, u32)> = (0..count)
            .filter(|&i| keep(i))
            .map(|i| {
                let units = self.get(i);
                // Four saturated 16-bit classes, then ties by the strings themselves: monotone whatever the classes are.
                let key = (0..4).fold(0, |key, k| key << 16 | u64::from(units.get(k).map_or(0, |c| (*c).min(0xffff))));
                (key, i)
            })
            .collect();
        keyed.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.get(a.1).cmp(self.get(b.1))).then(a.1.cmp(&b.1)));
        keyed.into_iter().map(|(_, i)| i).collect()
    }
}

/// A trie with failure links. Node 0 is the root.
#[derive(Debug)]
pub(crate) struct Trie {
    /// Children of node `n` are the nodes `first_child[n]..first_child[n + 1]`, ascending by label.
    pub(crate) first_child: Vec<u32>,
    /// The class on the edge that leads to a node (the root's is unused).
    pub(crate) label: Vec<u32>,
    /// The node of the longest proper suffix of a node's string that is in the trie; smaller than the node.
    pub(crate) fail: Vec<u32>,
    /// A pattern that begins with the node's string; the node's own pattern where it has one.
    pub(crate) sample: Vec<u32>,
    /// Nodes of depth `d` are `levels[d]..levels[d + 1]`.
    pub(crate) levels: Vec<u32>,
    /// Sorted patterns without those dropped; `range` of each node indexes it, kept only when asked for.
    pub(crate) order: Vec<u32>,
    /// First sorted pattern of each node's range (its last is the next node's of the same level, or by descent).
    pub(crate) range: Vec<(u32, u32)>,
}

impl Trie {
    /// The trie of `patterns` that `keep` lets in.
    ///
    /// With `prune`, nothing grows below the end of a pattern: a longer pattern there can never be the first to end.
    pub(crate) fn new(patterns: &Patterns, prune: bool, keep: impl Fn(u32) -> bool) -> Self {
        let order = patterns.sorted(keep);
        let units = patterns.classes.len() + 1;
        let size = units.min(1 + order.len() * 16);
        let mut trie = Self {
            first_child: Vec::with_capacity(size + 1),
            label: Vec::with_capacity(size),
            fail: Vec::new(),
            sample: Vec::with_capacity(size),
            levels: vec![0, 1],
            range: Vec::with_capacity(size),
            order,
        };
        trie.grow(patterns, prune);
        trie.link();
        trie
    }

    fn grow(&mut self, patterns: &Patterns, prune: bool) {
        self.label.push(0);
        self.sample.push(self.order.first().copied().unwrap_or(NONE));
        self.range.push((0, u32::try_from(self.order.len()).unwrap_or(NONE)));
        let (mut node, mut depth) = (0, 0);
        while node < self.label.len() {
            let level_end = self.label.len();
            while node < level_end {
                self.first_child.push(Self::id(self.label.len()));
                let (mut at, end) = self.range[node];
                // Patterns that end here sort in front of those that go on.
                while at < end && patterns.get(self.order[at as usize]).len() == depth {
                    at += 1;
                }
                let ends_here = at > self.range[node].0;
                if !(prune && ends_here) {
                    while at < end {
                        let sample = self.order[at as usize];
                        let class = patterns.get(sample)[depth];
                        let from = at;
                        at += 1;
                        while at < end && patterns.get(self.order[at as usize])[depth] == class {
                            at += 1;
                        }
                        self.label.push(class);
                        self.sample.push(sample);
                        self.range.push((from, at));
                    }
                }
                node += 1;
            }
            depth += 1;
            if self.label.len() > level_end {
                self.levels.push(Self::id(self.label.len()));
            }
        }
        self.first_child.push(Self::id(self.label.len()));
    }

    fn id(len: usize) -> u32 {
        // The list's limits keep the number of nodes below 2^30.
        u32::try_from(len).unwrap_or(NONE)
    }

    /// Failure links, in breadth-first order, each found by walking up its parent's.
    ///
    /// The walk is amortised along every pattern: linear in the length of the list.
    fn link(&mut self) {
        self.fail = vec![0; self.label.len()];
        for node in 0..self.label.len() {
            for child in self.first_child[node]..self.first_child[node + 1] {
                let mut up = node;
                while up != 0 {
                    up = self.fail[up] as usize;
                    let found = self.child(up, self.label[child as usize]);
                    if found != NONE {
                        self.fail[child as usize] = found;
                        break;
                    }
                }
            }
        }
    }

    /// The child of `node` on `class`, or [`NONE`].
    #[inline]
    pub(crate) fn child(&self, node: usize, class: u32) -> u32 {
        find_child(&self.first_child, &self.label, node, class)
    }

    pub(crate) fn len(&self) -> usize {
        self.label.len()
    }

    /// Units from the root to `node`.
    pub(crate) fn depth(&self, node: u32) -> u32 {
        depth(&self.levels, node)
    }

    /// The pattern that ends at `node`, if one does; of equal ones the lowest index.
    pub(crate) fn terminal(&self, patterns: &Patterns, node: usize) -> Option<u32> {
        let sample = self.sample[node];
        (sample != NONE && node != 0 && patterns.get(sample).len() == self.depth(Self::id(node)) as usize).then_some(sample)
    }
}

/// The child of `node` on `class`, or [`NONE`]: children are neighbours, ascending by label.
#[inline]
pub(crate) fn find_child(first_child: &[u32], label: &[u32], node: usize, class: u32) -> u32 {
    let (from, to) = (first_child[node], first_child[node + 1]);
    let labels = &label[from as usize..to as usize];
    let at = if labels.len() <= 8 { labels.iter().position(|&l| l == class) } else { labels.binary_search(&class).ok() };
    // `at` is below `to - from`, so the sum fits.
    at.map_or(NONE, |at| from + u32::try_from(at).unwrap_or(0))
}

/// The depth of `node` from the level table: the number of levels that begin at or before it, less one.
#[inline]
pub(crate) fn depth(levels: &[u32], node: u32) -> u32 {
    // Nearly every held text is a few characters long, so the first levels are looked at in order.
    for (d, &end) in levels.iter().skip(1).take(4).enumerate() {
        if node < end {
            return u32::try_from(d).unwrap_or(NONE);
        }
    }
    u32::try_from(levels.partition_point(|&start| start <= node)).unwrap_or(NONE) - 1
}
