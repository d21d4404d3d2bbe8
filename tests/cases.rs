//! The corpus (`tests/cases/`, whose README states the format) against the core alone: the same
//! cases that the binding and the reference run. Once through a [`Reader`], which also takes lone
//! surrogates, and once through the streams that a Rust user takes.

#![allow(clippy::cast_possible_truncation, reason = "cases are short")]

use std::collections::HashSet;

use holdback::raw::Reader;
use holdback::{
    ByteStream, Errors, Fault, Include, Limits, Match, Scope, StopList, StopSet, Stream,
    StreamOptions, Tie,
};
use serde_json::Value;

/// What is read of the corpus. `patterns` is for the pattern engine.
const FILES: [&str; 5] = ["bytes", "peers", "probes", "reports", "scopes"];

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

/// A literal that is text or bytes, as (UTF-8) bytes; a lone surrogate, which only `rest`
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

/// The stream that a case asks for, before it is made of any of the types.
struct Asked {
    set: StopSet,
    options: StreamOptions,
    raw: bool,
}

impl Asked {
    fn read(case: &Value) -> Result<Self, String> {
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
        Ok(Self { set, options: StreamOptions { include_stop, scope, errors }, raw })
    }

    fn reader(&self) -> Result<Reader, String> {
        let set = self.set.clone();
        let made = if self.raw {
            Reader::bytes(set, &self.options)
        } else {
            Reader::text(set, &self.options)
        };
        made.map_err(|error| error.to_string())
    }
}

/// Feeds one chunk; gives what is emitted, and what follows a stop in the chunk.
fn feed(reader: &mut Reader, chunk: &Chunk) -> Result<(Vec<u8>, Option<Vec<u8>>), Fault> {
    let go_on = || Ok::<(), Fault>(());
    match chunk {
        Chunk::Call(call) => {
            reader.set_armed(call == "arm");
            Ok((Vec::new(), None))
        }
        Chunk::Bytes(chunk) => {
            let (text, step) = if reader.is_raw() {
                let step = reader.feed_raw(chunk, go_on)?;
                (chunk[..step.advance.passed].to_vec(), (step.held, step.advance, step.read))
            } else {
                let step = reader.feed_utf8(chunk, go_on)?;
                let passed = step.text.chars().take(step.advance.passed);
                let text = passed.collect::<String>().into_bytes();
                (text, (step.held, step.advance, step.read))
            };
            let (held, advance, read) = step;
            let out = [reader.released(held, advance), &text].concat();
            Ok((out, read.map(|read| chunk[read..].to_vec())))
        }
        Chunk::Text(chunk) => {
            let step = reader.feed_units(chunk, go_on)?;
            let text = utf8(&step.text.as_ref().unwrap_or(chunk)[..step.advance.passed]);
            let out = [reader.released(step.held, step.advance), &text].concat();
            Ok((out, step.read.map(|read| utf8(&chunk[read..]))))
        }
    }
}

fn cases() -> Vec<Value> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let texts: Vec<String> = FILES
        .iter()
        .map(|name| std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap())
        .collect();
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
    let mut reader = match Asked::read(case).and_then(|asked| asked.reader()) {
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
    let (mut emitted, mut fed, mut rest) = (Vec::new(), 0, Vec::new());
    for (number, chunk) in chunks.iter().enumerate() {
        let Ok((out, after)) = feed(&mut reader, chunk) else {
            return assert!(
                at == "feed" && number + 1 == chunks.len(),
                "{name}: chunk {number} refused"
            );
        };
        rest = after.unwrap_or(rest);
        emitted.extend_from_slice(&out);
        if matches!(chunk, Chunk::Call(_)) {
            continue;
        }
        for (key, seen) in [("per_feed", out.as_slice()), ("held", reader.matcher().held_bytes())] {
            if let Some(expected) = expect[key].get(fed) {
                assert_eq!(bytes(expected), seen, "{name}: {key} {fed}");
            }
        }
        if let Some(armed) = expect["armed"].get(fed) {
            assert_eq!(armed, reader.matcher().is_armed(), "{name}: armed {fed}");
        }
        if let Some(region) = expect["region"].get(fed) {
            let pairs = case["options"]["ignore_inside"].as_array();
            let seen = reader.matcher().region().map_or(&Value::Null, |at| &pairs.unwrap()[at]);
            assert_eq!(region, seen, "{name}: region {fed}");
        }
        fed += 1;
    }
    assert!(at != "feed", "{name}: {error} expected");
    let Ok(out) = reader.flush() else { return assert_eq!(at, "flush", "{name}: flush refused") };
    assert!(at != "flush", "{name}: {error} expected");
    emitted.extend_from_slice(&out.text);
    if let Some(expected) = expect["per_feed"].get(fed) {
        assert_eq!(bytes(expected), out.text, "{name}: flush");
    }
    assert_eq!(bytes(&expect["emitted"]), emitted, "{name}: emitted");
    check_match(case, reader.matched(), &rest);
}

/// The same through the streams that a Rust user takes, which decode and keep text themselves: what
/// comes out in all, what is refused and where, and the match.
///
/// False for what no Rust string can hold, a lone surrogate, and for text given to a raw stream.
fn run_stream(case: &Value) -> bool {
    let (name, expect) = (&case["name"], &case["expect"]);
    let Ok(Asked { set, options, raw }) = Asked::read(case) else { return false };
    let chunks: Vec<Chunk> = case["chunks"].as_array().unwrap().iter().map(chunk).collect();
    let lone = |unit: &u32| char::from_u32(*unit).is_none();
    let foreign =
        |chunk: &Chunk| matches!(chunk, Chunk::Text(text) if raw || text.iter().any(lone));
    if chunks.iter().any(foreign) {
        return false;
    }
    let mut out = Vec::new();
    // Where the last call was made, and what it answered.
    let (at, answer) = if raw {
        let Ok(mut stream) = ByteStream::new(set, &options) else { return false };
        let mut fed = Ok(None);
        for chunk in &chunks {
            match chunk {
                Chunk::Bytes(bytes) => fed = stream.feed(bytes, &mut out),
                Chunk::Call(call) => stream.set_armed(call == "arm"),
                Chunk::Text(_) => return false,
            }
        }
        stream.flush(&mut out);
        ("flush", fed)
    } else {
        let Ok(mut stream) = Stream::new(set, &options) else { return false };
        let (mut text, mut fed) = (String::new(), Ok(None));
        for chunk in &chunks {
            assert!(fed.is_ok(), "{name}: refused before the last chunk");
            match chunk {
                Chunk::Bytes(bytes) => fed = stream.feed_bytes(bytes, &mut text),
                Chunk::Text(units) => {
                    fed = stream.feed(std::str::from_utf8(&utf8(units)).unwrap(), &mut text);
                }
                Chunk::Call(call) => stream.set_armed(call == "arm"),
            }
        }
        let at = if fed.is_ok() { "flush" } else { "feed" };
        let answer = fed.and_then(|found| {
            let held = stream.held_text().to_owned();
            let flushed = stream.flush(&mut text);
            if flushed.is_err() {
                assert_eq!(held, stream.held_text(), "{name}: a refusal changes nothing");
            }
            Ok(found.or(flushed?))
        });
        out = text.into_bytes();
        (at, answer)
    };
    let refused = expect["error"].as_str().map(|_| expect["at"].as_str().unwrap());
    assert_eq!(refused, answer.is_err().then_some(at), "{name}");
    if let Ok(found) = answer {
        assert_eq!(bytes(&expect["emitted"]), out, "{name}: emitted");
        check_match(&case_without_rest(case), found.as_ref(), &[]);
    }
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
    assert!(through_streams > 330, "{through_streams}");
    assert!(ran > 350 && ran + 20 > names.len(), "{ran} of {} cases", names.len());
}
