//! The places that say the whole text once more, cut: parts, items, the response itself.
#![forbid(unsafe_code)]

use super::Matched;
use super::reading::{Object, elements, object};
use crate::wire::context::Context;
use crate::wire::dialect::put;
use crate::wire::edit::Edits;
use crate::wire::json::{JsonResult, Span, word};
use crate::wire::logprobs::{Logprobs, Progress};
use crate::wire::options::StopField;

/// Deletes what stands behind element `kept`.
pub(super) fn cut_list(list: Span, elements: &[Span], kept: usize, edits: &mut Edits) {
    if let Some(element) = elements.get(kept).filter(|_| kept + 1 < elements.len()) {
        edits.delete(Span { start: element.end, end: list.end - 1 });
    }
}

pub(super) fn cut_part(
    json: &[u8],
    span: Span,
    matched: &Matched,
    edits: &mut Edits,
) -> JsonResult<()> {
    let part = object(json, span)?;
    if let Some(whole) = part.text {
        edits.replace(whole, &matched.emitted);
    }
    cut_entries(json, part.logprobs, matched, edits);
    Ok(())
}

pub(super) fn cut_item(
    json: &[u8],
    span: Span,
    matched: &Matched,
    edits: &mut Edits,
) -> JsonResult<()> {
    let item = object(json, span)?;
    if let Some(status) =
        item.status.filter(|status| *word(json, Some(*status)) == *b"\"incomplete\"")
    {
        edits.replace(status, b"\"completed\"");
    }
    let Some(list) = item.list else { return Ok(()) };
    let parts = elements(json, list)?;
    cut_list(list, &parts, matched.content as usize, edits);
    match parts.get(matched.content as usize) {
        Some(part) => cut_part(json, *part, matched, edits),
        None => Ok(()),
    }
}

/// Log-probabilities of a whole text beyond this many bytes are left alone.
pub(super) const WHOLE_ENTRIES: usize = 64 << 20;

/// The entries of a whole text, without those past the cut.
pub(super) fn cut_entries(json: &[u8], array: Option<Span>, matched: &Matched, edits: &mut Edits) {
    let Some(array) = array else { return };
    let progress =
        Progress { start: 0, end: 0, decoded_out: matched.decoded_out, holds: false, over: true };
    let mut kept = Default::default();
    if Logprobs::new(WHOLE_ENTRIES).sort(
        json,
        &[Some(array), None, None, None],
        progress,
        &mut kept,
    ) {
        edits.replace(Span { start: array.start + 1, end: array.end - 1 }, &kept[0]);
    }
}

/// The response is complete, whatever the upstream says.
pub(super) fn complete(
    cx: &Context<'_>,
    json: &[u8],
    response: &Object,
    stop: &[u8],
    edits: &mut Edits,
) {
    if let Some(status) = response.status.filter(|status| status.of(json) != b"\"completed\"") {
        edits.replace(status, b"\"completed\"");
    }
    if let Some(incomplete) =
        response.incomplete.filter(|incomplete| incomplete.of(json) != b"null")
    {
        edits.replace(incomplete, b"null");
    }
    if let (StopField::Named(name), Some(status)) = (&cx.options.stop_field, response.status) {
        edits.replace_with(put::point(status.end), |arena| put::field(name, stop, arena));
    }
}

pub(super) fn applied(json: &[u8], edits: &mut Edits) -> Vec<u8> {
    let mut out = Vec::new();
    edits.apply(json, &mut out);
    out
}
