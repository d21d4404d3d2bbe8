//! The wire against recorded streams of every dialect: the same answer for every cutting, and what a client reads from it.

mod wire_client;

use holdback::StopSet;
use holdback::wire::{Cutter, Dialect, OnMatch, Options};
use wire_client::{Recorded, read, recorded};

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
            assert_eq!(String::from_utf8_lossy(&single), String::from_utf8_lossy(&whole), "{} byte by byte", recorded.name);
            assert_eq!(singly.matches(), cutter.matches(), "{}", recorded.name);
            for at in 0..=recorded.body.len() {
                let (left, right) = recorded.body.split_at(at);
                assert!(cut(&recorded, &[left, right], &options).0 == whole, "{} cut at {at}", recorded.name);
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
                assert_eq!(answer.stop.as_ref(), answer.names_stop.then_some(stop), "{}", recorded.name);
                assert!(answer.repeats.iter().all(|repeat| repeat == text), "{}: {answer:?}", recorded.name);
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
            let mut cutter = Cutter::new(recorded.dialect.parse().unwrap(), &set, Options::default()).unwrap();
            let mut out = Vec::new();
            cutter.feed(&recorded.body, &mut out).unwrap();
            cutter.finish(&mut out).unwrap();
            assert!(out == recorded.body, "{}", recorded.name);
            passed += 1;
        }
        if recorded.case == "natural" || recorded.case == "length" {
            assert!(cut(&recorded, &[&recorded.body], &Options::default()).0 == recorded.body, "{}", recorded.name);
        }
    }
    assert_eq!(passed, 78);
}

#[test]
fn a_drained_stream_keeps_the_figures_of_its_upstream() {
    for recorded in recorded().into_iter().filter(|recorded| recorded.case == "uncut") {
        let (out, _) = cut(&recorded, &[&recorded.body], &draining());
        let (before, after) = (read(&recorded.dialect, &recorded.body), read(&recorded.dialect, &out));
        assert_eq!(before.usage, after.usage, "{}", recorded.name);
    }
}

#[test]
fn names_of_dialects_go_both_ways() {
    for dialect in Dialect::ALL {
        assert_eq!(dialect.name().parse::<Dialect>().unwrap(), dialect);
    }
    let error = "openai".parse::<Dialect>().unwrap_err().to_string();
    assert!(error.contains("\"openai\"") && error.contains("openai.chat, openai.completions"), "{error}");
}
