//! One message text on the wire: its reader, and the raw bytes of what is held back.
//!
//! Invariant: `held` is the raw form of exactly the characters the reader holds, followed by the
//! escape of a high surrogate that waits there for its low half, if there is one. So what is released is
//! a prefix of `held`, found by counting characters, and leaves in the escapes in which it came.
#![forbid(unsafe_code)]

use super::logprobs::Logprobs;
use super::{json, text};
use crate::decode::{Decoder, Errors, Fault};
use crate::error::Error;
use crate::set::StopSet;
use crate::stream::{Match, Reader, StreamOptions};

/// The state of one message text.
#[derive(Clone, Debug)]
pub(super) struct TextStream {
    reader: Reader,
    held: Vec<u8>,
    /// Characters that are still to pass unread (the echo of a prompt), and how many there were.
    skip: u64,
    skipped: u64,
    /// A high surrogate at the end of the echo so far.
    echoed: Decoder,
    /// Everything that left, raw, for providers that repeat the whole text at the end.
    emitted: Option<Vec<u8>>,
    /// UTF-8 bytes of text that came and that left, as [`text::decoded_len`] counts: where
    /// log-probabilities stand.
    decoded_in: u64,
    decoded_out: u64,
    pub(super) entries: Logprobs,
    /// What was held left because the text was over, and nothing has come since. Were it to go on,
    /// a stop over that border could not be found.
    pub(super) let_go: bool,
    /// The key under which the text came.
    pub(super) field: &'static str,
}

/// What becomes of a text.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// What leaves is the very text that came, whatever `text` holds.
    pub(super) unchanged: bool,
    pub(super) matched: Option<Match>,
    /// Where the text began, in UTF-8 bytes.
    pub(super) start: u64,
}

/// Buffers shared by all streams of a cutter.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// Code units of a text that is not plain ASCII.
    units: Vec<u32>,
    /// The raw text that may leave.
    pub(super) text: Vec<u8>,
    /// Characters that all streams have read.
    pub(super) characters: u64,
}

impl Scratch {
    /// Fails for a text that [`TextStream::take`] would refuse.
    pub(super) fn check(&mut self, raw: &[u8]) -> Result<(), &'static str> {
        self.units.clear();
        text::units(raw, &mut self.units)
    }
}

impl TextStream {
    pub(super) fn new(
        set: &StopSet,
        options: &StreamOptions,
        skip: u64,
        repeat: bool,
        held_bytes: usize,
    ) -> Result<Self, Error> {
        Ok(Self {
            // A lone surrogate is text like any other on the wire, and leaves as it came.
            reader: Reader::text(
                set.clone(),
                &StreamOptions { errors: Errors::Replace, ..options.clone() },
            )?,
            held: Vec::new(),
            let_go: false,
            skip,
            skipped: 0,
            echoed: Decoder::default(),
            emitted: repeat.then(Vec::new),
            decoded_in: 0,
            decoded_out: 0,
            entries: Logprobs::new(held_bytes),
            field: "content",
        })
    }

    /// Reads the raw text of a frame. What may leave is the same text, or what stands in
    /// `scratch.text` then.
    pub(super) fn take(&mut self, raw: &[u8], scratch: &mut Scratch) -> Result<Step, &'static str> {
        scratch.text.clear();
        if self.skip > 0 {
            return self.take_behind_echo(raw, scratch);
        }
        self.read(raw, scratch)
    }

    fn read(&mut self, raw: &[u8], scratch: &mut Scratch) -> Result<Step, &'static str> {
        let Scratch { units, text: out, characters } = scratch;
        let escaped = raw.contains(&b'\\');
        let length = if escaped { text::decoded_len(raw) } else { raw.len() };
        let (step, count) = if !escaped && raw.is_ascii() {
            (self.reader.feed_units(raw, go_on), raw.len())
        } else {
            units.clear();
            if escaped {
                text::units(raw, units)?;
            } else {
                text::plain_units(raw, units)?;
            }
            (self.reader.feed_units(units.as_slice(), go_on), units.len())
        };
        // Not reached: what is invalid is replaced, and the reader is never flushed for good.
        let step = step.map_err(|_| "a text that goes on after its end")?;
        let count = step.text.as_ref().map_or(count, Vec::len);
        let (advance, matched) = (step.advance, self.reader.matched().cloned());
        let start = self.decoded_in;
        self.let_go &= raw.is_empty();
        *characters += count as u64;
        self.decoded_in += length as u64;
        let whole = advance.passed == count && self.reader.decoder().is_empty();
        if self.held.is_empty() && whole && matched.is_none() {
            self.decoded_out = self.decoded_in;
            self.note_emitted(raw);
            return Ok(Step { unchanged: true, matched: None, start });
        }
        let emitted = advance.released + advance.passed;
        let first = out.len();
        let in_place = self.held.is_empty();
        if in_place {
            let at = text::offset(raw, emitted);
            out.extend_from_slice(raw.get(..at).unwrap_or(raw));
            self.held.extend_from_slice(raw.get(at..).unwrap_or(&[]));
        } else {
            self.held.extend_from_slice(raw);
            let at = text::offset(&self.held, emitted);
            out.extend(self.held.drain(..at));
        }
        if matched.is_some() {
            self.held.clear();
        }
        let emission = out.get(first..).unwrap_or(&[]);
        self.decoded_out += text::decoded_len(emission) as u64;
        let unchanged = emission == raw;
        if let Some(emitted) = &mut self.emitted {
            emitted.extend_from_slice(emission);
        }
        Ok(Step {
            unchanged: unchanged && first == 0,
            matched: matched.map(|found| self.shifted(found)),
            start,
        })
    }

    /// The prompt's characters pass unread; what follows them in the same text is read.
    fn take_behind_echo(
        &mut self,
        raw: &[u8],
        scratch: &mut Scratch,
    ) -> Result<Step, &'static str> {
        scratch.units.clear();
        let start = self.decoded_in;
        text::units(raw, &mut scratch.units)?;
        let decoded = self.echoed.join(scratch.units.iter().copied(), Errors::Replace);
        let count = decoded.text.len() as u64;
        if count < self.skip || (count == self.skip && decoded.next.is_empty()) {
            // A pair split over two texts counts once, when it is whole; neither half is held.
            scratch.characters += count;
            self.skip -= count;
            self.skipped += count;
            self.echoed = decoded.next;
            self.decoded_in += text::decoded_len(raw) as u64;
            self.decoded_out = self.decoded_in;
            self.note_emitted(raw);
            return Ok(Step { unchanged: true, matched: None, start });
        }
        // A half that waited and stays alone is a character of its own, but none of this text.
        let lone = !self.echoed.is_empty() && !text::begins_with_low(raw);
        self.echoed = Decoder::default();
        let count = usize::try_from(self.skip).unwrap_or(usize::MAX).saturating_sub(lone.into());
        let at = text::offset(raw, count);
        scratch.characters += self.skip;
        self.skipped += self.skip;
        self.skip = 0;
        let (echo, answer) = raw.split_at(at);
        self.note_emitted(echo);
        self.decoded_in += text::decoded_len(echo) as u64;
        self.decoded_out = self.decoded_in;
        scratch.text.extend_from_slice(echo);
        let taken = self.read(answer, scratch)?;
        Ok(Step { start, ..taken })
    }

    /// No more text comes before whatever follows: appends all that is held to `out`. A high
    /// surrogate that still waits stays alone and is read as U+FFFD, which can complete a stop.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) -> Option<Match> {
        // Nothing to refuse: what is invalid is replaced.
        let end = self.reader.pause().unwrap_or_default();
        if self.held.is_empty() {
            return None;
        }
        let matched = self.reader.matched().filter(|_| end.matched).cloned();
        let at = if end.matched { text::offset(&self.held, end.count) } else { self.held.len() };
        let emission = self.held.get(..at).unwrap_or(&[]);
        out.extend_from_slice(emission);
        if let Some(emitted) = &mut self.emitted {
            emitted.extend_from_slice(emission);
        }
        self.decoded_out = if matched.is_none() {
            self.decoded_in
        } else {
            self.decoded_out + text::decoded_len(emission) as u64
        };
        self.held.clear();
        self.let_go = matched.is_none();
        matched.map(|found| self.shifted(found))
    }

    /// The text just taken was the last before a border: what is held leaves with it.
    pub(super) fn close(&mut self, taken: &mut Step, raw: &[u8], scratch: &mut Scratch) {
        if !self.holds() {
            let _ = self.reader.pause();
            return;
        }
        if taken.unchanged {
            // `scratch.text` may hold it already: what was released can be the same letters as what
            // came.
            scratch.text.clear();
            scratch.text.extend_from_slice(raw);
        }
        taken.matched = self.flush(&mut scratch.text);
        taken.unchanged = scratch.text == raw;
    }

    /// Forgets what is held. Half of an echoed pair has left, and still waits to be counted.
    pub(super) fn drop_held(&mut self) {
        self.reader.drop_held();
        self.held.clear();
        self.decoded_out = self.decoded_in;
        self.entries.clear();
    }

    /// True while some text waits.
    #[inline]
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Up to which position (UTF-8 bytes) the text has come.
    pub(super) fn decoded_in(&self) -> u64 {
        self.decoded_in
    }

    /// Up to which position (UTF-8 bytes) the text has left.
    pub(super) fn decoded_out(&self) -> u64 {
        self.decoded_out
    }

    /// Everything that left, raw.
    pub(super) fn emitted(&self) -> &[u8] {
        self.emitted.as_deref().unwrap_or(&[])
    }

    /// From here on, what leaves is kept; false if some has left already.
    pub(super) fn keep_emitted(&mut self) -> bool {
        if self.emitted.is_none() && self.decoded_in == 0 {
            self.emitted = Some(Vec::new());
        }
        self.emitted.is_some()
    }

    fn note_emitted(&mut self, raw: &[u8]) {
        if let Some(emitted) = &mut self.emitted {
            emitted.extend_from_slice(raw);
        }
    }

    /// Offsets count from the beginning of the message text, its echo included.
    fn shifted(&self, mut found: Match) -> Match {
        found.start += self.skipped;
        found.end += self.skipped;
        found.cut += self.skipped;
        found
    }
}

/// Nothing interrupts a text.
#[expect(clippy::unnecessary_wraps, reason = "other users of a reader can be interrupted")]
fn go_on() -> Result<(), Fault> {
    Ok(())
}

/// A text fault as one of the frame's.
pub(super) fn malformed(what: &'static str, span: json::Span) -> json::Malformed {
    json::Malformed { what, at: span.start }
}
