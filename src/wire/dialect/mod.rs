//! One small file per dialect, and what they share.
#![forbid(unsafe_code)]

pub(super) mod anthropic;
pub(super) mod gemini;
pub(super) mod keys;
pub(super) mod llama_cpp;
pub(super) mod ollama;
pub(super) mod openai_chat;
pub(super) mod openai_completions;
pub(super) mod responses;
pub(super) mod tgi;

use super::json::{Cursor, Kind, Result, once};
use super::layout::{Choice, Layout};

/// Reads the fields that frames with a list of choices share: the list under `name`, usage figures,
/// errors.
fn frame_fields(
    json: &[u8],
    layout: &mut Layout,
    name: &[u8],
    read: fn(&mut Cursor<'_>, &mut Choice, &mut Layout) -> Result<()>,
) -> Result<()> {
    let mut cursor = Cursor::with_notes(json, std::mem::take(&mut layout.notes));
    cursor.object(|cursor, key| {
        match key {
            _ if key == name && cursor.kind() == Kind::Array => {
                let span = cursor.array(|cursor, position| {
                    if cursor.kind() != Kind::Object {
                        return cursor.skip().map(|_| ());
                    }
                    // A choice that does not say its number has the one of its place.
                    let mut choice = Choice {
                        index: u32::try_from(position).unwrap_or(u32::MAX),
                        ..Choice::default()
                    };
                    read(cursor, &mut choice, layout)?;
                    layout.push_choice(&choice)
                })?;
                once(&mut layout.list, span, span.start)?;
            }
            b"usage" | b"usageMetadata" => {
                layout.usage |= cursor.kind() == Kind::Object;
                cursor.skip()?;
            }
            b"error" => {
                layout.error |= cursor.kind() != Kind::Null;
                cursor.skip()?;
            }
            _ => {
                cursor.skip()?;
            }
        }
        Ok(())
    })?;
    cursor.end()?;
    layout.notes = cursor.into_notes();
    Ok(())
}

/// Pieces of JSON to write.
mod put {
    use super::super::json::Span;

    /// A string from its raw inside.
    pub(super) fn quoted(raw: &[u8], out: &mut Vec<u8>) {
        out.push(b'"');
        out.extend_from_slice(raw);
        out.push(b'"');
    }

    /// `,"name":"raw"`
    pub(super) fn field(name: &str, raw: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"");
        super::super::text::encode(name, out);
        out.extend_from_slice(b"\":");
        quoted(raw, out);
    }

    /// An insertion here.
    pub(super) fn point(at: usize) -> Span {
        Span { start: at, end: at }
    }
}
