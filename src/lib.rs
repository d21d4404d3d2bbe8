//! Stop sequences on a live stream.
#![deny(missing_docs)]

mod automaton;
mod decode;
mod error;
#[cfg(feature = "python")]
mod python;
mod set;
mod stops;
mod stream;

pub use automaton::Unit;
pub use decode::{Decoder, Errors, Fault};
pub use error::Error;
pub use set::StopSet;
pub use stops::{Limits, StopList, Tie};
pub use stream::{Advance, ByteStream, Held, Match, Matcher, Snapshot, Stream, StreamOptions};
