//! The wire against recorded streams of every dialect: the same answer for every cutting, and what
//! a client reads from it.

mod wire_client;

use holdback::StopSet;
use holdback::wire::{Cutter, Dialect, OnMalformed, OnMatch, Options};
use wire_client::{Dice, Recorded, damage, read, recorded};

fn cut(recorded: &Recorded, pieces: &[&[u8]], options: &Options) -> (Vec<u8>, Cutter) {
    let set = StopSet::new(&recorded.stops).unwrap();
    let mut cutter = Cutter::new(recorded.dialect.parse().unwrap(), &set, options.clone()).unwrap();
    let mut out = Vec::new();
    for piece in pieces {
        cutter.feed(piece, &mut out).unwrap();
    }
    cutter.finish(&mut out).unwrap();
    (out, cutter)
}

fn draining() -> Options {
    let mut options = Options::default();
    options.on_match = OnMatch::Drain;
    options
}

#[test]
fn every_recorded_stream_gives_the_same_bytes_for_every_cutting() {
    for recorded in recorded() {
        for options in [Options::default(), draining()] {
            let (whole, cutter) = cut(&recorded, &[&recorded.body], &options);
            let bytes: Vec<&[u8]> = recorded.body.chunks(1).collect();
            let (single, singly) = cut(&recorded, &bytes, &options);
            assert_eq!(
                String::from_utf8_lossy(&single),
                String::from_utf8_lossy(&whole),
                "{} byte by byte",
                recorded.name
            );
            assert_eq!(singly.matches(), cutter.matches(), "{}", recorded.name);
            for at in 0..=recorded.body.len() {
                let (left, right) = recorded.body.split_at(at);
                assert!(
                    cut(&recorded, &[left, right], &options).0 == whole,
                    "{} cut at {at}",
                    recorded.name
                );
            }
        }
    }
}

#[test]
fn a_client_reads_the_text_up_to_the_stop_and_a_proper_end() {
    for recorded in recorded() {
        for options in [Options::default(), draining()] {
            let (out, cutter) = cut(&recorded, &[&recorded.body], &options);
            let answer = read(&recorded.dialect, &out);
            assert!(cutter.ended() && answer.ended, "{}: {answer:?}", recorded.name);
            if let Some((text, stop)) = &recorded.cut {
                assert_eq!(&answer.text, text, "{}", recorded.name);
                let found = &cutter.matches()[0].found;
                assert_eq!(&recorded.stops[found.index], stop, "{}", recorded.name);
                assert_eq!(found.start, text.chars().count() as u64);
                assert!(answer.stopped, "{}: {answer:?}", recorded.name);
                assert_eq!(
                    answer.stop.as_ref(),
                    answer.names_stop.then_some(stop),
                    "{}",
                    recorded.name
                );
                assert!(
                    answer.repeats.iter().all(|repeat| repeat == text),
                    "{}: {answer:?}",
                    recorded.name
                );
            } else {
                assert_eq!(answer.text, recorded.text, "{}", recorded.name);
                assert!(cutter.matches().is_empty());
                let (before, mut after) = (read(&recorded.dialect, &recorded.body), answer);
                assert_eq!(after.repeats, before.repeats);
                after.texts = before.texts; // held text may leave in an event of its own
                assert_eq!(after, before, "{}", recorded.name);
            }
        }
    }
}

#[test]
fn a_stream_in_which_nothing_is_held_leaves_as_it_came() {
    let mut passed = 0;
    for recorded in recorded() {
        let none: [&str; 0] = [];
        for stops in [none.as_slice(), &["\u{1F980}", "zzz"]] {
            let set = StopSet::new(stops).unwrap();
            let mut cutter =
                Cutter::new(recorded.dialect.parse().unwrap(), &set, Options::default()).unwrap();
            let mut out = Vec::new();
            cutter.feed(&recorded.body, &mut out).unwrap();
            cutter.finish(&mut out).unwrap();
            assert!(out == recorded.body, "{}", recorded.name);
            passed += 1;
        }
        if recorded.case == "natural" || recorded.case == "length" {
            assert!(
                cut(&recorded, &[&recorded.body], &Options::default()).0 == recorded.body,
                "{}",
                recorded.name
            );
        }
    }
    assert_eq!(passed, 86);
}

/// "EN" was held; the last frame brings "EN" again, so that what it releases has the letters of
/// what came. It left three times once.
#[test]
fn a_last_frame_that_repeats_what_is_held_leaves_once() {
    let set = StopSet::new(["END"]).unwrap();
    let mut cutter = Cutter::new(Dialect::OllamaGenerate, &set, Options::default()).unwrap();
    let mut out = Vec::new();
    cutter.feed(b"{\"response\":\"EN\",\"done\":false}\n", &mut out).unwrap();
    cutter.feed(b"{\"response\":\"EN\",\"done\":true}\n", &mut out).unwrap();
    cutter.finish(&mut out).unwrap();
    let expected = "{\"response\":\"\",\"done\":false}\n{\"response\":\"ENEN\",\"done\":true}\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_drained_stream_keeps_the_figures_of_its_upstream() {
    for recorded in recorded().into_iter().filter(|recorded| recorded.case == "uncut") {
        let (out, _) = cut(&recorded, &[&recorded.body], &draining());
        let (before, after) =
            (read(&recorded.dialect, &recorded.body), read(&recorded.dialect, &out));
        assert_eq!(before.usage, after.usage, "{}", recorded.name);
    }
}

#[test]
fn names_of_dialects_go_both_ways() {
    for &dialect in Dialect::ALL {
        assert_eq!(dialect.name().parse::<Dialect>().unwrap(), dialect);
    }
    let error = "openai".parse::<Dialect>().unwrap_err().to_string();
    assert!(
        error.contains("\"openai\"") && error.contains("openai.chat, openai.completions"),
        "{error}"
    );
}

/// What a cutter makes of some input: bytes, matches, end, error.
type Outcome = (Vec<u8>, usize, bool, Option<String>);

fn outcome(dialect: Dialect, stops: &StopSet, options: &Options, pieces: &[&[u8]]) -> Outcome {
    let mut cutter = Cutter::new(dialect, stops, options.clone()).unwrap();
    let mut out = Vec::new();
    let mut result = Ok(());
    for piece in pieces {
        result = result.and_then(|()| cutter.feed(piece, &mut out));
    }
    let result = result.and_then(|()| cutter.finish(&mut out));
    (out, cutter.matches().len(), cutter.ended(), result.err().map(|error| error.to_string()))
}

#[test]
fn damaged_streams_never_panic_and_do_not_depend_on_the_cutting() {
    let recorded = recorded();
    let mut dice = Dice(20_260_930);
    let (mut failed, mut cut) = (0, 0);
    for round in 0..6_000 {
        let one = &recorded[round % recorded.len()];
        let body = damage(&one.body, &recorded[dice.roll(recorded.len())].body, &mut dice);
        let set = StopSet::new(&one.stops).unwrap();
        let mut options = if dice.roll(2) == 0 { Options::default() } else { draining() };
        options.cut_reasoning = dice.roll(2) == 0;
        options.choices = [None, Some(1), Some(2)][dice.roll(3)];
        options.on_malformed =
            if dice.roll(3) == 0 { OnMalformed::Pass } else { OnMalformed::Fail };
        options.max_frame_bytes = if dice.roll(5) == 0 { 300 } else { 1 << 20 };
        let dialect = if dice.roll(8) == 0 {
            Dialect::ALL[dice.roll(Dialect::ALL.len())]
        } else {
            one.dialect.parse().unwrap()
        };
        let whole = outcome(dialect, &set, &options, &[&body]);
        let at = dice.roll(body.len());
        let halves = outcome(dialect, &set, &options, &[&body[..at], &body[at..]]);
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        let single = outcome(dialect, &set, &options, &bytes);
        for (how, other) in [("at a byte", &halves), ("byte by byte", &single)] {
            let text = |outcome: &Outcome| String::from_utf8_lossy(&outcome.0).into_owned();
            assert_eq!(
                text(&whole),
                text(other),
                "{dialect} cut {how} ({at}):\n{}",
                String::from_utf8_lossy(&body)
            );
            assert_eq!(
                whole,
                *other,
                "{dialect} cut {how} ({at}):\n{}",
                String::from_utf8_lossy(&body)
            );
        }
        failed += usize::from(whole.3.is_some());
        cut += usize::from(whole.1 > 0);
        let mut cutter = Cutter::new(dialect, &set, options).unwrap();
        let _ = cutter.body(&body, &mut Vec::new());
    }
    assert!(
        failed > 500 && cut > 500,
        "the damage is neither too great nor too small: {failed} failed, {cut} cut"
    );
}
