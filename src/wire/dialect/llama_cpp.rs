//! llama.cpp's own `/completion`: text in `content`; `stop` is the flag that says this is the last
//! event, not a stop string.
//!
//! The end is `stop: true` with `stop_type: "word"` and `stopping_word`. Older servers tell it by
//! `stopped_word`, `stopped_eos`, `stopped_limit`; where those stand they are set.
#![forbid(unsafe_code)]

use super::super::edit::Edits;
use super::super::entries::COLUMNS;
use super::super::framing::Framing;
use super::super::json::{Cursor, Kind, Result, once};
use super::super::layout::{Choice, End, Layout, Make, Part, Shape};
use super::put;

pub(in super::super) static SHAPE: Shape = Shape {
    framing: Framing::Events,
    done: false,
    ends_last: true,
    repeats: false,
    field: None,
    scan,
    scan_body: scan,
    end,
    make,
    put_entries,
};

const STOP_TYPE: usize = 0;
const STOPPED_WORD: usize = 1;
const TOKENS: usize = 2;

fn scan(json: &[u8], layout: &mut Layout) -> Result<()> {
    let mut cursor = Cursor::with_notes(json, std::mem::take(&mut layout.notes));
    let mut choice = Choice::default();
    choice.span = cursor.object(|cursor, key| {
        let (slot, wanted) = match key {
            b"content" => {
                if let Some(span) = cursor.string_or_skip()? {
                    layout.text(Part::Content, "content", span)?;
                }
                return Ok(());
            }
            b"index" => {
                choice.index = cursor.number()?;
                return Ok(());
            }
            b"error" => {
                layout.error |= cursor.kind() != Kind::Null;
                return cursor.skip().map(|_| ());
            }
            b"stop" => {
                choice.finished = cursor.kind() == Kind::True;
                (&mut choice.finish, true)
            }
            b"stopping_word" => (&mut choice.stop, true),
            b"stop_type" => (&mut choice.more[STOP_TYPE], true),
            b"stopped_word" => (&mut choice.more[STOPPED_WORD], true),
            b"tokens" => (&mut choice.more[TOKENS], cursor.kind() == Kind::Array),
            b"completion_probabilities" => (&mut choice.columns[0], cursor.kind() == Kind::Array),
            _ => return cursor.skip().map(|_| ()),
        };
        let span = cursor.skip()?;
        if wanted { once(slot, span, span.start) } else { Ok(()) }
    })?;
    layout.choices.push(choice);
    cursor.end()?;
    layout.notes = cursor.into_notes();
    Ok(())
}

fn end(json: &[u8], choice: &Choice, end: &End<'_>, edits: &mut Edits) {
    let last = choice.span.end - 1;
    let at = if let Some(finish) = choice.finish {
        if finish.of(json) != b"true" {
            edits.replace(finish, b"true");
        }
        finish.end
    } else {
        edits.insert(last, b",\"stop\":true");
        last
    };
    if let Some(word) = choice.more[STOPPED_WORD] {
        edits.replace(word, b"true");
    }
    match choice.more[STOP_TYPE] {
        Some(kind) => edits.replace(kind, b"\"word\""),
        None if choice.more[STOPPED_WORD].is_some() => {}
        None => edits.insert(at, b",\"stop_type\":\"word\""),
    }
    match choice.stop {
        Some(word) => edits.replace_with(word, |ink| put::quoted(end.stop, ink)),
        None => {
            edits.replace_with(put::point(at), |ink| put::field("stopping_word", end.stop, ink));
        }
    }
    if let Some(field) = end.field {
        edits.replace_with(put::point(at), |ink| put::field(field, end.stop, ink));
    }
}

fn make(json: &[u8], layout: &Layout, make: &Make<'_>, edits: &mut Edits) {
    let Some(choice) = layout.choices.first() else { return };
    for text in &layout.texts {
        edits.replace(text.span, make.text);
    }
    if let Some(finish) = choice.finish.filter(|finish| finish.of(json) != b"false") {
        edits.replace(finish, b"false");
    }
    if let Some(tokens) = choice.more[TOKENS] {
        edits.replace(tokens, b"[]"); // their ids went with the frame in which they came
    }
    if let Some(column) = choice.columns[0] {
        edits.replace(column, &[b"[", make.entries[0].as_slice(), b"]"].concat());
    }
}

fn put_entries(choice: &Choice, entries: &[Vec<u8>; COLUMNS], edits: &mut Edits) {
    edits.insert(
        choice.span.start + 1,
        &[b"\"completion_probabilities\":[", entries[0].as_slice(), b"],"].concat(),
    );
}
