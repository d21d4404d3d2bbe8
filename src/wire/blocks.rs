//! Message texts that are blocks of one answer (Anthropic, the Responses API): each has a matcher
//! of its own, made when it begins.
#![forbid(unsafe_code)]

use super::context::Context;
use super::edit::Edits;
use super::error::Fault;
use super::event::{Event, Pattern};
use super::json::{JsonResult, Span};
use super::text_stream::{self, TextStream};
use crate::stream::Match;

/// A block: `(choice, block)` as [`WireMatch`](super::WireMatch) numbers them, and whether it is
/// reasoning.
pub(super) type Key = (u32, u32, bool);

#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) key: Key,
    pub(super) stream: TextStream,
    /// The frame in which text was held last, and where in it the text stands.
    pub(super) pattern: Option<(Box<Pattern>, Span)>,
}

/// The open blocks of one answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    pub(super) open: Vec<Block>,
}

impl Blocks {
    /// The block, made when it first turns up. With `repeats`, what leaves is kept.
    pub(super) fn get(
        &mut self,
        cx: &Context<'_>,
        key: Key,
        repeats: bool,
    ) -> Result<&mut Block, Fault> {
        let at = match self.open.iter().position(|block| block.key == key) {
            Some(at) => at,
            None if self.open.len() >= cx.options.max_choices => {
                return Err(Fault::Limit {
                    what: "open content blocks (max_choices)",
                    limit: cx.options.max_choices,
                });
            }
            None => {
                let stream = TextStream::new(
                    cx.set,
                    &cx.options.matching,
                    0,
                    repeats,
                    cx.options.max_held_bytes,
                )
                .map_err(Fault::Core)?;
                self.open.push(Block { key, stream, pattern: None });
                self.open.len() - 1
            }
        };
        Ok(&mut self.open[at])
    }

    /// Removes a block that is over.
    pub(super) fn close(&mut self, key: Key) -> Option<Block> {
        self.open.iter().position(|block| block.key == key).map(|at| self.open.remove(at))
    }

    pub(super) fn drop_held(&mut self) {
        for block in &mut self.open {
            block.stream.drop_held();
        }
    }
}

impl Block {
    /// Reads the raw text of a frame and edits it there. Gives where the text began, and the match.
    pub(super) fn take(
        &mut self,
        cx: &mut Context<'_>,
        event: &Event<'_>,
        span: Span,
        edits: &mut Edits,
    ) -> JsonResult<(u64, Option<Match>)> {
        let taken = self
            .stream
            .take(span.of(event.json), cx.scratch)
            .map_err(|what| text_stream::malformed(what, span))?;
        if !taken.unchanged {
            edits.replace(span, &cx.scratch.text);
        }
        Ok((taken.start, taken.matched))
    }

    /// The same for a text that is whole: nothing stays held.
    pub(super) fn take_whole(
        &mut self,
        cx: &mut Context<'_>,
        event: &Event<'_>,
        span: Span,
        edits: &mut Edits,
    ) -> JsonResult<(u64, Option<Match>)> {
        let raw = span.of(event.json);
        let mut taken =
            self.stream.take(raw, cx.scratch).map_err(|what| text_stream::malformed(what, span))?;
        if taken.matched.is_none() {
            self.stream.close(&mut taken, raw, cx.scratch);
        }
        if !taken.unchanged {
            edits.replace(span, &cx.scratch.text);
        }
        Ok((taken.start, taken.matched))
    }

    /// Remembers a frame while text is held that came in it.
    pub(super) fn remember(&mut self, event: &Event<'_>, span: Span) {
        if !self.stream.holds() {
            return;
        }
        let (pattern, at) = self.pattern.get_or_insert_default();
        pattern.set(event, &crate::wire::frame::ParsedFrame::default());
        *at = span;
    }
}
