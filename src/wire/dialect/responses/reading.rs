//! What is read of an event and of the objects in it: where the values stand that an end changes.
#![forbid(unsafe_code)]

use crate::wire::json::{Cursor, JsonResult, Kind, Span, once};

/// What one event says.
#[derive(Default)]
pub(super) struct ScannedEvent {
    pub(super) kind: Option<Span>,
    pub(super) sequence: Option<Span>,
    pub(super) output: Option<u32>,
    pub(super) content: u32,
    pub(super) item_id: Option<Span>,
    pub(super) delta: Option<Span>,
    pub(super) text: Option<Span>,
    pub(super) logprobs: Option<Span>,
    pub(super) part: Option<Span>,
    pub(super) annotation: Option<Span>,
    pub(super) item: Option<Span>,
    pub(super) response: Option<Span>,
}

pub(super) fn scan(json: &[u8]) -> JsonResult<ScannedEvent> {
    let mut found = ScannedEvent::default();
    let mut cursor = Cursor::new(json);
    cursor.object(|cursor, key| {
        let kind = cursor.kind();
        let slot = match key {
            b"output_index" => {
                found.output = Some(cursor.number()?);
                return Ok(());
            }
            b"content_index" => {
                found.content = cursor.number()?;
                return Ok(());
            }
            b"type" | b"item_id" | b"delta" | b"text" if kind == Kind::String => {
                let slot = match key {
                    b"type" => &mut found.kind,
                    b"item_id" => &mut found.item_id,
                    b"delta" => &mut found.delta,
                    _ => &mut found.text,
                };
                let span = cursor.string()?;
                return once(slot, span, span.start);
            }
            b"sequence_number" => &mut found.sequence,
            b"logprobs" if kind == Kind::Array => &mut found.logprobs,
            b"part" if kind == Kind::Object => &mut found.part,
            b"annotation" if kind == Kind::Object => &mut found.annotation,
            b"item" if kind == Kind::Object => &mut found.item,
            b"response" if kind == Kind::Object => &mut found.response,
            _ => return cursor.skip().map(|_| ()),
        };
        let span = cursor.skip()?;
        once(slot, span, span.start)
    })?;
    cursor.end()?;
    Ok(found)
}

/// Where things stand in a content part, an output item, a response object.
#[derive(Clone, Copy, Default)]
pub(super) struct Object {
    pub(super) span: Span,
    pub(super) kind: Option<Span>,
    pub(super) text: Option<Span>,
    pub(super) logprobs: Option<Span>,
    pub(super) annotations: Option<Span>,
    pub(super) status: Option<Span>,
    pub(super) incomplete: Option<Span>,
    /// `content` or `output`.
    pub(super) list: Option<Span>,
    pub(super) output_text: Option<Span>,
}

pub(super) fn object(json: &[u8], span: Span) -> JsonResult<Object> {
    let mut found = Object::default();
    found.span = Cursor::at(json, span).object(|cursor, key| {
        let kind = cursor.kind();
        let string = kind == Kind::String;
        let slot = match key {
            b"type" if string => &mut found.kind,
            b"text" if string => &mut found.text,
            b"output_text" if string => &mut found.output_text,
            b"logprobs" if kind == Kind::Array => &mut found.logprobs,
            b"annotations" if kind == Kind::Array => &mut found.annotations,
            b"status" => &mut found.status,
            b"incomplete_details" => &mut found.incomplete,
            b"content" | b"output" if kind == Kind::Array => &mut found.list,
            _ => return cursor.skip().map(|_| ()),
        };
        let span = if string && !matches!(key, b"status" | b"incomplete_details") {
            cursor.string()?
        } else {
            cursor.skip()?
        };
        once(slot, span, span.start)
    })?;
    Ok(found)
}

/// The elements of an array.
pub(super) fn elements(json: &[u8], list: Span) -> JsonResult<Vec<Span>> {
    let mut found = Vec::new();
    Cursor::at(json, list).array(|cursor, _| {
        found.push(cursor.skip()?);
        Ok(())
    })?;
    Ok(found)
}
