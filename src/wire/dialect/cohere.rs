//! Cohere's chat, version 2 (`/v2/chat`): typed events, content blocks with numbers, and an end that
//! says `STOP_SEQUENCE`.
//!
//! Text comes in `content-delta` events, in `delta.message.content.text`. Each block is a message
//! text of its own. A match ends the message: the block is closed, later blocks, citations and calls
//! never come, and `message-end` says why. What the model thinks (`thinking`) is read on demand; the
//! plan for its tools is left alone. Log-probabilities repeat their text, so they go from an event
//! whose text is held or cut.
#![forbid(unsafe_code)]

use crate::stream::Match;
use crate::wire::blocks::{Block, Blocks};
use crate::wire::context::Context;
use crate::wire::dialect::{Engine, Entry, put};
use crate::wire::edit::Edits;
use crate::wire::error::Fault;
use crate::wire::event::Event;
use crate::wire::frame::{MOST, Part};
use crate::wire::framing::Framing;
use crate::wire::json::{Cursor, JsonResult, Kind, Malformed, Span, once, word};
use crate::wire::options::{OnError, OnMatch, StopField};
use crate::wire::text;

pub(super) static DIALECT: Entry = Entry {
    name: "cohere.chat",
    framing: Framing::Events,
    reserved: "id message finish_reason prompt logprobs usage error",
    known: "type",
    engine: || Box::new(Cohere::default()),
};

const REASON: &[u8] = b"\"STOP_SEQUENCE\"";

/// The state of one message.
#[derive(Clone, Debug, Default)]
struct Cohere {
    blocks: Blocks,
    edits: Edits,
    /// The block in which a stop was found, and the stop, raw.
    matched: Option<(u32, Vec<u8>)>,
    /// Whether that block has been closed since.
    block_closed: bool,
    /// The line ends of the stream's first event.
    after: Vec<u8>,
}

/// What one event says.
#[derive(Default)]
struct ScannedEvent {
    kind: Option<Span>,
    index: u32,
    text: Option<Span>,
    thinking: Option<Span>,
    finish: Option<Span>,
    logprobs: Option<Span>,
    /// A content that is no object.
    misplaced: bool,
}

fn scan(json: &[u8]) -> JsonResult<ScannedEvent> {
    let mut found = ScannedEvent::default();
    let mut cursor = Cursor::new(json);
    cursor.object(|cursor, key| match (key, cursor.kind()) {
        (b"type", Kind::String) => {
            let span = cursor.string()?;
            once(&mut found.kind, span, span.start)
        }
        (b"index", Kind::Null) => cursor.skip().map(|_| ()),
        (b"index", _) => {
            found.index = cursor.number()?;
            Ok(())
        }
        (b"logprobs", Kind::Object | Kind::Array) => {
            let span = cursor.skip()?;
            once(&mut found.logprobs, span, span.start)
        }
        (b"delta", Kind::Object) => within(cursor, |cursor, key| match (key, cursor.kind()) {
            (b"message", Kind::Object) => {
                within(cursor, |cursor, key| match (key, cursor.kind()) {
                    (b"content", Kind::Object) => content(cursor, &mut found),
                    (b"content", kind) => {
                        found.misplaced |= kind == Kind::String;
                        cursor.skip().map(|_| ())
                    }
                    _ => cursor.skip().map(|_| ()),
                })
            }
            (b"finish_reason", _) => {
                let span = cursor.skip()?;
                once(&mut found.finish, span, span.start)
            }
            _ => cursor.skip().map(|_| ()),
        }),
        _ => cursor.skip().map(|_| ()),
    })?;
    cursor.end()?;
    Ok(found)
}

fn within(
    cursor: &mut Cursor<'_>,
    field: impl FnMut(&mut Cursor<'_>, &[u8]) -> JsonResult<()>,
) -> JsonResult<()> {
    cursor.object(field).map(|_| ())
}

fn content(cursor: &mut Cursor<'_>, found: &mut ScannedEvent) -> JsonResult<()> {
    within(cursor, |cursor, key| {
        let slot = match key {
            b"text" => &mut found.text,
            b"thinking" => &mut found.thinking,
            _ => return cursor.skip().map(|_| ()),
        };
        match cursor.string_or_skip()? {
            Some(span) => once(slot, span, span.start),
            None => Ok(()),
        }
    })
}

impl Engine for Cohere {
    fn event(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> Result<(), Fault> {
        let found = scan(event.json)?;
        if found.misplaced {
            cx.pass_unread(event.json, "something else stands where the text should")?;
        }
        self.edits.clear();
        if self.after.is_empty() {
            self.after.extend_from_slice(event.after());
        }
        match &*word(event.json, found.kind) {
            b"content-start" | b"content-delta" => return self.read_block(cx, event, &found),
            b"content-end" => self.close_block(cx, event, found.index),
            b"message-end" => {
                self.flush(cx);
                if let Some((_, stop)) = &self.matched {
                    name_stop(cx, event.json, found.finish, stop, &mut self.edits);
                }
                self.close_matched(cx, event.after());
                cx.sink.edited(event, &mut self.edits);
                *cx.ended = true;
            }
            b"message-start" | b"debug" | b"ping" => cx.sink.pass(event),
            kind if kind.starts_with(b"tool-") || kind.starts_with(b"citation-") => {
                if self.matched.is_none() {
                    cx.sink.pass(event);
                }
            }
            kind => {
                if kind == b"error" {
                    self.fail(cx);
                }
                cx.place(event)?;
                cx.sink.pass(event);
            }
        }
        Ok(())
    }

    /// The answer to a request that does not stream: blocks in `message.content`.
    fn body(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> Result<(), Fault> {
        let body = scan_body(event.json)?;
        let Some(list) = body.list else {
            if body.misplaced {
                cx.pass_unread(event.json, "something else stands where the text should")?;
            } else {
                cx.place(event)?;
            }
            cx.sink.pass(event);
            return Ok(());
        };
        for (index, (span, found)) in body.blocks.iter().enumerate() {
            let reasoning = found.text.is_none() && cx.options.cut_reasoning;
            let Some(said) = (if reasoning { found.thinking } else { found.text }) else {
                continue;
            };
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            // One block at a time is open, so a long list costs one matcher.
            self.blocks.open.clear();
            let block = self.blocks.get(cx, (0, index, reasoning), false)?;
            let (_, Some(matched)) = block.take_whole(cx, event, said, &mut self.edits)? else {
                continue;
            };
            let mut stop = Vec::new();
            text::encode_stop(cx.set, matched.index, &mut stop);
            self.edits.delete(Span { start: span.end, end: list.end - 1 });
            name_stop(cx, event.json, body.finish, &stop, &mut self.edits);
            // What stands behind the text, or repeats it.
            for span in [body.calls, body.citations, body.logprobs].into_iter().flatten() {
                self.edits.replace(span, b"null");
            }
            cx.record(0, Some(index), Part::of(reasoning), matched);
            break;
        }
        cx.sink.edited(event, &mut self.edits);
        Ok(())
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.flush(cx);
        if self.matched.is_some() && !*cx.ended {
            let after = std::mem::take(&mut self.after);
            self.write_end(cx, &after);
        }
    }

    fn fail(&mut self, cx: &mut Context<'_>) {
        if cx.options.on_error == OnError::Drop {
            self.blocks.drop_held();
        }
        self.flush(cx);
    }

    fn copy(&self) -> Box<dyn Engine> {
        Box::new(self.clone())
    }
}

impl Cohere {
    fn read_block(
        &mut self,
        cx: &mut Context<'_>,
        event: &Event<'_>,
        found: &ScannedEvent,
    ) -> Result<(), Fault> {
        if self.matched.is_some() {
            return Ok(());
        }
        let reasoning = found.text.is_none() && cx.options.cut_reasoning;
        let span = if reasoning { found.thinking } else { found.text };
        let Some(span) = span.filter(|span| !span.is_empty()) else {
            cx.sink.pass(event);
            return Ok(());
        };
        let block = self.blocks.get(cx, (0, found.index, reasoning), false)?;
        let held = block.stream.holds();
        let (_, matched) = block.take(cx, event, span, &mut self.edits)?;
        block.remember(event, span);
        let whole = !held && !block.stream.holds() && matched.is_none();
        if let Some(logprobs) = found.logprobs.filter(|_| !whole) {
            self.edits.replace(logprobs, b"null");
        }
        cx.sink.edited(event, &mut self.edits);
        if let Some(matched) = matched {
            self.end(cx, (found.index, reasoning), matched, event.after());
        }
        Ok(())
    }

    fn close_block(&mut self, cx: &mut Context<'_>, event: &Event<'_>, index: u32) {
        if let Some((matched, _)) = &self.matched {
            if *matched != index || self.block_closed {
                return;
            }
        } else {
            for reasoning in [true, false] {
                let Some(mut block) = self.blocks.close((0, index, reasoning)) else { continue };
                if let Some(matched) = Self::flush_block(cx, &mut block) {
                    self.end(cx, (index, reasoning), matched, event.after());
                    if *cx.ended {
                        return;
                    }
                }
            }
        }
        self.block_closed = true;
        cx.sink.pass(event);
    }

    /// Ends the message at its first stop.
    fn end(
        &mut self,
        cx: &mut Context<'_>,
        (index, reasoning): (u32, bool),
        matched: Match,
        after: &[u8],
    ) {
        self.note_match(cx, index, reasoning, matched);
        self.blocks.open.clear();
        if cx.options.on_match == OnMatch::Cancel {
            self.write_end(cx, after);
        }
    }

    fn note_match(&mut self, cx: &mut Context<'_>, index: u32, reasoning: bool, matched: Match) {
        let mut stop = Vec::new();
        text::encode_stop(cx.set, matched.index, &mut stop);
        self.matched = Some((index, stop));
        self.block_closed = false;
        cx.record(0, Some(index), Part::of(reasoning), matched);
    }

    fn close_matched(&mut self, cx: &mut Context<'_>, after: &[u8]) {
        let Some((index, _)) = self.matched.as_ref().filter(|_| !self.block_closed) else { return };
        let data = format!("data: {{\"type\":\"content-end\",\"index\":{index}}}");
        cx.sink.own(&[b"event: content-end", data.as_bytes()], after);
        self.block_closed = true;
    }

    fn write_end(&mut self, cx: &mut Context<'_>, after: &[u8]) {
        self.close_matched(cx, after);
        let mut data = b"data: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":".to_vec();
        data.extend_from_slice(REASON);
        if let (StopField::Named(name), Some((_, stop))) = (&cx.options.stop_field, &self.matched) {
            put::field(name, stop, &mut data);
        }
        data.extend_from_slice(b"}}");
        cx.sink.own(&[b"event: message-end", &data], after);
        cx.end_here();
    }

    fn flush(&mut self, cx: &mut Context<'_>) {
        for mut block in std::mem::take(&mut self.blocks.open) {
            if let Some(matched) = Self::flush_block(cx, &mut block) {
                let (_, index, reasoning) = block.key;
                self.note_match(cx, index, reasoning, matched);
            }
        }
    }

    /// What a block holds leaves in a delta made after its last one.
    fn flush_block(cx: &mut Context<'_>, block: &mut Block) -> Option<Match> {
        if !block.stream.holds() {
            return None;
        }
        cx.scratch.text.clear();
        let matched = block.stream.flush(&mut cx.scratch.text);
        let (pattern, span) = block.pattern.as_ref()?;
        let mut edits = Edits::default();
        edits.replace(*span, &cx.scratch.text);
        let found = scan(&pattern.json).unwrap_or_default();
        if let Some(logprobs) = found.logprobs {
            edits.replace(logprobs, b"null");
        }
        cx.sink.made(pattern, &mut edits);
        matched
    }
}

/// Where things stand in an answer in one piece.
#[derive(Default)]
struct Body {
    list: Option<Span>,
    blocks: Vec<(Span, ScannedEvent)>,
    finish: Option<Span>,
    calls: Option<Span>,
    citations: Option<Span>,
    logprobs: Option<Span>,
    misplaced: bool,
}

fn scan_body(json: &[u8]) -> JsonResult<Body> {
    let mut body = Body::default();
    let mut cursor = Cursor::new(json);
    cursor.object(|cursor, key| match (key, cursor.kind()) {
        (b"message", Kind::Object) => within(cursor, |cursor, key| match (key, cursor.kind()) {
            (b"content", Kind::Array) => {
                let list = blocks(cursor, &mut body.blocks)?;
                once(&mut body.list, list, list.start)
            }
            (b"content", kind) => {
                body.misplaced |= kind == Kind::String;
                cursor.skip().map(|_| ())
            }
            (b"tool_calls" | b"citations", Kind::Array) => {
                let slot = if key == b"citations" { &mut body.citations } else { &mut body.calls };
                let span = cursor.skip()?;
                once(slot, span, span.start)
            }
            _ => cursor.skip().map(|_| ()),
        }),
        (b"finish_reason", _) => {
            let span = cursor.skip()?;
            once(&mut body.finish, span, span.start)
        }
        (b"logprobs", Kind::Array | Kind::Object) => {
            let span = cursor.skip()?;
            once(&mut body.logprobs, span, span.start)
        }
        _ => cursor.skip().map(|_| ()),
    })?;
    cursor.end()?;
    Ok(body)
}

fn blocks(cursor: &mut Cursor<'_>, blocks: &mut Vec<(Span, ScannedEvent)>) -> JsonResult<Span> {
    cursor.array(|cursor, _| {
        if cursor.kind() != Kind::Object {
            return cursor.skip().map(|_| ());
        }
        let start = cursor.position();
        if blocks.len() >= MOST {
            return Err(Malformed { what: "more than 1024 content blocks", at: start });
        }
        let mut found = ScannedEvent::default();
        content(cursor, &mut found)?;
        blocks.push((Span { start, end: cursor.position() }, found));
        Ok(())
    })
}

fn name_stop(cx: &Context<'_>, json: &[u8], finish: Option<Span>, stop: &[u8], edits: &mut Edits) {
    let Some(finish) = finish else { return };
    if finish.of(json) != REASON {
        edits.replace(finish, REASON);
    }
    if let StopField::Named(name) = &cx.options.stop_field {
        edits.replace_with(put::point(finish.end), |out| put::field(name, stop, out));
    }
}
