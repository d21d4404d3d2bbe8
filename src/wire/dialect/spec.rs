//! How a dialect whose frames hold choices is read and written.
#![forbid(unsafe_code)]

use crate::wire::edit::Edits;
use crate::wire::frame::{Choice, ParsedFrame, Part, Slot, Text};
use crate::wire::json::JsonResult;
use crate::wire::logprobs::COLUMNS;

/// An end to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finish<'a> {
    /// The stop, as the inside of a JSON string.
    pub(crate) stop: &'a [u8],
    /// The key that tells it, if one is to be added.
    pub(crate) field: Option<&'a str>,
    /// The text that left, raw.
    pub(crate) emitted: &'a [u8],
    /// Frames of this choice so far, which for TGI are tokens.
    pub(crate) frames: u64,
}

/// A text frame to be made after the pattern of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewFrame<'a> {
    pub(crate) index: u32,
    pub(crate) slot: Slot,
    pub(crate) field: &'static str,
    pub(crate) part: Part,
    /// The text, raw.
    pub(crate) text: &'a [u8],
    /// Log-probabilities: the inside of each array.
    pub(crate) entries: &'a [Vec<u8>; COLUMNS],
}

impl NewFrame<'_> {
    pub(crate) fn has_entries(&self) -> bool {
        self.entries.iter().any(|column| !column.is_empty())
    }
}

/// How one dialect is read and written.
#[derive(Debug)]
pub(crate) struct Spec {
    /// The stream ends with `data: [DONE]`.
    pub(crate) done: bool,
    /// Usage figures come in the very frame that ends the stream, so a drained stream gets its end
    /// there.
    pub(crate) ends_last: bool,
    /// The last frame repeats the whole text.
    pub(crate) repeats: bool,
    /// Where a choice may have its text, the place first that counts when several have one.
    pub(crate) slots: &'static [Slot],
    /// The key that names the stop when [`StopField::Family`](crate::wire::StopField::Family) is asked
    /// for.
    pub(crate) field: Option<&'static str>,
    /// Reads an event.
    pub(crate) scan: fn(&[u8], &mut ParsedFrame) -> JsonResult<()>,
    /// Reads the answer to a request that does not stream.
    pub(crate) scan_body: fn(&[u8], &mut ParsedFrame) -> JsonResult<()>,
    /// Writes the end of a choice into its frame.
    pub(crate) end: fn(&[u8], &Choice, &Finish<'_>, &mut Edits),
    /// Takes all text out of a choice that had ended before its frame came.
    pub(crate) blank: fn(&Choice, &mut dyn Iterator<Item = &Text>, &mut Edits),
    /// Turns a frame into one that holds just this text.
    pub(crate) make: fn(&[u8], &ParsedFrame, &NewFrame<'_>, &mut Edits),
    /// Puts log-probabilities into a frame that lacks an array for them.
    pub(crate) put_entries: fn(&Choice, &[Vec<u8>; COLUMNS], &mut Edits),
}
