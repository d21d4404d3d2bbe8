//! The stop list as a trie, breadth first: what both automata (plain and scoped) are made from.
//!
//! Built from the *sorted* list, so no hash map is needed: a node is a range of sorted stops that
//! share a prefix, and its children are the runs of equal next classes in that range. Breadth-first
//! numbers give three things for nothing: the children of a node are neighbours, the depth of a
//! node follows from its number, and every node's failure link has a smaller number.
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

    /// Patterns of bytes that lie one after the other in `arena` and end at `ends`, with their
    /// alphabet.
    pub(crate) fn of_bytes(arena: &[u8], ends: &[u32]) -> (Alphabet, Self) {
        let alphabet = Alphabet::new(arena.iter().map(|&byte| u32::from(byte)));
        let classes = arena.iter().map(|&byte| alphabet.class(byte)).collect();
        (alphabet, Self { classes, ends: ends.to_vec() })
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        (self.classes.capacity() + self.ends.capacity()) * 4
    }

    pub(crate) fn get(&self, index: u32) -> &[u32] {
        let (start, len) = self.span(index);
        &self.classes[start as usize..(start + len) as usize]
    }

    /// Where pattern `index` begins, and its length.
    fn span(&self, index: u32) -> (u32, u32) {
        let index = index as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        (start, self.ends[index] - start)
    }

    /// Indices sorted by class string, equal ones by index.
    ///
    /// The first classes packed into one integer decide nearly every comparison; only ties look at
    /// the strings.
    fn sorted(&self, alphabet: &Alphabet) -> Vec<u32> {
        // Eight classes of 8 bits if they fit, else four of 16, saturated: monotone whatever the
        // classes are.
        let (count, bits) = if alphabet.len() <= 256 { (8, 8) } else { (4, 16) };
        let mut keyed: Vec<(u64, u32)> = (0..u32::try_from(self.len()).unwrap_or(NONE))
            .map(|i| {
                let units = self.get(i);
                let class = |k| units.get(k).map_or(0, |&c| u64::from(c).min((1 << bits) - 1));
                ((0..count).fold(0, |key, k| key << bits | class(k)), i)
            })
            .collect();
        keyed.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| self.get(a.1).cmp(self.get(b.1))).then(a.1.cmp(&b.1))
        });
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
    /// The node of the longest proper suffix of a node's string that is in the trie; smaller than
    /// the node.
    pub(crate) fail: Vec<u32>,
    /// A pattern that begins with the node's string; the node's own pattern where it has one.
    pub(crate) representative: Vec<u32>,
    /// Nodes of depth `d` are `levels[d]..levels[d + 1]`.
    pub(crate) depth_starts: Vec<u32>,
    /// The patterns, sorted by class string.
    pub(crate) order: Vec<u32>,
    /// For each node, which of the sorted patterns begin with its string: from the first, to before
    /// the second.
    pub(crate) range: Vec<(u32, u32)>,
}

impl Trie {
    /// The trie of all `patterns`.
    ///
    /// With `prune`, nothing grows below the end of a pattern: a longer pattern there can never be
    /// the first to end.
    pub(crate) fn new(patterns: &Patterns, alphabet: &Alphabet, prune: bool) -> Self {
        let order = patterns.sorted(alphabet);
        // A guess that a short list never outgrows; a long one is trimmed when it is done.
        let size = (patterns.classes.len() + 1).min(1 + order.len() * 16);
        let mut trie = Self {
            first_child: Vec::with_capacity(size + 1),
            label: Vec::with_capacity(size),
            fail: Vec::new(),
            representative: Vec::with_capacity(size),
            depth_starts: Vec::with_capacity(32),
            range: Vec::with_capacity(size),
            order,
        };
        trie.depth_starts.extend([0, 1]);
        trie.grow(patterns, prune);
        trie.link();
        trie
    }

    /// The same trie without the patterns that `keep` refuses, and without the nodes that only they
    /// needed.
    ///
    /// Nodes keep their order, so everything is a matter of counting how many before them stay.
    pub(crate) fn without(&self, keep: impl Fn(u32) -> bool) -> Self {
        let kept_before = ranks(self.order.iter().map(|&pattern| keep(pattern)));
        let range_of =
            |&(from, to): &(u32, u32)| (kept_before[from as usize], kept_before[to as usize]);
        let stays = |node: usize| {
            node == 0 || range_of(&self.range[node]).0 < range_of(&self.range[node]).1
        };
        let stay_before = ranks((0..self.len()).map(stays));
        let nodes = || (0..self.len()).filter(|&node| stays(node));
        // A failure link to a node that goes leads on to where that one failed to.
        let mut link: Vec<u32> = vec![0; self.len()];
        for node in 1..self.len() {
            link[node] =
                if stays(node) { stay_before[node] } else { link[self.fail[node] as usize] };
        }
        let order: Vec<u32> = self.order.iter().copied().filter(|&pattern| keep(pattern)).collect();
        let range: Vec<(u32, u32)> = nodes().map(|node| range_of(&self.range[node])).collect();
        let mut first_child: Vec<u32> =
            nodes().map(|node| stay_before[self.first_child[node] as usize]).collect();
        first_child.push(stay_before[self.len()]);
        let mut depth_starts: Vec<u32> =
            self.depth_starts.iter().map(|&level| stay_before[level as usize]).collect();
        depth_starts.dedup();
        Self {
            first_child,
            label: nodes().map(|node| self.label[node]).collect(),
            fail: nodes().map(|node| link[self.fail[node] as usize]).collect(),
            representative: range
                .iter()
                .map(|&(from, _)| order.get(from as usize).copied().unwrap_or(NONE))
                .collect(),
            depth_starts,
            order,
            range,
        }
    }

    fn grow(&mut self, patterns: &Patterns, prune: bool) {
        // Beginning and length of each pattern, in sorted order: one look-up where the index would
        // take three.
        let spans: Vec<(u32, u32)> =
            self.order.iter().map(|&pattern| patterns.span(pattern)).collect();
        let classes = patterns.classes.as_slice();
        self.label.push(0);
        self.representative.push(self.order.first().copied().unwrap_or(NONE));
        self.range.push((0, Self::id(self.order.len())));
        let (mut node, mut depth) = (0, 0u32);
        while node < self.label.len() {
            let level_end = self.label.len();
            while node < level_end {
                self.first_child.push(Self::id(self.label.len()));
                let (mut at, end) = self.range[node];
                // Patterns that end here sort in front of those that go on.
                let first = at;
                while at < end && spans[at as usize].1 == depth {
                    at += 1;
                }
                if at == first || !prune {
                    while at < end {
                        let class = |at: u32| classes[(spans[at as usize].0 + depth) as usize];
                        let (from, label) = (at, class(at));
                        at += 1;
                        while at < end && class(at) == label {
                            at += 1;
                        }
                        self.label.push(label);
                        self.representative.push(self.order[from as usize]);
                        self.range.push((from, at));
                    }
                }
                node += 1;
            }
            depth += 1;
            if self.label.len() > level_end {
                self.depth_starts.push(Self::id(self.label.len()));
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
        find_child((self.first_child[node], self.first_child[node + 1]), &self.label, class)
    }

    pub(crate) fn len(&self) -> usize {
        self.label.len()
    }

    /// The pattern that ends at each node in order, if one does; of equal ones the lowest index.
    pub(crate) fn terminals<'a>(
        &'a self,
        patterns: &'a Patterns,
    ) -> impl Iterator<Item = (usize, Option<u32>)> + 'a {
        let depth_starts = self.depth_starts.windows(2).enumerate().skip(1);
        depth_starts.flat_map(move |(depth, level)| {
            (level[0]..level[1]).map(move |node| {
                let representative = self.representative[node as usize];
                (
                    node as usize,
                    (patterns.span(representative).1 as usize == depth).then_some(representative),
                )
            })
        })
    }
}

/// For each place, and the one after the last, how many before it are `true`.
fn ranks(flags: impl Iterator<Item = bool>) -> Vec<u32> {
    let mut ranks = Vec::with_capacity(flags.size_hint().0 + 1);
    let mut rank = 0;
    for flag in flags {
        ranks.push(rank);
        rank += u32::from(flag);
    }
    ranks.push(rank);
    ranks
}

/// The one of the children `from..to` that is reached on `class`, or [`NONE`]: they are neighbours,
/// ascending by label.
#[inline]
pub(crate) fn find_child<C: Copy + Ord>((from, to): (u32, u32), label: &[C], class: C) -> u32 {
    let labels = &label[from as usize..to as usize];
    let at = if labels.len() <= 8 {
        labels.iter().position(|&l| l == class)
    } else {
        labels.binary_search(&class).ok()
    };
    // `at` is below `to - from`, so the sum fits.
    at.map_or(NONE, |at| from + u32::try_from(at).unwrap_or(0))
}

/// The depth of `node` from the level table: the number of levels that begin at or before it, less
/// one.
#[inline]
pub(crate) fn depth(depth_starts: &[u32], node: u32) -> u32 {
    // Nearly every held text is a few characters long, so the first levels are looked at in order.
    for (d, &end) in depth_starts.iter().skip(1).take(4).enumerate() {
        if node < end {
            return u32::try_from(d).unwrap_or(NONE);
        }
    }
    u32::try_from(depth_starts.partition_point(|&start| start <= node)).unwrap_or(NONE) - 1
}
