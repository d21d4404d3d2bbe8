//! The texts of one choice go through its matchers, and its log-probabilities with them; what was
//! held leaves.
#![forbid(unsafe_code)]

use super::Choices;
use crate::stream::Match;
use crate::wire::context::Context;
use crate::wire::dialect::spec::NewFrame;
use crate::wire::edit::Edits;
use crate::wire::error::Fault;
use crate::wire::event::Event;
use crate::wire::frame::{Choice, ParsedFrame, Part, Text};
use crate::wire::json::{JsonResult, Span};
use crate::wire::logprobs::Progress;
use crate::wire::text_stream;

/// One choice of one frame, being read.
pub(super) struct ChoiceFrame<'a> {
    pub(super) event: &'a Event<'a>,
    pub(super) parsed: &'a ParsedFrame,
    pub(super) position: usize,
    pub(super) choice: &'a Choice,
    /// The frame is a whole answer.
    pub(super) whole: bool,
}

/// A match, and in which text.
pub(super) struct PartMatch {
    pub(super) part: Part,
    pub(super) found: Match,
}

impl ChoiceFrame<'_> {
    /// The texts of this choice, with their positions in the frame.
    pub(super) fn texts(&self) -> impl Iterator<Item = (usize, &Text)> {
        self.all_texts().filter(|(_, text)| !text.copy)
    }

    /// The same with those that say another one again.
    pub(super) fn all_texts(&self) -> impl Iterator<Item = (usize, &Text)> {
        self.parsed.texts.iter().enumerate().filter(|(_, text)| text.choice == self.position)
    }

    /// Nothing more comes in this message text behind text `at`.
    fn closes(&self, at: usize, part: Part, answers: bool) -> bool {
        let mut later = self.texts().filter(|(position, text)| {
            *position > at && (text.part == part || text.part == Part::Border)
        });
        match later.next() {
            Some((_, next)) => next.part == Part::Border && part == Part::Content,
            None => self.choice.finished || self.whole || (part == Part::Reasoning && answers),
        }
    }
}

/// What stands behind a cut in the same frame goes.
fn blank_behind(frame: &ChoiceFrame<'_>, at: usize, cut: &Text, edits: &mut Edits) {
    if !cut.rest.is_empty() {
        edits.delete(cut.rest);
    }
    for (position, text) in frame.texts() {
        let behind = if cut.part == Part::Reasoning {
            text.part == Part::Content || (text.part == cut.part && position > at)
        } else {
            position > at && text.part == Part::Content
        };
        if behind && !text.span.is_empty() {
            edits.delete(text.span);
        }
    }
}

impl Choices {
    /// Feeds the texts of one choice to its matchers and edits them. What a model thinks comes
    /// before what it says.
    pub(super) fn take(
        &mut self,
        cx: &mut Context<'_>,
        frame: &ChoiceFrame<'_>,
        state: usize,
    ) -> Result<Option<PartMatch>, Fault> {
        self.emissions.iter_mut().for_each(Vec::clear);
        let found = self.take_parts(cx, frame, state)?;
        self.cut_copies(cx, frame, state);
        Ok(found)
    }

    /// A choice that had ended has text again, and what was held left at its end: a stop that began
    /// there cannot be found any more. (Some servers end every frame; where nothing was held, nothing
    /// can have been missed.)
    pub(super) fn check_border(
        &mut self,
        cx: &mut Context<'_>,
        frame: &ChoiceFrame<'_>,
        state: usize,
    ) -> Result<(), Fault> {
        let missed = frame.texts().any(|(_, text)| {
            let stream = self.states[state].stream(text.part);
            !text.span.is_empty() && stream.is_some_and(|stream| stream.let_go)
        });
        if !missed {
            return Ok(());
        }
        cx.pass_unread(frame.event.json, "text goes on after its end, at which held text had left")
    }

    fn take_parts(
        &mut self,
        cx: &mut Context<'_>,
        frame: &ChoiceFrame<'_>,
        state: usize,
    ) -> Result<Option<PartMatch>, Fault> {
        self.states[state].frames += 1;
        let answers =
            frame.texts().any(|(_, text)| text.part == Part::Content && !text.span.is_empty());
        for part in [Part::Reasoning, Part::Content] {
            if self.states[state].stream(part).is_none() {
                continue;
            }
            let mut start = None;
            let mut found = None;
            for (at, text) in frame.texts() {
                if text.part == Part::Border && part == Part::Content {
                    found = self.flush_made(cx, state, part);
                } else if text.part == part {
                    let closing = frame.closes(at, part, answers);
                    let (begin, end) = self.take_text(cx, frame.event, text, state, closing)?;
                    start.get_or_insert(begin);
                    found = end;
                }
                if found.is_some() {
                    blank_behind(frame, at, text, &mut self.edits);
                    break;
                }
            }
            // Held text that this frame ends although it has none of its own leaves in a frame
            // before it.
            if found.is_none()
                && (frame.choice.finished || frame.whole || (part == Part::Reasoning && answers))
            {
                found = self.flush_made(cx, state, part);
            }
            if part == Part::Content {
                if let Some(start) = start {
                    self.sort_entries(cx, frame, state, start, found.is_some());
                }
            }
            if let Some(found) = found {
                return Ok(Some(PartMatch { part, found }));
            }
        }
        Ok(None)
    }

    fn take_text(
        &mut self,
        cx: &mut Context<'_>,
        event: &Event<'_>,
        text: &Text,
        state: usize,
        closing: bool,
    ) -> JsonResult<(u64, Option<Match>)> {
        let raw = text.span.of(event.json);
        if text.part == Part::Content && !text.span.is_empty() {
            self.states[state].slot.get_or_insert(text.slot);
        }
        let Some(stream) = self.states[state].stream(text.part) else { return Ok((0, None)) };
        stream.field = text.field;
        let mut taken = match self.taken.take() {
            Some(taken) => taken,
            None => stream
                .take(raw, cx.scratch)
                .map_err(|what| text_stream::malformed(what, text.span))?,
        };
        if closing && taken.matched.is_none() {
            stream.close(&mut taken, raw, cx.scratch);
        }
        self.emissions[usize::from(text.part == Part::Reasoning)]
            .extend_from_slice(if taken.unchanged { raw } else { &cx.scratch.text });
        if !taken.unchanged {
            self.edits.replace(text.span, &cx.scratch.text);
        }
        Ok((taken.start, taken.matched))
    }

    /// Log-probabilities follow their text.
    fn sort_entries(
        &mut self,
        cx: &mut Context<'_>,
        frame: &ChoiceFrame<'_>,
        state: usize,
        start: u64,
        over: bool,
    ) {
        let choice = frame.choice;
        let stream = &mut self.states[state].content;
        if stream.entries.is_empty() && choice.columns.iter().all(Option::is_none) {
            return;
        }
        let progress = Progress {
            start,
            end: stream.decoded_in(),
            decoded_out: stream.decoded_out(),
            holds: stream.holds(),
            over,
        };
        cx.entries.iter_mut().for_each(Vec::clear);
        if !stream.entries.sort(frame.event.json, &choice.columns, progress, cx.entries) {
            return;
        }
        if choice.columns.iter().all(Option::is_none) {
            if cx.entries.iter().any(|column| !column.is_empty()) {
                (self.spec.put_entries)(choice, cx.entries, &mut self.edits);
            }
            return;
        }
        for (column, entries) in choice.columns.iter().zip(cx.entries.iter()) {
            if let Some(span) = column {
                self.edits.replace(Span { start: span.start + 1, end: span.end - 1 }, entries);
            }
        }
    }

    /// Held text leaves in a frame made after the last one's pattern.
    pub(super) fn flush_made(
        &mut self,
        cx: &mut Context<'_>,
        state: usize,
        part: Part,
    ) -> Option<Match> {
        let index = self.states[state].shown;
        let slot = self.states[state].slot.unwrap_or_default();
        let stream = self.states[state].stream(part)?;
        cx.scratch.text.clear();
        if !stream.holds() {
            return stream.flush(&mut cx.scratch.text);
        }
        let found = stream.flush(&mut cx.scratch.text);
        cx.entries.iter_mut().for_each(Vec::clear);
        stream.entries.flush(cx.entries);
        let mut edits = Edits::default();
        let field = stream.field;
        let make =
            NewFrame { index, slot, field, part, text: &cx.scratch.text, entries: cx.entries };
        (self.spec.make)(&self.pattern.json, &self.pattern.parsed, &make, &mut edits);
        cx.sink.made(&self.pattern, &mut edits);
        found
    }

    /// All that is held leaves, or is dropped.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>, drop: bool) {
        for state in 0..self.states.len() {
            for part in [Part::Reasoning, Part::Content] {
                if drop {
                    if let Some(stream) = self.states[state].stream(part) {
                        stream.drop_held();
                    }
                } else if let Some(found) = self.flush_made(cx, state, part) {
                    self.states[state].matched = Some(found.index);
                    cx.record(self.states[state].index, None, part, found);
                }
            }
            self.recount(state);
        }
    }
}
