//! Streams in mid-flight as pickles: text and counters, checked when they come back.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::state::State;
use super::stop_match::StopMatch;
use crate::raw::{Decoder, Place, Reader, ScopedSnapshot, Snapshot};
use crate::{Errors, Include, Scope, StreamOptions};

/// What is pickled: a dictionary of plain values. Text is (UTF-8) bytes.
#[derive(FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts as they are, with their names in the pickle"
)]
pub(super) struct Pickled<'py> {
    raw: bool,
    strict: bool,
    flushed: bool,
    last_text: bool,
    waiting: Bound<'py, PyBytes>,
    high: Option<u16>,
    include_all: bool,
    include_only: Option<Vec<Bound<'py, PyBytes>>>,
    min_chars: u64,
    regions: Option<Bound<'py, PyTuple>>,
    region_markers: Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>,
    start_inside: bool,
    atomic: Vec<Bound<'py, PyBytes>>,
    seen: u64,
    chunks: u64,
    first: u64,
    later: Vec<(u64, u64)>,
    window: Bound<'py, PyBytes>,
    scoped: Option<PickledScope<'py>>,
    matched: Option<Py<StopMatch>>,
}

/// The part that only streams with scopes have.
#[derive(FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub(super) struct PickledScope<'py> {
    region: Option<usize>,
    armed_after: Option<u64>,
    floor: u64,
    partial: Bound<'py, PyBytes>,
    whole: Vec<(u64, u64)>,
    held: Bound<'py, PyBytes>,
}

impl<'py> Pickled<'py> {
    pub(super) fn of(state: &State, py: Python<'py>) -> Self {
        let bytes = |text: &[u8]| PyBytes::new(py, text);
        let reader = &state.reader;
        let StreamOptions { include_stop, scope, .. } = reader.matcher().options();
        let Snapshot { seen, chunks, chunk_index: (first, later), place, .. } =
            reader.matcher().snapshot();
        let (window, scoped) = match place {
            Place::Plain(window) => (window, None),
            // The binding makes no set with patterns.
            Place::Patterned(_) => (Vec::new(), None),
            Place::Scoped(scoped) => {
                let ScopedSnapshot { window, region, armed_after, floor, partial, whole, held } =
                    scoped;
                let (partial, held) = (bytes(&partial), bytes(&held));
                (window, Some(PickledScope { region, armed_after, floor, partial, whole, held }))
            }
        };
        Self {
            raw: reader.is_raw(),
            strict: reader.errors() == Errors::Strict,
            flushed: reader.is_flushed(),
            last_text: state.last_text,
            waiting: bytes(reader.decoder().waiting_bytes()),
            high: reader.decoder().waiting_surrogate(),
            include_all: include_stop == Include::All,
            include_only: match &include_stop {
                Include::Only(some) => Some(some.iter().map(|stop| bytes(stop)).collect()),
                _ => None,
            },
            min_chars: scope.min_chars,
            regions: state.regions(py).map(|regions| regions.into_bound(py)),
            region_markers: scope
                .ignore_inside
                .iter()
                .map(|(opener, closer)| (bytes(opener), bytes(closer)))
                .collect(),
            start_inside: scope.start_inside,
            atomic: scope.atomic.iter().map(|marker| bytes(marker)).collect(),
            seen,
            chunks,
            first,
            later,
            window: bytes(&window),
            scoped,
            matched: state.matched(py),
        }
    }

    /// The state of a stream of `set` that was pickled.
    pub(super) fn restore(self, set: crate::StopSet) -> PyResult<State> {
        let refused =
            || PyValueError::new_err("this pickle is not the state of a stream of its stop set");
        let owned = |text: &Bound<'_, PyBytes>| text.as_bytes().to_vec();
        let errors = if self.strict { Errors::Strict } else { Errors::Replace };
        let include_stop = match &self.include_only {
            Some(some) => Include::Only(some.iter().map(owned).collect()),
            None => self.include_all.into(),
        };
        let markers = self.region_markers.iter();
        let ignore_inside: Vec<_> =
            markers.map(|(opener, closer)| (owned(opener), owned(closer))).collect();
        if self.regions.as_ref().map_or(0, PyTupleMethods::len) != ignore_inside.len() {
            return Err(refused());
        }
        let scope = Scope {
            min_chars: self.min_chars,
            ignore_inside,
            start_inside: self.start_inside,
            atomic: self.atomic.iter().map(owned).collect(),
        };
        let options = StreamOptions { include_stop, scope, errors };
        let fresh =
            if self.raw { Reader::bytes(set, &options)? } else { Reader::text(set, &options)? };
        let window = owned(&self.window);
        let place = match self.scoped {
            None => Place::Plain(window),
            Some(PickledScope { region, armed_after, floor, partial, whole, held }) => {
                let (partial, held) = (owned(&partial), owned(&held));
                Place::Scoped(ScopedSnapshot {
                    window,
                    region,
                    armed_after,
                    floor,
                    partial,
                    whole,
                    held,
                })
            }
        };
        let snapshot = Snapshot {
            seen: self.seen,
            chunks: self.chunks,
            chunk_index: (self.first, self.later),
            place,
            matched: self.matched.as_ref().map(|found| found.get().to_core()),
        };
        let decoder = Decoder::restore(self.waiting.as_bytes(), self.high).ok_or_else(refused)?;
        let reader = fresh.restore(snapshot, decoder, self.flushed).ok_or_else(refused)?;
        let regions = self.regions.map(Bound::unbind);
        Ok(State::restored(reader, self.last_text, regions, self.matched))
    }
}
