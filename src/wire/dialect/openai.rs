//! What `OpenAI`'s two older dialects share, and the servers that speak them with fields of their
//! own: vLLM (`stop_reason`), `SGLang` (`matched_stop`), `DeepSeek` (`reasoning_content`), TGI and
//! llama.cpp.
//!
//! Text stands in `choices[]`, in `delta.content`, `message.content` or `text`. Both dialects read
//! all three: some routes of completions answer in the shape of chat (Mistral's FIM and agents),
//! and some servers say one text in two places. A match ends its choice in its own frame:
//! `finish_reason` becomes `"stop"`, which is the shape vLLM sends too. `refusal`, `audio`,
//! `tool_calls` are left alone. Log-probabilities of completions come as parallel arrays, one
//! element a token.
#![forbid(unsafe_code)]

use crate::wire::dialect::spec::{Finish, NewFrame, Spec};
use crate::wire::dialect::{frame_fields, put};
use crate::wire::edit::Edits;
use crate::wire::frame::{Choice, ParsedFrame, Part, Slot, Text};
use crate::wire::json::{Cursor, JsonResult, Kind, Span, once};
use crate::wire::logprobs::COLUMNS;

pub(super) const KNOWN: &str = "choices system_fingerprint service_tier provider citations \
    search_results prompt_filter_results x_groq obfuscation";

/// Chat; completions differ in where they prefer to have their text.
pub(super) const SPEC: Spec = Spec {
    done: true,
    ends_last: false,
    repeats: false,
    slots: &[Slot::Delta, Slot::Message, Slot::Text],
    field: Some("stop_reason"),
    scan,
    scan_body: scan,
    end,
    blank,
    make,
    put_entries,
};

/// Tool calls in the second of two holders.
const CALLS: usize = 0;

/// The leading one first: it says how much text an entry covers.
const ARRAYS: [&str; COLUMNS] = ["tokens", "token_logprobs", "top_logprobs", "text_offset"];

fn scan(json: &[u8], parsed: &mut ParsedFrame) -> JsonResult<()> {
    frame_fields(json, parsed, b"choices", choice)
}

fn choice(
    cursor: &mut Cursor<'_>,
    choice: &mut Choice,
    parsed: &mut ParsedFrame,
) -> JsonResult<()> {
    let mut holders = [None; 2];
    choice.span = cursor.object(|cursor, key| {
        match (key, cursor.kind()) {
            (b"index", Kind::Null) => {
                cursor.skip()?;
            }
            (b"index", _) => choice.index = cursor.number()?,
            (b"delta" | b"message", Kind::Object) => {
                let slot = if key == b"delta" { Slot::Delta } else { Slot::Message };
                let span = message(cursor, choice, parsed, slot)?;
                once(&mut holders[usize::from(slot == Slot::Message)], span, span.start)?;
            }
            (b"delta" | b"message", kind) => {
                parsed.misplaced_if(kind == Kind::String);
                cursor.skip()?;
            }
            (b"text", kind) => {
                parsed.misplaced_if(kind == Kind::Object);
                if let Some(span) = cursor.string_or_skip()? {
                    parsed.text_in(Slot::Text, Part::Content, "text", span)?;
                }
            }
            (b"logprobs", _) => logprobs(cursor, choice)?,
            _ => return ending(cursor, key, choice),
        }
        Ok(())
    })?;
    choice.holder = holders[0].or(holders[1]);
    Ok(())
}

fn message(
    cursor: &mut Cursor<'_>,
    choice: &mut Choice,
    parsed: &mut ParsedFrame,
    slot: Slot,
) -> JsonResult<Span> {
    let mut calls = None;
    let span = cursor.object(|cursor, key| {
        let (part, field) = match key {
            b"content" => (Part::Content, "content"),
            b"reasoning" => (Part::Reasoning, "reasoning"),
            b"reasoning_content" => (Part::Reasoning, "reasoning_content"),
            b"tool_calls" => {
                calls = Some(cursor.skip()?);
                return Ok(());
            }
            _ => return cursor.skip().map(|_| ()),
        };
        if part == Part::Content && cursor.kind() == Kind::Array {
            return parts(cursor, parsed, slot);
        }
        parsed.misplaced_if(part == Part::Content && cursor.kind() == Kind::Object);
        match cursor.string_or_skip()? {
            Some(span) => parsed.text_in(slot, part, field, span),
            None => Ok(()),
        }
    })?;
    if choice.calls.is_none() {
        choice.calls = calls;
    } else {
        choice.more[CALLS] = calls;
    }
    Ok(span)
}

/// Content as a list of parts, as Mistral's reasoning models send it: `{"type":"text","text":...}`,
/// and what they think as `{"type":"thinking","thinking":[{"type":"text",...}]}`. What stands
/// behind a cut goes, parts and all.
fn parts(cursor: &mut Cursor<'_>, parsed: &mut ParsedFrame, slot: Slot) -> JsonResult<()> {
    let first = parsed.texts.len();
    let choice = parsed.choices.len();
    let mut ends = Vec::new();
    let text = |cursor: &mut Cursor<'_>, parsed: &mut ParsedFrame, part, field| {
        let span = cursor.string()?;
        parsed.push_text(Text { slot, ..Text::new(choice, part, field, span) })
    };
    let list = cursor.array(|cursor, _| {
        if cursor.kind() != Kind::Object {
            return cursor.skip().map(|_| ());
        }
        let part = cursor.object(|cursor, key| match (key, cursor.kind()) {
            (b"text", Kind::String) => text(cursor, parsed, Part::Content, "content"),
            (b"thinking", Kind::Array) => cursor
                .array(|cursor, _| {
                    if cursor.kind() != Kind::Object {
                        return cursor.skip().map(|_| ());
                    }
                    let thought = cursor.object(|cursor, key| match (key, cursor.kind()) {
                        (b"text", Kind::String) => {
                            text(cursor, parsed, Part::Reasoning, "reasoning")
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

/// Chat has one list of entries (`content`), completions have parallel arrays.
fn logprobs(cursor: &mut Cursor<'_>, choice: &mut Choice) -> JsonResult<()> {
    let span = if cursor.kind() == Kind::Object {
        let mut content = None;
        let span = cursor.object(|cursor, key| {
            let is_array = cursor.kind() == Kind::Array;
            let column = ARRAYS.iter().position(|name| name.as_bytes() == key);
            let span = cursor.skip()?;
            match column.and_then(|column| choice.columns.get_mut(column)) {
                Some(slot) if is_array => once(slot, span, span.start),
                None if is_array && key == b"content" => once(&mut content, span, span.start),
                _ => Ok(()),
            }
        })?;
        if content.is_some() {
            choice.columns = [content, None, None, None];
        }
        span
    } else {
        cursor.skip()?
    };
    once(&mut choice.logprobs, span, span.start)
}

/// `finish_reason` and the stop's name.
fn ending(cursor: &mut Cursor<'_>, key: &[u8], choice: &mut Choice) -> JsonResult<()> {
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

fn end(json: &[u8], choice: &Choice, end: &Finish<'_>, edits: &mut Edits) {
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
    for calls in [choice.calls, choice.more[CALLS]].into_iter().flatten() {
        edits.replace(calls, b"null");
    }
    let Some(field) = end.field else { return };
    let there = match field {
        "stop_reason" => choice.stop,
        "matched_stop" => choice.matched,
        _ => None,
    };
    match there {
        Some(stop) => edits.replace_with(stop, |out| put::quoted(end.stop, out)),
        None => edits.replace_with(put::point(finish), |out| put::field(field, end.stop, out)),
    }
}

/// A choice that ended before its frame came, kept for what stands beside the choices.
fn blank(choice: &Choice, texts: &mut dyn Iterator<Item = &Text>, edits: &mut Edits) {
    for text in texts {
        edits.delete(text.span);
        edits.delete(text.rest);
    }
    for calls in [choice.calls, choice.more[CALLS], choice.logprobs].into_iter().flatten() {
        edits.replace(calls, b"null");
    }
}

fn make(_: &[u8], parsed: &ParsedFrame, make: &NewFrame<'_>, edits: &mut Edits) {
    let Some(list) = parsed.list else { return };
    let holder = match make.slot {
        Slot::Delta => ",\"delta\":{",
        Slot::Message => ",\"message\":{",
        Slot::Text => ",",
    };
    edits.replace_with(list, |out| {
        out.extend_from_slice(
            format!("[{{\"index\":{}{holder}\"{}\":\"", make.index, make.field).as_bytes(),
        );
        out.extend_from_slice(make.text);
        out.extend_from_slice(if make.slot == Slot::Text { b"\"" } else { b"\"}" });
        out.extend_from_slice(b",\"logprobs\":");
        if make.has_entries() {
            out.extend_from_slice(&entries_of(make.slot, make.entries));
        } else {
            out.extend_from_slice(b"null");
        }
        out.extend_from_slice(b",\"finish_reason\":null}]");
    });
}

fn put_entries(choice: &Choice, entries: &[Vec<u8>; COLUMNS], edits: &mut Edits) {
    let slot = if choice.holder.is_some() { Slot::Delta } else { Slot::Text };
    let value = entries_of(slot, entries);
    match choice.logprobs {
        Some(span) => edits.replace(span, &value),
        None => edits
            .insert(choice.span.start + 1, &[b"\"logprobs\":", value.as_slice(), b","].concat()),
    }
}

fn entries_of(slot: Slot, entries: &[Vec<u8>; COLUMNS]) -> Vec<u8> {
    if slot != Slot::Text {
        return [b"{\"content\":[", entries[0].as_slice(), b"],\"refusal\":null}"].concat();
    }
    let mut out = vec![b'{'];
    for (name, column) in ARRAYS.iter().zip(entries).filter(|(_, column)| !column.is_empty()) {
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(format!("\"{name}\":[").as_bytes());
        out.extend_from_slice(column);
        out.push(b']');
    }
    out.push(b'}');
    out
}
