//! One text in two places of a choice: `message` beside `delta`, `text` beside `delta.content`.
//!
//! The text is read in one place, where it stood first in this answer. The other place says it
//! again, piece by piece or as the text so far, and is cut to what was emitted of it: no copy shows
//! what is held or cut.
#![forbid(unsafe_code)]

use super::Choices;
use super::feed::ChoiceFrame;
use crate::wire::context::Context;
use crate::wire::error::Fault;
use crate::wire::frame::{ParsedFrame, Part, Slot, Text};
use crate::wire::text;

impl Choices {
    /// Makes the states of a frame's choices, and marks the texts that are copies.
    pub(super) fn find_copies(
        &mut self,
        cx: &mut Context<'_>,
        parsed: &mut ParsedFrame,
        whole: bool,
    ) -> Result<(), Fault> {
        let ParsedFrame { choices, texts, .. } = parsed;
        self.slots.clear();
        let mut from = 0;
        for (position, choice) in choices.iter().enumerate() {
            let state = self.state(cx, self.number(cx, choice, whole))?;
            // Texts stand in the order of their choices.
            let count = texts.iter().skip(from).take_while(|text| text.choice == position).count();
            let own = texts.get(from..from + count).unwrap_or(&[]);
            from += count;
            let has = |slot: &Slot, content: bool| {
                own.iter().any(|text| {
                    text.slot == *slot
                        && !text.span.is_empty()
                        && (!content || text.part == Part::Content)
                })
            };
            let mut slots = self.spec.slots.iter();
            let state = &mut self.states[state];
            if slots.clone().filter(|slot| has(slot, true)).count() > 1 {
                state.content.keep_emitted();
            }
            let first = slots.clone().find(|slot| has(slot, true));
            let slot = state.slot.or(first.copied());
            self.slots.push(slot.or_else(|| slots.find(|slot| has(slot, false)).copied()));
        }
        for text in texts {
            let slot = self.slots.get(text.choice).copied().flatten();
            text.copy = slot.is_some_and(|slot| slot != text.slot);
        }
        Ok(())
    }

    /// Cuts the copies of a choice whose texts have been taken.
    pub(super) fn cut_copies(
        &mut self,
        cx: &mut Context<'_>,
        frame: &ChoiceFrame<'_>,
        state: usize,
    ) {
        let json = frame.event.json;
        for (_, copy) in frame.all_texts().filter(|(_, text)| text.copy && !text.span.is_empty()) {
            if copy.part == Part::Reasoning && !cx.options.cut_reasoning {
                continue; // read nowhere
            }
            let raw = copy.span.of(json);
            let of = |text: &&Text| text.part == copy.part && !text.span.is_empty();
            let mut pieces = frame.texts().map(|(_, text)| text).filter(of);
            let again = match (pieces.next(), pieces.next()) {
                (Some(piece), None) => text::same(piece.span.of(json), raw),
                _ => false,
            };
            let emitted = if again {
                self.emissions[usize::from(copy.part == Part::Reasoning)].as_slice()
            } else if copy.part == Part::Content && copy.rest.is_empty() {
                self.states[state].content.emitted()
            } else {
                b""
            };
            if !text::same(emitted, raw) {
                self.edits.replace(copy.span, emitted);
                cx.unread.copies_cut = true;
            }
        }
    }
}
