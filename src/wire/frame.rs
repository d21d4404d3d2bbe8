//! What a dialect finds in one frame: a list of choices, their texts, and the places where an end
//! is written.
//!
//! Either the frame holds an array of choices (`choices`, `candidates`), or the frame itself is the
//! one choice (Ollama, llama.cpp, TGI).
#![forbid(unsafe_code)]

use super::json::{JsonResult, Malformed, Notes, Span};
use super::logprobs::Columns;

/// The most choices, and the most texts, of one frame. Far beyond any provider's; each costs a
/// hundred times its bytes.
pub(super) const MOST: usize = 1024;

/// Which text of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The answer.
    Content,
    /// What the model thinks; read only on demand.
    Reasoning,
    /// Not a text: something (a tool call) that ends the text before it.
    Border,
}

impl Part {
    /// The part that a block is.
    pub(super) fn of(reasoning: bool) -> Self {
        if reasoning { Self::Reasoning } else { Self::Content }
    }
}

/// Whether a frame is one of the dialect's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// Yes, and so is any that is like it but for what was skipped.
    #[default]
    Dialect,
    /// Such a frame could hold a text of another dialect.
    Unlike,
    /// No: something stands where a text should, and is none.
    Misplaced,
}

/// In which of the places where a choice may have its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Slot {
    /// `delta`; in other dialects than `OpenAI`'s the only place there is.
    #[default]
    Delta,
    /// `message`
    Message,
    /// `text`
    Text,
}

/// A text in a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    /// The position of its choice in [`ParsedFrame::choices`].
    pub(super) choice: usize,
    pub(super) part: Part,
    /// The key it stands under.
    pub(super) field: &'static str,
    pub(super) slot: Slot,
    /// It says again what stands in another slot.
    pub(super) copy: bool,
    pub(super) span: Span,
    /// What follows it in the same list of parts and goes when it is cut.
    pub(super) rest: Span,
}

impl Text {
    pub(super) fn new(choice: usize, part: Part, field: &'static str, span: Span) -> Self {
        let (slot, copy, rest) = (Slot::default(), false, Span::default());
        Self { choice, part, field, slot, copy, span, rest }
    }
}

/// A choice in a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choice {
    /// Its number in the response.
    pub(super) index: u32,
    /// The whole object.
    pub(super) span: Span,
    /// The value that says that, or why, it ended.
    pub(super) finish: Option<Span>,
    /// It ended by itself in this frame.
    pub(super) finished: bool,
    /// The value that names the stop.
    pub(super) stop: Option<Span>,
    /// The same under a second name: `matched_stop`.
    pub(super) matched: Option<Span>,
    /// Further values that an end changes; what they are is up to the dialect.
    pub(super) more: [Option<Span>; 3],
    /// Tool calls, which would come behind the text and go when it is cut.
    pub(super) calls: Option<Span>,
    /// The object that holds the text.
    pub(super) holder: Option<Span>,
    /// The value that holds the log-probabilities, and their arrays.
    pub(super) logprobs: Option<Span>,
    pub(super) columns: Columns,
}

/// One frame.
#[derive(Clone, Debug, Default)]
pub(super) struct ParsedFrame {
    /// The array of choices; `None` if the frame is the choice.
    pub(super) list: Option<Span>,
    pub(super) choices: Vec<Choice>,
    /// Texts in the order of the frame.
    pub(super) texts: Vec<Text>,
    /// The frame carries usage figures.
    pub(super) usage: bool,
    /// The frame reports an error.
    pub(super) error: bool,
    pub(super) place: Place,
    /// What was looked at.
    pub(super) notes: Notes,
}

impl ParsedFrame {
    pub(super) fn clear(&mut self) {
        self.list = None;
        self.choices.clear();
        self.texts.clear();
        self.usage = false;
        self.error = false;
        self.place = Place::Dialect;
    }

    /// Something stands where a text should, and is none, if `yes`.
    pub(super) fn misplaced_if(&mut self, yes: bool) {
        if yes {
            self.place = Place::Misplaced;
        }
    }

    /// Notes a text of the choice being read, which is the next one to be pushed.
    pub(super) fn text(&mut self, part: Part, field: &'static str, span: Span) -> JsonResult<()> {
        self.text_in(Slot::default(), part, field, span)
    }

    /// The same for a text that may stand in several places.
    pub(super) fn text_in(
        &mut self,
        slot: Slot,
        part: Part,
        field: &'static str,
        span: Span,
    ) -> JsonResult<()> {
        let choice = self.choices.len();
        if self
            .texts
            .iter()
            .rev()
            .take_while(|text| text.choice == choice)
            .any(|text| text.field == field && text.slot == slot)
        {
            return Err(Malformed {
                what: "a key the cutter has to read stands here for the second time",
                at: span.start,
            });
        }
        self.push_text(Text { slot, ..Text::new(choice, part, field, span) })
    }

    /// The same without a look at the others.
    pub(super) fn push_text(&mut self, text: Text) -> JsonResult<()> {
        if self.texts.len() >= MOST {
            return Err(Malformed {
                what: "more than 1024 texts or parts in one frame",
                at: text.span.start,
            });
        }
        self.texts.push(text);
        Ok(())
    }

    pub(super) fn push_choice(&mut self, choice: &Choice) -> JsonResult<()> {
        if self.choices.len() >= MOST {
            return Err(Malformed {
                what: "more than 1024 choices in one frame",
                at: choice.span.start,
            });
        }
        self.choices.push(*choice);
        Ok(())
    }
}
