//! The Responses API: typed events with sequence numbers, and the full text again in four places at
//! the end.
//!
//! Text comes in `response.output_text.delta`. A stream that is not cut has nothing to rewrite,
//! since what was held leaves in a delta of its own before the first repeat; events behind that
//! delta get the next sequence numbers. On a match the four events that close the answer are
//! written after the stream's own templates (`response.created`, `response.output_item.added`,
//! `response.content_part.added`), or, for a drained stream, the upstream's are rewritten. A stop
//! completes a response: `status` is `completed`.
#![forbid(unsafe_code)]

use crate::wire::dialect::{Engine, Entry};
use crate::wire::framing::Framing;
mod finish;
mod reading;
mod rewrite;

use self::reading::{Object, ScannedEvent, elements, object, scan};
use self::rewrite::{complete, cut_entries, cut_item, cut_list, cut_part};
use crate::stream::Match;
use crate::wire::blocks::{Block, Blocks, Key};
use crate::wire::context::Context;
use crate::wire::edit::Edits;
use crate::wire::error::Fault;
use crate::wire::event::Event;
use crate::wire::frame::Part;
use crate::wire::json::{Cursor, Span, word};
use crate::wire::logprobs::Progress;
use crate::wire::options::{OnError, OnMatch};
use crate::wire::text;

pub(super) static DIALECT: Entry = Entry {
    name: "openai.responses",
    framing: Framing::Events,
    reserved: RESERVED,
    known: KNOWN,
    engine: || Box::new(Responses::default()),
};

const KNOWN: &str = "type sequence_number";

const RESERVED: &str = "id object created_at status background completed_at error \
    incomplete_details instructions max_output_tokens max_tool_calls metadata model output \
    output_text parallel_tool_calls previous_response_id prompt reasoning service_tier store \
    temperature text tool_choice tools top_logprobs top_p truncation usage user";

/// The state of one response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Responses {
    blocks: Blocks,
    edits: Edits,
    matched: Option<Matched>,
    /// How many events were made: later sequence numbers grow by it.
    made: u64,
    /// The last sequence number that left.
    sequence: Option<u64>,
    /// Templates for an end of our own, raw.
    response: Vec<u8>,
    item: Vec<u8>,
    part: Vec<u8>,
    /// Of which output the item and the parts are; several may be open at once, and the last one's
    /// are kept.
    item_at: Option<u32>,
    /// Items, and parts of the open item, that are complete: raw, with commas.
    items: Vec<u8>,
    parts: Vec<u8>,
    after: Vec<u8>,
    sent: Sent,
}

/// What has left beside the text of the part being read: an end repeats it. Raw, with commas.
#[derive(Clone, Debug, Default)]
struct Sent {
    /// The part's output and content index.
    of: Option<(u32, u32)>,
    annotations: Vec<u8>,
    logprobs: Vec<u8>,
}

impl Sent {
    /// Of this part, and of no other.
    fn of(&mut self, part: (u32, u32)) -> &mut Self {
        if self.of != Some(part) {
            self.of = Some(part);
            self.annotations.clear();
            self.logprobs.clear();
        }
        self
    }
}

/// Appends to a list in the making.
fn append(list: &mut Vec<u8>, more: &[u8]) {
    let more = more.trim_ascii();
    if !list.is_empty() && !more.is_empty() {
        list.push(b',');
    }
    list.extend_from_slice(more);
}

#[derive(Clone, Debug)]
struct Matched {
    output: u32,
    content: u32,
    /// The stop and the text that left, raw.
    stop: Vec<u8>,
    emitted: Vec<u8>,
    /// The same text's length in UTF-8 bytes.
    decoded_out: u64,
    /// It was found in reasoning.
    reasoning: bool,
    /// The item's id, raw.
    item_id: Vec<u8>,
    /// How many of the closing events have left: the text's, the part's, the item's.
    closed: usize,
}

const DELTA: [&[u8]; 2] = [b"response.output_text.delta", b"response.reasoning_text.delta"];
const DONE: [&[u8]; 2] = [b"response.output_text.done", b"response.reasoning_text.done"];
const PART: [&str; 2] = ["output_text", "reasoning_text"];

impl Engine for Responses {
    fn event(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> Result<(), Fault> {
        let found = scan(event.json)?;
        self.edits.clear();
        if self.after.is_empty() {
            self.after.extend_from_slice(event.after());
        }
        let kind = word(event.json, found.kind);
        let kind = &*kind;
        if !kind.starts_with(b"response.") && !matches!(kind, b"error" | b"ping" | b"keepalive") {
            cx.place(event)?;
        }
        let reasoning = kind == DELTA[1] || kind == DONE[1];
        if let Some(mut matched) = self.matched.take() {
            let result = self.drained(cx, event, &found, kind, &mut matched);
            self.matched = Some(matched);
            return result;
        }
        check_repeats(cx, event.json, &found, kind, None)?;
        match kind {
            _ if DELTA.contains(&kind) && (!reasoning || cx.options.cut_reasoning) => {
                return self.delta(cx, event, &found, reasoning);
            }
            _ if DONE.contains(&kind) => {
                if let Some(mut block) =
                    self.blocks.close((found.output.unwrap_or(0), found.content, reasoning))
                {
                    if self.close(cx, event, &mut block) {
                        return Ok(());
                    }
                }
            }
            b"response.completed"
            | b"response.incomplete"
            | b"response.failed"
            | b"response.cancelled" => {
                self.flush(cx);
                *cx.ended = true;
            }
            b"error" => self.fail(cx),
            _ => self.remember(cx, event, &found, kind)?,
        }
        self.pass(cx, event, &found);
        Ok(())
    }

    /// The answer to a request that does not stream.
    fn body(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> Result<(), Fault> {
        let json = event.json;
        let response = object(json, Span { start: 0, end: json.len() })?;
        Cursor::at(json, Span { start: response.span.end, end: json.len() }).end()?;
        if response.list.is_none() {
            cx.place(event)?;
        }
        let items = response.list.map_or(Ok(Vec::new()), |list| elements(json, list))?;
        'items: for (output, span) in items.iter().enumerate() {
            let Ok(item) = object(json, *span) else { continue };
            let parts = item.list.map_or(Ok(Vec::new()), |list| elements(json, list))?;
            for (content, span) in parts.iter().enumerate() {
                let Ok(part) = object(json, *span) else { continue };
                let reasoning = match &*word(json, part.kind) {
                    b"output_text" => false,
                    b"reasoning_text" if cx.options.cut_reasoning => true,
                    _ => continue,
                };
                let Some(whole) = part.text else { continue };
                let key = (
                    u32::try_from(output).unwrap_or(u32::MAX),
                    u32::try_from(content).unwrap_or(u32::MAX),
                    reasoning,
                );
                self.blocks.open.clear();
                let block = self.blocks.get(cx, key, true)?;
                let (_, Some(found)) = block.take_whole(cx, event, whole, &mut self.edits)? else {
                    continue;
                };
                let (emitted, decoded_out) =
                    (block.stream.emitted().to_vec(), block.stream.decoded_out());
                let mut stop = Vec::new();
                text::encode_stop(cx.set, found.index, &mut stop);
                let matched = Matched {
                    output: key.0,
                    content: key.1,
                    stop,
                    emitted,
                    decoded_out,
                    reasoning,
                    item_id: Vec::new(),
                    closed: 0,
                };
                self.edits.clear(); // the text is cut together with what repeats it
                if let Some(list) = response.list {
                    cut_list(list, &items, output, &mut self.edits);
                }
                cut_item(json, item.span, &matched, &mut self.edits)?;
                if let Some(whole) = response.output_text {
                    self.edits.replace(whole, &matched.emitted);
                }
                complete(cx, json, &response, &matched.stop, &mut self.edits);
                cx.record(key.0, Some(key.1), Part::of(reasoning), found);
                break 'items;
            }
        }
        cx.sink.edited(event, &mut self.edits);
        Ok(())
    }

    /// The input is over. A stop that only this completes (half of a character that stays alone)
    /// ends the response like any other.
    fn finish(&mut self, cx: &mut Context<'_>) {
        for mut block in std::mem::take(&mut self.blocks.open) {
            let Some(found) = self.flush_block(cx, &mut block) else { continue };
            let (key, after) = (block.key, self.after.clone());
            let id = block.pattern.as_ref().and_then(|(pattern, _)| {
                let id = scan(&pattern.json).ok()?.item_id?;
                Some(id.of(&pattern.json).to_vec())
            });
            self.blocks.open.push(block);
            self.end(cx, &after, key, found, &id.unwrap_or_default());
            break;
        }
        if let Some(matched) = self.matched.take().filter(|_| !*cx.ended) {
            let after = std::mem::take(&mut self.after);
            self.write_end(cx, &after, &matched);
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

/// The places that say the text again say what was read. What is cut to what left, `cut` and what
/// stands behind it, needs no look.
fn check_repeats(
    cx: &mut Context<'_>,
    json: &[u8],
    found: &ScannedEvent,
    kind: &[u8],
    cut: Option<&Matched>,
) -> Result<(), Fault> {
    let cut = cut.map(|cut| (cut.output as usize, cut.content as usize));
    let read = |reasoning: bool| !reasoning || cx.options.cut_reasoning;
    let mut texts = Vec::new();
    if DONE.contains(&kind) && read(kind == DONE[1]) {
        texts.extend(found.text);
    }
    let mut parts: Vec<Span> = found.part.into_iter().collect();
    let place = found.output.map_or(usize::MAX, |output| output as usize);
    let mut items: Vec<(usize, Span)> = found.item.map(|item| (place, item)).into_iter().collect();
    let mut joined = None;
    if let Some(response) = found.response {
        let response = object(json, response)?;
        joined = response.output_text.filter(|_| cut.is_none());
        let list = response.list.map_or(Ok(Vec::new()), |list| elements(json, list))?;
        items.extend(list.into_iter().enumerate());
    }
    for (place, item) in items {
        let Ok(Object { list: Some(list), .. }) = object(json, item) else { continue };
        let own = elements(json, list)?;
        let count = match cut {
            Some((output, content)) if output == place => content,
            Some((output, _)) if output < place && found.item.is_none() => 0,
            _ => own.len(),
        };
        parts.extend(own.into_iter().take(count));
    }
    for part in parts {
        let Ok(part) = object(json, part) else { continue };
        let kind = word(json, part.kind);
        if PART.iter().any(|own| own.as_bytes() == &*kind) && read(*kind == *PART[1].as_bytes()) {
            texts.extend(part.text);
        }
    }
    // The join of several texts can have a stop that none of them has.
    if texts.len() == 1 {
        texts.extend(joined);
    }
    texts.into_iter().try_for_each(|text| cx.check_repeat(json, text))
}

impl Responses {
    /// Passes an event, with its sequence number moved on if events were made before it.
    fn pass(&mut self, cx: &mut Context<'_>, event: &Event<'_>, found: &ScannedEvent) {
        let number = found
            .sequence
            .and_then(|span| std::str::from_utf8(span.of(event.json)).ok()?.parse::<u64>().ok());
        if let (Some(number), Some(span)) = (number, found.sequence) {
            let number = number.saturating_add(self.made);
            self.sequence = Some(number);
            if self.made > 0 {
                self.edits.replace(span, number.to_string().as_bytes());
            }
        }
        cx.sink.edited(event, &mut self.edits);
    }

    /// Keeps what an end of our own would be written after.
    fn remember(
        &mut self,
        cx: &Context<'_>,
        event: &Event<'_>,
        found: &ScannedEvent,
        kind: &[u8],
    ) -> Result<(), Fault> {
        let keep = |buffer: &mut Vec<u8>, span: Option<Span>| {
            buffer.clear();
            buffer.extend_from_slice(span.map_or(&[], |span| span.of(event.json)));
        };
        let of = |span: Option<Span>| span.map_or(&[][..], |span| span.of(event.json));
        match kind {
            b"response.created" | b"response.in_progress" | b"response.queued" => {
                keep(&mut self.response, found.response);
            }
            b"response.output_item.added" => {
                self.parts.clear();
                self.part.clear();
                keep(&mut self.item, found.item);
                self.item_at = found.output;
            }
            b"response.output_text.annotation.added" => {
                let part = (found.output.unwrap_or(0), found.content);
                append(&mut self.sent.of(part).annotations, of(found.annotation));
            }
            b"response.content_part.added" => keep(&mut self.part, found.part),
            b"response.content_part.done" => append(&mut self.parts, of(found.part)),
            b"response.output_item.done" => {
                append(&mut self.items, of(found.item));
                self.item.clear();
                self.parts.clear();
            }
            _ => {}
        }
        self.check_limit(cx)
    }

    fn check_limit(&self, cx: &Context<'_>) -> Result<(), Fault> {
        let limit = cx.options.max_text_bytes;
        let emitted: usize =
            self.blocks.open.iter().map(|block| block.stream.emitted().len()).sum();
        let sent = self.sent.annotations.len() + self.sent.logprobs.len();
        if emitted + self.items.len() + self.parts.len() + sent > limit {
            return Err(Fault::Limit {
                what: "bytes of text to be repeated at the end (max_text_bytes)",
                limit,
            });
        }
        let held: usize = self
            .blocks
            .open
            .iter()
            .map(|block| block.stream.entries.bytes())
            .fold(0, usize::saturating_add);
        if held > cx.options.max_held_bytes {
            return Err(Fault::Limit {
                what: "bytes of held log-probabilities (max_held_bytes)",
                limit: cx.options.max_held_bytes,
            });
        }
        Ok(())
    }

    fn delta(
        &mut self,
        cx: &mut Context<'_>,
        event: &Event<'_>,
        found: &ScannedEvent,
        reasoning: bool,
    ) -> Result<(), Fault> {
        let Some(span) = found.delta else {
            self.pass(cx, event, found);
            return Ok(());
        };
        let key = (found.output.unwrap_or(0), found.content, reasoning);
        let block = self.blocks.get(cx, key, true)?;
        let (start, matched) = block.take(cx, event, span, &mut self.edits)?;
        let stream = &mut block.stream;
        let (end, decoded_out, holds) = (stream.decoded_in(), stream.decoded_out(), stream.holds());
        let progress = Progress { start, end, decoded_out, holds, over: matched.is_some() };
        if found.logprobs.is_some() || !stream.entries.is_empty() {
            cx.entries.iter_mut().for_each(Vec::clear);
            let sorted = stream.entries.sort(
                event.json,
                &[found.logprobs, None, None, None],
                progress,
                cx.entries,
            );
            let inside = |array: Span| Span { start: array.start + 1, end: array.end - 1 };
            let decoded_out = if sorted {
                &cx.entries[0]
            } else {
                found.logprobs.map_or(&[][..], |array| inside(array).of(event.json))
            };
            append(&mut self.sent.of((key.0, key.1)).logprobs, decoded_out);
            if sorted {
                match found.logprobs {
                    Some(array) => self.edits.replace(inside(array), &cx.entries[0]),
                    None => self.edits.insert(
                        span.end + 1,
                        &[b",\"logprobs\":[", cx.entries[0].as_slice(), b"]"].concat(),
                    ),
                }
            }
        }
        block.remember(event, span);
        self.pass(cx, event, found);
        match matched {
            Some(matched) => self.end(
                cx,
                event.after(),
                key,
                matched,
                found.item_id.map_or(&[], |id| id.of(event.json)),
            ),
            None => self.check_limit(cx)?,
        }
        Ok(())
    }

    /// The block is over before this event: what it holds leaves first. True if that completed a
    /// stop and ended the response.
    fn close(&mut self, cx: &mut Context<'_>, event: &Event<'_>, block: &mut Block) -> bool {
        let Some(matched) = self.flush_block(cx, block) else { return false };
        let key = block.key;
        self.blocks.open.push(block.clone());
        let id = scan(event.json)
            .ok()
            .and_then(|found| found.item_id)
            .map_or(&[][..], |id| id.of(event.json));
        self.end(cx, event.after(), key, matched, id);
        *cx.ended
    }

    fn flush(&mut self, cx: &mut Context<'_>) {
        for mut block in std::mem::take(&mut self.blocks.open) {
            if let Some(matched) = self.flush_block(cx, &mut block) {
                let (output, content, reasoning) = block.key;
                cx.record(output, Some(content), Part::of(reasoning), matched);
            }
        }
    }

    /// What a block holds leaves in a delta made after its last one.
    fn flush_block(&mut self, cx: &mut Context<'_>, block: &mut Block) -> Option<Match> {
        if !block.stream.holds() {
            return None;
        }
        cx.scratch.text.clear();
        let matched = block.stream.flush(&mut cx.scratch.text);
        cx.entries.iter_mut().for_each(Vec::clear);
        block.stream.entries.flush(cx.entries);
        append(&mut self.sent.of((block.key.0, block.key.1)).logprobs, &cx.entries[0]);
        let (pattern, span) = block.pattern.as_ref()?;
        let mut edits = Edits::default();
        edits.replace(*span, &cx.scratch.text);
        if let Ok(found) = scan(&pattern.json) {
            if let Some(array) = found.logprobs {
                edits.replace(array, &[b"[", cx.entries[0].as_slice(), b"]"].concat());
            }
            if let (Some(number), Some(last)) = (found.sequence, self.sequence) {
                self.sequence = Some(last + 1);
                edits.replace(number, (last + 1).to_string().as_bytes());
                self.made += 1;
            }
        }
        cx.sink.made(pattern, &mut edits);
        matched
    }

    /// Ends the response at its first stop.
    fn end(&mut self, cx: &mut Context<'_>, after: &[u8], key: Key, found: Match, item_id: &[u8]) {
        let (output, content, reasoning) = key;
        let mut stop = Vec::new();
        text::encode_stop(cx.set, found.index, &mut stop);
        let (emitted, decoded_out) = self.blocks.close(key).map_or((Vec::new(), 0), |block| {
            (block.stream.emitted().to_vec(), block.stream.decoded_out())
        });
        cx.record(output, Some(content), Part::of(reasoning), found);
        let matched = Matched {
            output,
            content,
            stop,
            emitted,
            decoded_out,
            reasoning,
            item_id: item_id.to_vec(),
            closed: 0,
        };
        if cx.options.on_match == OnMatch::Cancel {
            self.write_end(cx, after, &matched);
            cx.end_here();
        }
        self.matched = Some(matched);
    }

    /// An event behind the match in a stream that is read on: the repeats of the text are cut, what
    /// belongs to later text goes.
    fn drained(
        &mut self,
        cx: &mut Context<'_>,
        event: &Event<'_>,
        found: &ScannedEvent,
        kind: &[u8],
        matched: &mut Matched,
    ) -> Result<(), Fault> {
        let json = event.json;
        // A text that does not say where it belongs is of the first output, as before the match.
        let of_text = DELTA.contains(&kind) || DONE.contains(&kind);
        let output = found.output.or(of_text.then_some(0));
        let place = output.map(|output| (output, found.content));
        let here = place == Some((matched.output, matched.content));
        match kind {
            b"response.completed" | b"response.incomplete" => {
                check_repeats(cx, json, found, kind, Some(matched))?;
                if let Some(span) = found.response {
                    let response = object(json, span)?;
                    if let Some(list) = response.list {
                        let items = elements(json, list)?;
                        cut_list(list, &items, matched.output as usize, &mut self.edits);
                        if let Some(item) = items.get(matched.output as usize) {
                            cut_item(json, *item, matched, &mut self.edits)?;
                        }
                    }
                    if let Some(whole) = response.output_text {
                        self.edits.replace(whole, &matched.emitted);
                    }
                    complete(cx, json, &response, &matched.stop, &mut self.edits);
                }
                *cx.ended = true;
                if kind == b"response.incomplete" {
                    self.pass_renamed(cx, event, found);
                    return Ok(());
                }
            }
            b"response.failed" | b"response.cancelled" => {
                check_repeats(cx, json, found, kind, None)?;
                *cx.ended = true;
            }
            b"error" => {}
            _ if DONE.contains(&kind) && here => {
                matched.closed = 1;
                if let Some(whole) = found.text {
                    self.edits.replace(whole, &matched.emitted);
                }
                cut_entries(json, found.logprobs, matched, &mut self.edits);
            }
            b"response.content_part.done" if here => {
                matched.closed = 2;
                if let Some(part) = found.part {
                    cut_part(json, part, matched, &mut self.edits)?;
                }
            }
            b"response.output_item.done" if found.output == Some(matched.output) => {
                check_repeats(cx, json, found, kind, Some(matched))?;
                matched.closed = 3;
                if let Some(item) = found.item {
                    cut_item(json, item, matched, &mut self.edits)?;
                }
            }
            _ if output.is_some_and(|output| output >= matched.output) => return Ok(()),
            _ => check_repeats(cx, json, found, kind, None)?,
        }
        self.pass(cx, event, found);
        Ok(())
    }

    /// `response.incomplete` becomes `response.completed`: the stop came before the limit did.
    fn pass_renamed(&mut self, cx: &mut Context<'_>, event: &Event<'_>, found: &ScannedEvent) {
        if let Some(kind) = found.kind {
            self.edits.replace(kind, b"response.completed");
        }
        let before = String::from_utf8_lossy(event.before())
            .replace("response.incomplete", "response.completed");
        let frame = [before.as_bytes(), event.json, event.after()].concat();
        let data = Span { start: before.len(), end: before.len() + event.json.len() };
        self.pass(cx, &Event { frame: &frame, json: event.json, data, error: false }, found);
    }
}
