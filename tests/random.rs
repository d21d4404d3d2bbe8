//! Random streams against the naive twin. The ordinary run is short; `HOLDBACK_CASES=100000000
//! cargo test --release --test random` is the long one. A failure prints its seed; `HOLDBACK_SEED`
//! repeats it.

#![allow(clippy::cast_possible_truncation, reason = "texts of a few letters")]

mod twin;

use holdback::raw::{Matcher, TestKnobs};
use holdback::{Limits, StopList, StopSet, StreamOptions, Tie};
use twin::{Seen, Twin};

/// xorshift64*: small, seeded, good enough to pick letters.
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

/// Letters that collide in every way: two ASCII, one Latin-1, CJK of one page and of another, two
/// emoji.
const LETTERS: [char; 8] = ['a', 'b', '\n', 'é', '語', '話', '😀', '😁'];

fn word(dice: &mut Dice, letters: usize, longest: usize) -> Vec<char> {
    (0..=dice.below(longest)).map(|_| LETTERS[dice.below(letters)]).collect()
}

/// One set, some texts, some chunkings; gives the number of streams.
fn case(seed: u64) -> u64 {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let letters = 1 + dice.below(LETTERS.len());
    let mut stops: Vec<Vec<char>> =
        (0..=dice.below(6)).map(|_| word(&mut dice, letters, 6)).collect();
    if dice.below(2) == 0 {
        // A part, or an extension, of a stop that is there already.
        let of = stops[dice.below(stops.len())].clone();
        let from = dice.below(of.len());
        let mut part = of[from..=from + dice.below(of.len() - from)].to_vec();
        if dice.below(2) == 0 {
            part.extend(word(&mut dice, letters, 3));
        }
        stops.push(part);
    }
    let tie = [Tie::Longest, Tie::First][dice.below(2)];
    let twin = Twin { stops, tie, include_stop: dice.below(4) == 0 };
    let mut list = StopList::new(Limits::default());
    for stop in &twin.stops {
        list.push(&stop.iter().collect::<String>()).unwrap();
    }
    let set = StopSet::compile_forced(
        list,
        tie,
        TestKnobs {
            dense_bytes: [None, Some(0), Some(64)][dice.below(3)],
            no_filter: dice.below(2) == 0,
        },
    );
    let options =
        StreamOptions { include_stop: twin.include_stop.into(), ..StreamOptions::default() };
    let mut streams = 0;
    for _ in 0..8 {
        let mut text = word(&mut dice, letters, 24);
        if dice.below(2) == 0 {
            let stop = &twin.stops[dice.below(twin.stops.len())];
            let at = dice.below(text.len() + 1);
            text.splice(at..at, stop.iter().copied());
        }
        let mut stream = Matcher::text(set.clone(), &options).unwrap();
        let (mut fed, mut emitted) = (0, 0);
        while fed < text.len() {
            let to = (fed + dice.below(6)).min(text.len());
            let narrow: Vec<u32> = text[fed..to].iter().map(|&c| c.into()).collect();
            let advance = stream.advance(&narrow);
            emitted += advance.released + advance.passed;
            let matched = stream.matched().map(|m| (m.index, m.start as usize, m.end as usize));
            let seen = Seen { emitted, held: stream.held_len(), matched };
            assert_eq!(
                seen,
                twin.after(&text[..to]),
                "seed {seed}: stops {:?} {tie:?} text {text:?} to {to}",
                twin.stops
            );
            fed = to;
            if matched.is_some() {
                break;
            }
        }
        streams += 1;
    }
    streams
}

#[test]
fn agrees_with_the_twin() {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some(seed) = number("HOLDBACK_SEED") {
        case(seed);
        return;
    }
    let cases = number("HOLDBACK_CASES").unwrap_or(200_000);
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let streams: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|t| {
                scope.spawn(move || {
                    (t..cases.div_ceil(8)).step_by(threads as usize).map(case).sum::<u64>()
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    eprintln!("random: {streams} streams compared with the twin, chunk by chunk");
    assert!(streams >= cases);
}

/// Long text, where the start filter works: against the twin, and with the filter off, in every
/// width of storage.
fn long_case(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let letters: Vec<char> = match dice.below(4) {
        0 => "ab".chars().collect(),
        1 => ('a'..='z').chain([' ', '\n', '<', '|']).collect(),
        2 => "the quick brown fox jumps\n<|>/éÿ".chars().collect(),
        _ => "ab语話é😀 the\n".chars().collect(),
    };
    let narrow_only = letters.iter().all(|&c| u32::from(c) < 256);
    let word = |dice: &mut Dice, longest: usize| -> Vec<char> {
        (0..=dice.below(longest)).map(|_| letters[dice.below(letters.len())]).collect()
    };
    let (few, longest) = ([1, 3, 40][dice.below(3)], [3, 7, 30][dice.below(3)]);
    let stops: Vec<Vec<char>> =
        (0..few).map(|_| [word(&mut dice, 3), word(&mut dice, longest)].concat()).collect();
    let tie = [Tie::Longest, Tie::First][dice.below(2)];
    let twin = Twin { stops, tie, include_stop: false };
    let set = |no_filter| {
        let mut list = StopList::new(Limits::default());
        for stop in &twin.stops {
            list.push(&stop.iter().collect::<String>()).unwrap();
        }
        let paths =
            TestKnobs { dense_bytes: [None, Some(0)][usize::from(seed % 3 == 0)], no_filter };
        StopSet::compile_forced(list, tie, paths)
    };
    let options = StreamOptions::default();
    let mut fast = Matcher::text(set(false), &options).unwrap();
    let mut slow = Matcher::text(set(true), &options).unwrap();
    let text: Vec<char> =
        (0..dice.below(900)).map(|_| letters[dice.below(letters.len())]).collect();
    let mut fed = 0;
    while fed < text.len() {
        let to = (fed + dice.below(400)).min(text.len());
        let full: Vec<u32> = text[fed..to].iter().map(|&c| c.into()).collect();
        let advance = if narrow_only && dice.below(2) == 0 {
            fast.advance(&full.iter().map(|&c| c as u8).collect::<Vec<u8>>())
        } else if dice.below(2) == 0 && full.iter().all(|&c| c < 0x1_0000) {
            fast.advance(&full.iter().map(|&c| c as u16).collect::<Vec<u16>>())
        } else {
            fast.advance(&full)
        };
        assert_eq!(
            advance,
            slow.advance(&full),
            "seed {seed} {:?} {text:?} {fed}..{to}",
            twin.stops
        );
        assert_eq!(fast.snapshot(), slow.snapshot(), "seed {seed}");
        fed = to;
        if let Some(found) = fast.matched() {
            let expected = twin.find(&text).expect("a match that is there");
            assert_eq!(
                (found.index, found.start as usize, found.end as usize),
                expected,
                "seed {seed}"
            );
            return;
        }
    }
    assert_eq!(twin.find(&text), None, "seed {seed} {:?} {text:?}", twin.stops);
}

/// The same for streams with scopes, in which a scan goes on after stops that do not count and from
/// region to region. Armed and disarmed between chunks.
fn long_scoped_case(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let letters: Vec<char> = match dice.below(3) {
        0 => "ab[]".chars().collect(),
        1 => ('a'..='z').chain(" \n<|>[]".chars()).collect(),
        _ => "ab语話é😀 []\n".chars().collect(),
    };
    let word = |dice: &mut Dice, longest: usize| -> String {
        (0..=dice.below(longest)).map(|_| letters[dice.below(letters.len())]).collect()
    };
    let stops: Vec<String> =
        (0..=dice.below(4)).map(|_| word(&mut dice, 2) + &word(&mut dice, 6)).collect();
    let markers = [("[", "]"), ("[[a", "]b"), ("<|", "|>")];
    let (opener, closer) = markers[dice.below(3)];
    let scope = holdback::Scope {
        min_chars: [0, 0, 200, 700][dice.below(4)],
        ignore_inside: if dice.below(4) > 0 {
            vec![(opener.into(), closer.into())]
        } else {
            Vec::new()
        },
        start_inside: false,
        atomic: if dice.below(2) == 0 { vec![word(&mut dice, 5).into_bytes()] } else { Vec::new() },
    };
    let options = StreamOptions {
        include_stop: (dice.below(4) == 0).into(),
        scope,
        ..StreamOptions::default()
    };
    let matcher = |no_filter| {
        let mut list = StopList::new(Limits::default());
        for stop in &stops {
            list.push(stop).unwrap();
        }
        let knobs = TestKnobs { no_filter, ..TestKnobs::default() };
        Matcher::text(StopSet::compile_forced(list, Tie::Longest, knobs), &options).ok()
    };
    // A stop that is a marker is refused.
    let (Some(mut fast), Some(mut slow)) = (matcher(false), matcher(true)) else { return };
    for _ in 0..dice.below(6) {
        let text: Vec<u32> =
            (0..dice.below(1500)).map(|_| letters[dice.below(letters.len())].into()).collect();
        let narrow: Option<Vec<u8>> = text.iter().map(|&c| u8::try_from(c).ok()).collect();
        let advance = match narrow {
            Some(narrow) if dice.below(2) == 0 => fast.advance(&narrow),
            _ => fast.advance(&text),
        };
        assert_eq!(advance, slow.advance(&text), "seed {seed} {stops:?} {options:?}");
        assert_eq!(fast.snapshot(), slow.snapshot(), "seed {seed} {stops:?} {options:?}");
        if dice.below(3) == 0 {
            let armed = dice.below(2) == 0;
            fast.set_armed(armed);
            slow.set_armed(armed);
        }
    }
}

#[test]
fn the_start_filter_changes_nothing_with_scopes() {
    (0..4_000).for_each(long_scoped_case);
}

#[test]
fn the_start_filter_changes_nothing() {
    let cases = std::env::var("HOLDBACK_LONG_CASES")
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(4_000);
    (0..cases).for_each(long_case);
}

/// Slices of a long chunk are the chunk; a pause that refuses leaves everything as it was.
#[test]
fn slices_are_the_chunk_and_a_refusal_changes_nothing() {
    let scope = holdback::Scope {
        ignore_inside: vec![(b"<t>".to_vec(), b"</t>".to_vec())],
        ..holdback::Scope::default()
    };
    let mut refused = 0;
    for seed in 0..2_000 {
        let mut dice = Dice(seed * 0x9e37_79b9 + 1);
        let letters = b"ab<t>/";
        let text: Vec<u8> =
            (0..dice.below(60)).map(|_| letters[dice.below(letters.len())]).collect();
        let set = StopSet::new(["ab", "ba<a", "bbbb"]).unwrap();
        let options = StreamOptions {
            scope: [holdback::Scope::default(), scope.clone()][dice.below(2)].clone(),
            ..Default::default()
        };
        let mut whole = Matcher::text(set, &options).unwrap();
        let _ = whole.advance(b"b");
        let (mut sliced, mut stopped, before) = (whole.clone(), whole.clone(), whole.snapshot());
        let slice = 1 + dice.below(7);
        let advance = sliced.advance_in_slices(&text, slice, || Ok::<(), ()>(())).unwrap();
        assert_eq!(advance, whole.advance(&text), "seed {seed}");
        assert_eq!(sliced.snapshot(), whole.snapshot(), "seed {seed}");
        let mut left = dice.below(4);
        let pause = || {
            left = usize::checked_sub(left, 1).ok_or(())?;
            Ok::<(), ()>(())
        };
        if stopped.advance_in_slices(&text, slice, pause).is_err() {
            assert_eq!(stopped.snapshot(), before, "seed {seed}");
            refused += 1;
        }
    }
    assert!(refused > 100, "{refused}");
}
