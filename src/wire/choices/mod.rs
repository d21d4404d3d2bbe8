//! The engine of the seven dialects whose frames hold choices: one matcher per choice, ends written
//! in place.
#![forbid(unsafe_code)]

mod alike;
mod ends;
mod taking;

use self::alike::Alike;
use self::taking::Turn;
use super::edit::Edits;
use super::event::{Event, Pattern};
use super::json::Span;
use super::lane::{self, Lane, Taken};
use super::layout::{Layout, Make, Part, Shape, Text};
use super::options::{OnError, OnMatch};
use super::template::Template;
use super::{Context, Fault};

/// The state of all choices of one response.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    shape: &'static Shape,
    states: Vec<State>,
    layout: Layout,
    edits: Edits,
    /// Which choices of the frame being read stay in it.
    keep: Vec<bool>,
    /// The last frame during which something was held: what is released without a frame of its own
    /// leaves in a copy of it.
    pattern: Pattern,
    /// What the last frame that was read has in common with the next one.
    template: Template,
    alike: Alike,
    /// Where the texts of a frame stand that is like it.
    texts: Vec<Span>,
    /// The text of the frame being read, if it was taken before the frame was read.
    taken: Option<Taken>,
    /// Text of a choice leaves under `matched_stop`, not `stop_reason`.
    matched_stop: bool,
}

#[derive(Clone, Debug)]
struct State {
    index: u32,
    content: Lane,
    reasoning: Option<Lane>,
    /// The stop that ended it.
    matched: Option<usize>,
    /// That end was written.
    closed: bool,
    /// The upstream ended it.
    finished: bool,
    frames: u64,
}

impl State {
    fn lane(&mut self, part: Part) -> Option<&mut Lane> {
        match part {
            Part::Content | Part::Border => Some(&mut self.content),
            Part::Reasoning => self.reasoning.as_mut(),
        }
    }

    fn holds(&self) -> bool {
        self.content.holds() || self.reasoning.as_ref().is_some_and(Lane::holds)
    }
}

impl Choices {
    pub(super) fn new(shape: &'static Shape) -> Self {
        Self {
            shape,
            states: Vec::new(),
            layout: Layout::default(),
            edits: Edits::default(),
            keep: Vec::new(),
            pattern: Pattern::default(),
            template: Template::default(),
            alike: Alike::default(),
            texts: Vec::new(),
            taken: None,
            matched_stop: false,
        }
    }

    pub(super) fn shape(&self) -> &'static Shape {
        self.shape
    }

    /// Reads one event of a stream and writes what becomes of it.
    pub(super) fn event(
        &mut self,
        cx: &mut Context<'_>,
        event: &Event<'_>,
    ) -> std::result::Result<(), Fault> {
        if self.shape.done && event.json.trim_ascii() == b"[DONE]" {
            self.flush(cx, false);
            cx.sink.pass(event);
            *cx.ended = true;
            return Ok(());
        }
        if event.json.first() != Some(&b'{') {
            cx.sink.pass(event);
            return Ok(());
        }
        if self.pass_alike(cx, event) {
            return Ok(());
        }
        self.read(cx, event, false)
    }

    /// Reads the answer to a request that does not stream.
    pub(super) fn body(
        &mut self,
        cx: &mut Context<'_>,
        event: &Event<'_>,
    ) -> std::result::Result<(), Fault> {
        self.read(cx, event, true)
    }

    fn read(
        &mut self,
        cx: &mut Context<'_>,
        event: &Event<'_>,
        whole: bool,
    ) -> std::result::Result<(), Fault> {
        let mut layout = std::mem::take(&mut self.layout);
        layout.clear();
        self.edits.clear();
        let scan = if whole { self.shape.scan_body } else { self.shape.scan };
        let result = scan(event.json, &mut layout)
            .map_err(Fault::from)
            .and_then(|()| self.settle(cx, event, &layout, whole));
        self.taken = None;
        if !whole {
            self.learn(cx, event, &mut layout);
        }
        self.layout = layout;
        result
    }

    fn settle(
        &mut self,
        cx: &mut Context<'_>,
        event: &Event<'_>,
        layout: &Layout,
        whole: bool,
    ) -> std::result::Result<(), Fault> {
        if (layout.error || event.error) && layout.texts.iter().all(|text| text.span.is_empty()) {
            self.flush(cx, cx.options.on_error == OnError::Drop);
            cx.sink.pass(event);
            return Ok(());
        }
        if layout.texts.len() > 1 {
            // All texts are checked before any is taken, so that a frame that cannot be read
            // changes nothing.
            for found in &layout.texts {
                cx.scratch
                    .check(found.span.of(event.json))
                    .map_err(|what| lane::malformed(what, found.span))?;
            }
            // Read as one text, each would break the other off; read as two, what is held of one
            // could leave without the other.
            let twice = |a: &Text, b: &Text| {
                a.choice == b.choice
                    && a.field != b.field
                    && !a.span.is_empty()
                    && !b.span.is_empty()
            };
            let mut before: Option<&Text> = None;
            for text in layout
                .texts
                .iter()
                .filter(|text| cx.options.cut_reasoning && text.part == Part::Reasoning)
            {
                if before.is_some_and(|before| twice(before, text)) {
                    let what =
                        "thoughts under two names in one delta, which cut_reasoning cannot read";
                    return Err(lane::malformed(what, text.span).into());
                }
                before = Some(text);
            }
        }
        // So are the choices: one more than there may be is found before any text is taken.
        for choice in &layout.choices {
            self.state(cx, choice.index)?;
        }
        self.keep.clear();
        let mut drained = false;
        for (position, choice) in layout.choices.iter().enumerate() {
            self.matched_stop |= choice.matched.is_some();
            let state = self.state(cx, choice.index)?;
            self.states[state].finished |= choice.finished;
            if let Some(stop) = self.states[state].matched {
                let closes = self.shape.ends_last && choice.finished && !self.states[state].closed;
                if closes {
                    self.close_drained(cx, event, layout, position, state, stop);
                }
                self.keep.push(closes);
                continue;
            }
            self.keep.push(true);
            let turn = Turn { event, layout, position, choice, whole };
            if let Some(found) = self.take(cx, &turn, state)? {
                drained |= cx.options.on_match == OnMatch::Drain;
                self.end(cx, &turn, state, &found);
            }
        }
        self.write(cx, event, layout);
        if drained || self.states.iter().any(State::holds) {
            self.pattern.set(event, layout);
        }
        self.check_limits(cx)?;
        if !whole {
            self.end_if_over(cx, event);
        }
        Ok(())
    }

    /// Ends the stream once every choice has ended. If the upstream ended them all, its own end is
    /// on its way.
    fn end_if_over(&mut self, cx: &mut Context<'_>, event: &Event<'_>) {
        if !self.is_over(cx) {
            return;
        }
        if self.states.iter().all(|state| state.finished) {
            *cx.ended |= !self.shape.done;
        } else if cx.options.on_match == OnMatch::Cancel {
            self.write_done(cx, event.after());
            cx.end_here();
        }
    }

    /// The stream cannot be read on.
    pub(super) fn fail(&mut self, cx: &mut Context<'_>) {
        self.flush(cx, cx.options.on_error == OnError::Drop);
    }

    fn is_over(&self, cx: &Context<'_>) -> bool {
        let expected = usize::try_from(cx.options.choices).unwrap_or(usize::MAX);
        self.states.len() >= expected.max(1)
            && self.states.iter().all(|state| state.finished || state.matched.is_some())
    }

    fn write_done(&self, cx: &mut Context<'_>, like: &[u8]) {
        if self.shape.done {
            cx.sink.own(&[b"data: [DONE]"], like);
        }
    }

    /// The input is over: what is held leaves, and a drained stream whose upstream broke off gets
    /// its end.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        self.flush(cx, false);
        if *cx.ended || !self.is_over(cx) || self.states.iter().all(|state| state.matched.is_none())
        {
            return;
        }
        let mut pattern = std::mem::take(&mut self.pattern);
        let original = pattern.clone();
        for state in 0..self.states.len() {
            let Some(stop) = self.states[state].matched.filter(|_| !self.states[state].closed)
            else {
                continue;
            };
            self.edits.clear();
            let lane = &self.states[state].content;
            let make = Make {
                index: self.states[state].index,
                field: lane.field,
                part: Part::Content,
                text: b"",
                entries: &Default::default(),
            };
            (self.shape.make)(&original.json, &original.layout, &make, &mut self.edits);
            // The end is written into the choice that was made, so the frame is read again: an edit
            // cannot stand inside another.
            pattern.json.clear();
            self.edits.apply(&original.json, &mut pattern.json);
            self.edits.clear();
            let mut layout = Layout::default();
            if (self.shape.scan)(&pattern.json, &mut layout).is_ok() {
                if let Some(choice) = layout.choices.first() {
                    self.write_end(cx, &pattern.json, choice, state, stop);
                    cx.sink.made(&pattern, &mut self.edits);
                }
            }
        }
        self.write_done(cx, &pattern.after);
        cx.end_here();
    }

    /// The state of choice `index`, made when it first turns up.
    fn state(&mut self, cx: &Context<'_>, index: u32) -> std::result::Result<usize, Fault> {
        if let Some(found) = self.states.iter().position(|state| state.index == index) {
            return Ok(found);
        }
        if self.states.len() >= cx.options.max_choices {
            return Err(Fault::Limit {
                what: "choices in one stream (max_choices)",
                limit: cx.options.max_choices,
            });
        }
        let lane = |skip, repeats| {
            Lane::new(cx.set, &cx.options.matching, skip, repeats, cx.options.max_held_bytes)
                .map_err(Fault::Core)
        };
        let reasoning = if cx.options.cut_reasoning { Some(lane(0, false)?) } else { None };
        let content = lane(cx.options.skip_chars, self.shape.repeats)?;
        self.states.push(State {
            index,
            content,
            reasoning,
            matched: None,
            closed: false,
            finished: false,
            frames: 0,
        });
        Ok(self.states.len() - 1)
    }

    fn check_limits(&self, cx: &Context<'_>) -> std::result::Result<(), Fault> {
        let held: usize = self
            .states
            .iter()
            .map(|state| state.content.entries.bytes())
            .fold(0, usize::saturating_add);
        if held > cx.options.max_held_bytes {
            return Err(Fault::Limit {
                what: "bytes of held log-probabilities (max_held_bytes)",
                limit: cx.options.max_held_bytes,
            });
        }
        let said: usize = self.states.iter().map(|state| state.content.said().len()).sum();
        if said > cx.options.max_text_bytes {
            return Err(Fault::Limit {
                what: "bytes of text to be repeated at the end (max_text_bytes)",
                limit: cx.options.max_text_bytes,
            });
        }
        Ok(())
    }
}
