//! Stop sequences on a live stream.
#![deny(missing_docs)]

mod automaton;
mod decode;
mod error;
#[cfg(feature = "python")]
mod python;
mod scope;
mod set;
mod stops;
mod stream;
pub mod wire;

#[doc(hidden)]
pub use automaton::Paths;
pub use automaton::Unit;
pub use decode::{Decoded, Decoder, Errors, Fault};
pub use error::Error;
pub use scope::{Frozen, Include, Scope};
pub use set::StopSet;
pub use stops::{Limits, StopList, Tie};
pub use stream::{
    Advance, ByteStream, Held, Match, Matcher, Passed, Place, Snapshot, Stream, StreamOptions,
};
