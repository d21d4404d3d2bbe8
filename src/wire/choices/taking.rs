//! The texts of one choice go through its matchers, and its log-probabilities with them; what was
//! held leaves.
#![forbid(unsafe_code)]

use super::super::edit::Edits;
use super::super::entries::Progress;
use super::super::event::Event;
use super::super::json::{Result, Span};
use super::super::lane;
use super::super::layout::{Choice, Layout, Make, Part, Text};
use super::super::{Context, Fault};
use super::Choices;
use crate::stream::Match;

/// One choice of one frame, being read.
pub(super) struct Turn<'a> {
    pub(super) event: &'a Event<'a>,
    pub(super) layout: &'a Layout,
    pub(super) position: usize,
    pub(super) choice: &'a Choice,
    /// The frame is a whole answer.
    pub(super) whole: bool,
}

/// A match, and in which text.
pub(super) struct Found {
    pub(super) part: Part,
    pub(super) found: Match,
}

impl Turn<'_> {
    /// The texts of this choice, with their positions in the frame.
    fn texts(&self) -> impl Iterator<Item = (usize, &Text)> {
        self.layout.texts.iter().enumerate().filter(|(_, text)| text.choice == self.position)
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
fn blank_behind(turn: &Turn<'_>, at: usize, cut: &Text, edits: &mut Edits) {
    if !cut.rest.is_empty() {
        edits.delete(cut.rest);
    }
    for (position, text) in turn.texts() {
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
        turn: &Turn<'_>,
        state: usize,
    ) -> std::result::Result<Option<Found>, Fault> {
        self.states[state].frames += 1;
        let answers =
            turn.texts().any(|(_, text)| text.part == Part::Content && !text.span.is_empty());
        for part in [Part::Reasoning, Part::Content] {
            if self.states[state].lane(part).is_none() {
                continue;
            }
            let mut start = None;
            let mut found = None;
            for (at, text) in turn.texts() {
                if text.part == Part::Border && part == Part::Content {
                    found = self.flush_made(cx, state, part);
                } else if text.part == part {
                    let closing = turn.closes(at, part, answers);
                    let (begin, end) = self.take_text(cx, turn.event, text, state, closing)?;
                    start.get_or_insert(begin);
                    found = end;
                }
                if found.is_some() {
                    blank_behind(turn, at, text, &mut self.edits);
                    break;
                }
            }
            // Held text that this frame ends although it has none of its own leaves in a frame
            // before it.
            if found.is_none()
                && (turn.choice.finished || turn.whole || (part == Part::Reasoning && answers))
            {
                found = self.flush_made(cx, state, part);
            }
            if part == Part::Content {
                if let Some(start) = start {
                    self.sort_entries(cx, turn, state, start, found.is_some());
                }
            }
            if let Some(found) = found {
                return Ok(Some(Found { part, found }));
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
    ) -> Result<(u64, Option<Match>)> {
        let raw = text.span.of(event.json);
        let Some(lane) = self.states[state].lane(text.part) else { return Ok((0, None)) };
        lane.field = text.field;
        let mut taken = match self.taken.take() {
            Some(taken) => taken,
            None => lane.take(raw, cx.scratch).map_err(|what| lane::malformed(what, text.span))?,
        };
        if closing && taken.matched.is_none() {
            lane.close(&mut taken, raw, cx.scratch);
        }
        if !taken.same {
            self.edits.replace(text.span, &cx.scratch.text);
        }
        Ok((taken.start, taken.matched))
    }

    /// Log-probabilities follow their text.
    fn sort_entries(
        &mut self,
        cx: &mut Context<'_>,
        turn: &Turn<'_>,
        state: usize,
        start: u64,
        over: bool,
    ) {
        let choice = turn.choice;
        let lane = &mut self.states[state].content;
        if lane.entries.is_empty() && choice.columns.iter().all(Option::is_none) {
            return;
        }
        let progress =
            Progress { start, end: lane.came(), left: lane.left(), holds: lane.holds(), over };
        cx.entries.iter_mut().for_each(Vec::clear);
        if !lane.entries.sort(turn.event.json, &choice.columns, progress, cx.entries) {
            return;
        }
        if choice.columns.iter().all(Option::is_none) {
            if cx.entries.iter().any(|column| !column.is_empty()) {
                (self.shape.put_entries)(choice, cx.entries, &mut self.edits);
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
        let index = self.states[state].index;
        let lane = self.states[state].lane(part)?;
        cx.scratch.text.clear();
        if !lane.holds() {
            return lane.flush(&mut cx.scratch.text);
        }
        let found = lane.flush(&mut cx.scratch.text);
        cx.entries.iter_mut().for_each(Vec::clear);
        lane.entries.flush(cx.entries);
        let mut edits = Edits::default();
        let field = lane.field;
        let make = Make { index, field, part, text: &cx.scratch.text, entries: cx.entries };
        (self.shape.make)(&self.pattern.json, &self.pattern.layout, &make, &mut edits);
        cx.sink.made(&self.pattern, &mut edits);
        found
    }

    /// All that is held leaves, or is dropped.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>, drop: bool) {
        for state in 0..self.states.len() {
            for part in [Part::Reasoning, Part::Content] {
                if drop {
                    if let Some(lane) = self.states[state].lane(part) {
                        lane.drop_held();
                    }
                } else if let Some(found) = self.flush_made(cx, state, part) {
                    self.states[state].matched = Some(found.index);
                    cx.record(self.states[state].index, None, part, found);
                }
            }
        }
    }
}
