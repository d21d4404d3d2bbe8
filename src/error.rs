//! One opaque error type for everything a caller can get wrong while building a set or a stream.
//!
//! The kinds are private so that a new one is not a breaking change; [`Error::is_bytes_stop`] is
//! the only distinction that anybody has needed.
#![forbid(unsafe_code)]

use std::fmt;

/// Why a stop list or a stream option was refused. The message names the index, the limit or the
/// marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    EmptyStop { index: usize },
    TooManyStops { at_least: usize, limit: usize },
    TooManyBytes { at_least: usize, limit: usize },
    NotText { index: usize },
    Option { message: String },
}

impl Error {
    pub(crate) fn empty_stop(index: usize) -> Self {
        Self { kind: Kind::EmptyStop { index } }
    }

    pub(crate) fn too_many_stops(at_least: usize, limit: usize) -> Self {
        Self { kind: Kind::TooManyStops { at_least, limit } }
    }

    pub(crate) fn too_many_bytes(at_least: usize, limit: usize) -> Self {
        Self { kind: Kind::TooManyBytes { at_least, limit } }
    }

    pub(crate) fn not_text(index: usize) -> Self {
        Self { kind: Kind::NotText { index } }
    }

    /// A stream option that contradicts itself or the set; `message` names the culprit.
    pub(crate) fn option(message: String) -> Self {
        Self { kind: Kind::Option { message } }
    }

    /// True when a stream of text was asked of a set in which a stop was given as bytes.
    #[must_use]
    pub fn is_bytes_stop(&self) -> bool {
        matches!(self.kind, Kind::NotText { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::EmptyStop { index } => write!(
                f,
                "stop {index} is empty: it would end every stream before its first character"
            ),
            Kind::TooManyStops { at_least, limit } => {
                write!(
                    f,
                    "too many stops: {at_least} or more given, the limit max_stops is {limit}"
                )
            }
            Kind::TooManyBytes { at_least, limit } => {
                write!(
                    f,
                    "stops too long: {at_least} bytes or more in all, the limit max_bytes is {limit}"
                )
            }
            Kind::NotText { index } => {
                write!(
                    f,
                    "stop {index} is bytes: a text stream takes str stops only, use byte_stream() for bytes"
                )
            }
            Kind::Option { message } => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}
