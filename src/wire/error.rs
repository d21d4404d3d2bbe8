//! Why a stream cannot be cut any further, and where.
#![forbid(unsafe_code)]

use std::fmt;

use super::json::Malformed;
use crate::error::Error;

/// What went wrong inside one frame; [`WireError`] adds where the frame is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Malformed(Malformed),
    Limit {
        what: &'static str,
        limit: usize,
    },
    /// The core refused its options; found when the cutter is made, so never in mid-stream.
    Core(Error),
    TooLong {
        limit: usize,
    },
    /// A frame that could not be placed.
    Unread {
        what: &'static str,
    },
    BrokenOff {
        bytes: usize,
    },
    Used,
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// A stream, or a body, that cannot be cut. The message names what is wrong, the frame (from 0) and
/// the byte of the stream.
///
/// What stood before the frame has been written; the frame itself and what follows it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    pub(super) fault: Fault,
    pub(super) frame: u64,
    pub(super) offset: u64,
}

impl WireError {
    /// The number of the frame, from 0. Comments and blank lines count too.
    #[must_use]
    pub fn frame(&self) -> u64 {
        self.frame
    }

    /// Where that frame begins, in bytes from the beginning of the stream.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fault, frame, offset } = self;
        match fault {
            Fault::Malformed(Malformed { what, at }) => {
                write!(
                    f,
                    "frame {frame} (byte {offset} of the stream) cannot be read: {what}, at byte {at} of its data"
                )
            }
            Fault::Limit { what, limit } => {
                write!(f, "frame {frame} (byte {offset} of the stream): more than {limit} {what}")
            }
            Fault::Core(error) => error.fmt(f),
            Fault::TooLong { limit } => {
                write!(
                    f,
                    "frame {frame} (byte {offset} of the stream) is longer than {limit} bytes (max_frame_bytes)"
                )
            }
            Fault::Unread { what } => {
                write!(
                    f,
                    "frame {frame} (byte {offset} of the stream) could not be searched for stops: {what}"
                )
            }
            Fault::BrokenOff { bytes } => {
                write!(
                    f,
                    "the stream broke off inside frame {frame} (byte {offset} of the stream), {bytes} bytes into it"
                )
            }
            Fault::Used => write!(f, "a cutter serves one answer: this one has been fed already"),
        }
    }
}

impl std::error::Error for WireError {}
