//! Where stops apply: arming, regions, markers kept whole, inclusion per stop.
//!
//! [`Scope`] and [`Include`] are what a caller asks for, [`ScopeProgram`] what is compiled from it
//! and a stop list. None of them knows a set or a stream: the state that walks a program is in
//! `stream/scoped_state.rs`.
#![forbid(unsafe_code)]

mod program;

use std::collections::BTreeSet;

pub(crate) use program::{Hold, ScopeProgram};

use crate::automaton::UnitKind;
use crate::error::Error;
use crate::stops::StopList;

/// Which stops are emitted themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Include {
    /// None: a match and everything after it stay back.
    #[default]
    None,
    /// All; then nothing is held back for matching.
    All,
    /// These, as (UTF-8) bytes; they hold nothing back, the others do.
    Only(BTreeSet<Vec<u8>>),
}

impl From<bool> for Include {
    fn from(all: bool) -> Self {
        if all { Self::All } else { Self::None }
    }
}

/// Where stops apply. The default is everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// No stop that ends within the first so many units counts.
    pub min_chars: u64,
    /// (opener, closer) pairs between which nothing matches, as (UTF-8) bytes.
    pub ignore_inside: Vec<(Vec<u8>, Vec<u8>)>,
    /// Begin inside the first region.
    pub start_inside: bool,
    /// Markers that go out in one piece, as (UTF-8) bytes.
    pub atomic: Vec<Vec<u8>>,
}

/// Regions, and markers kept whole, at the most: they come from the operator of a server, and are
/// few.
pub(crate) const MARKERS: usize = 256;
/// Bytes of all markers of a scope together.
const MARKER_BYTES: usize = 64 << 10;

impl Scope {
    /// True when stops apply everywhere.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the markers against each other and against the stops (section 8 and 9 of the
    /// contract).
    pub(crate) fn check(&self, stops: &StopList, kind: UnitKind) -> Result<(), Error> {
        let bad = |message: String| Err(Error::option(message));
        let count = self.ignore_inside.len().max(self.atomic.len());
        if count > MARKERS {
            return bad(format!("too many markers: {count} given, the limit is {MARKERS}"));
        }
        let regions = self.ignore_inside.iter().flat_map(|(opener, closer)| [opener, closer]);
        let bytes: usize = regions.chain(&self.atomic).map(Vec::len).sum();
        if bytes > MARKER_BYTES {
            return bad(format!(
                "markers too long: {bytes} bytes in all, the limit is {MARKER_BYTES}"
            ));
        }
        let mut regions: Vec<&[u8]> = Vec::new();
        for (opener, closer) in &self.ignore_inside {
            for marker in [opener.as_slice(), closer] {
                check_marker(marker, "ignore_inside", kind)?;
                if let Some(other) =
                    regions.iter().find(|other| contains(other, marker) || contains(marker, other))
                {
                    let (marker, other) = (show(marker), show(other));
                    return bad(if marker == other {
                        format!("ignore_inside has the marker {marker} twice: markers must differ")
                    } else {
                        format!(
                            "ignore_inside has overlapping markers: one of {other} and {marker} contains the other"
                        )
                    });
                }
                if let Some(index) = stops.iter().position(|stop| stop == marker) {
                    return bad(format!(
                        "ignore_inside has the marker {}, which is stop {index} too",
                        show(marker)
                    ));
                }
                regions.push(marker);
            }
        }
        self.atomic.iter().try_for_each(|marker| check_marker(marker, "atomic", kind))
    }
}

fn check_marker(marker: &[u8], option: &str, kind: UnitKind) -> Result<(), Error> {
    if marker.is_empty() {
        return Err(Error::option(format!("{option} has an empty marker")));
    }
    if kind == UnitKind::Characters && std::str::from_utf8(marker).is_err() {
        return Err(Error::option(format!(
            "{option} has the marker {}, which is not text",
            show(marker)
        )));
    }
    Ok(())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn show(marker: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(marker))
}
