//! Frames that could not be placed: what came, and whether a client of another dialect would see
//! text in it.
//!
//! A stop is looked for in the texts of one dialect. Whatever else a frame holds passes, so a frame
//! that is no frame of the dialect passes with all its text. Such frames are counted here, and end
//! the stream if the caller wants that ([`OnUnread::Fail`](super::OnUnread::Fail)). Frames that
//! providers really send without text, such as usage figures, pings, roles, tool calls, must not
//! count.
#![forbid(unsafe_code)]

use super::json::{Cursor, JsonResult, Kind, trimmed};

/// Keys of any dialect's frames that carry no text: figures, names, errors.
const COMMON: &str = "id object created created_at model usage type event error errors detail \
    message msg code status metadata timings request_id trace_id";

/// Keys that hold a text, as a string, in some dialect.
const STRINGS: &str = "content response delta generated_text text output_text completion answer";

/// Characters of the first unread frame that are kept.
const KEPT: usize = 200;

/// What the frames of one answer told so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread {
    pub(super) frames: u64,
    pub(super) first: Option<String>,
    /// The stream's own last word (`[DONE]`) has passed: what follows is nobody's answer.
    pub(super) over: bool,
    /// A text that is said twice was changed in its second place.
    pub(super) copies_cut: bool,
}

impl Unread {
    pub(super) fn count(&mut self, bytes: &[u8]) {
        self.frames += 1;
        if self.first.is_none() {
            // No character has more than four bytes.
            let bytes = trimmed(bytes).of(bytes);
            let start = bytes.get(..KEPT * 4).unwrap_or(bytes);
            self.first = Some(String::from_utf8_lossy(start).chars().take(KEPT).collect());
        }
    }
}

/// What is found in a frame in which its dialect found no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Nothing that is not the dialect's, and no text.
    Nothing,
    /// A place of another dialect's text, with nothing in it.
    Place,
    /// A text of another dialect.
    Text,
    /// Nothing that any dialect knows.
    Unknown,
}

/// Looks at a frame in which its dialect found no text. `known` are the keys of the dialect's own
/// frames, which are not looked into.
pub(super) fn look(json: &[u8], known: &str) -> JsonResult<Holds> {
    let has =
        |keys: &str, key: &[u8]| keys.split_ascii_whitespace().any(|known| known.as_bytes() == key);
    let (mut any, mut placed, mut found) = (false, false, None);
    let mut cursor = Cursor::new(json);
    cursor.object(|cursor, key| {
        any = true;
        if has(known, key) {
            placed = true;
            return cursor.skip().map(|_| ());
        }
        placed |= has(COMMON, key);
        match key {
            b"choices" => list(cursor, &mut found, |cursor, key, found| match key {
                b"delta" | b"message" => holder(cursor, found),
                b"text" => text(cursor, found),
                _ => cursor.skip().map(|_| ()),
            }),
            b"candidates" => list(cursor, &mut found, |cursor, key, found| match key {
                b"content" => holder(cursor, found),
                _ => cursor.skip().map(|_| ()),
            }),
            b"message" | b"content_block" | b"token" | b"delta"
                if cursor.kind() == Kind::Object =>
            {
                holder(cursor, &mut found)
            }
            b"output" => list(cursor, &mut found, |cursor, key, found| match key {
                b"content" => texts(cursor, found),
                _ => cursor.skip().map(|_| ()),
            }),
            b"content" if cursor.kind() != Kind::String => texts(cursor, &mut found),
            _ if has(STRINGS, key) => text(cursor, &mut found),
            _ => cursor.skip().map(|_| ()),
        }
    })?;
    Ok(match found {
        Some(true) => Holds::Text,
        Some(false) => Holds::Place,
        None if any && !placed => Holds::Unknown,
        None => Holds::Nothing,
    })
}

type Found = Option<bool>;

/// The objects of an array: `read` gets each of their keys.
fn list(
    cursor: &mut Cursor<'_>,
    found: &mut Found,
    read: impl Fn(&mut Cursor<'_>, &[u8], &mut Found) -> JsonResult<()>,
) -> JsonResult<()> {
    if cursor.kind() != Kind::Array {
        return cursor.skip().map(|_| ());
    }
    cursor.array(|cursor, _| match cursor.kind() {
        Kind::Object => cursor.object(|cursor, key| read(cursor, key, found)).map(|_| ()),
        _ => cursor.skip().map(|_| ()),
    })?;
    Ok(())
}

/// An object with a text in it, or one that holds such an object, up to Cohere's
/// `delta.message.content.text`.
fn holder(cursor: &mut Cursor<'_>, found: &mut Found) -> JsonResult<()> {
    fn inner(cursor: &mut Cursor<'_>, found: &mut Found, depth: usize) -> JsonResult<()> {
        if cursor.kind() != Kind::Object {
            return cursor.skip().map(|_| ());
        }
        cursor.object(|cursor, key| match (key, cursor.kind()) {
            (b"content" | b"message", Kind::Object) if depth < 3 => inner(cursor, found, depth + 1),
            (b"content" | b"parts", Kind::Array) => texts(cursor, found),
            (b"content" | b"text", _) => text(cursor, found),
            _ => cursor.skip().map(|_| ()),
        })?;
        Ok(())
    }
    inner(cursor, found, 0)
}

/// A list of parts with texts.
fn texts(cursor: &mut Cursor<'_>, found: &mut Found) -> JsonResult<()> {
    list(cursor, found, |cursor, key, found| match key {
        b"text" => text(cursor, found),
        _ => cursor.skip().map(|_| ()),
    })
}

/// A text, if it is a string.
fn text(cursor: &mut Cursor<'_>, found: &mut Found) -> JsonResult<()> {
    if let Some(span) = cursor.string_or_skip()? {
        *found = Some(found.unwrap_or(false) || !span.is_empty());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_dialect_are_known() {
        for json in [
            r#"{"id":"1","choices":[{"delta":{"content":"a"}}]}"#,
            r#"{"id":"1","choices":[{"message":{"content":[{"type":"text","text":"a"}]}}]}"#,
            r#"{"choices":[{"text":""},{"text":"a"}]}"#,
            r#"{"type":"response.output_text.delta","delta":"a"}"#,
            r#"{"output":[{"content":[{"text":"a"}]}]}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_start","content_block":{"type":"text","text":"a"}}"#,
            r#"{"id":"1","content":[{"type":"text","text":"a"}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#,
            r#"{"model":"m","message":{"role":"assistant","content":"a"}}"#,
            r#"{"model":"m","response":"a"}"#,
            r#"{"content":"a","stop":false}"#,
            r#"{"index":1,"token":{"text":"a"},"generated_text":null}"#,
            r#"{"generated_text":"a"}"#,
            r#"{"type":"content-delta","delta":{"message":{"content":{"text":"a"}}}}"#,
            r#"{"message":{"content":[{"type":"text","text":"a"}]}}"#,
        ] {
            assert_eq!(look(json.as_bytes(), ""), Ok(Holds::Text), "{json}");
        }
    }

    #[test]
    fn frames_without_text_are_told_from_unknown_ones() {
        for (json, known, expected) in [
            ("{}", "", Holds::Nothing),
            (r#"{"type":"ping"}"#, "", Holds::Nothing),
            (r#"{"error":{"message":"x"}}"#, "", Holds::Nothing),
            (r#"{"choices":[{"delta":{"content":"a"}}]}"#, "choices", Holds::Nothing),
            (r#"{"choices":[]}"#, "", Holds::Unknown),
            (r#"{"foo":"a"}"#, "choices", Holds::Unknown),
            (r#"{"response":""}"#, "choices", Holds::Place),
            (r#"{"delta":{"partial_json":"a"},"type":"x"}"#, "", Holds::Nothing),
        ] {
            assert_eq!(look(json.as_bytes(), known), Ok(expected), "{json}");
        }
    }
}
