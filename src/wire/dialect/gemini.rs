//! Gemini: text in `candidates[].content.parts[].text`, the end (`finishReason`) in the same event
//! as the last text, no `[DONE]`.
//!
//! The parts of a candidate are one message text. A part that is no text (a function call, code, an
//! image) ends it: what is held leaves before that part, and matching starts afresh behind it.
//! Parts with `thought: true` are what the model thinks, and a border too.
#![forbid(unsafe_code)]

use super::{frame_fields, put};
use crate::wire::choices::Choices;
use crate::wire::dialect::Entry;
use crate::wire::dialect::spec::{Finish, NewFrame, Spec};
use crate::wire::edit::Edits;
use crate::wire::frame::{Choice, ParsedFrame, Part, Slot, Text};
use crate::wire::framing::Framing;
use crate::wire::json::{Cursor, JsonResult, Kind, Malformed, Span, once};
use crate::wire::logprobs::COLUMNS;

pub(super) static DIALECT: Entry = Entry {
    name: "gemini",
    framing: Framing::Events,
    reserved: RESERVED,
    known: KNOWN,
    engine: || Box::new(Choices::new(&SPEC)),
};

const KNOWN: &str = "candidates usageMetadata modelVersion responseId promptFeedback createTime";

const RESERVED: &str = "content finishReason finishMessage index tokenCount safetyRatings \
    citationMetadata avgLogprobs logprobsResult groundingAttributions groundingMetadata \
    urlContextMetadata";

static SPEC: Spec = Spec {
    done: false,
    ends_last: false,
    repeats: false,
    slots: &[Slot::Delta],
    field: None,
    scan,
    scan_body: scan,
    end,
    blank,
    make,
    put_entries,
};

/// The list of parts.
const PARTS: usize = 0;

fn scan(json: &[u8], parsed: &mut ParsedFrame) -> JsonResult<()> {
    frame_fields(json, parsed, b"candidates", candidate)
}

fn candidate(
    cursor: &mut Cursor<'_>,
    choice: &mut Choice,
    parsed: &mut ParsedFrame,
) -> JsonResult<()> {
    choice.span = cursor.object(|cursor, key| {
        match key {
            b"index" if cursor.kind() != Kind::Null => choice.index = cursor.number()?,
            b"content" if cursor.kind() == Kind::Object => {
                let span = cursor.object(|cursor, key| {
                    if key == b"parts" && cursor.kind() == Kind::Array {
                        parts(cursor, choice, parsed)
                    } else {
                        cursor.skip().map(|_| ())
                    }
                })?;
                once(&mut choice.holder, span, span.start)?;
            }
            b"content" => {
                parsed.misplaced_if(cursor.kind() == Kind::String);
                cursor.skip()?;
            }
            b"finishReason" => {
                let (span, finished) = cursor.reason(&[b"FINISH_REASON_UNSPECIFIED"])?;
                choice.finished = finished;
                once(&mut choice.finish, span, span.start)?;
            }
            b"logprobsResult" => {
                let span = if cursor.kind() == Kind::Object {
                    logprobs(cursor, choice)?
                } else {
                    cursor.skip()?
                };
                once(&mut choice.logprobs, span, span.start)?;
            }
            _ => {
                cursor.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(())
}

fn parts(cursor: &mut Cursor<'_>, choice: &mut Choice, parsed: &mut ParsedFrame) -> JsonResult<()> {
    let first = parsed.texts.len();
    let number = parsed.choices.len();
    let mut ends = Vec::new();
    let list = cursor.array(|cursor, _| {
        let (mut text, mut thought) = (None, false);
        if cursor.kind() != Kind::Object {
            return cursor.skip().map(|_| ());
        }
        let part = cursor.object(|cursor, key| {
            match key {
                b"text" => {
                    if let Some(span) = cursor.string_or_skip()? {
                        once(&mut text, span, span.start)?;
                    }
                }
                b"thought" => {
                    thought = cursor.kind() == Kind::True;
                    cursor.skip()?;
                }
                _ => {
                    cursor.skip()?;
                }
            }
            Ok(())
        })?;
        let at = Span { start: part.start, end: part.start };
        let border = Text::new(number, Part::Border, "", at);
        if thought || text.is_none() {
            parsed.push_text(border)?;
            ends.push(part.end);
        }
        if let Some(span) = text {
            let part_kind = if thought { Part::Reasoning } else { Part::Content };
            parsed.push_text(Text::new(number, part_kind, "text", span))?;
            ends.push(part.end);
        }
        Ok(())
    })?;
    if choice.more[PARTS].replace(list).is_some() {
        return Err(Malformed {
            what: "a key the cutter has to read stands here for the second time",
            at: list.start,
        });
    }
    for (text, end) in parsed.texts.iter_mut().skip(first).zip(ends) {
        text.rest = Span { start: end, end: list.end - 1 };
    }
    Ok(())
}

fn logprobs(cursor: &mut Cursor<'_>, choice: &mut Choice) -> JsonResult<Span> {
    cursor.object(|cursor, key| {
        let column = match key {
            b"chosenCandidates" => 0,
            b"topCandidates" => 1,
            _ => COLUMNS,
        };
        let is_array = cursor.kind() == Kind::Array;
        let span = cursor.skip()?;
        match choice.columns.get_mut(column).filter(|_| is_array) {
            Some(slot) => once(slot, span, span.start),
            None => Ok(()),
        }
    })
}

fn end(json: &[u8], choice: &Choice, end: &Finish<'_>, edits: &mut Edits) {
    let at = if let Some(finish) = choice.finish {
        if finish.of(json) != b"\"STOP\"" {
            edits.replace(finish, b"\"STOP\"");
        }
        finish.end
    } else {
        edits.insert(choice.span.end - 1, b",\"finishReason\":\"STOP\"");
        choice.span.end - 1
    };
    if let Some(field) = end.field {
        edits.replace_with(put::point(at), |arena| put::field(field, end.stop, arena));
    }
}

/// A candidate that ended before its frame came, kept for what stands beside the candidates.
fn blank(choice: &Choice, _: &mut dyn Iterator<Item = &Text>, edits: &mut Edits) {
    if let Some(parts) = choice.more[PARTS] {
        edits.replace(parts, b"[]");
    }
    if let Some(logprobs) = choice.logprobs {
        edits.replace(logprobs, b"null");
    }
}

fn make(_: &[u8], parsed: &ParsedFrame, make: &NewFrame<'_>, edits: &mut Edits) {
    let Some(list) = parsed.list else { return };
    edits.replace_with(list, |arena| {
        arena.extend_from_slice(b"[{\"content\":{\"parts\":[{\"text\":\"");
        arena.extend_from_slice(make.text);
        arena.extend_from_slice(if make.part == Part::Reasoning {
            b"\",\"thought\":true}]"
        } else {
            b"\"}]"
        });
        arena.extend_from_slice(
            format!(",\"role\":\"model\"}},\"index\":{}", make.index).as_bytes(),
        );
        if make.has_entries() {
            arena.extend_from_slice(b",\"logprobsResult\":");
            arena.extend_from_slice(&result(make.entries));
        }
        arena.extend_from_slice(b"}]");
    });
}

fn put_entries(choice: &Choice, entries: &[Vec<u8>; COLUMNS], edits: &mut Edits) {
    match choice.logprobs {
        Some(span) => edits.replace(span, &result(entries)),
        None => edits.insert(
            choice.span.start + 1,
            &[b"\"logprobsResult\":", result(entries).as_slice(), b","].concat(),
        ),
    }
}

fn result(entries: &[Vec<u8>; COLUMNS]) -> Vec<u8> {
    [
        b"{\"topCandidates\":[",
        entries[1].as_slice(),
        b"],\"chosenCandidates\":[",
        entries[0].as_slice(),
        b"]}",
    ]
    .concat()
}
