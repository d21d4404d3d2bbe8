//! Ollama's own API: one object a line. `/api/chat` has text in `message.content`, `/api/generate`
//! in `response`.
//!
//! The last line (`done: true`) carries the figures, so a drained stream gets its end there; else
//! the line in which the stop was completed becomes the last one. Ollama says "stop" for an end of
//! its own and for a stop string alike, and so does the cutter.
#![forbid(unsafe_code)]

use super::put;
use crate::wire::choices::Choices;
use crate::wire::dialect::Entry;
use crate::wire::dialect::spec::{Finish, NewFrame, Spec};
use crate::wire::edit::Edits;
use crate::wire::frame::{Choice, ParsedFrame, Part, Slot};
use crate::wire::framing::Framing;
use crate::wire::json::{Cursor, JsonResult, Kind, once};
use crate::wire::logprobs::COLUMNS;

/// `/api/chat`
pub(super) static CHAT: Entry = Entry {
    name: "ollama.chat",
    framing: Framing::Lines,
    reserved: RESERVED,
    known: "message done done_reason total_duration load_duration prompt_eval_count eval_count",
    engine: || Box::new(Choices::new(&CHAT_SPEC)),
};

/// `/api/generate`
pub(super) static GENERATE: Entry = Entry {
    name: "ollama.generate",
    known: "response thinking context done done_reason total_duration load_duration \
        prompt_eval_count eval_count",
    engine: || Box::new(Choices::new(&GENERATE_SPEC)),
    ..CHAT
};

const RESERVED: &str = "model created_at message response thinking done done_reason context \
    logprobs error total_duration load_duration prompt_eval_count prompt_eval_duration eval_count \
    eval_duration";

static CHAT_SPEC: Spec = Spec {
    done: false,
    ends_last: true,
    repeats: false,
    slots: &[Slot::Delta],
    field: None,
    scan: scan_chat,
    scan_body: scan_chat,
    end,
    blank: |_, _, _| {},
    make: make_chat,
    put_entries,
};

static GENERATE_SPEC: Spec =
    Spec { scan: scan_generate, scan_body: scan_generate, make: make_generate, ..CHAT_SPEC };

fn scan_chat(json: &[u8], parsed: &mut ParsedFrame) -> JsonResult<()> {
    scan(json, parsed, |cursor, key, choice, parsed| match key {
        b"message" if cursor.kind() == Kind::Object => {
            let span = cursor.object(|cursor, key| match key {
                b"content" => text(cursor, Part::Content, "content", parsed),
                b"thinking" => text(cursor, Part::Reasoning, "thinking", parsed),
                b"tool_calls" => {
                    choice.calls = Some(cursor.skip()?);
                    Ok(())
                }
                _ => cursor.skip().map(|_| ()),
            })?;
            once(&mut choice.holder, span, span.start)
        }
        _ => cursor.skip().map(|_| ()),
    })
}

fn scan_generate(json: &[u8], parsed: &mut ParsedFrame) -> JsonResult<()> {
    scan(json, parsed, |cursor, key, _, parsed| match key {
        b"response" => text(cursor, Part::Content, "response", parsed),
        b"thinking" => text(cursor, Part::Reasoning, "thinking", parsed),
        _ => cursor.skip().map(|_| ()),
    })
}

fn text(
    cursor: &mut Cursor<'_>,
    part: Part,
    field: &'static str,
    parsed: &mut ParsedFrame,
) -> JsonResult<()> {
    match cursor.string_or_skip()? {
        Some(span) => parsed.text(part, field, span),
        None => Ok(()),
    }
}

fn scan(
    json: &[u8],
    parsed: &mut ParsedFrame,
    mut own: impl FnMut(&mut Cursor<'_>, &[u8], &mut Choice, &mut ParsedFrame) -> JsonResult<()>,
) -> JsonResult<()> {
    let mut cursor = Cursor::with_notes(json, std::mem::take(&mut parsed.notes));
    let mut choice = Choice::default();
    choice.span = cursor.object(|cursor, key| match key {
        b"done" => {
            choice.finished = cursor.kind() == Kind::True;
            let span = cursor.skip()?;
            once(&mut choice.finish, span, span.start)
        }
        b"done_reason" => {
            let span = cursor.skip()?;
            once(&mut choice.more[0], span, span.start)
        }
        b"logprobs" => {
            let is_array = cursor.kind() == Kind::Array;
            let span = cursor.skip()?;
            if is_array {
                once(&mut choice.columns[0], span, span.start)?;
            }
            once(&mut choice.logprobs, span, span.start)
        }
        b"error" => {
            parsed.error |= cursor.kind() != Kind::Null;
            cursor.skip().map(|_| ())
        }
        _ => own(cursor, key, &mut choice, parsed),
    })?;
    parsed.choices.push(choice);
    cursor.end()?;
    parsed.notes = cursor.into_notes();
    Ok(())
}

fn end(json: &[u8], choice: &Choice, end: &Finish<'_>, edits: &mut Edits) {
    let last = choice.span.end - 1;
    match choice.finish {
        Some(finish) if finish.of(json) == b"true" => {}
        Some(finish) => edits.replace(finish, b"true"),
        None => edits.insert(last, b",\"done\":true"),
    }
    let at = choice.finish.map_or(last, |finish| finish.end);
    match choice.more[0] {
        Some(reason) if reason.of(json) == b"\"stop\"" => {}
        Some(reason) => edits.replace(reason, b"\"stop\""),
        None => edits.insert(at, b",\"done_reason\":\"stop\""),
    }
    if let Some(calls) = choice.calls {
        edits.replace(calls, b"null");
    }
    if let Some(field) = end.field {
        edits.replace_with(put::point(at), |arena| put::field(field, end.stop, arena));
    }
}

/// The last line's pattern serves for a text line too: a line of which only the text, the
/// log-probabilities and the end differ.
fn make_chat(json: &[u8], parsed: &ParsedFrame, make: &NewFrame<'_>, edits: &mut Edits) {
    let Some(choice) = parsed.choices.first() else { return };
    if let Some(message) = choice.holder {
        edits.replace_with(message, |arena| {
            arena.extend_from_slice(b"{\"role\":\"assistant\",");
            if make.part == Part::Reasoning {
                arena.extend_from_slice(b"\"content\":\"\",");
            }
            arena.extend_from_slice(format!("\"{}\":", make.field).as_bytes());
            put::quoted(make.text, arena);
            arena.push(b'}');
        });
    }
    unfinished(json, choice, make, edits);
}

fn make_generate(json: &[u8], parsed: &ParsedFrame, make: &NewFrame<'_>, edits: &mut Edits) {
    let Some(choice) = parsed.choices.first() else { return };
    for text in &parsed.texts {
        edits.replace(text.span, if text.part == make.part { make.text } else { b"" });
    }
    unfinished(json, choice, make, edits);
}

fn unfinished(json: &[u8], choice: &Choice, make: &NewFrame<'_>, edits: &mut Edits) {
    if let Some(finish) = choice.finish.filter(|finish| finish.of(json) != b"false") {
        edits.replace(finish, b"false");
    }
    if let Some(logprobs) = choice.logprobs {
        edits.replace(logprobs, &[b"[", make.entries[0].as_slice(), b"]"].concat());
    }
}

fn put_entries(choice: &Choice, entries: &[Vec<u8>; COLUMNS], edits: &mut Edits) {
    let value = [b"[", entries[0].as_slice(), b"]"].concat();
    match choice.logprobs {
        Some(span) => edits.replace(span, &value),
        None => edits
            .insert(choice.span.start + 1, &[b"\"logprobs\":", value.as_slice(), b","].concat()),
    }
}
