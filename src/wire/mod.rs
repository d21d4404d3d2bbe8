//! Stops on a provider's stream: its bytes in, the same bytes out up to the first stop, with the
//! provider's own end.
//!
//! A [`Cutter`] knows how one [`Dialect`] frames its answer and where the text stands in a frame.
//! It never builds a JSON tree: it finds the spans of the fields it needs and edits them in place,
//! so that **a frame that needs no change leaves as the very bytes that came in**. The result does
//! not depend on how the input is cut.
//!
//! ```
//! use holdback::{StopSet, wire::{Cutter, Dialect, Options}};
//!
//! let stops = StopSet::new(["Observation:"])?;
//! let mut cutter = Cutter::new(Dialect::OllamaGenerate, &stops, Options::default())?;
//! let mut out = Vec::new();
//! cutter.feed(b"{\"response\":\"Paris.\\nObs\",\"done\":false}\n", &mut out)?;
//! cutter.feed(b"{\"response\":\"ervation: none\",\"done\":false}\n", &mut out)?;
//! assert!(cutter.ended());
//! assert_eq!(cutter.matches()[0].found.index, 0);
//! assert_eq!(
//!     String::from_utf8(out)?,
//!     "{\"response\":\"Paris.\\n\",\"done\":false}\n{\"response\":\"\",\"done\":true,\"done_reason\":\"stop\"}\n"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod blocks;
mod choices;
mod cutter;
mod dialect;
mod edit;
mod entries;
mod error;
mod event;
mod framing;
mod json;
mod lane;
mod layout;
mod matcher;
mod options;
mod template;
mod text;

pub use cutter::{Cutter, Dialect, UnknownDialect, WireMatch};
pub use error::WireError;
pub use options::{OnError, OnMalformed, OnMatch, Options, StopField};

use entries::COLUMNS;
use error::Fault;
use event::Sink;
use lane::Scratch;
use layout::Part;

use crate::set::StopSet;
use crate::stream::Match;

/// What an engine needs besides its own state while it reads an event.
struct Context<'a> {
    set: &'a StopSet,
    options: &'a Options,
    scratch: &'a mut Scratch,
    entries: &'a mut [Vec<u8>; COLUMNS],
    sink: Sink<'a>,
    matches: &'a mut Vec<WireMatch>,
    ended: &'a mut bool,
    cut: &'a mut bool,
}

impl Context<'_> {
    /// The end of the stream has been written here: nothing of the upstream follows it.
    fn end_here(&mut self) {
        *self.ended = true;
        *self.cut = true;
    }

    fn record(&mut self, choice: u32, block: Option<u32>, part: Part, found: Match) {
        self.matches.push(WireMatch { choice, block, reasoning: part == Part::Reasoning, found });
    }
}
