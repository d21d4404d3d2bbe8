//! What an engine needs besides its own state while it reads an event.
#![forbid(unsafe_code)]

use super::cutter::WireMatch;
use super::error::Fault;
use super::event::{Event, Sink};
use super::frame::{Part, Place};
use super::json::Span;
use super::logprobs::COLUMNS;
use super::options::{OnUnread, Options};
use super::text_stream::{self, Scratch, TextStream};
use super::unread::{Holds, Unread, look};
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
    /// The keys of the dialect's own frames, separated by blanks.
    pub(crate) known: &'static str,
    pub(crate) unread: &'a mut Unread,
    pub(crate) ended: &'a mut bool,
    pub(crate) cut: &'a mut bool,
}

impl Context<'_> {
    /// The end of the stream has been written here: nothing of the upstream follows it.
    pub(crate) fn end_here(&mut self) {
        *self.ended = true;
        *self.cut = true;
    }

    /// Looks at a frame in which the dialect found no text, before it leaves. A frame that could not
    /// be placed is counted, or is an error.
    pub(crate) fn place(&mut self, event: &Event<'_>) -> Result<Place, Fault> {
        match look(event.json, self.known)? {
            Holds::Nothing => return Ok(Place::Dialect),
            Holds::Place => {}
            Holds::Text => self.pass_unread(event.json, "it has the text of another dialect")?,
            Holds::Unknown => {
                self.pass_unread(event.json, "it has no key that the dialect knows")?;
            }
        }
        Ok(Place::Unlike)
    }

    /// A frame could not be placed: counts it, or gives the error that it is.
    pub(crate) fn pass_unread(&mut self, bytes: &[u8], what: &'static str) -> Result<(), Fault> {
        self.unread.count(bytes);
        let fails = self.options.on_unread == OnUnread::Fail
            && !self.set.stops().is_empty()
            && !self.unread.over;
        if fails { Err(Fault::Unread { what }) } else { Ok(()) }
    }

    /// A text that the upstream says once more, whole, although no stop was found in it: a stop in it
    /// now is one that was not read.
    pub(crate) fn check_repeat(&mut self, json: &[u8], text: Span) -> Result<(), Fault> {
        if self.set.stops().is_empty() || text.is_empty() {
            return Ok(());
        }
        let read = self.scratch.characters;
        let mut whole =
            TextStream::new(self.set, &self.options.matching, 0, false, 0).map_err(Fault::Core)?;
        let raw = text.of(json);
        let mut step =
            whole.take(raw, self.scratch).map_err(|what| text_stream::malformed(what, text))?;
        if step.matched.is_none() {
            whole.close(&mut step, raw, self.scratch);
        }
        self.scratch.characters = read;
        match step.matched {
            Some(_) => self.pass_unread(json, "a text that is said again was not read before"),
            None => Ok(()),
        }
    }

    pub(crate) fn record(&mut self, choice: u32, block: Option<u32>, part: Part, found: Match) {
        self.matches.push(WireMatch { choice, block, reasoning: part == Part::Reasoning, found });
    }
}
