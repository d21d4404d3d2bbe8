//! Nothing passes unread: recorded streams, changed in every way, cut, and read as clients read.

#![allow(
    unreachable_pub,
    reason = "the readers belong to the crate in fuzz/, where they are public"
)]
#![allow(dead_code, reason = "what only the fuzz target needs")]

#[path = "../fuzz/src/lenient.rs"]
mod lenient;
mod wire_client;

use holdback::wire::{Dialect, OnMatch};
use wire_client::{Dice, damage, recorded};

/// Changes that keep a stream readable: frames doubled, dropped, moved, taken from another answer,
/// white space, keys of other dialects.
fn reshape(body: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let text = String::from_utf8_lossy(body).into_owned();
    let gap = if text.contains("\n\n") { "\n\n" } else { "\n" };
    let mut frames: Vec<String> = text.split_inclusive(gap).map(str::to_owned).collect();
    let theirs = String::from_utf8_lossy(other).into_owned();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(frames.len());
        match dice.roll(9) {
            0 => frames.insert(at, frames[dice.roll(frames.len())].clone()),
            1 if frames.len() > 1 => drop(frames.remove(at)),
            2 => {
                let to = dice.roll(frames.len());
                frames.swap(at, to);
            }
            3 => {
                let frames_of_theirs: Vec<&str> = theirs.split_inclusive("\n\n").collect();
                frames.insert(at, frames_of_theirs[dice.roll(frames_of_theirs.len())].to_owned());
            }
            4 => {
                let blank = [" {", "\t{", "\ndata: {", "  {", "\u{c}{", "\u{feff}{"][dice.roll(6)];
                frames[at] = frames[at].replacen('{', blank, 1);
            }
            5 => {
                let keys = [
                    "content",
                    "text",
                    "delta",
                    "message",
                    "choices",
                    "response",
                    "token",
                    "index",
                    "type",
                    "parts",
                    "candidates",
                    "finish_reason",
                    "error",
                    "data",
                    "thinking",
                ];
                let (from, to) = (keys[dice.roll(keys.len())], keys[dice.roll(keys.len())]);
                frames[at] = frames[at].replace(&format!("{from}\""), &format!("{to}\""));
            }
            6 => {
                let piece = ["END", "E", "ND x", "EN", "D"][dice.roll(5)];
                let value =
                    ["content\":\"", "text\":\"", "delta\":\"", "response\":\""][dice.roll(4)];
                frames[at] = frames[at].replace(value, &format!("{value}{piece}"));
            }
            7 => {
                let extra = [
                    "\"message\":{\"content\":\"END x\"},",
                    "\"text\":\"END x\",",
                    "\"delta\":{\"content\":\"END x\"},",
                    "\"index\":null,",
                    "\"index\":1,",
                    "\"generated_text\":\"END x\",",
                ][dice.roll(6)];
                let holder =
                    ["{\"index\"", "{\"delta\"", "{\"type\"", "{\"content\""][dice.roll(4)];
                let inside = holder.strip_prefix('{').unwrap_or(holder);
                frames[at] = frames[at].replacen(holder, &format!("{{{extra}{inside}"), 1);
            }
            _ => {
                let name = ["Data: ", "data : ", " data:", ""][dice.roll(4)];
                frames[at] = frames[at].replace("data: ", name);
            }
        }
    }
    frames.concat().into_bytes()
}

#[test]
fn no_client_sees_more_than_it_may_of_any_changed_stream() {
    let recorded = recorded();
    let rounds: u64 =
        std::env::var("LENIENT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let mut dice = Dice(20_261_201);
    let mut refused = 0;
    for _ in 0..rounds {
        let one = &recorded[dice.roll(recorded.len())];
        let other = &recorded[dice.roll(recorded.len())].body;
        let mut body = reshape(&one.body, other, &mut dice);
        if dice.roll(3) == 0 {
            body = damage(&body, other, &mut dice);
        }
        let dialect = match dice.roll(6) {
            0 => Dialect::ALL[dice.roll(Dialect::ALL.len())],
            _ => one.dialect.parse().unwrap(),
        };
        let on_match = if dice.roll(2) == 0 { OnMatch::Drain } else { OnMatch::Cancel };
        refused += u64::from(lenient::check(dialect, &["END", "Observation:"], on_match, &body));
    }
    assert!(
        refused > rounds / 50 && refused < rounds * 4 / 5,
        "{refused} of {rounds} were refused"
    );
}
