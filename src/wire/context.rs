//! What an engine needs besides its own state while it reads an event.
#![forbid(unsafe_code)]

use super::cutter::WireMatch;
use super::event::Sink;
use super::frame::Part;
use super::logprobs::COLUMNS;
use super::options::Options;
use super::text_stream::Scratch;
use crate::set::StopSet;
use crate::stream::Match;

/// The cutter's own things, lent to its engine for one event.
pub(crate) struct Context<'a> {
    pub(crate) set: &'a StopSet,
    pub(crate) options: &'a Options,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) entries: &'a mut [Vec<u8>; COLUMNS],
    pub(crate) sink: Sink<'a>,
    pub(crate) matches: &'a mut Vec<WireMatch>,
    pub(crate) ended: &'a mut bool,
    pub(crate) cut: &'a mut bool,
}

impl Context<'_> {
    /// The end of the stream has been written here: nothing of the upstream follows it.
    pub(crate) fn end_here(&mut self) {
        *self.ended = true;
        *self.cut = true;
    }

    pub(crate) fn record(&mut self, choice: u32, block: Option<u32>, part: Part, found: Match) {
        self.matches.push(WireMatch { choice, block, reasoning: part == Part::Reasoning, found });
    }
}
