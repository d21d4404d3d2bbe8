//! The engine of the seven dialects whose frames hold choices: one matcher per choice, ends written in place.
#![forbid(unsafe_code)]

use super::edit::Edits;
use super::entries::Progress;
use super::event::{Event, Pattern};
use super::json::{Result, Span};
use super::lane::{self, Lane, Taken};
use super::layout::{Choice, End, Layout, Make, Part, Shape, Text};
use super::options::{OnError, OnMatch, StopField};
use super::template::Template;
use super::{Context, Fault, text};
use crate::stream::Match;

/// The state of all choices of one response.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    shape: &'static Shape,
    states: Vec<State>,
    layout: Layout,
    edits: Edits,
    /// Which choices of the frame being read stay in it.
    keep: Vec<bool>,
    /// The last frame during which something was held: what is released without a frame of its own leaves in a copy of it.
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

/// What holds for frames that match the template.
#[derive(Clone, Copy, Debug, Default)]
struct Alike {
    /// The state of their choice; without one they have no choice.
    state: Option<usize>,
    /// Which of their texts is the answer's.
    content: Option<usize>,
    /// Some text is held, so that every frame has to be read.
    held: bool,
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
    pub(super) fn event(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> std::result::Result<(), Fault> {
        if self.shape.done && event.json == b"[DONE]" {
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

    /// Passes a frame that is like the last one but for its text, none of which is held. False if the frame has to be read; if its
    /// text has been taken already, that waits in `taken`.
    #[inline]
    fn pass_alike(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> bool {
        let Alike { state, content, held: false } = self.alike else { return false };
        let limit = cx.options.max_text_bytes;
        if !self.template.matches(event.json, &mut self.texts) {
            return false;
        }
        if let Some(state) = state.and_then(|state| self.states.get_mut(state)) {
            if state.matched.is_some() || state.finished {
                return false;
            }
            if let Some(span) = content.and_then(|content| self.texts.get(content)) {
                match state.content.take(span.of(event.json), cx.scratch) {
                    Ok(taken)
                        if taken.same
                            && taken.matched.is_none()
                            && !state.content.holds()
                            && state.content.said().len() <= limit => {}
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
    fn learn(&mut self, cx: &Context<'_>, event: &Event<'_>, layout: &mut Layout) {
        self.alike.held = self.states.iter().any(|state| state.holds() || !state.content.entries.is_empty());
        let plain = |text: &Text| text.part == Part::Content || (text.part == Part::Reasoning && !cx.options.cut_reasoning);
        let contents = layout.texts.iter().filter(|text| text.part == Part::Content).count();
        let choice = layout.choices.first();
        let alike = layout.choices.len() <= 1
            && contents <= 1
            && layout.texts.iter().all(plain)
            && !layout.error
            && !choice.is_some_and(|choice| choice.finished);
        if !alike {
            self.template.forget();
            return;
        }
        self.alike.state = choice.and_then(|choice| self.states.iter().position(|state| state.index == choice.index));
        self.alike.content = layout.texts.iter().position(|text| text.part == Part::Content);
        let texts = layout.texts.iter().map(|text| text.span);
        self.template.learn(event.json, texts, &mut layout.notes);
    }

    /// Reads the answer to a request that does not stream.
    pub(super) fn body(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> std::result::Result<(), Fault> {
        self.read(cx, event, true)
    }

    fn read(&mut self, cx: &mut Context<'_>, event: &Event<'_>, whole: bool) -> std::result::Result<(), Fault> {
        let mut layout = std::mem::take(&mut self.layout);
        layout.clear();
        self.edits.clear();
        let scan = if whole { self.shape.scan_body } else { self.shape.scan };
        let result = scan(event.json, &mut layout).map_err(Fault::from).and_then(|()| self.settle(cx, event, &layout, whole));
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
            // All texts are checked before any is taken, so that a frame that cannot be read changes nothing.
            for found in &layout.texts {
                cx.scratch.check(found.span.of(event.json)).map_err(|what| lane::malformed(what, found.span))?;
            }
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

    /// Ends the stream once every choice has ended. If the upstream ended them all, its own end is on its way.
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
        self.states.len() >= expected.max(1) && self.states.iter().all(|state| state.finished || state.matched.is_some())
    }

    fn write_done(&self, cx: &mut Context<'_>, like: &[u8]) {
        if self.shape.done {
            cx.sink.own(&[b"data: [DONE]"], like);
        }
    }

    /// The input is over: what is held leaves, and a drained stream whose upstream broke off gets its end.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        self.flush(cx, false);
        if *cx.ended || !self.is_over(cx) || self.states.iter().all(|state| state.matched.is_none()) {
            return;
        }
        let pattern = std::mem::take(&mut self.pattern);
        for state in 0..self.states.len() {
            let Some(stop) = self.states[state].matched.filter(|_| !self.states[state].closed) else { continue };
            self.edits.clear();
            let lane = &self.states[state].content;
            let make = Make {
                index: self.states[state].index,
                field: lane.field,
                part: Part::Content,
                text: b"",
                entries: &Default::default(),
            };
            (self.shape.make)(&pattern.json, &pattern.layout, &make, &mut self.edits);
            if let Some(choice) = pattern.layout.choices.first() {
                self.write_end(cx, &pattern.json, choice, state, stop);
                cx.sink.made(&pattern, &mut self.edits);
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
            return Err(Fault::Limit { what: "choices in one stream (max_choices)", limit: cx.options.max_choices });
        }
        let lane = |skip, repeats| {
            Lane::new(cx.set, &cx.options.matching, skip, repeats, cx.options.max_held_bytes).map_err(Fault::Core)
        };
        let reasoning = if cx.options.cut_reasoning { Some(lane(0, false)?) } else { None };
        let content = lane(cx.options.skip_chars, self.shape.repeats)?;
        self.states.push(State { index, content, reasoning, matched: None, closed: false, finished: false, frames: 0 });
        Ok(self.states.len() - 1)
    }

    /// Feeds the texts of one choice to its matchers and edits them. What a model thinks comes before what it says.
    fn take(&mut self, cx: &mut Context<'_>, turn: &Turn<'_>, state: usize) -> std::result::Result<Option<Found>, Fault> {
        self.states[state].frames += 1;
        let answers = turn.texts().any(|(_, text)| text.part == Part::Content && !text.span.is_empty());
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
            // Held text that this frame ends although it has none of its own leaves in a frame before it.
            if found.is_none() && (turn.choice.finished || turn.whole || (part == Part::Reasoning && answers)) {
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
    fn sort_entries(&mut self, cx: &mut Context<'_>, turn: &Turn<'_>, state: usize, start: u64, over: bool) {
        let choice = turn.choice;
        let lane = &mut self.states[state].content;
        if lane.entries.is_empty() && choice.columns.iter().all(Option::is_none) {
            return;
        }
        let progress = Progress { start, end: lane.came(), left: lane.left(), holds: lane.holds(), over };
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
    fn flush_made(&mut self, cx: &mut Context<'_>, state: usize, part: Part) -> Option<Match> {
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
    fn flush(&mut self, cx: &mut Context<'_>, drop: bool) {
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

    /// Writes the end of a choice into the frame in which its stop was completed.
    fn end(&mut self, cx: &mut Context<'_>, turn: &Turn<'_>, state: usize, found: &Found) {
        let stop = found.found.index;
        self.states[state].matched = Some(stop);
        cx.record(turn.choice.index, None, found.part, found.found.clone());
        let waits = self.shape.ends_last && cx.options.on_match == OnMatch::Drain && !turn.choice.finished && !turn.whole;
        if !waits {
            self.write_end(cx, turn.event.json, turn.choice, state, stop);
        }
    }

    fn write_end(&mut self, cx: &mut Context<'_>, json: &[u8], choice: &Choice, state: usize, stop: usize) {
        let state = &mut self.states[state];
        state.closed = true;
        text::encode_stop(cx.set, stop, &mut cx.scratch.text);
        let field = match &cx.options.stop_field {
            StopField::Family if self.matched_stop => Some("matched_stop"),
            StopField::Family => self.shape.field,
            StopField::Named(name) => Some(name.as_str()),
            StopField::Off => None,
        };
        let end = End { stop: &cx.scratch.text, field, said: state.content.said(), frames: state.frames };
        (self.shape.end)(json, choice, &end, &mut self.edits);
    }

    /// The upstream's own last frame of a choice that ended long ago: its figures stay, its text goes, its end becomes ours.
    fn close_drained(
        &mut self,
        cx: &mut Context<'_>,
        event: &Event<'_>,
        layout: &Layout,
        position: usize,
        state: usize,
        stop: usize,
    ) {
        for text in layout.texts.iter().filter(|text| text.choice == position && !text.span.is_empty()) {
            self.edits.delete(text.span);
        }
        let Some(choice) = layout.choices.get(position) else { return };
        self.write_end(cx, event.json, choice, state, stop);
    }

    /// Writes the frame without the choices that had ended before it.
    fn write(&mut self, cx: &mut Context<'_>, event: &Event<'_>, layout: &Layout) {
        if !self.keep.contains(&false) {
            return cx.sink.edited(event, &mut self.edits);
        }
        let Some(list) = layout.list else { return };
        if !self.keep.contains(&true) {
            if layout.usage && cx.options.on_match == OnMatch::Drain {
                self.edits.clear();
                self.edits.replace(list, b"[]");
                cx.sink.edited(event, &mut self.edits);
            }
            return;
        }
        // A run of dropped choices goes with one comma: the one before the run, or behind it at the front of the list.
        let (mut from, mut to, mut front) = (list.start + 1, list.start + 1, true);
        for (choice, keep) in layout.choices.iter().zip(&self.keep) {
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

    fn check_limits(&self, cx: &Context<'_>) -> std::result::Result<(), Fault> {
        let held: usize = self.states.iter().map(|state| state.content.entries.bytes()).fold(0, usize::saturating_add);
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

/// One choice of one frame, being read.
struct Turn<'a> {
    event: &'a Event<'a>,
    layout: &'a Layout,
    position: usize,
    choice: &'a Choice,
    /// The frame is a whole answer.
    whole: bool,
}

/// A match, and in which text.
struct Found {
    part: Part,
    found: Match,
}

impl Turn<'_> {
    /// The texts of this choice, with their positions in the frame.
    fn texts(&self) -> impl Iterator<Item = (usize, &Text)> {
        self.layout.texts.iter().enumerate().filter(|(_, text)| text.choice == self.position)
    }

    /// Nothing more comes in this message text behind text `at`.
    fn closes(&self, at: usize, part: Part, answers: bool) -> bool {
        let mut later =
            self.texts().filter(|(position, text)| *position > at && (text.part == part || text.part == Part::Border));
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
