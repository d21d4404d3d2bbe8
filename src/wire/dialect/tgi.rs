//! text-generation-inference's own `/generate_stream`: one token an event, text in `token.text`
//! unless the token is special.
//!
//! The last event repeats the whole text (`generated_text`) and tells the end in `details`. TGI
//! never trims a stop of its own; if the cutter has that stop, it does. `token.logprob` and
//! `token.id` are the token's and stay with its event, also when its text is held.
#![forbid(unsafe_code)]

use super::put;
use crate::wire::choices::Choices;
use crate::wire::dialect::Entry;
use crate::wire::dialect::spec::{Finish, NewFrame, Spec};
use crate::wire::edit::Edits;
use crate::wire::frame::{Choice, ParsedFrame, Part, Slot, Text};
use crate::wire::framing::Framing;
use crate::wire::json::{Cursor, JsonResult, Kind, once};

pub(super) static DIALECT: Entry = Entry {
    name: "tgi",
    framing: Framing::Events,
    reserved: RESERVED,
    known: KNOWN,
    engine: || Box::new(Choices::new(&SPEC)),
};

const KNOWN: &str = "token generated_text details index top_tokens error_type";

const RESERVED: &str = "finish_reason generated_tokens seed input_length prefill tokens top_tokens \
    best_of_sequences";

static SPEC: Spec = Spec {
    done: false,
    ends_last: true,
    repeats: true,
    slots: &[Slot::Delta],
    field: None,
    scan,
    scan_body,
    end,
    blank: |_, _, _| {},
    make,
    put_entries: |_, _, _| {},
};

/// `details.finish_reason`.
const REASON: usize = 0;

fn scan(json: &[u8], parsed: &mut ParsedFrame) -> JsonResult<()> {
    let mut cursor = Cursor::with_notes(json, std::mem::take(&mut parsed.notes));
    let mut choice = Choice::default();
    choice.span = cursor.object(|cursor, key| match key {
        b"token" if cursor.kind() == Kind::Object => {
            let mut special = false;
            let first = parsed.texts.len();
            let span = cursor.object(|cursor, key| match key {
                b"text" => match cursor.string_or_skip()? {
                    Some(span) => parsed.text(Part::Content, "text", span),
                    None => Ok(()),
                },
                b"special" => {
                    special = cursor.kind() == Kind::True;
                    cursor.skip().map(|_| ())
                }
                _ => cursor.skip().map(|_| ()),
            })?;
            if special {
                parsed.texts.truncate(first);
            }
            once(&mut choice.holder, span, span.start)
        }
        b"generated_text" => {
            let span = cursor.skip()?;
            once(&mut choice.stop, span, span.start)
        }
        _ => details(cursor, key, &mut choice, parsed),
    })?;
    choice.finished |= choice.stop.is_some_and(|text| text.of(json).starts_with(b"\""));
    // An event without a token says its whole text at once, which nobody has read.
    let whole = choice.stop.is_some_and(|text| text.of(json).len() > 2 && choice.finished);
    parsed.misplaced_if(choice.holder.is_none() && whole);
    parsed.choices.push(choice);
    cursor.end()?;
    parsed.notes = cursor.into_notes();
    Ok(())
}

fn details(
    cursor: &mut Cursor<'_>,
    key: &[u8],
    choice: &mut Choice,
    parsed: &mut ParsedFrame,
) -> JsonResult<()> {
    match key {
        b"details" => {
            choice.finished = cursor.kind() == Kind::Object;
            let span = if choice.finished {
                cursor.object(|cursor, key| {
                    let span = cursor.skip()?;
                    if key == b"finish_reason" {
                        once(&mut choice.more[REASON], span, span.start)
                    } else {
                        Ok(())
                    }
                })?
            } else {
                cursor.skip()?
            };
            once(&mut choice.finish, span, span.start)
        }
        b"error" => {
            parsed.error |= cursor.kind() != Kind::Null;
            cursor.skip().map(|_| ())
        }
        _ => cursor.skip().map(|_| ()),
    }
}

/// The answer to `/generate` is an object, to `/` it is a list of one.
fn scan_body(json: &[u8], parsed: &mut ParsedFrame) -> JsonResult<()> {
    let mut cursor = Cursor::new(json);
    if cursor.kind() == Kind::Array {
        parsed.list = Some(cursor.array(|cursor, position| answer(cursor, position, parsed))?);
    } else {
        answer(&mut cursor, 0, parsed)?;
    }
    cursor.end()
}

fn answer(cursor: &mut Cursor<'_>, position: usize, parsed: &mut ParsedFrame) -> JsonResult<()> {
    let mut choice =
        Choice { index: u32::try_from(position).unwrap_or(u32::MAX), ..Choice::default() };
    choice.span = cursor.object(|cursor, key| match key {
        b"generated_text" => match cursor.string_or_skip()? {
            Some(span) => parsed.text(Part::Content, "generated_text", span),
            None => Ok(()),
        },
        _ => details(cursor, key, &mut choice, parsed),
    })?;
    parsed.push_choice(&choice)
}

fn end(json: &[u8], choice: &Choice, end: &Finish<'_>, edits: &mut Edits) {
    const REASON_WORD: &[u8] = b"\"stop_sequence\"";
    let streams = choice.holder.is_some();
    match choice.more[REASON] {
        Some(reason) if reason.of(json) == REASON_WORD => {}
        Some(reason) => edits.replace(reason, REASON_WORD),
        None if streams => {
            // The prompt's length is not known here; the field must be there for clients that check
            // it.
            let details = format!(
                "{{\"finish_reason\":\"stop_sequence\",\"generated_tokens\":{},\"seed\":null,\"input_length\":0}}",
                end.frames
            );
            match choice.finish {
                Some(finish) => edits.replace(finish, details.as_bytes()),
                None => edits
                    .insert(choice.span.end - 1, &[b",\"details\":", details.as_bytes()].concat()),
            }
        }
        None => {}
    }
    if streams {
        match choice.stop {
            Some(text) => edits.replace_with(text, |arena| put::quoted(end.emitted, arena)),
            None => edits.replace_with(put::point(choice.span.end - 1), |arena| {
                put::field("generated_text", end.emitted, arena);
            }),
        }
    }
    if let (Some(field), Some(reason)) = (end.field, choice.more[REASON]) {
        edits.replace_with(put::point(reason.end), |arena| put::field(field, end.stop, arena));
    }
}

fn make(json: &[u8], parsed: &ParsedFrame, make: &NewFrame<'_>, edits: &mut Edits) {
    let Some(choice) = parsed.choices.first() else { return };
    let texts: &[Text] = &parsed.texts;
    for text in texts {
        edits.replace(text.span, make.text);
    }
    for span in [choice.finish, choice.stop].into_iter().flatten() {
        if span.of(json) != b"null" {
            edits.replace(span, b"null");
        }
    }
}
