//! Stop sequences on a live stream.
#![deny(missing_docs)]

mod error;
mod stops;

pub use error::Error;
pub use stops::{Limits, StopList, Tie};
