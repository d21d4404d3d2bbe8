//! llama.cpp's own `/completion`: text in `content`; `stop` is the flag that says this is the last
//! event, not a stop string.
//!
//! The end is `stop: true` with `stop_type: "word"` and `stopping_word`. Older servers tell it by
//! `stopped_word`, `stopped_eos`, `stopped_limit`; where those stand they are set.
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

pub(super) static DIALECT: Entry = Entry {
    name: "llama.cpp",
    framing: Framing::Events,
    reserved: RESERVED,
    known: KNOWN,
    engine: || Box::new(Choices::new(&SPEC)),
};

const KNOWN: &str =
    "content stop index id_slot tokens prompt generation_settings prompt_progress multimodal";

const RESERVED: &str = "index id_slot content tokens stop stop_type stopping_word stopped_word \
    stopped_eos stopped_limit model prompt generation_settings truncated has_new_line timings \
    tokens_predicted tokens_evaluated tokens_cached completion_probabilities probs";

static SPEC: Spec = Spec {
    done: false,
    ends_last: true,
    repeats: false,
    slots: &[Slot::Delta],
    field: None,
    scan,
    scan_body: scan,
    end,
    blank: |_, _, _| {},
    make,
    put_entries,
};

const STOP_TYPE: usize = 0;
const STOPPED_WORD: usize = 1;
const TOKENS: usize = 2;

fn scan(json: &[u8], parsed: &mut ParsedFrame) -> JsonResult<()> {
    let mut cursor = Cursor::with_notes(json, std::mem::take(&mut parsed.notes));
    let mut choice = Choice::default();
    choice.span = cursor.object(|cursor, key| {
        let (slot, wanted) = match key {
            b"content" => {
                if let Some(span) = cursor.string_or_skip()? {
                    parsed.text(Part::Content, "content", span)?;
                }
                return Ok(());
            }
            b"index" if cursor.kind() != Kind::Null => {
                choice.index = cursor.number()?;
                return Ok(());
            }
            b"error" => {
                parsed.error |= cursor.kind() != Kind::Null;
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
    parsed.choices.push(choice);
    cursor.end()?;
    parsed.notes = cursor.into_notes();
    Ok(())
}

fn end(json: &[u8], choice: &Choice, end: &Finish<'_>, edits: &mut Edits) {
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
        Some(word) => edits.replace_with(word, |arena| put::quoted(end.stop, arena)),
        None => {
            edits
                .replace_with(put::point(at), |arena| put::field("stopping_word", end.stop, arena));
        }
    }
    if let Some(field) = end.field {
        edits.replace_with(put::point(at), |arena| put::field(field, end.stop, arena));
    }
}

fn make(json: &[u8], parsed: &ParsedFrame, make: &NewFrame<'_>, edits: &mut Edits) {
    let Some(choice) = parsed.choices.first() else { return };
    for text in &parsed.texts {
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
