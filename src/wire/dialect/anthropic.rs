//! Anthropic's Messages API: typed events, content blocks with numbers, and an end that names the
//! stop.
//!
//! Text comes in `content_block_delta` events of type `text_delta`. Each text block is a message
//! text of its own. A match ends the message: the block is closed, later blocks never come, and
//! `message_delta` says `stop_reason: "stop_sequence"` with `stop_sequence`. Tool input, citations,
//! signatures pass; `thinking_delta` is read on demand.
#![forbid(unsafe_code)]

use super::put;
use crate::stream::Match;
use crate::wire::blocks::{Block, Blocks};
use crate::wire::context::Context;
use crate::wire::dialect::{Engine, Entry};
use crate::wire::edit::Edits;
use crate::wire::error::Fault;
use crate::wire::event::Event;
use crate::wire::frame::{MOST, Part};
use crate::wire::framing::Framing;
use crate::wire::json::{Cursor, JsonResult, Kind, Malformed, Span, once, word};
use crate::wire::options::{OnError, OnMatch, StopField};
use crate::wire::text;

pub(super) static DIALECT: Entry = Entry {
    name: "anthropic.messages",
    framing: Framing::Events,
    reserved: RESERVED,
    known: KNOWN,
    engine: || Box::new(Anthropic::default()),
};

const KNOWN: &str = "type";

const RESERVED: &str = "id type role model content container stop_reason stop_sequence usage";

/// The state of one message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Anthropic {
    blocks: Blocks,
    edits: Edits,
    /// The block in which a stop was found, and the stop, raw.
    matched: Option<(u32, Vec<u8>)>,
    /// Ends of the message that have been written since.
    block_closed: bool,
    reason_sent: bool,
    /// The last `output_tokens` seen, as the number stood there.
    output_tokens: Vec<u8>,
    /// The line ends of the stream's first event.
    after: Vec<u8>,
}

/// What one event says.
#[derive(Default)]
struct ScannedEvent {
    kind: Option<Span>,
    index: u32,
    /// `delta` or `content_block`: its type and text.
    piece: Option<Span>,
    text: Option<Span>,
    thinking: Option<Span>,
    stop_reason: Option<Span>,
    stop_sequence: Option<Span>,
    output_tokens: Option<Span>,
}

fn scan(json: &[u8]) -> JsonResult<ScannedEvent> {
    let mut found = ScannedEvent::default();
    let mut cursor = Cursor::new(json);
    cursor.object(|cursor, key| {
        match (key, cursor.kind()) {
            (b"type", Kind::String) => {
                let span = cursor.string()?;
                once(&mut found.kind, span, span.start)?;
            }
            (b"index", _) => found.index = cursor.number()?,
            (b"delta" | b"content_block", Kind::Object) => piece(cursor, &mut found)?,
            (b"message", Kind::Object) => {
                cursor.object(|cursor, key| match (key, cursor.kind()) {
                    (b"usage", Kind::Object) => usage(cursor, &mut found),
                    _ => cursor.skip().map(|_| ()),
                })?;
            }
            (b"usage", Kind::Object) => usage(cursor, &mut found)?,
            _ => {
                cursor.skip()?;
            }
        }
        Ok(())
    })?;
    cursor.end()?;
    Ok(found)
}

fn piece(cursor: &mut Cursor<'_>, found: &mut ScannedEvent) -> JsonResult<()> {
    cursor.object(|cursor, key| {
        let slot = match key {
            b"type" => &mut found.piece,
            b"text" => &mut found.text,
            b"thinking" => &mut found.thinking,
            b"stop_reason" | b"stop_sequence" => {
                let slot = if key == b"stop_reason" {
                    &mut found.stop_reason
                } else {
                    &mut found.stop_sequence
                };
                let span = cursor.skip()?;
                return once(slot, span, span.start);
            }
            _ => return cursor.skip().map(|_| ()),
        };
        match cursor.string_or_skip()? {
            Some(span) => once(slot, span, span.start),
            None => Ok(()),
        }
    })?;
    Ok(())
}

fn usage(cursor: &mut Cursor<'_>, found: &mut ScannedEvent) -> JsonResult<()> {
    cursor.object(|cursor, key| {
        let span = cursor.skip()?;
        if key == b"output_tokens" {
            found.output_tokens = Some(span);
        }
        Ok(())
    })?;
    Ok(())
}

impl Engine for Anthropic {
    fn event(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> Result<(), Fault> {
        let found = scan(event.json)?;
        Self::place(cx, event, &found)?;
        self.edits.clear();
        if self.after.is_empty() {
            self.after.extend_from_slice(event.after());
        }
        if let Some(tokens) = found.output_tokens {
            self.output_tokens.clear();
            self.output_tokens.extend_from_slice(tokens.of(event.json));
        }
        match &*word(event.json, found.kind) {
            b"content_block_start" | b"content_block_delta" => {
                if self.matched.is_some() {
                    return Ok(());
                }
                self.read_block(cx, event, &found)?;
            }
            b"content_block_stop" => self.close_block(cx, event, found.index),
            b"message_delta" => {
                self.flush(cx);
                if let Some((_, stop)) = &self.matched {
                    name_stop(event.json, &found, stop, &mut self.edits);
                    add_field(cx, found.stop_sequence.or(found.stop_reason), stop, &mut self.edits);
                    self.reason_sent = true;
                }
                cx.sink.edited(event, &mut self.edits);
            }
            b"message_stop" => {
                self.flush(cx);
                self.end_drained(cx, event.after());
                cx.sink.pass(event);
                *cx.ended = true;
            }
            b"error" => {
                self.fail(cx);
                cx.sink.pass(event);
            }
            _ => cx.sink.pass(event),
        }
        Ok(())
    }

    /// The answer to a request that does not stream: blocks in `content`.
    fn body(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> Result<(), Fault> {
        let mut whole = ScannedEvent::default();
        let mut blocks: Vec<(Span, ScannedEvent)> = Vec::new();
        let mut list = None;
        let mut cursor = Cursor::new(event.json);
        cursor.object(|cursor, key| match (key, cursor.kind()) {
            (b"content", Kind::Array) => {
                let span = cursor.array(|cursor, _| {
                    let mut found = ScannedEvent::default();
                    if cursor.kind() != Kind::Object {
                        return cursor.skip().map(|_| ());
                    }
                    let start = cursor.position();
                    if blocks.len() >= MOST {
                        return Err(Malformed { what: "more than 1024 content blocks", at: start });
                    }
                    piece(cursor, &mut found)?;
                    blocks.push((Span { start, end: cursor.position() }, found));
                    Ok(())
                })?;
                once(&mut list, span, span.start)
            }
            (b"stop_reason" | b"stop_sequence", _) => {
                let slot = if key == b"stop_reason" {
                    &mut whole.stop_reason
                } else {
                    &mut whole.stop_sequence
                };
                let span = cursor.skip()?;
                once(slot, span, span.start)
            }
            _ => cursor.skip().map(|_| ()),
        })?;
        cursor.end()?;
        if list.is_none() {
            cx.place(event)?;
        }
        let list = list.unwrap_or_default();
        for (at, (span, found)) in blocks.iter().enumerate() {
            let reasoning = match &*word(event.json, found.piece) {
                b"text" => false,
                b"thinking" if cx.options.cut_reasoning => true,
                _ => continue,
            };
            let Some(emitted) = (if reasoning { found.thinking } else { found.text }) else {
                continue;
            };
            let index = u32::try_from(at).unwrap_or(u32::MAX);
            // One block at a time is open, so a long list costs one matcher.
            self.blocks.open.clear();
            let block = self.blocks.get(cx, (0, index, reasoning), false)?;
            let (_, Some(matched)) = block.take_whole(cx, event, emitted, &mut self.edits)? else {
                continue;
            };
            let mut stop = Vec::new();
            text::encode_stop(cx.set, matched.index, &mut stop);
            // A block that the cut has emptied goes too: the API refuses it when it comes back as
            // history.
            let empty = block.stream.decoded_out() == 0;
            let before =
                blocks.get(at.wrapping_sub(1)).map_or(list.start + 1, |(span, _)| span.end);
            let start = if empty { before } else { span.end };
            self.edits.delete(Span { start, end: list.end - 1 });
            name_stop(event.json, &whole, &stop, &mut self.edits);
            add_field(cx, whole.stop_sequence.or(whole.stop_reason), &stop, &mut self.edits);
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
            self.end_drained(cx, &after);
            cx.sink.own(&[b"event: message_stop", b"data: {\"type\":\"message_stop\"}"], &after);
            cx.end_here();
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

impl Anthropic {
    /// Every event whose type is Anthropic's is one of its own, unless a text stands in a delta of a
    /// type that has none.
    fn place(cx: &mut Context<'_>, event: &Event<'_>, found: &ScannedEvent) -> Result<(), Fault> {
        match &*word(event.json, found.kind) {
            b"content_block_start" | b"content_block_delta" => {
                let own = matches!(&*word(event.json, found.piece), b"text_delta" | b"text");
                if !own && found.text.is_some_and(|text| !text.is_empty()) {
                    cx.pass_unread(event.json, "a text stands in a delta that is none")?;
                }
            }
            b"message_start"
            | b"message_delta"
            | b"message_stop"
            | b"content_block_stop"
            | b"ping"
            | b"error" => {}
            _ => {
                cx.place(event)?;
            }
        }
        Ok(())
    }

    fn read_block(
        &mut self,
        cx: &mut Context<'_>,
        event: &Event<'_>,
        found: &ScannedEvent,
    ) -> Result<(), Fault> {
        let reasoning = match &*word(event.json, found.piece) {
            b"text_delta" | b"text" => false,
            b"thinking_delta" | b"thinking" if cx.options.cut_reasoning => true,
            _ => {
                cx.sink.pass(event);
                return Ok(());
            }
        };
        let starts = *word(event.json, found.kind) == *b"content_block_start";
        let Some(span) = if reasoning { found.thinking } else { found.text }
            .filter(|span| !(starts && span.is_empty()))
        else {
            cx.sink.pass(event);
            return Ok(());
        };
        let block = self.blocks.get(cx, (0, found.index, reasoning), false)?;
        let (_, matched) = block.take(cx, event, span, &mut self.edits)?;
        if !starts {
            block.remember(event, span);
        }
        cx.sink.edited(event, &mut self.edits);
        if let Some(matched) = matched {
            self.end(cx, found.index, reasoning, matched, event.after());
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
                if let Some(mut block) = self.blocks.close((0, index, reasoning)) {
                    if let Some(matched) = self.flush_block(cx, &mut block) {
                        self.end(cx, index, reasoning, matched, event.after());
                        if *cx.ended {
                            return;
                        }
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
        index: u32,
        reasoning: bool,
        matched: Match,
        after: &[u8],
    ) {
        let mut stop = Vec::new();
        text::encode_stop(cx.set, matched.index, &mut stop);
        self.matched = Some((index, stop));
        self.block_closed = false;
        cx.record(0, Some(index), Part::of(reasoning), matched);
        self.blocks.open.clear();
        if cx.options.on_match == OnMatch::Cancel {
            self.end_drained(cx, after);
            cx.sink.own(&[b"event: message_stop", b"data: {\"type\":\"message_stop\"}"], after);
            cx.end_here();
        }
    }

    /// Writes those ends of a matched message that have not been written, but for the last.
    fn end_drained(&mut self, cx: &mut Context<'_>, after: &[u8]) {
        let Some((index, stop)) = &self.matched else { return };
        if !self.block_closed {
            let data = format!("data: {{\"type\":\"content_block_stop\",\"index\":{index}}}");
            cx.sink.own(&[b"event: content_block_stop", data.as_bytes()], after);
            self.block_closed = true;
        }
        if !self.reason_sent {
            let mut data =
                b"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"stop_sequence\",\"stop_sequence\":".to_vec();
            put::quoted(stop, &mut data);
            if let StopField::Named(name) = &cx.options.stop_field {
                put::field(name, stop, &mut data);
            }
            data.extend_from_slice(b"},\"usage\":{\"output_tokens\":");
            data.extend_from_slice(if self.output_tokens.is_empty() {
                b"0"
            } else {
                &self.output_tokens
            });
            data.extend_from_slice(b"}}");
            cx.sink.own(&[b"event: message_delta", &data], after);
            self.reason_sent = true;
        }
    }

    fn flush(&mut self, cx: &mut Context<'_>) {
        for mut block in std::mem::take(&mut self.blocks.open) {
            if let Some(matched) = self.flush_block(cx, &mut block) {
                let (_, index, reasoning) = block.key;
                let mut stop = Vec::new();
                text::encode_stop(cx.set, matched.index, &mut stop);
                self.matched = Some((index, stop));
                cx.record(0, Some(index), Part::of(reasoning), matched);
            }
        }
    }

    /// What a block holds leaves in a delta made after its last one.
    fn flush_block(&mut self, cx: &mut Context<'_>, block: &mut Block) -> Option<Match> {
        if !block.stream.holds() {
            return None;
        }
        cx.scratch.text.clear();
        let found = block.stream.flush(&mut cx.scratch.text);
        if let Some((pattern, span)) = &block.pattern {
            let mut edits = Edits::default();
            edits.replace(*span, &cx.scratch.text);
            cx.sink.made(pattern, &mut edits);
        } else {
            let (_, index, reasoning) = block.key;
            let (kind, field) =
                if reasoning { ("thinking_delta", "thinking") } else { ("text_delta", "text") };
            let mut data = format!("data: {{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{\"type\":\"{kind}\"")
                .into_bytes();
            put::field(field, &cx.scratch.text, &mut data);
            data.extend_from_slice(b"}}");
            cx.sink.own(&[b"event: content_block_delta", &data], &self.after);
        }
        found
    }
}

/// Names the stop in the fields that stand for it.
fn name_stop(json: &[u8], found: &ScannedEvent, stop: &[u8], edits: &mut Edits) {
    if let Some(reason) = found.stop_reason.filter(|reason| reason.of(json) != b"\"stop_sequence\"")
    {
        edits.replace(reason, b"\"stop_sequence\"");
    }
    match (found.stop_sequence, found.stop_reason) {
        (Some(sequence), _) => edits.replace_with(sequence, |arena| put::quoted(stop, arena)),
        (None, Some(reason)) => {
            edits.replace_with(put::point(reason.end), |arena| {
                put::field("stop_sequence", stop, arena);
            });
        }
        (None, None) => {}
    }
}

fn add_field(cx: &Context<'_>, behind: Option<Span>, stop: &[u8], edits: &mut Edits) {
    if let (StopField::Named(name), Some(span)) = (&cx.options.stop_field, behind) {
        edits.replace_with(put::point(span.end), |arena| put::field(name, stop, arena));
    }
}
