//! Stop sequences on a live stream: exact hold-back, the first stop among many, any chunking.
//!
//! A language model's answer comes in chunks, and a stop string may begin in one and end in
//! another. This crate says after each chunk which text may be sent on *now*: all of it but the
//! longest suffix that may still become a stop, and not one character more. When a stop is
//! complete, the text before it has gone out, nothing of the stop has, and [`Match`] says which it
//! was and where.
//!
//! * [`StopSet`] is a list of stops, compiled once and shared by any number of streams and threads.
//! * [`Stream`] is one response of text, [`ByteStream`] one of raw bytes. Either is a few words of
//!   state, whatever it has read, and [`Clone`] makes an independent copy.
//! * [`StreamOptions`] says which stops are emitted themselves ([`Include`]), where stops apply
//!   ([`Scope`]) and what becomes of text that is not valid ([`Errors`]).
//! * [`StopList`] takes stops one by one, under [`Limits`] for lists that come from clients, and
//!   [`Tie`] says which stop wins when several end at the same character.
//! * [`wire`] does all this to a provider's stream: its bytes in, the same bytes out up to the stop.
//! * [`repetition`] finds text that has fallen into a loop.
//!
//! # Example: one response
//!
//! ```
//! use holdback::StopSet;
//!
//! let stops = StopSet::new(["</answer>", "\n\nUser:"])?;
//! let mut stream = stops.stream()?;
//! let mut out = String::new();
//! for chunk in ["It is ", "42.</ans", "wer>", " and more"] {
//!     if let Some(found) = stream.feed(chunk, &mut out)? {
//!         assert_eq!((found.index, found.start, found.end), (0, 9, 18));
//!         break;
//!     }
//!     // Here `out` may be sent: `</ans` is held back, since it may become a stop.
//! }
//! assert_eq!(out, "It is 42.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! When the answer ends without a stop, [`Stream::flush`] gives what was still held back. A call of
//! it that is forgotten loses text.
//!
//! # Example: bytes, cut inside characters
//!
//! ```
//! let mut stream = holdback::StopSet::new(["。"])?.stream()?;
//! let mut out = String::new();
//! for chunk in "はい。いいえ".as_bytes().chunks(2) {
//!     if stream.feed_bytes(chunk, &mut out)?.is_some() {
//!         break;
//!     }
//! }
//! assert_eq!(out, "はい");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Example: stops that know where they apply
//!
//! What a model thinks is not searched, nor are the first characters; `END` is emitted itself, so
//! it holds nothing back.
//!
//! ```
//! use holdback::{Include, Scope, StopSet, Stream, StreamOptions};
//!
//! let options = StreamOptions {
//!     include_stop: Include::Only([b"END".to_vec()].into()),
//!     scope: Scope {
//!         min_chars: 3,
//!         ignore_inside: vec![(b"<think>".to_vec(), b"</think>".to_vec())],
//!         ..Scope::default()
//!     },
//!     ..StreamOptions::default()
//! };
//! let mut stream = Stream::new(StopSet::new(["END", "\n\n"])?, &options)?;
//! let mut out = String::new();
//! let text = "\n\n<think>END? No.\n\n</think>Yes. END\n";
//! let found = stream.feed(text, &mut out)?.expect("a stop after the region");
//! assert_eq!((found.index, found.start), (0, 32));
//! assert_eq!(out, "\n\n<think>END? No.\n\n</think>Yes. END");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Example: refusing what is not text
//!
//! A set and a stream are refused with an [`Error`] when they are made, which says what is wrong
//! with which stop or option. A chunk is refused with a [`Fault`]: after [`Stream::flush`], and
//! under [`Errors::Strict`] when it is not UTF-8. A stream that refuses a chunk is as it was.
//!
//! ```
//! use holdback::{Errors, Fault, StopSet, Stream, StreamOptions};
//!
//! let options = StreamOptions { errors: Errors::Strict, ..StreamOptions::default() };
//! let mut stream = Stream::new(StopSet::new(["STOP"])?, &options)?;
//! let mut out = String::new();
//! stream.feed_bytes(b"ST", &mut out)?;
//! assert!(matches!(stream.feed_bytes(b"\xff", &mut out), Err(Fault::Utf8 { .. })));
//! assert_eq!(stream.held_text(), "ST");
//! assert!(stream.feed_bytes(b"OP", &mut out)?.is_some());
//!
//! let refused = StopSet::new(["STOP", ""]).unwrap_err();
//! assert!(refused.to_string().contains("stop 1 is empty"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Example: many answers to one prompt
//!
//! ```
//! use holdback::StopSet;
//!
//! let stops = StopSet::new(["\n\n"])?;
//! let mut prompt = stops.stream()?;
//! let mut sent = String::new();
//! prompt.feed("Once upon a time\n", &mut sent)?;
//! let endings: Vec<String> = ["\nThe end.", "there was"]
//!     .into_iter()
//!     .map(|ending| {
//!         let (mut stream, mut out) = (prompt.clone(), sent.clone());
//!         stream.feed(ending, &mut out)?;
//!         stream.flush(&mut out)?;
//!         Ok(out)
//!     })
//!     .collect::<Result<_, holdback::Fault>>()?;
//! assert_eq!(endings, ["Once upon a time", "Once upon a time\nthere was"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How
//!
//! The stops become an Aho-Corasick automaton whose *state* is the hold-back buffer: it says which
//! beginning of which stop has been read, so nothing is kept and nothing is searched twice. A
//! character costs one table look-up, however many stops there are; long text is skipped with
//! vector instructions up to where a stop may begin. There is no dependency, and no input makes it
//! panic or use memory that grows with the text.
#![deny(missing_docs)]

mod automaton;
mod decode;
mod error;
mod pattern;
#[cfg(feature = "python")]
mod python;
pub mod repetition;
mod scope;
mod set;
mod stops;
mod stream;
pub mod wire;

pub use decode::{Errors, Fault};
pub use error::Error;
pub use pattern::{Pattern, PatternOptions};
pub use scope::{Include, Scope};
pub use set::{Stop, StopSet};
pub use stops::{Limits, StopList, Tie};
pub use stream::{ByteStream, Match, Stream, StreamOptions};

/// What streams are made of: for bindings and tests. Nothing in here is promised to stay.
#[doc(hidden)]
pub mod raw {
    pub use crate::automaton::{CodeUnit, TestKnobs};
    pub use crate::decode::{Decoded, Decoder};
    pub use crate::stream::{
        Advance, End, Held, Matcher, PatternedSnapshot, Place, Reader, ScopedSnapshot, Snapshot,
        Step,
    };
}

/// The examples of the page for Rust.
#[cfg(doctest)]
#[doc = include_str!("../docs/rust.md")]
struct Page;

/// Each public type can be sent to another thread, shared with it, and survives a panic elsewhere.
#[cfg(test)]
mod tests {
    use std::panic::{RefUnwindSafe, UnwindSafe};

    fn goes_anywhere<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}

    #[test]
    fn public_types_go_anywhere() {
        goes_anywhere::<crate::StopSet>();
        goes_anywhere::<crate::StopList>();
        goes_anywhere::<crate::Limits>();
        goes_anywhere::<crate::Tie>();
        goes_anywhere::<crate::Stream>();
        goes_anywhere::<crate::ByteStream>();
        goes_anywhere::<crate::StreamOptions>();
        goes_anywhere::<crate::Include>();
        goes_anywhere::<crate::Scope>();
        goes_anywhere::<crate::Errors>();
        goes_anywhere::<crate::Match>();
        goes_anywhere::<crate::Error>();
        goes_anywhere::<crate::Fault>();
        goes_anywhere::<crate::raw::Reader>();
        goes_anywhere::<crate::raw::Snapshot>();
        goes_anywhere::<crate::repetition::Repetition>();
        goes_anywhere::<crate::repetition::Detector>();
        goes_anywhere::<crate::wire::Cutter>();
        goes_anywhere::<crate::wire::Dialect>();
        goes_anywhere::<crate::wire::Options>();
        goes_anywhere::<crate::wire::WireError>();
        goes_anywhere::<crate::wire::WireMatch>();
    }
}
