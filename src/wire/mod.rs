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
//!
//! From the ground up: `json`, `edit` and `text` read and change one frame's bytes; `framing` finds
//! the frames; `text_stream` is one message text with its reader; `frame` is what was found in a
//! frame; `dialect` has a file for each dialect and the table of all; `choices` and `blocks` are
//! what several dialects share; `cutter` is the public face.
#![forbid(unsafe_code)]

mod blocks;
mod choices;
mod context;
mod cutter;
mod dialect;
mod edit;
mod error;
mod event;
#[cfg(any(feature = "python", test))]
pub(crate) mod fields;
mod frame;
mod framing;
mod json;
mod logprobs;
mod options;
mod template;
mod text;
mod text_stream;
mod unread;

pub use cutter::{Cutter, WireMatch};
pub use dialect::{Dialect, UnknownDialect};
pub use error::WireError;
pub use options::{OnError, OnMalformed, OnMatch, OnUnread, Options, StopField};
