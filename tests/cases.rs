//! The corpus (`tests/cases/`, whose README states the format) against the core alone: the same
//! cases that the binding and the reference run.
//!
//! `Reader` is what any binding has to be: a decoder in front of a matcher, and a place for the
//! text.

#![allow(clippy::cast_possible_truncation, reason = "cases are short")]

use std::collections::HashSet;

use holdback::{
    ByteStream, Decoded, Decoder, Errors, Include, Limits, Match, Matcher, Scope, StopList,
    StopSet, Stream, StreamOptions, Tie,
};
use serde_json::Value;

/// A literal of the corpus.
#[derive(Clone, Debug)]
enum Chunk {
    Text(Vec<u32>),
    Bytes(Vec<u8>),
    Call(String),
}

fn chunk(value: &Value) -> Chunk {
    if let Some(text) = value.as_str() {
        return Chunk::Text(text.chars().map(u32::from).collect());
    }
    if let Some(hex) = value["hex"].as_str() {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        return Chunk::Bytes((0..hex.len()).step_by(2).map(digit).collect());
    }
    if let Some(units) = value["utf16"].as_array() {
        return Chunk::Text(units.iter().map(|unit| unit.as_u64().unwrap() as u32).collect());
    }
    Chunk::Call(value["call"].as_str().unwrap().to_owned())
}

/// A literal that is text or bytes, as (UTF-8) bytes; half of a surrogate pair, which only `rest`
/// may have, as U+FFFD.
fn bytes(value: &Value) -> Vec<u8> {
    match chunk(value) {
        Chunk::Text(text) => utf8(&text),
        Chunk::Bytes(bytes) => bytes,
        Chunk::Call(call) => panic!("{call} is no literal"),
    }
}

fn utf8(units: &[u32]) -> Vec<u8> {
    units
        .iter()
        .map(|&unit| char::from_u32(unit).unwrap_or('\u{fffd}'))
        .collect::<String>()
        .into_bytes()
}

struct Reader {
    matcher: Matcher,
    decoder: Decoder,
    errors: Errors,
    raw: bool,
    rest: Vec<u8>,
}

impl Reader {
    fn new(case: &Value) -> Result<Self, String> {
        let options = &case["options"];
        let (mut list, raw) =
            (StopList::new(Limits::default()), options["byte_stream"].as_bool().unwrap_or(false));
        for stop in case["stops"].as_array().unwrap() {
            let pushed = match chunk(stop) {
                Chunk::Text(_) => list.push(std::str::from_utf8(&bytes(stop)).unwrap()),
                Chunk::Bytes(bytes) => list.push_bytes(&bytes),
                Chunk::Call(call) => panic!("{call} is no stop"),
            };
            pushed.map_err(|error| error.to_string())?;
        }
        let tie = if options["tie"] == "first" { Tie::First } else { Tie::Longest };
        let set = StopSet::compile(list, tie);
        let include_stop = match &options["include_stop"] {
            Value::Null => Include::None,
            Value::Bool(all) => (*all).into(),
            Value::Array(some) => Include::Only(some.iter().map(bytes).collect()),
            one => Include::Only([bytes(one)].into()),
        };
        let ignore_inside: Vec<(Vec<u8>, Vec<u8>)> = options["ignore_inside"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|pair| (bytes(&pair[0]), bytes(&pair[1])))
            .collect();
        let atomic = match &options["atomic"] {
            Value::String(word) if word == "regions" => ignore_inside
                .iter()
                .flat_map(|(opener, closer)| [opener.clone(), closer.clone()])
                .collect(),
            Value::Array(some) => some.iter().map(bytes).collect(),
            Value::Null => Vec::new(),
            one => vec![bytes(one)],
        };
        let scope = Scope {
            min_chars: options["min_chars"].as_u64().unwrap_or(0),
            ignore_inside,
            start_inside: options["start_inside"].as_bool().unwrap_or(false),
            atomic,
        };
        let errors = if options["errors"] == "strict" { Errors::Strict } else { Errors::Replace };
        let options = StreamOptions { include_stop, errors, scope };
        let matcher =
            if raw { Matcher::bytes(set, &options) } else { Matcher::text(set, &options) };
        let matcher = matcher.map_err(|error| error.to_string())?;
        Ok(Self { matcher, decoder: Decoder::default(), errors, raw, rest: Vec::new() })
    }

    /// Feeds one chunk; gives what is emitted, or that the chunk is refused.
    fn feed(&mut self, chunk: &Chunk) -> Result<Vec<u8>, ()> {
        let over = self.matcher.matched().is_some();
        match chunk {
            Chunk::Call(call) => {
                self.matcher.set_armed(call == "arm");
                Ok(Vec::new())
            }
            _ if over => Ok(Vec::new()),
            Chunk::Bytes(chunk) if self.raw => {
                Ok(self.advance(chunk, |read| chunk[read..].to_vec()))
            }
            Chunk::Bytes(chunk) => {
                let before = self.decoder;
                let Decoded { text, next, fault, .. } = before.decode(chunk, self.errors);
                let codes: Vec<u32> = text.chars().map(u32::from).collect();
                self.feed_decoded(&codes, next, fault.is_some(), |read| {
                    chunk[before.bytes_read(chunk, read)..].to_vec()
                })
            }
            Chunk::Text(chunk) => {
                let before = self.decoder;
                let Decoded { text, next, fault, .. } =
                    before.join(chunk.iter().copied(), self.errors);
                self.feed_decoded(&text, next, fault.is_some(), |read| {
                    utf8(&chunk[before.units_read(chunk.iter().copied(), read)..])
                })
            }
        }
    }

    /// A fault behind a match is never looked at.
    fn feed_decoded(
        &mut self,
        codes: &[u32],
        next: Decoder,
        fault: bool,
        rest: impl Fn(usize) -> Vec<u8>,
    ) -> Result<Vec<u8>, ()> {
        let before = self.matcher.clone();
        let out = self.advance(codes, rest);
        if fault && self.matcher.matched().is_none() {
            self.matcher = before;
            return Err(());
        }
        self.decoder = next;
        Ok(out)
    }

    fn advance<U: holdback::Unit>(
        &mut self,
        units: &[U],
        rest: impl Fn(usize) -> Vec<u8>,
    ) -> Vec<u8> {
        let held = self.matcher.held();
        let advance = self.matcher.advance(units);
        let mut out = self.matcher.released(held, advance.released).to_vec();
        for unit in &units[..advance.passed] {
            if self.raw {
                out.push(unit.code() as u8);
            } else {
                out.extend(char::from_u32(unit.code()).unwrap().to_string().bytes());
            }
        }
        if let Some(found) = advance.matched {
            self.rest = rest(found.read);
        }
        out
    }

    fn flush(&mut self) -> Result<Vec<u8>, ()> {
        if self.matcher.matched().is_some() {
            return Ok(Vec::new());
        }
        let mut out = Vec::new();
        if self.decoder.finish(self.errors).map_err(|_| ())? {
            let held = self.matcher.held();
            let advance = self.matcher.advance_last_chunk(0xfffd);
            out.extend_from_slice(self.matcher.released(held, advance.released));
            if advance.passed > 0 {
                out.extend("\u{fffd}".bytes());
            }
            if advance.matched.is_some() {
                return Ok(out);
            }
        }
        let held = self.matcher.held();
        let count = self.matcher.flush();
        out.extend_from_slice(self.matcher.released(held, count));
        Ok(out)
    }
}

fn cases() -> Vec<Value> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let files =
        files.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    let texts: Vec<String> = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    texts
        .iter()
        .flat_map(|text| text.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn check_match(case: &Value, found: Option<&Match>, rest: &[u8]) {
    let (name, expect) = (&case["name"], &case["expect"]);
    let Some(found) = found else { return assert!(expect["index"].is_null(), "{name}: no match") };
    assert_eq!(expect["index"], found.index, "{name}");
    assert_eq!(
        (&expect["start"], &expect["end"]),
        (&found.start.into(), &found.end.into()),
        "{name}"
    );
    for (key, chunk) in [("start_chunk", found.start_chunk), ("end_chunk", found.end_chunk)] {
        assert!(expect[key].is_null() || expect[key] == chunk, "{name}: {key} {chunk}");
    }
    if !expect["rest"].is_null() {
        assert_eq!(bytes(&expect["rest"]), rest, "{name}: rest");
    }
}

/// Runs the chunks of a case as they are written.
fn run(case: &Value) {
    let (name, expect) = (&case["name"], &case["expect"]);
    let (error, at) = (&expect["error"], expect["at"].as_str().unwrap_or(""));
    let mut reader = match Reader::new(case) {
        Ok(reader) => reader,
        Err(message) => {
            assert!(matches!(at, "stops" | "stream"), "{name}: {message}");
            for says in expect["says"].as_array().into_iter().flatten() {
                assert!(message.contains(says.as_str().unwrap()), "{name}: {message}");
            }
            return;
        }
    };
    assert!(!matches!(at, "stops" | "stream"), "{name}: {error} expected");
    let chunks: Vec<Chunk> = case["chunks"].as_array().unwrap().iter().map(chunk).collect();
    let (mut emitted, mut fed) = (Vec::new(), 0);
    for (number, chunk) in chunks.iter().enumerate() {
        let Ok(out) = reader.feed(chunk) else {
            return assert!(
                at == "feed" && number + 1 == chunks.len(),
                "{name}: chunk {number} refused"
            );
        };
        emitted.extend_from_slice(&out);
        if matches!(chunk, Chunk::Call(_)) {
            continue;
        }
        for (key, seen) in [("per_feed", out.as_slice()), ("held", reader.matcher.held_bytes())] {
            if let Some(expected) = expect[key].get(fed) {
                assert_eq!(bytes(expected), seen, "{name}: {key} {fed}");
            }
        }
        if let Some(armed) = expect["armed"].get(fed) {
            assert_eq!(armed, reader.matcher.is_armed(), "{name}: armed {fed}");
        }
        if let Some(region) = expect["region"].get(fed) {
            let pairs = case["options"]["ignore_inside"].as_array();
            let seen = reader.matcher.region().map_or(&Value::Null, |at| &pairs.unwrap()[at]);
            assert_eq!(region, seen, "{name}: region {fed}");
        }
        fed += 1;
    }
    assert!(at != "feed", "{name}: {error} expected");
    let Ok(out) = reader.flush() else { return assert_eq!(at, "flush", "{name}: flush refused") };
    assert!(at != "flush", "{name}: {error} expected");
    emitted.extend_from_slice(&out);
    if let Some(expected) = expect["per_feed"].get(fed) {
        assert_eq!(bytes(expected), out, "{name}: flush");
    }
    assert_eq!(bytes(&expect["emitted"]), emitted, "{name}: emitted");
    check_match(case, reader.matcher.matched(), &reader.rest);
}

/// The same through the streams that a Rust user takes, which decode and keep text themselves: what
/// comes out in all, and the match.
///
/// False for what they do not offer: half of a surrogate pair, a fault in text or at the end.
fn run_stream(case: &Value) -> bool {
    let (name, expect) = (&case["name"], &case["expect"]);
    let strict = case["options"]["errors"] == "strict";
    let Ok(reader) = Reader::new(case) else { return false };
    let chunks: Vec<Chunk> = case["chunks"].as_array().unwrap().iter().map(chunk).collect();
    let half = |chunk: &Chunk| matches!(chunk, Chunk::Text(text) if text.iter().any(|&unit| char::from_u32(unit).is_none()));
    if chunks.iter().any(half) || (strict && !expect["error"].is_null()) {
        return false;
    }
    let (set, options) = (
        reader.matcher.set().clone(),
        StreamOptions { errors: reader.errors, ..reader.matcher.options() },
    );
    let found = if reader.raw {
        let mut stream = ByteStream::new(set, &options).unwrap();
        let (mut out, mut found) = (Vec::new(), None);
        for chunk in &chunks {
            match chunk {
                Chunk::Bytes(bytes) => found = stream.feed(bytes, &mut out),
                _ => return false, // it has no arming, and takes no text
            }
        }
        if found.is_none() {
            stream.flush(&mut out);
        }
        assert_eq!(bytes(&expect["emitted"]), out, "{name}: emitted");
        found
    } else {
        let mut stream = Stream::new(set, &options).unwrap();
        let (mut out, mut found) = (String::new(), None);
        for chunk in &chunks {
            match chunk {
                Chunk::Bytes(bytes) => found = stream.feed_bytes(bytes, &mut out).unwrap(),
                Chunk::Text(text) => {
                    found = stream.feed(std::str::from_utf8(&utf8(text)).unwrap(), &mut out);
                }
                Chunk::Call(call) => stream.set_armed(call == "arm"),
            }
        }
        let found = found.or_else(|| stream.flush(&mut out));
        assert_eq!(bytes(&expect["emitted"]), out.as_bytes(), "{name}: emitted");
        found
    };
    check_match(&case_without_rest(case), found.as_ref(), &[]);
    true
}

/// `rest` is a matter of the caller's own chunk.
fn case_without_rest(case: &Value) -> Value {
    let mut case = case.clone();
    case["expect"]["rest"] = Value::Null;
    case
}

/// What only Python can get wrong: `feed` after `flush`, types, lone surrogates in a Rust string.
fn python_only(case: &Value) -> bool {
    let surrogate = |value: &Value| !value["utf16"].is_null();
    let error = case["expect"]["error"].as_str().unwrap_or("");
    (error == "TypeError" && case["expect"]["at"] == "feed")
        || case["stops"].as_array().unwrap().iter().any(surrogate)
        || case["options"].to_string().contains("utf16")
}

#[test]
fn the_corpus_holds() {
    let (mut names, mut ran, mut through_streams) = (HashSet::new(), 0, 0);
    for case in cases() {
        assert!(names.insert(case["name"].to_string()), "{} stands twice", case["name"]);
        if !python_only(&case) {
            run(&case);
            ran += 1;
            through_streams += u32::from(run_stream(&case));
        }
    }
    eprintln!(
        "{ran} of {} cases of the corpus, {through_streams} of them through the streams",
        names.len()
    );
    assert!(through_streams > 300, "{through_streams}");
    assert!(ran > 350 && ran + 20 > names.len(), "{ran} of {} cases", names.len());
}
