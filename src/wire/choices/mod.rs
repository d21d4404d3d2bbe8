//! The engine of the dialects whose frames hold choices: one matcher per choice, ends written
//! in place.
#![forbid(unsafe_code)]

mod copies;
mod ends;
mod fast_path;
mod feed;

use std::collections::HashMap;

use self::fast_path::FastPath;
use self::feed::ChoiceFrame;
use crate::wire::context::Context;
use crate::wire::dialect::Engine;
use crate::wire::dialect::spec::{NewFrame, Spec};
use crate::wire::edit::Edits;
use crate::wire::error::Fault;
use crate::wire::event::{Event, Pattern};
use crate::wire::frame::{Choice, ParsedFrame, Part, Place, Slot, Text};
use crate::wire::json::Span;
use crate::wire::options::{OnError, OnMatch};
use crate::wire::template::Template;
use crate::wire::text_stream::{self, Step, TextStream};

/// The state of all choices of one response.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    spec: &'static Spec,
    states: Vec<ChoiceState>,
    /// Which state is of which choice.
    places: HashMap<u32, usize>,
    totals: Counts,
    /// Some frame held several choices, so their numbers count.
    several: bool,
    parsed: ParsedFrame,
    edits: Edits,
    /// Which choices of the frame being read stay in it.
    keep: Vec<bool>,
    /// The last frame during which something was held: what is released without a frame of its own
    /// leaves in a copy of it.
    pattern: Pattern,
    /// What the last frame that was read has in common with the next one.
    template: Template,
    fast: FastPath,
    /// Where the texts of a frame stand that is like it.
    texts: Vec<Span>,
    /// The text of the frame being read, if it was taken before the frame was read.
    taken: Option<Step>,
    /// Where the choices of the frame being read have their text.
    slots: Vec<Option<Slot>>,
    /// What left of the texts of the choice being read, raw, if they are said twice: the answer's,
    /// and the thoughts.
    emissions: [Vec<u8>; 2],
    /// The stop is named under `matched_stop`, not `stop_reason`.
    matched_stop: bool,
}

#[derive(Clone, Debug)]
struct ChoiceState {
    index: u32,
    /// The number that its last frame said.
    shown: u32,
    /// Where its text stood first.
    slot: Option<Slot>,
    /// What of it is in the totals.
    counted: Counts,
    content: TextStream,
    reasoning: Option<TextStream>,
    /// The stop that ended it.
    matched: Option<usize>,
    /// That end was written.
    closed: bool,
    /// The upstream ended it.
    finished: bool,
    frames: u64,
}

impl ChoiceState {
    fn stream(&mut self, part: Part) -> Option<&mut TextStream> {
        match part {
            Part::Content | Part::Border => Some(&mut self.content),
            Part::Reasoning => self.reasoning.as_mut(),
        }
    }

    fn holds(&self) -> bool {
        self.content.holds() || self.reasoning.as_ref().is_some_and(TextStream::holds)
    }
}

/// What the states are asked for at each frame, in sums, so that the work for a frame does not grow
/// with the number of choices.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Neither cut nor ended by the upstream.
    open: usize,
    /// Not ended by the upstream.
    unfinished: usize,
    /// Some text is held.
    holding: usize,
    /// Bytes of held log-probabilities, and of text that is kept.
    entries: usize,
    emitted: usize,
}

impl Counts {
    fn of(state: &ChoiceState) -> Self {
        // A full queue says the largest number there is, which would not add up.
        const MOST: usize = usize::MAX >> 20;
        Self {
            open: usize::from(!state.finished && state.matched.is_none()),
            unfinished: usize::from(!state.finished),
            holding: usize::from(state.holds()),
            entries: state.content.entries.bytes().min(MOST),
            emitted: state.content.emitted().len(),
        }
    }

    fn exchange(&mut self, old: &Self, new: &Self) {
        for (sum, old, new) in [
            (&mut self.open, old.open, new.open),
            (&mut self.unfinished, old.unfinished, new.unfinished),
            (&mut self.holding, old.holding, new.holding),
            (&mut self.entries, old.entries, new.entries),
            (&mut self.emitted, old.emitted, new.emitted),
        ] {
            *sum = *sum - old + new;
        }
    }
}

impl Engine for Choices {
    /// Reads one event of a stream and writes what becomes of it.
    fn event(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> Result<(), Fault> {
        if self.pass_fast(cx, event) {
            return Ok(());
        }
        self.read(cx, event, false)
    }

    /// Reads the answer to a request that does not stream.
    fn body(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> Result<(), Fault> {
        self.read(cx, event, true)
    }

    fn done(&mut self, cx: &mut Context<'_>, event: &Event<'_>) {
        if self.spec.done {
            self.flush(cx, false);
            *cx.ended = true;
        }
        cx.sink.pass(event);
    }

    /// The input is over: what is held leaves, and a drained stream whose upstream broke off gets
    /// its end.
    fn finish(&mut self, cx: &mut Context<'_>) {
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
            let stream = &self.states[state].content;
            let make = NewFrame {
                index: self.states[state].shown,
                slot: self.states[state].slot.unwrap_or_default(),
                field: stream.field,
                part: Part::Content,
                text: b"",
                entries: &Default::default(),
            };
            (self.spec.make)(&original.json, &original.parsed, &make, &mut self.edits);
            // The end is written into the choice that was made, so the frame is read again: an edit
            // cannot stand inside another.
            pattern.json.clear();
            self.edits.apply(&original.json, &mut pattern.json);
            self.edits.clear();
            let mut parsed = ParsedFrame::default();
            if (self.spec.scan)(&pattern.json, &mut parsed).is_ok() {
                if let Some(choice) = parsed.choices.first() {
                    self.write_end(cx, &pattern.json, choice, state, stop);
                    cx.sink.made(&pattern, &mut self.edits);
                }
            }
        }
        self.write_done(cx, &pattern.after);
        cx.end_here();
    }

    /// The stream cannot be read on.
    fn fail(&mut self, cx: &mut Context<'_>) {
        self.flush(cx, cx.options.on_error == OnError::Drop);
    }

    fn copy(&self) -> Box<dyn Engine> {
        Box::new(self.clone())
    }
}

impl Choices {
    pub(super) fn new(spec: &'static Spec) -> Self {
        Self {
            spec,
            states: Vec::new(),
            places: HashMap::new(),
            totals: Counts::default(),
            several: false,
            slots: Vec::new(),
            emissions: Default::default(),
            parsed: ParsedFrame::default(),
            edits: Edits::default(),
            keep: Vec::new(),
            pattern: Pattern::default(),
            template: Template::default(),
            fast: FastPath::default(),
            texts: Vec::new(),
            taken: None,
            matched_stop: false,
        }
    }

    fn read(&mut self, cx: &mut Context<'_>, event: &Event<'_>, whole: bool) -> Result<(), Fault> {
        let mut parsed = std::mem::take(&mut self.parsed);
        parsed.clear();
        self.edits.clear();
        let scan = if whole { self.spec.scan_body } else { self.spec.scan };
        let result = scan(event.json, &mut parsed)
            .map_err(Fault::from)
            .and_then(|()| self.settle(cx, event, &mut parsed, whole));
        self.taken = None;
        if !whole {
            self.learn(cx, event, &mut parsed);
        }
        self.parsed = parsed;
        result
    }

    fn settle(
        &mut self,
        cx: &mut Context<'_>,
        event: &Event<'_>,
        parsed: &mut ParsedFrame,
        whole: bool,
    ) -> Result<(), Fault> {
        if (parsed.error || event.error) && parsed.texts.iter().all(|text| text.span.is_empty()) {
            self.flush(cx, cx.options.on_error == OnError::Drop);
            cx.sink.pass(event);
            return Ok(());
        }
        if parsed.place == Place::Misplaced {
            cx.pass_unread(event.json, "something else stands where the text should")?;
        } else if parsed.texts.iter().all(|text| text.span.is_empty()) {
            parsed.place = cx.place(event)?;
        }
        self.several |= parsed.choices.len() > 1;
        // One choice more than there may be is found before any text is taken.
        self.find_copies(cx, parsed, whole)?;
        if parsed.texts.len() > 1 {
            // All texts are checked before any is taken, so that a frame that cannot be read
            // changes nothing.
            for found in &parsed.texts {
                cx.scratch
                    .check(found.span.of(event.json))
                    .map_err(|what| text_stream::malformed(what, found.span))?;
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
            for text in parsed.texts.iter().filter(|text| {
                cx.options.cut_reasoning && text.part == Part::Reasoning && !text.copy
            }) {
                if before.is_some_and(|before| twice(before, text)) {
                    let what =
                        "thoughts under two names in one delta, which cut_reasoning cannot read";
                    return Err(text_stream::malformed(what, text.span).into());
                }
                before = Some(text);
            }
        }
        self.keep.clear();
        let mut drained = false;
        for (position, choice) in parsed.choices.iter().enumerate() {
            self.matched_stop |= choice.matched.is_some();
            let state = self.state(cx, self.number(cx, choice, whole))?;
            let over = self.states[state].finished;
            self.states[state].finished |= choice.finished;
            self.states[state].shown = choice.index;
            if let Some(stop) = self.states[state].matched {
                let closes = self.spec.ends_last && choice.finished && !self.states[state].closed;
                if closes {
                    self.close_drained(cx, event, parsed, position, state, stop);
                }
                self.keep.push(closes);
                self.recount(state);
                continue;
            }
            self.keep.push(true);
            let frame = ChoiceFrame { event, parsed, position, choice, whole };
            if over {
                self.check_border(cx, &frame, state)?;
            }
            if let Some(found) = self.take(cx, &frame, state)? {
                drained |= cx.options.on_match == OnMatch::Drain;
                self.end(cx, &frame, state, &found);
            } else if let Some(again) = choice.stop.filter(|_| self.spec.repeats && !whole) {
                if again.of(event.json).starts_with(b"\"") {
                    let inside = Span { start: again.start + 1, end: again.end - 1 };
                    cx.check_repeat(event.json, inside)?;
                }
            }
            self.recount(state);
        }
        self.write(cx, event, parsed);
        if drained || self.totals.holding > 0 {
            self.pattern.set(event, parsed);
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
        if self.totals.unfinished == 0 {
            *cx.ended |= !self.spec.done;
        } else if cx.options.on_match == OnMatch::Cancel {
            self.write_done(cx, event.after());
            cx.end_here();
        }
    }

    fn is_over(&self, cx: &Context<'_>) -> bool {
        let expected = usize::try_from(cx.options.choices.unwrap_or(1)).unwrap_or(usize::MAX);
        self.states.len() >= expected.max(1) && self.totals.open == 0
    }

    fn write_done(&self, cx: &mut Context<'_>, like: &[u8]) {
        if self.spec.done {
            cx.sink.own(&[b"data: [DONE]"], like);
        }
    }

    /// Which choice this is.
    fn number(&self, cx: &Context<'_>, choice: &Choice, whole: bool) -> u32 {
        let only = cx.options.choices == Some(1) && !self.several && !whole;
        if only { 0 } else { choice.index }
    }

    /// Brings the totals up to date.
    fn recount(&mut self, state: usize) {
        let state = &mut self.states[state];
        let now = Counts::of(state);
        self.totals.exchange(&state.counted, &now);
        state.counted = now;
    }

    /// The state of choice `index`, made when it first turns up.
    fn state(&mut self, cx: &Context<'_>, index: u32) -> Result<usize, Fault> {
        if let Some(&found) = self.places.get(&index) {
            return Ok(found);
        }
        if self.states.len() >= cx.options.max_choices {
            return Err(Fault::Limit {
                what: "choices in one stream (max_choices)",
                limit: cx.options.max_choices,
            });
        }
        let stream = |skip, repeats| {
            TextStream::new(cx.set, &cx.options.matching, skip, repeats, cx.options.max_held_bytes)
                .map_err(Fault::Core)
        };
        let reasoning = if cx.options.cut_reasoning { Some(stream(0, false)?) } else { None };
        let content = stream(cx.options.skip_chars, self.spec.repeats)?;
        self.states.push(ChoiceState {
            index,
            shown: index,
            slot: None,
            counted: Counts::default(),
            content,
            reasoning,
            matched: None,
            closed: false,
            finished: false,
            frames: 0,
        });
        let state = self.states.len() - 1;
        self.places.insert(index, state);
        self.recount(state);
        Ok(state)
    }

    fn check_limits(&self, cx: &Context<'_>) -> Result<(), Fault> {
        if self.totals.entries > cx.options.max_held_bytes {
            return Err(Fault::Limit {
                what: "bytes of held log-probabilities (max_held_bytes)",
                limit: cx.options.max_held_bytes,
            });
        }
        if self.totals.emitted > cx.options.max_text_bytes {
            return Err(Fault::Limit {
                what: "bytes of text to be repeated at the end (max_text_bytes)",
                limit: cx.options.max_text_bytes,
            });
        }
        Ok(())
    }
}
