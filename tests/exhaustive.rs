//! Every set of up to three stops of up to three letters over two letters, every text of up to
//! eight letters, every chunking, both tie rules, stops included and not, in both forms of the
//! table: what is emitted, held and matched must be what the naive twin says.
//!
//! Texts and chunkings are walked as a tree: a node is a text cut in some way, its children are the
//! ways to go on. Copies of the stream share the work, and are tested with it.

#![allow(clippy::cast_possible_truncation, reason = "texts of a few letters")]

mod twin;

use holdback::raw::{Matcher, TestKnobs};
use holdback::{Limits, StopList, StopSet, StreamOptions, Tie};
use twin::{Seen, Twin};

const COMPACT: TestKnobs = TestKnobs { dense_bytes: Some(0), no_filter: true };
const LONGEST_TEXT: usize = 8;

struct Walk<'a> {
    twin: &'a Twin,
    /// The twin's answers; a text's place is its letters as bits after a leading 1.
    answers: Vec<Option<Seen>>,
    text: Vec<u8>,
    /// Where the chunks read so far end.
    ends: Vec<usize>,
    nodes: u64,
}

impl Walk<'_> {
    /// `stream` has read all but the letters from `fed` on; the chunk that they begin may end
    /// after any next letter.
    fn grow(&mut self, stream: &Matcher, emitted: usize, fed: usize) {
        if self.text.len() == LONGEST_TEXT {
            return;
        }
        for letter in *b"ab" {
            self.text.push(letter);
            self.feed(stream, emitted, fed);
            self.grow(stream, emitted, fed);
            self.text.pop();
        }
    }

    fn feed(&mut self, stream: &Matcher, emitted: usize, fed: usize) {
        let mut next = stream.clone();
        let (held, held_len) = (next.held(), next.held_len());
        let advance = next.advance(&self.text[fed..]);
        let released = next.released(held, advance.released).to_vec();
        let emitted = emitted + advance.released + advance.passed;
        let matched = next.matched().map(|m| (m.index, m.start as usize, m.end as usize));
        if let Some(found) = next.matched() {
            let before = self.ends.iter().filter(|&&end| end as u64 <= found.start).count();
            assert_eq!(
                (found.start_chunk, found.end_chunk),
                (before as u64, self.ends.len() as u64),
                "chunks of the match"
            );
        }
        let seen = Seen { emitted, held: next.held_len(), matched };
        assert_eq!(
            seen,
            self.answer(),
            "stops {:?} text {:?} fed {fed}",
            self.twin.stops,
            self.text
        );
        assert!(advance.passed == 0 || advance.released == held_len, "order of emitted text");
        assert_eq!(released, self.text[fed - held_len..][..advance.released], "released text");
        self.nodes += 1;
        if matched.is_none() {
            assert_eq!(next.held_bytes(), &self.text[self.text.len() - seen.held..], "held text");
            self.ends.push(self.text.len());
            self.grow(&next, emitted, self.text.len());
            self.ends.pop();
        }
    }

    fn answer(&mut self) -> Seen {
        let place =
            self.text.iter().fold(1, |place, &letter| place << 1 | usize::from(letter == b'b'));
        let answer = self.answers[place].get_or_insert_with(|| {
            let text: Vec<char> = self.text.iter().map(|&b| b.into()).collect();
            self.twin.after(&text)
        });
        answer.clone()
    }
}

fn words() -> Vec<&'static str> {
    vec!["a", "b", "aa", "ab", "ba", "bb", "aaa", "aab", "aba", "abb", "baa", "bab", "bba", "bbb"]
}

/// All lists of one to three different words; for `Tie::Longest` the order does not matter.
fn lists(tie: Tie) -> Vec<Vec<&'static str>> {
    let words = words();
    let mut lists = Vec::new();
    for (i, a) in words.iter().enumerate() {
        lists.push(vec![*a]);
        for (j, b) in words.iter().enumerate() {
            if i == j || (tie == Tie::Longest && j < i) {
                continue;
            }
            lists.push(vec![*a, *b]);
            for (k, c) in words.iter().enumerate() {
                if k != i && k != j && (tie == Tie::First || k > j) {
                    lists.push(vec![*a, *b, *c]);
                }
            }
        }
    }
    lists
}

fn run(tie: Tie, include_stop: bool, paths: TestKnobs) {
    let (mut sets, mut nodes) = (0, 0);
    for stops in lists(tie) {
        let mut list = StopList::new(Limits::default());
        for stop in &stops {
            list.push(stop).unwrap();
        }
        let set = StopSet::compile_forced(list, tie, paths);
        let twin =
            Twin { stops: stops.iter().map(|s| s.chars().collect()).collect(), tie, include_stop };
        let unreachable: Vec<usize> = (0..stops.len()).filter(|&i| !twin.reachable(i)).collect();
        assert_eq!(set.unreachable(), unreachable, "{stops:?} {tie:?}");
        let options =
            StreamOptions { include_stop: include_stop.into(), ..StreamOptions::default() };
        let stream = Matcher::text(set, &options).unwrap();
        let mut walk = Walk {
            twin: &twin,
            answers: vec![None; 2 << LONGEST_TEXT],
            text: Vec::new(),
            ends: Vec::new(),
            nodes: 0,
        };
        walk.grow(&stream, 0, 0);
        sets += 1;
        nodes += walk.nodes;
    }
    eprintln!(
        "exhaustive: {sets} stop lists, {nodes} chunk ends compared (tie {tie:?}, include {include_stop}, {paths:?})"
    );
    assert!(nodes > 1_000_000);
}

#[test]
fn longest() {
    run(Tie::Longest, false, TestKnobs::default());
}

#[test]
fn longest_compact() {
    run(Tie::Longest, false, COMPACT);
}

#[test]
fn longest_included() {
    run(Tie::Longest, true, TestKnobs::default());
}

#[test]
fn first() {
    run(Tie::First, false, TestKnobs::default());
}

#[test]
fn first_compact() {
    run(Tie::First, false, COMPACT);
}

#[test]
fn longest_included_compact() {
    run(Tie::Longest, true, COMPACT);
}

#[test]
fn first_included() {
    run(Tie::First, true, TestKnobs::default());
}

#[test]
fn first_included_compact() {
    run(Tie::First, true, COMPACT);
}
