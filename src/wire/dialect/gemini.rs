//! Gemini: text in `candidates[].content.parts[].text`, the end (`finishReason`) in the same event
//! as the last text, no `[DONE]`.
//!
//! The parts of a candidate are one message text. A part that is no text (a function call, code, an
//! image) ends it: what is held leaves before that part, and matching starts afresh behind it.
//! Parts with `thought: true` are what the model thinks, and a border too.
#![forbid(unsafe_code)]

use super::super::edit::Edits;
use super::super::entries::COLUMNS;
use super::super::framing::Framing;
use super::super::json::{Cursor, Kind, Malformed, Result, Span, once};
use super::super::layout::{Choice, End, Layout, Make, Part, Shape, Text};
use super::{frame_fields, put};

pub(in super::super) static SHAPE: Shape = Shape {
    framing: Framing::Events,
    done: false,
    ends_last: false,
    repeats: false,
    field: None,
    scan,
    scan_body: scan,
    end,
    make,
    put_entries,
};

fn scan(json: &[u8], layout: &mut Layout) -> Result<()> {
    frame_fields(json, layout, b"candidates", candidate)
}

fn candidate(cursor: &mut Cursor<'_>, choice: &mut Choice, layout: &mut Layout) -> Result<()> {
    choice.span = cursor.object(|cursor, key| {
        match key {
            b"index" => choice.index = cursor.number()?,
            b"content" if cursor.kind() == Kind::Object => {
                let span = cursor.object(|cursor, key| {
                    if key == b"parts" && cursor.kind() == Kind::Array {
                        parts(cursor, choice, layout)
                    } else {
                        cursor.skip().map(|_| ())
                    }
                })?;
                once(&mut choice.holder, span, span.start)?;
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

fn parts(cursor: &mut Cursor<'_>, choice: &mut Choice, layout: &mut Layout) -> Result<()> {
    let first = layout.texts.len();
    let number = layout.choices.len();
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
        let border = Text {
            choice: number,
            part: Part::Border,
            field: "",
            span: Span { start: part.start, end: part.start },
            rest: Span::default(),
        };
        if thought || text.is_none() {
            layout.push_text(border)?;
            ends.push(part.end);
        }
        if let Some(span) = text {
            let part_kind = if thought { Part::Reasoning } else { Part::Content };
            layout.push_text(Text {
                choice: number,
                part: part_kind,
                field: "text",
                span,
                rest: Span::default(),
            })?;
            ends.push(part.end);
        }
        Ok(())
    })?;
    if choice.more[0].replace(list).is_some() {
        return Err(Malformed {
            what: "a key the cutter has to read stands here for the second time",
            at: list.start,
        });
    }
    for (text, end) in layout.texts.iter_mut().skip(first).zip(ends) {
        text.rest = Span { start: end, end: list.end - 1 };
    }
    Ok(())
}

fn logprobs(cursor: &mut Cursor<'_>, choice: &mut Choice) -> Result<Span> {
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

fn end(json: &[u8], choice: &Choice, end: &End<'_>, edits: &mut Edits) {
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
        edits.replace_with(put::point(at), |ink| put::field(field, end.stop, ink));
    }
}

fn make(_: &[u8], layout: &Layout, make: &Make<'_>, edits: &mut Edits) {
    let Some(list) = layout.list else { return };
    edits.replace_with(list, |ink| {
        ink.extend_from_slice(b"[{\"content\":{\"parts\":[{\"text\":\"");
        ink.extend_from_slice(make.text);
        ink.extend_from_slice(if make.part == Part::Reasoning {
            b"\",\"thought\":true}]"
        } else {
            b"\"}]"
        });
        ink.extend_from_slice(format!(",\"role\":\"model\"}},\"index\":{}", make.index).as_bytes());
        if make.has_entries() {
            ink.extend_from_slice(b",\"logprobsResult\":");
            ink.extend_from_slice(&result(make.entries));
        }
        ink.extend_from_slice(b"}]");
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
