//! `OpenAI`'s older text completions: text in `choices[].text`, the prompt before it when the
//! request said `echo`.
//!
//! Log-probabilities come as parallel arrays, one element a token.
#![forbid(unsafe_code)]

use super::frame_fields;
use super::openai_chat::{end, ending};
use crate::wire::choices::Choices;
use crate::wire::dialect::Entry;
use crate::wire::dialect::spec::{NewFrame, Spec};
use crate::wire::edit::Edits;
use crate::wire::frame::{Choice, ParsedFrame, Part};
use crate::wire::framing::Framing;
use crate::wire::json::{Cursor, JsonResult, Kind, once};
use crate::wire::logprobs::COLUMNS;

pub(super) static DIALECT: Entry = Entry {
    name: "openai.completions",
    framing: Framing::Events,
    reserved: RESERVED,
    known: KNOWN,
    engine: || Box::new(Choices::new(&SPEC)),
};

const KNOWN: &str = super::openai_chat::KNOWN;

const RESERVED: &str = "index text finish_reason logprobs";

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
    choice.span = cursor.object(|cursor, key| {
        match key {
            b"index" => choice.index = cursor.number()?,
            b"text" => {
                if let Some(span) = cursor.string_or_skip()? {
                    parsed.text(Part::Content, "text", span)?;
                }
            }
            b"logprobs" => logprobs(cursor, choice)?,
            _ => return ending(cursor, key, choice),
        }
        Ok(())
    })?;
    Ok(())
}

fn logprobs(cursor: &mut Cursor<'_>, choice: &mut Choice) -> JsonResult<()> {
    let span = if cursor.kind() == Kind::Object {
        cursor.object(|cursor, key| {
            let column = ARRAYS
                .iter()
                .position(|name| name.as_bytes() == key)
                .filter(|_| cursor.kind() == Kind::Array);
            let span = cursor.skip()?;
            if let Some(slot) = column.and_then(|column| choice.columns.get_mut(column)) {
                once(slot, span, span.start)?;
            }
            Ok(())
        })?
    } else {
        cursor.skip()?
    };
    once(&mut choice.logprobs, span, span.start)
}

fn make(_: &[u8], parsed: &ParsedFrame, make: &NewFrame<'_>, edits: &mut Edits) {
    let Some(list) = parsed.list else { return };
    edits.replace_with(list, |arena| {
        arena.extend_from_slice(format!("[{{\"index\":{},\"text\":\"", make.index).as_bytes());
        arena.extend_from_slice(make.text);
        arena.extend_from_slice(b"\",\"logprobs\":");
        if make.has_entries() {
            arena.extend_from_slice(&arrays(make.entries));
        } else {
            arena.extend_from_slice(b"null");
        }
        arena.extend_from_slice(b",\"finish_reason\":null}]");
    });
}

fn put_entries(choice: &Choice, entries: &[Vec<u8>; COLUMNS], edits: &mut Edits) {
    let value = arrays(entries);
    match choice.logprobs {
        Some(span) => edits.replace(span, &value),
        None => edits
            .insert(choice.span.start + 1, &[b"\"logprobs\":", value.as_slice(), b","].concat()),
    }
}

fn arrays(entries: &[Vec<u8>; COLUMNS]) -> Vec<u8> {
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
