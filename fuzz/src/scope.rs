//! Streams with arming, regions and whole markers. No oracle here: what must hold for any cutting,
//! and after any snapshot.

use holdback::raw::{Matcher, Place, ScopedSnapshot, Snapshot};
use holdback::{Include, Scope, StopSet, StreamOptions};

use super::few_letters;

/// Takes fields from the front of the data; zeros when it is used up.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn word(&mut self, longest: u8) -> String {
        (0..=self.byte() % longest).map(|_| few_letters(self.byte())).collect()
    }

    fn words(&mut self, most: u8, longest: u8) -> Vec<String> {
        (0..self.byte() % (most + 1)).map(|_| self.word(longest)).collect()
    }
}

/// A set and options that go together, or `None`: markers may contradict each other.
fn stream(fields: &mut Fields<'_>) -> Option<Matcher> {
    let stops = fields.words(3, 4);
    let flags = fields.byte();
    let region =
        (flags & 0b1 != 0).then(|| (fields.word(2).into_bytes(), fields.word(2).into_bytes()));
    let scope = Scope {
        min_chars: u64::from(flags >> 5),
        start_inside: region.is_some() && flags & 0b10 != 0,
        ignore_inside: region.into_iter().collect(),
        atomic: fields.words(2, 4).into_iter().map(String::into_bytes).collect(),
    };
    let include_stop = match flags & 0b1100 {
        0 => Include::All,
        0b0100 => {
            Include::Only(stops.iter().take(1).map(|stop| stop.clone().into_bytes()).collect())
        }
        _ => Include::None,
    };
    let set = StopSet::new(&stops).expect("the stops of the target are valid");
    Matcher::text(set, &StreamOptions { include_stop, scope, ..StreamOptions::default() }).ok()
}

fn restored(matcher: &Matcher, snapshot: Snapshot) -> Option<Matcher> {
    Matcher::text(matcher.set().clone(), &matcher.options())
        .expect("options that were accepted before")
        .restore(snapshot)
}

fn found(matcher: &Matcher) -> Option<(usize, u64, u64)> {
    matcher.matched().map(|m| (m.index, m.start, m.end))
}

/// Character by character, and in chunks: the same text comes out, the same is held, the same stop
/// ends it. Between chunks the second stream is armed, disarmed, and put through a snapshot; the
/// first is armed and disarmed at the same places.
pub fn scope(data: &[u8]) {
    let mut fields = Fields(data);
    let Some(mut single) = stream(&mut fields) else { return };
    let mut chunked = single.clone();
    let (mut one, mut many, mut chunk) = (0, 0, Vec::new());
    for &byte in fields.0 {
        let letter = u32::from(few_letters(byte));
        let advance = single.advance(&[letter]);
        one += advance.released + advance.passed;
        chunk.push(letter);
        if byte & 0x80 != 0 {
            let advance = chunked.advance(&chunk);
            many += advance.released + advance.passed;
            chunk.clear();
            assert_eq!(
                (found(&single), one, single.held_len()),
                (found(&chunked), many, chunked.held_len()),
                "{data:?}"
            );
            if single.matched().is_some() {
                return;
            }
            assert_eq!(
                (one + single.held_len()) as u64,
                single.seen(),
                "emitted and held are all of it: {data:?}"
            );
            match byte >> 5 & 3 {
                1 => [&mut single, &mut chunked]
                    .into_iter()
                    .for_each(|stream| stream.set_armed(false)),
                2 => [&mut single, &mut chunked]
                    .into_iter()
                    .for_each(|stream| stream.set_armed(true)),
                3 => {
                    chunked = restored(&chunked, chunked.snapshot())
                        .expect("a snapshot of a stream restores it");
                }
                _ => {}
            }
        }
    }
    let advance = chunked.advance(&chunk);
    many += advance.released + advance.passed;
    assert_eq!(
        (found(&single), one + single.flush()),
        (found(&chunked), many + chunked.flush()),
        "{data:?}"
    );
}

/// A snapshot from somebody else: whatever it says, it is refused or makes a stream that works. It
/// must not panic.
pub fn snapshot(data: &[u8]) {
    let mut fields = Fields(data);
    let Some(mut matcher) = stream(&mut fields) else { return };
    let word: Vec<u32> = fields.word(8).chars().map(u32::from).collect();
    let _ = matcher.advance(&word);
    let number = |fields: &mut Fields<'_>| match fields.byte() {
        255 => u64::MAX,
        254 => 1 << 62,
        small => u64::from(small),
    };
    let mut forged = matcher.snapshot();
    for _ in 0..fields.byte() % 4 {
        match fields.byte() % 6 {
            0 => forged.seen = number(&mut fields),
            1 => forged.chunks = number(&mut fields),
            2 => {
                forged.chunk_index =
                    (number(&mut fields), vec![(number(&mut fields), number(&mut fields))]);
            }
            3 => forged.place = Place::Plain(fields.word(6).into_bytes()),
            4 => {
                forged.place = Place::Scoped(ScopedSnapshot {
                    window: fields.word(6).into_bytes(),
                    region: (fields.byte() % 2 == 0).then(|| usize::from(fields.byte())),
                    armed_after: (fields.byte() % 2 == 0).then(|| number(&mut fields)),
                    floor: number(&mut fields),
                    partial: fields.word(4).into_bytes(),
                    whole: vec![(number(&mut fields), number(&mut fields))],
                    held: fields.word(6).into_bytes(),
                });
            }
            _ => forged.place = Place::Plain(vec![fields.byte(), fields.byte()]),
        }
    }
    let Some(mut other) = restored(&matcher, forged) else { return };
    for &byte in fields.0.iter().take(32) {
        let _ = other.advance(&[u32::from(few_letters(byte))]);
        other.set_armed(byte & 0x40 != 0);
        let held = std::str::from_utf8(other.held_bytes()).expect("held text is text");
        assert_eq!(held.chars().count(), other.held_len());
    }
    let _ = other.flush();
}
