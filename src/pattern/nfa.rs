//! Literals and patterns of a set as one nondeterministic automaton.
//!
//! Nodes are made from the end to the beginning: what follows a piece is known when the piece is
//! made, so nothing is patched but loops. Literals share their beginnings (a trie), so a long list
//! of them is one node at the start of a text.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use regex_syntax::hir::{Class, Hir, HirKind, Look as HirLook, Repetition};
use regex_syntax::utf8::Utf8Sequences;

use super::classes::Ranges;
use super::syntax;
use crate::automaton::UnitKind;

/// A number of a node.
pub(super) type NodeId = u32;

#[derive(Debug)]
pub(super) enum Node {
    /// One unit of a set.
    Step { set: u32, next: NodeId },
    /// A node of the trie of literals: one unit of one of several sets.
    Fork(Box<[(u32, NodeId)]>),
    /// Each of several nodes.
    Split(Box<[NodeId]>),
    /// Nothing is read, but what stands on both sides is looked at.
    Look { look: Look, next: NodeId },
    /// A stop ends here.
    Accept(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    LineStart,
    LineEnd,
    /// Between a character of a word and one that is none.
    Word,
}

/// What a look sees of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Other = 0,
    Newline = 1,
    /// A letter, digit or `_`: of Unicode in a text, of ASCII in bytes.
    Word = 2,
    /// The beginning or the end of the text.
    Edge = 3,
}

/// Number of sides.
pub(super) const SIDES: usize = 4;

impl Side {
    pub(crate) const ALL: [Self; SIDES] = [Self::Other, Self::Newline, Self::Word, Self::Edge];
}

impl Look {
    /// Whether what stands before is enough to tell.
    pub(super) fn is_behind(self) -> bool {
        self == Self::LineStart
    }

    pub(super) fn holds(self, before: Side, after: Side) -> bool {
        let line = |side| matches!(side, Side::Newline | Side::Edge);
        match self {
            Self::LineStart => line(before),
            Self::LineEnd => line(after),
            Self::Word => (before == Side::Word) != (after == Side::Word),
        }
    }
}

/// One stop as it goes in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    Literal(&'a [u8]),
    Pattern(&'a Hir),
}

#[derive(Debug)]
pub(super) struct Nfa {
    pub(super) nodes: Vec<Node>,
    pub(super) start: NodeId,
    /// The sets of units that nodes name; and those that tell sides apart.
    pub(super) sets: Vec<Ranges>,
    /// For [`Side::Newline`] and [`Side::Word`] its set, where a look needs it.
    pub(super) sides: [Option<u32>; 2],
    /// Whether any node is a look that must know what follows.
    pub(super) looks_ahead: bool,
}

/// Characters of a word; bytes, by ASCII.
fn word_ranges(kind: UnitKind) -> Vec<(u32, u32)> {
    static WORD: OnceLock<Vec<(u32, u32)>> = OnceLock::new();
    if kind == UnitKind::Bytes {
        return [(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')]
            .map(|(from, to)| (from.into(), to.into()))
            .to_vec();
    }
    let parse = || match syntax::parse_text(r"\w", false).map(Hir::into_kind) {
        Ok(HirKind::Class(Class::Unicode(class))) => {
            class.ranges().iter().map(|r| (r.start().into(), r.end().into())).collect()
        }
        _ => Vec::new(),
    };
    WORD.get_or_init(parse).clone()
}

pub(super) struct Builder {
    kind: UnitKind,
    nodes: Vec<Node>,
    sets: Vec<Ranges>,
    known: HashMap<Ranges, u32>,
    /// Ranges of all sets together.
    ranges: usize,
    single: HashMap<u32, u32>,
    most: usize,
    literals: Vec<TrieNode>,
    patterns: Vec<NodeId>,
    looks: Vec<Look>,
}

#[derive(Default)]
struct TrieNode {
    children: BTreeMap<u32, usize>,
    stop: Option<u32>,
}

/// The set is too large.
#[derive(Debug)]
pub(super) struct TooLarge;

/// Ranges of all sets at the most: some hundred different classes of Unicode.
const RANGES: usize = 1 << 17;

impl Builder {
    /// `most` nodes at the most.
    pub(super) fn new(kind: UnitKind, most: usize) -> Self {
        Self {
            kind,
            nodes: Vec::new(),
            sets: Vec::new(),
            known: HashMap::new(),
            ranges: 0,
            single: HashMap::new(),
            most,
            literals: vec![TrieNode::default()],
            patterns: Vec::new(),
            looks: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, stop: u32, source: Source) -> Result<(), TooLarge> {
        match source {
            Source::Literal(literal) => {
                let mut at = 0;
                for unit in self.kind.units(literal) {
                    let fresh = self.literals.len();
                    at = *self.literals[at].children.entry(unit).or_insert(fresh);
                    if at == fresh {
                        self.literals.push(TrieNode::default());
                        if fresh > self.most {
                            return Err(TooLarge);
                        }
                    }
                }
                self.literals[at].stop.get_or_insert(stop);
            }
            Source::Pattern(hir) => {
                let accept = self.push(Node::Accept(stop))?;
                let entry = self.emit(hir, accept)?;
                self.patterns.push(entry);
            }
        }
        Ok(())
    }

    fn push(&mut self, node: Node) -> Result<NodeId, TooLarge> {
        if self.nodes.len() >= self.most {
            return Err(TooLarge);
        }
        self.nodes.push(node);
        NodeId::try_from(self.nodes.len() - 1).map_err(|_| TooLarge)
    }

    fn set(&mut self, ranges: Vec<(u32, u32)>) -> Result<u32, TooLarge> {
        let ranges = ranges.into_boxed_slice();
        if let Some(&set) = self.known.get(&ranges) {
            return Ok(set);
        }
        self.ranges += ranges.len();
        if self.ranges > RANGES {
            return Err(TooLarge);
        }
        let set = u32::try_from(self.sets.len()).map_err(|_| TooLarge)?;
        self.known.insert(ranges.clone(), set);
        self.sets.push(ranges);
        Ok(set)
    }

    fn single(&mut self, unit: u32) -> Result<u32, TooLarge> {
        if let Some(&set) = self.single.get(&unit) {
            return Ok(set);
        }
        let set = self.set(vec![(unit, unit)])?;
        self.single.insert(unit, set);
        Ok(set)
    }

    /// Nodes for `hir` with `next` after it. Recursion is as deep as groups are nested.
    fn emit(&mut self, hir: &Hir, next: NodeId) -> Result<NodeId, TooLarge> {
        match hir.kind() {
            HirKind::Empty => Ok(next),
            HirKind::Literal(literal) => {
                let units: Vec<u32> = self.kind.units(&literal.0).collect();
                units.into_iter().rev().try_fold(next, |next, unit| {
                    let set = self.single(unit)?;
                    self.push(Node::Step { set, next })
                })
            }
            HirKind::Class(class) => self.emit_class(class, next),
            HirKind::Look(look) => {
                let look = match look {
                    HirLook::StartLF => Look::LineStart,
                    HirLook::EndLF => Look::LineEnd,
                    // No other but those of words passes the parser.
                    _ => Look::Word,
                };
                self.looks.push(look);
                self.push(Node::Look { look, next })
            }
            HirKind::Repetition(repetition) => self.emit_repetition(repetition, next),
            HirKind::Capture(capture) => self.emit(&capture.sub, next),
            HirKind::Concat(parts) => {
                parts.iter().rev().try_fold(next, |next, part| self.emit(part, next))
            }
            HirKind::Alternation(parts) => {
                let entries: Result<Vec<NodeId>, TooLarge> =
                    parts.iter().map(|part| self.emit(part, next)).collect();
                self.push(Node::Split(entries?.into_boxed_slice()))
            }
        }
    }

    fn emit_class(&mut self, class: &Class, next: NodeId) -> Result<NodeId, TooLarge> {
        let ranges: Vec<(u32, u32)> = match class {
            Class::Unicode(class) if self.kind == UnitKind::Bytes && !class.is_ascii() => {
                // As bytes: for each run of characters of one length, the bytes that they may have.
                let mut entries = Vec::new();
                for range in class.ranges() {
                    for sequence in Utf8Sequences::new(range.start(), range.end()) {
                        let bytes = sequence.as_slice();
                        let entry = bytes.iter().rev().try_fold(next, |next, byte| {
                            let set = self.set(vec![(byte.start.into(), byte.end.into())])?;
                            self.push(Node::Step { set, next })
                        });
                        entries.push(entry?);
                    }
                }
                return self.push(Node::Split(entries.into_boxed_slice()));
            }
            Class::Unicode(class) => {
                class.ranges().iter().map(|r| (r.start().into(), r.end().into())).collect()
            }
            // In a text below 128 all of them, since the parser keeps to UTF-8.
            Class::Bytes(class) => {
                class.ranges().iter().map(|r| (r.start().into(), r.end().into())).collect()
            }
        };
        let set = self.set(ranges)?;
        self.push(Node::Step { set, next })
    }

    fn emit_repetition(
        &mut self,
        repetition: &Repetition,
        next: NodeId,
    ) -> Result<NodeId, TooLarge> {
        let Repetition { min, max, sub, .. } = repetition;
        let mut entry = next;
        match max {
            None => {
                let split = self.push(Node::Split(Box::new([])))?;
                let body = self.emit(sub, split)?;
                self.nodes[split as usize] = Node::Split(Box::new([body, next]));
                entry = split;
            }
            Some(max) => {
                for _ in *min..*max {
                    let body = self.emit(sub, entry)?;
                    entry = self.push(Node::Split(Box::new([body, next])))?;
                }
            }
        }
        (0..*min).try_fold(entry, |entry, _| self.emit(sub, entry))
    }

    pub(super) fn finish(mut self) -> Result<Nfa, TooLarge> {
        // Children have larger numbers than their parents, so from the last to the first.
        let mut entry_of: Vec<NodeId> = vec![0; self.literals.len()];
        for at in (0..self.literals.len()).rev() {
            let TrieNode { children, stop } = std::mem::take(&mut self.literals[at]);
            let mut edges = Vec::with_capacity(children.len());
            for (unit, child) in children {
                edges.push((self.single(unit)?, entry_of[child]));
            }
            let accept = stop.map(|stop| self.push(Node::Accept(stop))).transpose()?;
            let fork = (!edges.is_empty())
                .then(|| self.push(Node::Fork(edges.into_boxed_slice())))
                .transpose()?;
            entry_of[at] = match (accept, fork) {
                (Some(accept), Some(fork)) => self.push(Node::Split(Box::new([accept, fork])))?,
                (Some(one), None) | (None, Some(one)) => one,
                // The root of no literals.
                (None, None) => self.push(Node::Split(Box::new([])))?,
            };
        }
        let mut starts = std::mem::take(&mut self.patterns);
        starts.push(entry_of[0]);
        let start = self.push(Node::Split(starts.into_boxed_slice()))?;
        let has = |looks: &[Look]| self.looks.iter().any(|look| looks.contains(look));
        let line = has(&[Look::LineStart, Look::LineEnd]);
        let word = has(&[Look::Word]);
        let looks_ahead = self.looks.iter().any(|look| !look.is_behind());
        let mut sides = [None; 2];
        if line {
            sides[0] = Some(self.single(u32::from(b'\n'))?);
        }
        if word {
            sides[1] = Some(self.set(word_ranges(self.kind))?);
        }
        Ok(Nfa { nodes: self.nodes, start, sets: self.sets, sides, looks_ahead })
    }
}
