//! Stop sequences on a live stream.
#![deny(missing_docs)]

mod automaton;
mod decode;
mod error;
#[cfg(feature = "python")]
mod python;
pub mod repetition;
mod scope;
mod set;
mod stops;
mod stream;
pub mod wire;

pub use automaton::CodeUnit;
#[doc(hidden)]
pub use automaton::TestKnobs;
pub use decode::{Decoded, Decoder, Errors, Fault};
pub use error::Error;
pub use scope::{Include, Scope};
pub use set::StopSet;
pub use stops::{Limits, StopList, Tie};
pub use stream::{
    Advance, ByteStream, End, Held, Match, Matcher, Place, Reader, ScopedSnapshot, Snapshot, Step,
    Stream, StreamOptions,
};
