//! The short way: a frame that is like the last one but for its text, and whose text passes, is
//! never read as JSON.
#![forbid(unsafe_code)]

use super::Choices;
use crate::wire::context::Context;
use crate::wire::event::Event;
use crate::wire::frame::{ParsedFrame, Part, Place, Slot, Text};

/// What holds for frames that match the template.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FastPath {
    /// The state of their choice; without one they have no choice.
    state: Option<usize>,
    /// Which of their texts is the answer's.
    content: Option<usize>,
    /// And where that stands.
    slot: Slot,
    /// Some text is held, so that every frame has to be read.
    held: bool,
}

impl Choices {
    /// Passes a frame that is like the last one but for its text, none of which is held. False if
    /// the frame has to be read; if its text has been taken already, that waits in `taken`.
    #[inline]
    pub(super) fn pass_fast(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> bool {
        let FastPath { state, content, slot, held: false } = self.fast else { return false };
        let limit = cx.options.max_text_bytes;
        if !self.template.matches(event.json, &mut self.texts) {
            return false;
        }
        if let Some(state) = state.and_then(|state| self.states.get_mut(state)) {
            if state.matched.is_some() || state.finished {
                return false;
            }
            if self.texts.len() > 1
                && self.texts.iter().any(|text| cx.scratch.check(text.of(event.json)).is_err())
            {
                return false; // reading the frame will tell, and must find nothing taken
            }
            if let Some(span) = content.and_then(|content| self.texts.get(content)) {
                if !span.is_empty() {
                    state.slot.get_or_insert(slot);
                }
                match state.content.take(span.of(event.json), cx.scratch) {
                    Ok(taken)
                        if taken.unchanged
                            && taken.matched.is_none()
                            && !state.content.holds()
                            && state.content.emitted().len() <= limit => {}
                    Ok(taken) => {
                        self.taken = Some(taken);
                        return false;
                    }
                    Err(_) => return false, // reading the frame will tell
                }
            }
            state.frames += 1;
        }
        cx.sink.pass(event);
        true
    }

    /// After a frame was read: can one be passed that is like it?
    pub(super) fn learn(&mut self, cx: &Context<'_>, event: &Event<'_>, parsed: &mut ParsedFrame) {
        self.fast.held = self.totals.holding > 0 || self.totals.entries > 0;
        let plain = |text: &Text| {
            !text.copy && text.part == Part::Content
                || (text.part == Part::Reasoning && !cx.options.cut_reasoning)
        };
        let contents = parsed.texts.iter().filter(|text| text.part == Part::Content).count();
        let choice = parsed.choices.first();
        let fast = parsed.choices.len() <= 1
            && contents <= 1
            && parsed.texts.iter().all(plain)
            && !parsed.error
            && parsed.place == Place::Dialect
            && !choice.is_some_and(|choice| choice.finished);
        if !fast {
            self.template.forget();
            return;
        }
        self.fast.state =
            choice.and_then(|choice| self.places.get(&self.number(cx, choice, false)).copied());
        self.fast.content = parsed.texts.iter().position(|text| text.part == Part::Content);
        self.fast.slot = self.fast.content.map_or(Slot::default(), |at| parsed.texts[at].slot);
        let texts = parsed.texts.iter().map(|text| text.span);
        self.template.learn(event.json, texts, &mut parsed.notes);
    }
}
