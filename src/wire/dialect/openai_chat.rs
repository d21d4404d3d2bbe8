//! `OpenAI` chat completions, and the servers that speak them with fields of their own: vLLM
//! (`stop_reason`), `SGLang` (`matched_stop`), `DeepSeek` (`reasoning_content`), TGI and llama.cpp.
//!
//! Text stands in `choices[].delta.content` (`message.content` in a whole answer). A match ends its
//! choice in its own frame: `finish_reason` becomes `"stop"`, which is the shape vLLM sends too.
//! `refusal`, `audio`, `tool_calls` are left alone.
#![forbid(unsafe_code)]

use super::{frame_fields, put};
use crate::wire::choices::Choices;
use crate::wire::dialect::Entry;
use crate::wire::dialect::spec::{Finish, NewFrame, Spec};
use crate::wire::edit::Edits;
use crate::wire::frame::{Choice, ParsedFrame, Part, Text};
use crate::wire::framing::Framing;
use crate::wire::json::{Cursor, JsonResult, Kind, Span, once};
use crate::wire::logprobs::COLUMNS;

pub(super) static DIALECT: Entry = Entry {
    name: "openai.chat",
    framing: Framing::Events,
    reserved: RESERVED,
    known: KNOWN,
    engine: || Box::new(Choices::new(&SPEC)),
};

pub(super) const KNOWN: &str = "choices system_fingerprint service_tier provider citations search_results \
    prompt_filter_results x_groq obfuscation";

const RESERVED: &str = "index delta message finish_reason logprobs";

static SPEC: Spec = Spec {
    done: true,
    ends_last: false,
    repeats: false,
    field: Some("stop_reason"),
    scan,
    scan_body: scan,
    end,
    make,
    put_entries,
};

fn scan(json: &[u8], parsed: &mut ParsedFrame) -> JsonResult<()> {
    frame_fields(json, parsed, b"choices", choice)
}

fn choice(
    cursor: &mut Cursor<'_>,
    choice: &mut Choice,
    parsed: &mut ParsedFrame,
) -> JsonResult<()> {
    choice.span = cursor.object(|cursor, key| {
        match key {
            b"index" => choice.index = cursor.number()?,
            b"delta" | b"message" if cursor.kind() == Kind::Object => {
                let span = message(cursor, choice, parsed)?;
                once(&mut choice.holder, span, span.start)?;
            }
            b"delta" | b"message" => {
                parsed.misplaced_if(cursor.kind() == Kind::String);
                cursor.skip()?;
            }
            b"logprobs" => logprobs(cursor, choice)?,
            _ => return ending(cursor, key, choice),
        }
        Ok(())
    })?;
    Ok(())
}

fn message(
    cursor: &mut Cursor<'_>,
    choice: &mut Choice,
    parsed: &mut ParsedFrame,
) -> JsonResult<crate::wire::json::Span> {
    cursor.object(|cursor, key| {
        let (part, field) = match key {
            b"content" => (Part::Content, "content"),
            b"reasoning" => (Part::Reasoning, "reasoning"),
            b"reasoning_content" => (Part::Reasoning, "reasoning_content"),
            b"tool_calls" => {
                choice.calls = Some(cursor.skip()?);
                return Ok(());
            }
            _ => return cursor.skip().map(|_| ()),
        };
        if part == Part::Content && cursor.kind() == Kind::Array {
            return parts(cursor, parsed);
        }
        parsed.misplaced_if(part == Part::Content && cursor.kind() == Kind::Object);
        match cursor.string_or_skip()? {
            Some(span) => parsed.text(part, field, span),
            None => Ok(()),
        }
    })
}

/// Content as a list of parts, as Mistral's reasoning models send it: `{"type":"text","text":...}`,
/// and what they think as `{"type":"thinking","thinking":[{"type":"text",...}]}`. What stands
/// behind a cut goes, parts and all.
fn parts(cursor: &mut Cursor<'_>, parsed: &mut ParsedFrame) -> JsonResult<()> {
    let (first, choice) = (parsed.texts.len(), parsed.choices.len());
    let mut ends = Vec::new();
    let list = cursor.array(|cursor, _| {
        if cursor.kind() != Kind::Object {
            return cursor.skip().map(|_| ());
        }
        let part = cursor.object(|cursor, key| match (key, cursor.kind()) {
            (b"text", Kind::String) => text(cursor, parsed, choice, Part::Content, "content"),
            (b"thinking", Kind::Array) => cursor
                .array(|cursor, _| {
                    if cursor.kind() != Kind::Object {
                        return cursor.skip().map(|_| ());
                    }
                    let thought = cursor.object(|cursor, key| match (key, cursor.kind()) {
                        (b"text", Kind::String) => {
                            text(cursor, parsed, choice, Part::Reasoning, "reasoning")
                        }
                        _ => cursor.skip().map(|_| ()),
                    });
                    thought.map(|_| ())
                })
                .map(|_| ()),
            _ => cursor.skip().map(|_| ()),
        })?;
        ends.resize(parsed.texts.len() - first, part.end);
        Ok(())
    })?;
    for (text, end) in parsed.texts.iter_mut().skip(first).zip(ends) {
        text.rest = Span { start: end, end: list.end - 1 };
    }
    Ok(())
}

fn text(
    cursor: &mut Cursor<'_>,
    parsed: &mut ParsedFrame,
    choice: usize,
    part: Part,
    field: &'static str,
) -> JsonResult<()> {
    let span = cursor.string()?;
    parsed.push_text(Text { choice, part, field, span, rest: Span::default() })
}

fn logprobs(cursor: &mut Cursor<'_>, choice: &mut Choice) -> JsonResult<()> {
    let span = if cursor.kind() == Kind::Object {
        cursor.object(|cursor, key| {
            if key == b"content" && cursor.kind() == Kind::Array {
                let span = cursor.skip()?;
                return once(&mut choice.columns[0], span, span.start);
            }
            cursor.skip().map(|_| ())
        })?
    } else {
        cursor.skip()?
    };
    once(&mut choice.logprobs, span, span.start)
}

/// `finish_reason` and the stop's name, which the completions dialect shares.
pub(super) fn ending(cursor: &mut Cursor<'_>, key: &[u8], choice: &mut Choice) -> JsonResult<()> {
    match key {
        b"finish_reason" => {
            let (span, finished) = cursor.reason(&[b"null"])?;
            choice.finished = finished;
            once(&mut choice.finish, span, span.start)
        }
        b"stop_reason" | b"matched_stop" => {
            let span = cursor.skip()?;
            once(
                if key == b"stop_reason" { &mut choice.stop } else { &mut choice.matched },
                span,
                span.start,
            )
        }
        _ => cursor.skip().map(|_| ()),
    }
}

pub(super) fn end(json: &[u8], choice: &Choice, end: &Finish<'_>, edits: &mut Edits) {
    let finish = if let Some(finish) = choice.finish {
        // TGI says "stop_sequence" here for a stop of its own; that is its word for the same thing.
        if !matches!(finish.of(json), b"\"stop\"" | b"\"stop_sequence\"") {
            edits.replace(finish, b"\"stop\"");
        }
        finish.end
    } else {
        edits.insert(choice.span.end - 1, b",\"finish_reason\":\"stop\"");
        choice.span.end - 1
    };
    if let Some(calls) = choice.calls {
        edits.replace(calls, b"null");
    }
    let Some(field) = end.field else { return };
    let there = match field {
        "stop_reason" => choice.stop,
        "matched_stop" => choice.matched,
        _ => None,
    };
    match there {
        Some(stop) => edits.replace_with(stop, |arena| put::quoted(end.stop, arena)),
        None => edits.replace_with(put::point(finish), |arena| put::field(field, end.stop, arena)),
    }
}

fn make(_: &[u8], parsed: &ParsedFrame, make: &NewFrame<'_>, edits: &mut Edits) {
    let Some(list) = parsed.list else { return };
    edits.replace_with(list, |arena| {
        arena.extend_from_slice(
            format!("[{{\"index\":{},\"delta\":{{\"{}\":\"", make.index, make.field).as_bytes(),
        );
        arena.extend_from_slice(make.text);
        arena.extend_from_slice(b"\"},\"logprobs\":");
        if make.has_entries() {
            arena.extend_from_slice(b"{\"content\":[");
            arena.extend_from_slice(&make.entries[0]);
            arena.extend_from_slice(b"],\"refusal\":null}");
        } else {
            arena.extend_from_slice(b"null");
        }
        arena.extend_from_slice(b",\"finish_reason\":null}]");
    });
}

fn put_entries(choice: &Choice, entries: &[Vec<u8>; COLUMNS], edits: &mut Edits) {
    let value = [b"{\"content\":[", entries[0].as_slice(), b"],\"refusal\":null}"].concat();
    match choice.logprobs {
        Some(span) => edits.replace(span, &value),
        None => edits
            .insert(choice.span.start + 1, &[b"\"logprobs\":", value.as_slice(), b","].concat()),
    }
}
