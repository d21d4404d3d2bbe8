//! Patterns as stops, on whole streams: the table of the contract, every way to cut a text, bytes,
//! the end of a text, snapshots in flight, and what is refused. The engine itself is held against a
//! naive twin in `src/pattern/tests.rs`.

#![allow(clippy::cast_possible_truncation, reason = "texts of a few letters")]

use holdback::raw::Matcher;
use holdback::{
    ByteStream, Include, Limits, Match, Pattern, PatternOptions, Scope, Stop, StopSet, Stream,
    StreamOptions, Tie,
};

fn pattern(text: &str) -> Stop {
    Pattern::new(text, PatternOptions::default()).unwrap().into()
}

fn short(text: &str, max_hold: u32) -> Stop {
    let options = PatternOptions { max_hold: Some(max_hold), ..PatternOptions::default() };
    Pattern::new(text, options).unwrap().into()
}

fn set(stops: Vec<Stop>) -> StopSet {
    StopSet::of(stops, Limits::default(), Tie::Longest, 4_096).unwrap()
}

fn options(include: bool) -> StreamOptions {
    StreamOptions { include_stop: include.into(), ..StreamOptions::default() }
}

/// What comes out of a text in chunks: emitted text and match.
fn cut(set: &StopSet, chunks: &[&str], include: bool) -> (String, Option<Match>) {
    let (mut stream, mut out) =
        (Stream::new(set.clone(), &options(include)).unwrap(), String::new());
    for chunk in chunks {
        if let Some(found) = stream.feed(chunk, &mut out).unwrap() {
            return (out, Some(found));
        }
    }
    let found = stream.flush(&mut out).unwrap();
    (out, found)
}

/// Index, start, end.
fn short_form(found: Option<&Match>) -> Option<(usize, u64, u64)> {
    found.map(|found| (found.index, found.start, found.end))
}

/// Every way to cut `text`, with a snapshot in front of each chunk that must go on like the stream.
fn every_cut(set: &StopSet, text: &str, include: bool) -> (String, Option<(usize, u64, u64)>) {
    let chars: Vec<char> = text.chars().collect();
    let whole = cut(set, &[text], include);
    for mask in 0..1u32 << chars.len().saturating_sub(1) {
        let mut chunks: Vec<String> = vec![String::new()];
        for (at, c) in chars.iter().enumerate() {
            chunks.last_mut().unwrap().push(*c);
            if at + 1 < chars.len() && mask >> at & 1 == 1 {
                chunks.push(String::new());
            }
        }
        let mut matcher = Matcher::text(set.clone(), &options(include)).unwrap();
        let (mut emitted, mut seen) = (0, 0);
        let mut found = None;
        for (at, chunk) in chunks.iter().enumerate() {
            let again = Matcher::text(set.clone(), &options(include)).unwrap();
            let mut again = again.restore(matcher.snapshot()).expect("a snapshot of a stream");
            assert_eq!(again.snapshot(), matcher.snapshot());
            let units: Vec<u32> = chunk.chars().map(u32::from).collect();
            let (held, before) = (matcher.held(), matcher.held_len());
            let advance = matcher.advance(&units);
            assert_eq!(advance, again.advance(&units));
            assert_eq!(again.snapshot(), matcher.snapshot());
            let released = String::from_utf8(matcher.released(held, advance.released).to_vec());
            let there: String = chars[seen - before..][..advance.released].iter().collect();
            assert_eq!(released.unwrap(), there);
            emitted += advance.released + advance.passed;
            seen += units.len();
            if let Some(told) = matcher.matched() {
                assert_eq!(told.end_chunk as usize, chunk_of(&chunks, told.end as usize - 1));
                assert_eq!(told.start_chunk as usize, chunk_of(&chunks, told.start as usize));
                assert!(told.end_chunk as usize == at || told.read == 0);
                found = Some(told.clone());
                break;
            }
            let held: String = chars[seen - matcher.held_len()..seen].iter().collect();
            assert_eq!(matcher.held_bytes(), held.as_bytes());
        }
        if found.is_none() {
            let held = matcher.held_len();
            emitted += matcher.end_of_text().unwrap_or(held);
            found = matcher.matched().cloned();
        }
        assert_eq!(emitted, whole.0.chars().count(), "{text:?} {chunks:?}");
        assert_eq!(short_form(found.as_ref()), short_form(whole.1.as_ref()), "{text:?} {chunks:?}");
        if let Some(found) = found {
            assert_eq!(found.cut as usize, emitted, "{text:?} {chunks:?}");
        }
    }
    (whole.0, short_form(whole.1.as_ref()))
}

fn chunk_of(chunks: &[String], place: usize) -> usize {
    let mut end = 0;
    let reaches = |chunk: &String| {
        end += chunk.chars().count();
        end > place
    };
    chunks.iter().position(reaches).unwrap()
}

#[test]
fn the_table_of_the_contract() {
    let none = None;
    for (stops, text, emitted, found) in [
        (vec![pattern(r"\d{3}")], "ab1234", "ab", Some((0, 2, 5))),
        (vec![pattern("a{1,9}b")], "xaab", "x", Some((0, 1, 4))),
        (vec![pattern(r"\n+")], "a\n\nb", "a", Some((0, 1, 2))),
        (vec![pattern("bcd|c")], "xbcd", "xb", Some((0, 2, 3))),
        (vec![Stop::from("bc"), pattern("a?bc")], "xabc", "x", Some((1, 1, 4))),
        (vec![pattern("(?i)</answer>")], "4</Answer>", "4", Some((0, 1, 10))),
        (vec![pattern(r"\bEND\b")], "THE END.", "THE ", Some((0, 4, 7))),
        (vec![pattern(r"\bEND\b")], "SEND", "SEND", none),
        (vec![pattern(r"\bEND\b")], "THE END", "THE ", Some((0, 4, 7))),
        (vec![pattern(r"\bEND\b")], "ENDE END-", "ENDE ", Some((0, 5, 8))),
        (vec![pattern("^###")], "a ### b\n###", "a ### b\n", Some((0, 8, 11))),
        (vec![short("\"[^\"]*\"", 200)], "say \"hi\" ok", "say ", Some((0, 4, 8))),
        (vec![pattern(r"x\w\w\b"), Stop::from("ab")], "xab.", "x", Some((1, 1, 3))),
        (vec![pattern("b$")], "ab\nb", "a", Some((0, 1, 2))),
        (vec![pattern("b$")], "abab", "aba", Some((0, 3, 4))),
        (vec![short("a.*b", 3)], "xa1a2345b", "xa1a2345", Some((0, 1, 9))),
        (vec![pattern("語+話")], "a語", "a語", none),
    ] {
        if stops.len() == 1 && text == "a語" {
            // Endless, and refused.
            continue;
        }
        assert_eq!(every_cut(&set(stops), text, false), (emitted.to_owned(), found), "{text}");
    }
    let sentences = set(vec![pattern("(?:[^.!?]*[.!?]){3}")]);
    let (out, found) = cut(&sentences, &["A. B", ". C. D."], true);
    assert_eq!((out.as_str(), found.unwrap().end), ("A. B. C.", 8));
}

#[test]
fn long_text_and_short_chunks_agree() {
    let stops = || {
        vec![
            pattern(r"\n(?:Step|Turn) \d{1,3}:"),
            pattern(r"\bEND\b"),
            short("<[^>]*>", 5),
            Stop::from("</answer>"),
            pattern("(?i)é.{2}語"),
        ]
    };
    let set = set(stops());
    let letters: Vec<char> = "\nStep 12:END </answer>é語x".chars().collect();
    let mut seed = 0x1234_5678_9abc_def1u64;
    let mut dice = |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 16) as usize % n
    };
    let mut matches = 0;
    for _ in 0..3_000 {
        let mut text: String = (0..dice(60)).map(|_| letters[dice(letters.len())]).collect();
        text.push_str(["", "\nStep 7:", " END.", "</answer>", "É12語", "<abcdefgh>"][dice(6)]);
        let whole = cut(&set, &[&text], false);
        let mut chunks = Vec::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let at = rest.char_indices().nth(1 + dice(5)).map_or(rest.len(), |(at, _)| at);
            chunks.push(&rest[..at]);
            rest = &rest[at..];
        }
        let pieces = cut(&set, &chunks, false);
        assert_eq!(pieces.0, whole.0, "{text:?}");
        assert_eq!(short_form(pieces.1.as_ref()), short_form(whole.1.as_ref()), "{text:?}");
        matches += usize::from(whole.1.is_some());
    }
    assert!(matches > 1_000, "{matches}");
}

#[test]
fn literals_through_the_engine_of_patterns() {
    // A pattern that is in no text makes the literals go through its engine.
    let lists: [&[&str]; 6] = [
        &["bcd", "c"],
        &["abc", "ab"],
        &["re", "he"],
        &["c", "ab"],
        &["bc", "abc"],
        &["aab", "aa"],
    ];
    for list in lists {
        for tie in [Tie::Longest, Tie::First] {
            let literals = list.iter().map(|&stop| Stop::from(stop));
            let with = literals.clone().chain([pattern("[^\\s\\S]")]);
            let with = StopSet::of(with, Limits::default(), tie, 4_096).unwrap();
            let plain = StopSet::of(literals, Limits::default(), tie, 4_096).unwrap();
            let dead: Vec<usize> = with.unreachable().iter().copied().filter(|&i| i < 2).collect();
            assert_eq!(dead, plain.unreachable());
            assert_eq!(&with.bounds()[..2], plain.bounds().as_slice());
            for number in 0..4u32.pow(6) {
                let letters = ['a', 'b', 'c', 'd'];
                let text: String =
                    (0..6).map(|k| letters[(number >> (2 * k) & 3) as usize]).collect();
                for include in [false, true] {
                    let chunks = [&text[..1], &text[1..4], &text[4..]];
                    assert_eq!(cut(&with, &chunks, include), cut(&plain, &chunks, include));
                }
            }
        }
    }
}

#[test]
fn bytes() {
    let raw =
        |text: &[u8]| Stop::Pattern(Pattern::of_bytes(text, PatternOptions::default()).unwrap());
    let cut = |stops: Vec<Stop>, text: &[u8]| {
        let mut stream = ByteStream::new(set(stops), &StreamOptions::default()).unwrap();
        let mut out = Vec::new();
        for byte in text {
            if stream.feed(&[*byte], &mut out).unwrap().is_some() {
                break;
            }
        }
        stream.flush(&mut out);
        out
    };
    assert_eq!(cut(vec![raw(b"\xff{2}.")], b"a\xff\xff\xfez"), b"a");
    assert_eq!(cut(vec![raw(b"\\bEND\\b")], b"\xe9END\n"), b"\xe9");
    assert_eq!(cut(vec![pattern("[é語]!")], "aé語!".as_bytes()), "aé".as_bytes());
    assert_eq!(cut(vec![pattern("a.b")], "a語b".as_bytes()), b"");
    assert_eq!(cut(vec![pattern("a.b")], b"a\xffb"), b"a\xffb");
    let refused = ByteStream::new(set(vec![pattern(r"\ba")]), &StreamOptions::default());
    assert!(refused.unwrap_err().to_string().starts_with("stop 0, pattern"));
    assert!(set(vec![raw(b"a")]).stream().unwrap_err().is_bytes_stop());
}

#[test]
fn what_is_refused_says_why() {
    let message = |stops: Vec<Stop>, options: &StreamOptions| {
        Stream::new(set(stops), options).map(|_| ()).unwrap_err().to_string()
    };
    let options = StreamOptions::default();
    let endless = message(vec![Stop::from("x"), pattern("a.*b")], &options);
    assert!(endless.contains("stop 1, pattern \"a.*b\"") && endless.contains("after \"a\""));
    assert_eq!(set(vec![pattern("a.*b"), short("c.*d", 7)]).bounds(), [None, Some(7)]);
    let scope = Scope { min_chars: 3, ..Scope::default() };
    let scoped = StreamOptions { scope, ..StreamOptions::default() };
    assert!(message(vec![pattern("ab")], &scoped).contains("scope"));
    let some = Include::Only(["x".into()].into());
    let some = StreamOptions { include_stop: some, ..StreamOptions::default() };
    assert!(message(vec![pattern("ab")], &some).contains("include_stop"));
    let large = StopSet::of([pattern("[ab]*a[ab]{14}c")], Limits::default(), Tie::Longest, 4_096);
    assert!(large.unwrap_err().to_string().contains("max_states"));
}
