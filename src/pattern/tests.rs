//! The engine against the contract by brute force: which occurrences there are is found by walking a
//! small tree, which is the match by looking at all of them in order, what is held by trying out
//! continuations. `regex` is a second opinion on where the first match ends.
//!
//! The ordinary run is short; `HOLDBACK_CASES=10000000 cargo test --release pattern::` is the long
//! one, and `HOLDBACK_EVERY_CUT=1` tries every cut of every text in the exhaustive test.

#![forbid(unsafe_code)]
#![allow(clippy::cast_possible_truncation, reason = "texts of a few letters")]

use std::collections::BTreeSet;

use super::*;
use crate::stops::Tie;

/// What a pattern is made of here.
#[derive(Clone, Debug)]
enum Tree {
    Letter(char),
    /// Any of these, or any but these.
    Class(&'static str, bool),
    Any,
    LineStart,
    LineEnd,
    Word,
    Cat(Vec<Tree>),
    Alt(Vec<Tree>),
    Repeat(Box<Tree>, usize, Option<usize>),
}

impl Tree {
    fn write(&self) -> String {
        match self {
            Self::Letter('\n') => r"\n".to_owned(),
            Self::Letter(c) => c.to_string(),
            Self::Class(letters, false) => format!("[{letters}]"),
            Self::Class(letters, true) => format!("[^{letters}]"),
            Self::Any => ".".to_owned(),
            Self::LineStart => "^".to_owned(),
            Self::LineEnd => "$".to_owned(),
            Self::Word => r"\b".to_owned(),
            Self::Cat(parts) => parts.iter().map(Self::write).collect(),
            Self::Alt(parts) => {
                let parts: Vec<String> = parts.iter().map(Self::write).collect();
                format!("(?:{})", parts.join("|"))
            }
            Self::Repeat(tree, from, to) => {
                let to = to.map_or_else(String::new, |to| to.to_string());
                format!("(?:{}){{{from},{to}}}", tree.write())
            }
        }
    }

    /// Where the tree may end that begins at one of `starts`; what lies behind the text is its end.
    fn ends(&self, text: &[char], starts: &BTreeSet<usize>) -> BTreeSet<usize> {
        let step = |holds: &dyn Fn(char) -> bool| {
            let here = |&&at: &&usize| text.get(at).is_some_and(|&c| holds(c));
            starts.iter().filter(here).map(|at| at + 1).collect()
        };
        let keep = |holds: &dyn Fn(Option<char>, Option<char>) -> bool| {
            let before = |at: usize| at.checked_sub(1).map(|at| text[at]);
            let here = |&&at: &&usize| holds(before(at), text.get(at).copied());
            starts.iter().filter(here).copied().collect()
        };
        let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        match self {
            Self::Letter(letter) => step(&|c| c == *letter),
            Self::Class(letters, not) => step(&|c| letters.contains(c) != *not),
            Self::Any => step(&|c| c != '\n'),
            Self::LineStart => keep(&|before, _| before.is_none_or(|c| c == '\n')),
            Self::LineEnd => keep(&|_, after| after.is_none_or(|c| c == '\n')),
            Self::Word => keep(&|before, after| word(before) != word(after)),
            Self::Cat(parts) => {
                parts.iter().fold(starts.clone(), |starts, part| part.ends(text, &starts))
            }
            Self::Alt(parts) => parts.iter().flat_map(|part| part.ends(text, starts)).collect(),
            Self::Repeat(tree, from, to) => {
                let mut at = starts.clone();
                for _ in 0..*from {
                    at = tree.ends(text, &at);
                }
                let mut all = at.clone();
                let mut times = *from;
                while to.is_none_or(|to| times < to) {
                    at = tree.ends(text, &at);
                    times += 1;
                    let before = all.len();
                    all.extend(&at);
                    if to.is_none() && all.len() == before {
                        break;
                    }
                }
                all
            }
        }
    }
}

struct Twin {
    trees: Vec<Tree>,
    tie: Tie,
}

/// Characters that may follow: one of each kind.
const FOLLOW: [char; 3] = ['a', ' ', '\n'];

impl Twin {
    /// Occurrences that end at `end`, as (start, stop).
    fn ending(&self, text: &[char], end: usize) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for start in 0..end {
            for (stop, tree) in self.trees.iter().enumerate() {
                if tree.ends(text, &BTreeSet::from([start])).contains(&end) {
                    found.push((start, stop));
                }
            }
        }
        found
    }

    /// Those that are occurrences whatever follows.
    fn known(&self, text: &[char], end: usize) -> Vec<(usize, usize)> {
        let mut known = self.ending(&text[..end], end);
        for follow in FOLLOW {
            let longer = [&text[..end], &[follow]].concat();
            let there = self.ending(&longer, end);
            known.retain(|found| there.contains(found));
        }
        known
    }

    fn best(&self, found: &[(usize, usize)], end: usize) -> Option<(usize, usize, usize)> {
        let best = match self.tie {
            Tie::Longest => found.iter().min(),
            Tie::First => found.iter().min_by_key(|&&(start, stop)| (stop, start)),
        };
        best.map(|&(start, stop)| (stop, start, end))
    }

    /// The match of a text, of which more may come unless it is `whole`: stop, start, end, and how
    /// much was read when it became known.
    fn find(&self, text: &[char], whole: bool) -> Option<(usize, usize, usize, usize)> {
        for end in 1..=text.len() {
            if let Some((stop, start, end)) = self.best(&self.known(text, end), end) {
                return Some((stop, start, end, end));
            }
            if end < text.len() {
                let found = self.ending(&text[..=end], end);
                if let Some((stop, start, end)) = self.best(&found, end) {
                    return Some((stop, start, end, end + 1));
                }
            } else if whole {
                let found = self.ending(text, end);
                if let Some((stop, start, end)) = self.best(&found, end) {
                    return Some((stop, start, end, end));
                }
            }
        }
        None
    }

    /// The match that becomes known with the last character of `text`, if none did before.
    fn next(&self, text: &[char]) -> Option<(usize, usize, usize, usize)> {
        let len = text.len();
        let late = self.best(&self.ending(text, len - 1), len - 1);
        let late = late.map(|(stop, start, end)| (stop, start, end, len));
        late.or_else(|| {
            let known = self.best(&self.known(text, len), len);
            known.map(|(stop, start, end)| (stop, start, end, len))
        })
    }
}

/// Every text over some letters up to a length, with a copy of a stream for each: what is found and
/// what is held, which is the least start of a match of any longer text that is looked at.
struct Walk<'a> {
    twin: &'a Twin,
    compiled: &'a Compiled,
    letters: &'a [char],
    /// Longest text, and longest for which what is held is compared.
    depth: usize,
    compared: usize,
    text: Vec<char>,
    texts: u64,
    open: u64,
}

impl Walk<'_> {
    /// The least start of a match of this text or a longer one.
    fn grow(&mut self, run: &Run) -> usize {
        let end = self.twin.best(&self.twin.ending(&self.text, self.text.len()), self.text.len());
        let told = run.finish(self.compiled);
        assert_eq!(told.map(|m| (m.0, m.1, m.2)), end, "{}: at the end", self.about());
        let mut least = end.map_or(self.text.len(), |(_, start, _)| start);
        if self.text.len() < self.depth {
            for &letter in self.letters {
                self.text.push(letter);
                let mut next = run.clone();
                let found = next.feed(self.compiled, &[letter]);
                assert_eq!(found, self.twin.next(&self.text), "{}", self.about());
                least = least.min(match found {
                    Some((_, start, _, _)) => start,
                    None => self.grow(&next),
                });
                self.text.pop();
            }
        }
        let least = least.min(self.text.len());
        let border = run.hold(self.compiled);
        if self.text.len() <= self.compared {
            // What is held needs a reason, and what has one is held.
            assert!(border <= least, "{}: {border} is held, not {least}", self.about());
            self.open += u64::from(border < least);
        }
        self.texts += 1;
        least
    }

    fn about(&self) -> String {
        let patterns: Vec<String> = self.twin.trees.iter().map(Tree::write).collect();
        format!("{patterns:?} {:?} {:?}", self.twin.tie, self.text.iter().collect::<String>())
    }
}

/// A stream as the engine sees it.
#[derive(Clone)]
struct Run {
    live: Live,
    seen: u64,
    chunks: u64,
}

impl Run {
    fn new() -> Self {
        Self { live: Live::new(), seen: 0, chunks: 0 }
    }

    /// Stop, start, end, and how much was read in all.
    fn feed(&mut self, compiled: &Compiled, text: &[char]) -> Option<(usize, usize, usize, usize)> {
        let units: Vec<u32> = text.iter().map(|&c| c.into()).collect();
        let (found, read) = self.live.read(compiled, &units, self.seen, self.chunks);
        self.seen += read as u64;
        self.chunks += 1;
        found.map(|found| Self::tell(found, self.seen as usize))
    }

    fn tell(found: Found, read: usize) -> (usize, usize, usize, usize) {
        let end = read - usize::from(found.late);
        (found.stop as usize, found.start as usize, end, read)
    }

    fn hold(&self, compiled: &Compiled) -> usize {
        self.live.border(compiled, self.seen) as usize
    }

    fn finish(&self, compiled: &Compiled) -> Option<(usize, usize, usize, usize)> {
        let found = self.live.end(compiled)?;
        Some((found.stop as usize, found.start as usize, self.seen as usize, self.seen as usize))
    }
}

fn compile(trees: &[Tree], tie: Tie) -> Result<Compiled, Error> {
    let patterns: Vec<Pattern> = trees
        .iter()
        .map(|tree| Pattern::new(&tree.write(), PatternOptions::default()))
        .collect::<Result<_, _>>()?;
    Compiled::new(patterns.iter().map(Stop::Pattern), UnitKind::Characters, tie, 4096)
}

/// One text in one cut, compared after each chunk.
fn compare(twin: &Twin, compiled: &Compiled, text: &[char], cut: u64) {
    let mut run = Run::new();
    let mut fed = 0;
    let mut sent = 0;
    for end in 1..=text.len() {
        if end < text.len() && cut >> (end - 1) & 1 == 0 {
            continue;
        }
        let about = || {
            let patterns: Vec<String> = twin.trees.iter().map(Tree::write).collect();
            format!(
                "{patterns:?} {:?} {:?} fed {fed}..{end}",
                twin.tie,
                text.iter().collect::<String>()
            )
        };
        let found = run.feed(compiled, &text[fed..end]);
        assert_eq!(found, twin.find(&text[..end], false), "{}", about());
        if let Some((_, start, _, _)) = found {
            assert!(start >= sent, "{}: the match was sent", about());
            return;
        }
        let border = run.hold(compiled);
        assert!(border >= sent, "{}: held text grew at its front", about());
        sent = border;
        fed = end;
    }
    assert_eq!(
        run.finish(compiled),
        twin.find(text, true),
        "{:?} at the end of {text:?}",
        twin.trees
    );
}

/// xorshift64*.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

fn random_tree(dice: &mut Dice, depth: usize, looks: bool) -> Tree {
    let boxed = |tree| Box::new(tree);
    match dice.below(if depth > 2 { 9 } else { 20 }) {
        5 => Tree::Letter([' ', '\n', 'c'][dice.below(3)]),
        6 => Tree::Class(["ab", "b ", "a\n"][dice.below(3)], dice.below(2) == 0),
        7 => Tree::Any,
        8 if looks => [Tree::LineStart, Tree::LineEnd, Tree::Word][dice.below(3)].clone(),
        n if n < 9 => Tree::Letter(if n < 3 { 'a' } else { 'b' }),
        9..=13 => {
            Tree::Cat((0..2 + dice.below(2)).map(|_| random_tree(dice, depth + 1, looks)).collect())
        }
        14..=16 => {
            Tree::Alt((0..2 + dice.below(2)).map(|_| random_tree(dice, depth + 1, looks)).collect())
        }
        n => {
            let (from, to) = [(0, None), (1, None), (0, Some(1)), (1, Some(2)), (2, Some(2))]
                [(n + dice.below(5)) % 5];
            Tree::Repeat(boxed(random_tree(dice, depth + 1, looks)), from, to)
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// One set and some texts; gives how many.
fn case(seed: u64) -> u64 {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let looks = dice.below(2) == 0;
    let trees: Vec<Tree> = (0..=dice.below(3)).map(|_| random_tree(&mut dice, 0, looks)).collect();
    let tie = [Tie::Longest, Tie::First][dice.below(2)];
    let Ok(compiled) = compile(&trees, tie) else { return 0 };
    let twin = Twin { trees, tie };
    let letters = ['a', 'b', ' ', '\n', 'c'];
    let few = 2 + dice.below(4);
    if dice.below(256) == 0 {
        let letters = &letters[1..4];
        walk(&twin, &compiled, letters, 6, 2);
    }
    for _ in 0..4 {
        let text: Vec<char> = (0..=dice.below(9)).map(|_| letters[dice.below(few)]).collect();
        let cut = dice.next();
        compare(&twin, &compiled, &text, cut);
    }
    4
}

#[test]
fn random_sets_are_what_the_twin_says() {
    if let Some(seed) = number("HOLDBACK_SEED") {
        case(seed);
        return;
    }
    let cases = number("HOLDBACK_CASES").unwrap_or(4_000);
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let texts: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|t| {
                let seeds = (t..cases).step_by(threads as usize);
                scope.spawn(move || {
                    seeds
                        .map(|seed| {
                            let done = std::panic::catch_unwind(|| case(seed));
                            done.unwrap_or_else(|_| panic!("HOLDBACK_SEED={seed}"))
                        })
                        .sum::<u64>()
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    eprintln!("patterns: {texts} texts compared with the twin, chunk by chunk");
    assert!(texts >= cases);
}

/// Walks all texts; gives how many there were, and how many hold more than the texts looked at
/// explain.
fn walk(
    twin: &Twin,
    compiled: &Compiled,
    letters: &[char],
    depth: usize,
    compared: usize,
) -> (u64, u64) {
    let mut walk =
        Walk { twin, compiled, letters, depth, compared, text: Vec::new(), texts: 0, open: 0 };
    walk.grow(&Run::new());
    (walk.texts, walk.open)
}

/// Reads what the exhaustive test writes: letters, `.`, `|`, `*`, `+`, `?`.
fn read(pattern: &str) -> Option<Tree> {
    let mut parts = Vec::new();
    for part in pattern.split('|') {
        let mut trees: Vec<Tree> = Vec::new();
        for c in part.chars() {
            let repeat = match c {
                '*' => (0, None),
                '+' => (1, None),
                '?' => (0, Some(1)),
                '.' => {
                    trees.push(Tree::Any);
                    continue;
                }
                letter => {
                    trees.push(Tree::Letter(letter));
                    continue;
                }
            };
            let last = trees.pop()?;
            trees.push(Tree::Repeat(Box::new(last), repeat.0, repeat.1));
        }
        parts.push(Tree::Cat(trees));
    }
    Some(if parts.len() == 1 { parts.remove(0) } else { Tree::Alt(parts) })
}

/// Every pattern of up to four symbols over two letters, every text of up to seven: what is the
/// match, at every character, and what is held. In the ordinary run one pattern in eight, and of
/// the ways to cut a text some.
#[test]
fn every_small_pattern() {
    let every = number("HOLDBACK_EVERY_CUT").is_some();
    let symbols: Vec<char> = "ab.|*+?".chars().collect();
    let mut patterns: Vec<String> = vec![String::new()];
    let mut done = 0;
    for _ in 0..4 {
        let shorter = patterns[done..].to_vec();
        done = patterns.len();
        for pattern in shorter {
            patterns.extend(symbols.iter().map(|symbol| format!("{pattern}{symbol}")));
        }
    }
    let (mut compiled_patterns, mut texts, mut open) = (0, 0, 0);
    for (at, pattern) in patterns.iter().enumerate() {
        if !every && at % 8 != 5 {
            continue;
        }
        let Some(tree) = read(pattern) else { continue };
        let trees = vec![tree];
        let Ok(compiled) = compile(&trees, Tie::Longest) else { continue };
        let twin = Twin { trees, tie: Tie::Longest };
        let walked = walk(&twin, &compiled, &['a', 'b'], 9, 5);
        (texts, open) = (texts + walked.0, open + walked.1);
        compiled_patterns += 1;
        for len in 1..=7usize {
            for bits in 0..1 << len {
                if !every && bits % 7 != at % 7 {
                    continue;
                }
                let text: Vec<char> =
                    (0..len).map(|k| if bits >> k & 1 == 0 { 'a' } else { 'b' }).collect();
                let cuts = 1u64 << (len - 1);
                let step = if every { 1 } else { 29 };
                for cut in (0..cuts).step_by(step) {
                    compare(&twin, &compiled, &text, cut);
                }
            }
        }
    }
    eprintln!("patterns: {compiled_patterns} patterns, {texts} texts walked, {open} holds open");
    assert!(compiled_patterns > 50 && open == 0, "{open} holds that no continuation explains");
}

/// Where the first match ends, by a regular expression engine.
#[test]
fn the_first_end_is_where_another_engine_sees_it() {
    for seed in 0..1_000 {
        let mut dice = Dice(seed * 0x9e37_79b9 + 1);
        let trees: Vec<Tree> =
            (0..=dice.below(3)).map(|_| random_tree(&mut dice, 0, false)).collect();
        let Ok(compiled) = compile(&trees, Tie::Longest) else { continue };
        let all: Vec<String> = trees.iter().map(|tree| format!("(?:{})", tree.write())).collect();
        let engine = regex_automata::meta::Regex::new(&all.join("|")).unwrap();
        for _ in 0..20 {
            let text: Vec<char> =
                (0..dice.below(40)).map(|_| ['a', 'b', ' ', '\n'][dice.below(4)]).collect();
            let string: String = text.iter().collect();
            let input = regex_automata::Input::new(&string).earliest(true);
            let first = engine.search_half(&input).map(|half| half.offset());
            let found = Run::new().feed(&compiled, &text).map(|found| found.2);
            assert_eq!(found, first, "{all:?} {string:?}");
        }
    }
}

/// What a set of patterns can hold, and what it refuses.
#[test]
fn bounds_and_limits() {
    let set = |patterns: &[&str]| {
        let patterns: Vec<Pattern> = patterns
            .iter()
            .map(|text| Pattern::new(text, PatternOptions::default()).unwrap())
            .collect();
        Compiled::new(patterns.iter().map(Stop::Pattern), UnitKind::Characters, Tie::Longest, 4096)
    };
    for (patterns, bounds) in [
        (&[r"\d{3}"][..], &[Some(2)][..]),
        (&["a.*b"], &[None]),
        (&["a*b"], &[None]),
        (&[r"\n+"], &[Some(0)]),
        (&["abc", "b"], &[Some(0), Some(0)]),
        (&[r"\bEND\b"], &[Some(3)]),
        (&["ab{2,5}c", "x"], &[Some(6), Some(0)]),
        (&["[a&&b]"], &[Some(0)]),
    ] {
        let compiled = set(patterns).unwrap();
        assert_eq!(compiled.firsts.bounds(), bounds, "{patterns:?}");
    }
    assert_eq!(set(&["abc", "b"]).unwrap().firsts.reachable(), [false, true]);
    assert_eq!(set(&[r"a\bb"]).unwrap().firsts.reachable(), [false]);
    for large in [r"(?:(?:(?:\w{1000}){1000}){1000})", "(?:[ab]*a[ab]{20}c)x", r"\p{L}{900}.{900}"]
    {
        let began = std::time::Instant::now();
        let refused = set(&[large, large]);
        eprintln!("{large}: {:?} {:?}", refused.as_ref().err(), began.elapsed());
        assert!(refused.is_err() || large.contains("900"), "{large}");
    }
}

/// All words, wherever one begins and ends, as lists of the stops that end there.
#[test]
fn words_are_all_occurrences() {
    let mut ended = 0;
    for seed in 0..400 {
        let mut dice = Dice(seed * 0x9e37_79b9 + 7);
        let trees: Vec<Tree> =
            (0..=dice.below(3)).map(|_| random_tree(&mut dice, 0, true)).collect();
        let patterns: Result<Vec<Pattern>, Error> = trees
            .iter()
            .map(|tree| Pattern::new(&tree.write(), PatternOptions::default()))
            .collect();
        let Ok(patterns) = patterns else { continue };
        let nfa = build(patterns.iter().map(Stop::Pattern), UnitKind::Characters, 4096);
        let nfa = nfa.unwrap().unwrap();
        let (classes, members) = Classes::new(&nfa.sets, false, &mut 1_000_000).unwrap();
        let mut subsets = Subsets::new(&nfa, &classes, members, 1_000_000);
        let words = words::Words::new(&mut subsets, 4096).unwrap();
        let side = |c: Option<&char>| {
            c.map_or(Side::Edge, |&c| subsets.sides[classes.class(u32::from(c))])
        };
        let twin = Twin { trees, tie: Tie::Longest };
        for _ in 0..10 {
            let text: Vec<char> =
                (0..=dice.below(7)).map(|_| ['a', 'b', ' ', '\n'][dice.below(4)]).collect();
            for start in 0..text.len() {
                let mut state = words.start(side(start.checked_sub(1).map(|at| &text[at])));
                for end in start + 1..=text.len() {
                    state = words.step(state, classes.class(u32::from(text[end - 1])));
                    let mut stops = words.ended(state).to_vec();
                    stops.extend(words.ended_before(state, side(text.get(end))));
                    stops.sort_unstable();
                    let all = twin.ending(&text, end).into_iter();
                    let there: Vec<u32> =
                        all.filter(|f| f.0 == start).map(|f| f.1 as u32).collect();
                    assert_eq!(stops, there, "seed {seed} {:?} {text:?}", twin.trees);
                    ended += there.len();
                }
            }
        }
    }
    assert!(ended > 1_000, "{ended}");
}
