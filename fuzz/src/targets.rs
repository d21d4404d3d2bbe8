//! What is fuzzed: each target is a function of bytes that panics when a promise is broken.
//!
//! `core`, `bytes` and `text` compare a stream with the naive twin after every chunk; `decode`
//! compares the incremental decoder with the standard library; `scope`, `snapshot` and `wire` have
//! no oracle and check what must hold for any cutting; `lenient` holds what a client would see of a
//! cut stream against the stops. The bytes are read as a list of stops and a
//! text over a few letters, so that nearly every input means something and stops collide all the
//! time.

#[path = "../../tests/twin/mod.rs"]
mod twin;

#[path = "lenient.rs"]
mod lenient;
#[path = "scope.rs"]
mod scope;
#[path = "wire.rs"]
mod wire;

pub use lenient::lenient;
pub use scope::{scope, snapshot};
pub use wire::wire;

use holdback::raw::{Decoded, Decoder, Matcher, TestKnobs};
use holdback::{ByteStream, Errors, Limits, StopList, StopSet, Stream, StreamOptions, Tie};
use twin::{Seen, Twin};

/// A target of bytes.
pub type Target = fn(&[u8]);

/// All of them, by name.
pub const ALL: &[(&str, Target)] = &[
    ("core", core),
    ("bytes", bytes),
    ("text", text),
    ("decode", decode),
    ("scope", scope),
    ("snapshot", snapshot),
    ("wire", wire),
    ("lenient", lenient),
];

/// Letters that collide in every way: ASCII, one Latin-1, CJK that share their first bytes, emoji
/// that share three.
const LETTERS: [char; 8] = ['a', 'b', '\n', 'é', '語', '話', '😀', '😁'];

/// Options and stops, read from the front of the data; what is left is the text.
struct Case<'a> {
    twin: Twin,
    set: StopSet,
    options: StreamOptions,
    rest: &'a [u8],
}

impl<'a> Case<'a> {
    /// `letter` turns a byte into a letter of a stop. `None` when the data is too short to have a
    /// stop.
    fn read(
        data: &'a [u8],
        letter: fn(u8) -> char,
        push: fn(&mut StopList, &[char]),
    ) -> Option<Self> {
        let (&flags, mut rest) = data.split_first()?;
        let mut stops: Vec<Vec<char>> = Vec::new();
        for _ in 0..=(flags >> 5) {
            let (&length, after) = rest.split_first()?;
            let length = usize::from(length % 8) + 1;
            if after.len() < length {
                return None;
            }
            stops.push(after[..length].iter().map(|&byte| letter(byte)).collect());
            rest = &after[length..];
        }
        let tie = if flags & 1 == 0 { Tie::Longest } else { Tie::First };
        let twin = Twin { stops, tie, include_stop: flags & 2 != 0 };
        let mut list = StopList::new(Limits::default());
        twin.stops.iter().for_each(|stop| push(&mut list, stop));
        let paths = TestKnobs {
            dense_bytes: [None, Some(0), Some(64), None][usize::from(flags >> 2 & 3)],
            no_filter: flags & 16 != 0,
        };
        let set = StopSet::compile_forced(list, tie, paths);
        let options =
            StreamOptions { include_stop: twin.include_stop.into(), ..StreamOptions::default() };
        Some(Self { twin, set, options, rest })
    }

    fn expect(&self, seen: &Seen, text: &[char]) {
        let stops = &self.twin.stops;
        assert_eq!(
            *seen,
            self.twin.after(text),
            "stops {stops:?} {:?} text {text:?}",
            self.twin.tie
        );
    }
}

fn few_letters(byte: u8) -> char {
    LETTERS[usize::from(byte) % LETTERS.len()]
}

fn push_text(list: &mut StopList, stop: &[char]) {
    list.push(&stop.iter().collect::<String>()).expect("a stop of the target is valid");
}

/// A byte as the character of the same number: the twin counts letters and does not care what they
/// are.
fn push_bytes(list: &mut StopList, stop: &[char]) {
    let bytes: Vec<u8> = stop.iter().map(|&letter| letter as u8).collect();
    list.push_bytes(&bytes).expect("a stop of the target is valid");
}

/// Cuts after every byte whose highest bit is set.
fn chunks(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| byte & 0x80 != 0)
}

/// The matcher over characters in every width of storage, against the twin.
pub fn core(data: &[u8]) {
    let Some(case) = Case::read(data, few_letters, push_text) else { return };
    let mut matcher =
        Matcher::text(case.set.clone(), &case.options).expect("text stops make a text stream");
    let (mut text, mut emitted) = (Vec::new(), 0);
    for chunk in chunks(case.rest) {
        let letters: Vec<char> = chunk.iter().map(|&byte| few_letters(byte)).collect();
        text.extend(&letters);
        let narrow: Option<Vec<u8>> =
            letters.iter().map(|&c| u8::try_from(u32::from(c)).ok()).collect();
        let wide: Option<Vec<u16>> =
            letters.iter().map(|&c| u16::try_from(u32::from(c)).ok()).collect();
        let advance = match (narrow, wide) {
            (Some(narrow), _) => matcher.advance(&narrow),
            (None, Some(wide)) => matcher.advance(&wide),
            (None, None) => {
                matcher.advance(&letters.iter().map(|&c| u32::from(c)).collect::<Vec<u32>>())
            }
        };
        emitted += advance.released + advance.passed;
        let matched = matcher.matched().map(|m| (m.index, m.start as usize, m.end as usize));
        case.expect(&Seen { emitted, held: matcher.held_len(), matched }, &text);
        if matched.is_some() {
            return;
        }
    }
}

/// A raw stream of any bytes, against the twin.
pub fn bytes(data: &[u8]) {
    let letter = |byte: u8| char::from(byte & 0x83);
    let Some(case) = Case::read(data, letter, push_bytes) else { return };
    let mut stream =
        ByteStream::new(case.set.clone(), &case.options).expect("any stops make a raw stream");
    let (mut text, mut out) = (Vec::new(), Vec::new());
    for chunk in case.rest.split_inclusive(|byte| byte & 4 != 0) {
        let chunk: Vec<u8> = chunk.iter().map(|byte| byte & 0x83).collect();
        text.extend(chunk.iter().map(|&byte| char::from(byte)));
        let matched = stream
            .feed(&chunk, &mut out)
            .expect("it was not flushed")
            .map(|m| (m.index, m.start as usize, m.end as usize));
        case.expect(&Seen { emitted: out.len(), held: stream.held().len(), matched }, &text);
        assert!(
            out.iter().zip(&text).all(|(&byte, &letter)| char::from(byte) == letter),
            "emitted text is the text"
        );
        if matched.is_some() {
            return;
        }
    }
    stream.flush(&mut out);
    assert_eq!(out.len(), text.len(), "a flush gives all that was held");
}

/// A text stream of bytes that may be any, cut anywhere, against the twin over what the standard
/// library decodes.
pub fn text(data: &[u8]) {
    let Some(case) = Case::read(data, few_letters, push_text) else { return };
    let Some((&step, raw)) = case.rest.split_first() else { return };
    let mut stream =
        Stream::new(case.set.clone(), &case.options).expect("text stops make a text stream");
    let mut out = String::new();
    let whole = String::from_utf8_lossy(raw);
    let letters: Vec<char> = whole.chars().collect();
    let mut matched = None;
    for chunk in raw.chunks(usize::from(step % 7) + 1) {
        matched = stream.feed_bytes(chunk, &mut out).expect("invalid bytes are replaced");
        if matched.is_some() {
            break;
        }
        assert!(whole.starts_with(&out), "emitted text is the text");
    }
    matched = matched.or(stream.flush(&mut out).expect("what waits is replaced"));
    let (emitted, expected) = match case.twin.find(&letters) {
        Some((_, start, end)) => {
            (if case.twin.include_stop { end } else { start }, case.twin.find(&letters))
        }
        None => (letters.len(), None),
    };
    assert_eq!(
        matched.map(|m| (m.index, m.start as usize, m.end as usize)),
        expected,
        "{raw:?} {:?}",
        case.twin.stops
    );
    assert_eq!(out, letters[..emitted].iter().collect::<String>(), "{raw:?} {:?}", case.twin.stops);
    let mut more = String::new();
    assert_eq!(stream.flush(&mut more), Ok(None));
    assert_eq!(more, "", "a second flush gives nothing");
}

/// The decoder, cut anywhere, against the standard library: what is replaced, and what is refused.
pub fn decode(data: &[u8]) {
    let Some((&step, raw)) = data.split_first() else { return };
    let size = usize::from(step % 5) + 1;
    let (mut decoder, mut out) = (Decoder::default(), String::new());
    for chunk in raw.chunks(size) {
        let Decoded { text, next, fault, .. } = decoder.decode(chunk, Errors::Replace);
        assert!(fault.is_none(), "invalid bytes are replaced");
        out.push_str(&text);
        decoder = next;
        assert!(decoder.waiting_bytes().len() <= 3, "at most three bytes wait");
    }
    if decoder.finish(Errors::Replace).expect("an unfinished character is replaced") {
        out.push('\u{fffd}');
    }
    assert_eq!(out, String::from_utf8_lossy(raw));

    let (mut strict, mut good) = (Decoder::default(), String::new());
    let mut refused = false;
    for chunk in raw.chunks(size) {
        let Decoded { text, next, fault, .. } = strict.decode(chunk, Errors::Strict);
        good.push_str(&text);
        if fault.is_some() {
            refused = true;
            break;
        }
        strict = next;
    }
    refused = refused || strict.finish(Errors::Strict).is_err();
    assert_eq!(refused, std::str::from_utf8(raw).is_err());
    assert!(String::from_utf8_lossy(raw).starts_with(&good), "what was accepted is the text");

    // The same bytes as 16-bit units: every kind of surrogate, joined or replaced.
    let units: Vec<u16> = raw
        .chunks_exact(2)
        .map(|two| 0xd7f0 + (u16::from(two[0]) << 8 | u16::from(two[1])) % 0x830)
        .collect();
    let (mut decoder, mut out) = (Decoder::default(), String::new());
    for chunk in units.chunks(size) {
        let Decoded { text, next, fault, .. } =
            decoder.join(chunk.iter().map(|&unit| u32::from(unit)), Errors::Replace);
        assert!(fault.is_none(), "halves are replaced");
        decoder = next;
        out.extend(
            text.into_iter()
                .map(|code| char::from_u32(code).expect("what comes out is a character")),
        );
    }
    if decoder.finish(Errors::Replace).expect("a half is replaced") {
        out.push('\u{fffd}');
    }
    let expected: String =
        char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect();
    assert_eq!(out, expected);
}
