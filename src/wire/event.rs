//! One event on its way through, and the patterns from which frames are made.
#![forbid(unsafe_code)]

use super::edit::Edits;
use super::frame::ParsedFrame;
use super::framing::Framing;
use super::json::Span;

/// A frame with data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<'a> {
    /// All its bytes.
    pub(super) frame: &'a [u8],
    /// Its data: of several `data:` lines, their join.
    pub(super) json: &'a [u8],
    /// Where in `frame` the data stands, from the first `data:` line to the last one.
    pub(super) data: Span,
    /// An `error:` field stands in the frame.
    pub(super) error: bool,
}

impl<'a> Event<'a> {
    /// What stands before the data: `data: `, an `event:` line.
    pub(super) fn before(&self) -> &'a [u8] {
        self.frame.get(..self.data.start).unwrap_or(&[])
    }

    /// The line ends after it.
    pub(super) fn after(&self) -> &'a [u8] {
        self.frame.get(self.data.end..).unwrap_or(&[])
    }
}

/// Where frames go. It remembers whether the last one was complete: only the last frame of the
/// input can lack its end, and if one of our own has to follow it, it gets one.
#[derive(Debug)]
pub(super) struct Sink<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) framing: Framing,
    pub(super) open: &'a mut bool,
}

impl Sink<'_> {
    /// Passes a frame as it came.
    pub(super) fn pass(&mut self, event: &Event<'_>) {
        self.begin();
        self.out.extend_from_slice(event.frame);
        *self.open = !self.framing.complete(event.after());
    }

    /// Passes a frame without data. Only the `last` one of the input can lack its line end.
    pub(super) fn pass_bytes(&mut self, bytes: &[u8], last: bool) {
        self.begin();
        self.out.extend_from_slice(bytes);
        *self.open = last && !bytes.ends_with(b"\n") && !bytes.ends_with(b"\r");
    }

    /// Writes a frame with its changes; without any, the very bytes that came.
    pub(super) fn edited(&mut self, event: &Event<'_>, edits: &mut Edits) {
        if edits.is_empty() {
            return self.pass(event);
        }
        self.begin();
        self.out.extend_from_slice(event.before());
        edits.apply(event.json, self.out);
        self.out.extend_from_slice(event.after());
        *self.open = !self.framing.complete(event.after());
    }

    /// Writes a frame made after a pattern.
    pub(super) fn made(&mut self, pattern: &Pattern, edits: &mut Edits) {
        self.begin();
        self.out.extend_from_slice(&pattern.before);
        edits.apply(&pattern.json, self.out);
        self.out.extend_from_slice(self.end_of(&pattern.after));
    }

    /// Writes an event of our own, with the line ends of `like`: lines without their ends.
    pub(super) fn own(&mut self, lines: &[&[u8]], like: &[u8]) {
        self.begin();
        let end = self.end_of(like);
        let line_end: &[u8] =
            if end.starts_with(b"\r\n") { b"\r\n" } else { end.get(..1).unwrap_or(b"\n") };
        for line in lines {
            self.out.extend_from_slice(line);
            self.out.extend_from_slice(line_end);
        }
        if self.framing == Framing::Events {
            self.out.extend_from_slice(line_end);
        }
    }

    /// Ends an unfinished frame.
    pub(super) fn begin(&mut self) {
        if std::mem::take(self.open) {
            self.out.extend_from_slice(self.end_of(&[]));
        }
    }

    fn end_of<'b>(&self, after: &'b [u8]) -> &'b [u8] {
        match self.framing {
            _ if self.framing.complete(after) => after,
            Framing::Events => b"\n\n",
            Framing::Lines => b"\n",
        }
    }
}

/// A copy of a text frame, to make others of.
#[derive(Clone, Debug, Default)]
pub(super) struct Pattern {
    pub(super) before: Vec<u8>,
    pub(super) json: Vec<u8>,
    pub(super) after: Vec<u8>,
    pub(super) parsed: ParsedFrame,
}

impl Pattern {
    pub(super) fn set(&mut self, event: &Event<'_>, parsed: &ParsedFrame) {
        for (buffer, bytes) in [
            (&mut self.before, event.before()),
            (&mut self.json, event.json),
            (&mut self.after, event.after()),
        ] {
            buffer.clear();
            buffer.extend_from_slice(bytes);
        }
        self.parsed.clone_from(parsed);
    }
}
