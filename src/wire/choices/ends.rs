//! How a choice that was cut ends on the wire, and how a frame leaves without the choices that had
//! ended before it.
#![forbid(unsafe_code)]

use super::Choices;
use super::feed::{ChoiceFrame, PartMatch};
use crate::wire::context::Context;
use crate::wire::dialect::spec::Finish;
use crate::wire::event::Event;
use crate::wire::frame::{Choice, ParsedFrame};
use crate::wire::json::Span;
use crate::wire::options::{OnMatch, StopField};
use crate::wire::text;

impl Choices {
    /// Writes the end of a choice into the frame in which its stop was completed.
    pub(super) fn end(
        &mut self,
        cx: &mut Context<'_>,
        frame: &ChoiceFrame<'_>,
        state: usize,
        found: &PartMatch,
    ) {
        let stop = found.found.index;
        self.states[state].matched = Some(stop);
        cx.record(self.states[state].index, None, found.part, found.found.clone());
        let waits = self.spec.ends_last
            && cx.options.on_match == OnMatch::Drain
            && !frame.choice.finished
            && !frame.whole;
        if !waits {
            self.write_end(cx, frame.event.json, frame.choice, state, stop);
        }
    }

    pub(super) fn write_end(
        &mut self,
        cx: &mut Context<'_>,
        json: &[u8],
        choice: &Choice,
        state: usize,
        stop: usize,
    ) {
        let state = &mut self.states[state];
        state.closed = true;
        text::encode_stop(cx.set, stop, &mut cx.scratch.text);
        let field = match &cx.options.stop_field {
            StopField::Family if self.matched_stop => Some("matched_stop"),
            StopField::Family => self.spec.field,
            StopField::Named(name) => Some(name.as_str()),
            StopField::Off => None,
        };
        let end = Finish {
            stop: &cx.scratch.text,
            field,
            emitted: state.content.emitted(),
            frames: state.frames,
        };
        (self.spec.end)(json, choice, &end, &mut self.edits);
    }

    /// The upstream's own last frame of a choice that ended long ago: its figures stay, its text
    /// goes, its end becomes ours.
    pub(super) fn close_drained(
        &mut self,
        cx: &mut Context<'_>,
        event: &Event<'_>,
        parsed: &ParsedFrame,
        position: usize,
        state: usize,
        stop: usize,
    ) {
        for text in
            parsed.texts.iter().filter(|text| text.choice == position && !text.span.is_empty())
        {
            self.edits.delete(text.span);
        }
        let Some(choice) = parsed.choices.get(position) else { return };
        self.write_end(cx, event.json, choice, state, stop);
    }

    /// Nothing is left of the choices of a frame that has figures beside them. They stay, without
    /// their text: clients of servers that always send one look for it.
    fn blank_all(&mut self, cx: &mut Context<'_>, event: &Event<'_>, parsed: &ParsedFrame) {
        self.edits.clear();
        for (position, choice) in parsed.choices.iter().enumerate() {
            let mut texts = parsed.texts.iter().filter(|text| text.choice == position);
            (self.spec.blank)(choice, &mut texts, &mut self.edits);
            let state = self.places.get(&self.number(cx, choice, false)).copied();
            let Some(state) = state.filter(|_| choice.finished) else { continue };
            if let Some(stop) = self.states[state].matched {
                self.write_end(cx, event.json, choice, state, stop);
            }
        }
    }

    /// Writes the frame without the choices that had ended before it.
    pub(super) fn write(&mut self, cx: &mut Context<'_>, event: &Event<'_>, parsed: &ParsedFrame) {
        if !self.keep.contains(&false) {
            return cx.sink.edited(event, &mut self.edits);
        }
        let Some(list) = parsed.list else { return };
        if !self.keep.contains(&true) {
            if parsed.usage && cx.options.on_match == OnMatch::Drain {
                self.blank_all(cx, event, parsed);
                cx.sink.edited(event, &mut self.edits);
            }
            return;
        }
        // A run of dropped choices goes with one comma: the one before the run, or behind it at the
        // front of the list.
        let (mut from, mut to, mut front) = (list.start + 1, list.start + 1, true);
        for (choice, keep) in parsed.choices.iter().zip(&self.keep) {
            if *keep {
                let to = if front { choice.span.start } else { to };
                if to > from {
                    self.edits.delete(Span { start: from, end: to });
                }
                (from, front) = (choice.span.end, false);
            }
            to = choice.span.end;
        }
        if to > from {
            self.edits.delete(Span { start: from, end: to });
        }
        cx.sink.edited(event, &mut self.edits);
    }
}
