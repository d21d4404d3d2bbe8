//! Streams in mid-flight as pickles: text and counters, checked when they come back.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::exclusive::Exclusive;
use super::matched::StopMatch;
use super::set::StopSet;
use super::stream::{State, StopStream};
use crate::{Decoder, Errors, Frozen, Include, Matcher, Place, Scope, Snapshot, StreamOptions};

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

pub(super) fn reduce<'py>(
    stream: &Bound<'py, StopStream>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    let py = stream.py();
    let state = stream.get().state.enter(py)?;
    let bytes = |text: &[u8]| PyBytes::new(py, text);
    let StreamOptions { include_stop, scope, .. } = state.matcher.options();
    let Snapshot { seen, chunks, marks: (first, later), place, .. } = state.matcher.snapshot();
    let (window, scoped) = match place {
        Place::Plain(window) => (window, None),
        Place::Scoped(Frozen { window, region, armed_after, floor, partial, whole, held }) => {
            let scoped = PickledScope {
                region,
                armed_after,
                floor,
                partial: bytes(&partial),
                whole,
                held: bytes(&held),
            };
            (window, Some(scoped))
        }
    };
    let pickled = Pickled {
        raw: state.raw,
        strict: state.errors == Errors::Strict,
        flushed: state.flushed,
        last_text: state.last_text,
        waiting: bytes(state.decoder.waiting_bytes()),
        high: state.decoder.waiting_surrogate(),
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
    };
    let rebuild = py.import("holdback._core")?.getattr("_rebuild_stream")?;
    Ok((rebuild, (stream.get().set.bind(py), pickled).into_pyobject(py)?))
}

/// What `StopStream.__reduce__` names.
#[pyfunction]
#[pyo3(signature = (set, state, /))]
pub(super) fn _rebuild_stream(
    set: &Bound<'_, StopSet>,
    state: Pickled<'_>,
) -> PyResult<StopStream> {
    let refused =
        || PyValueError::new_err("this pickle is not the state of a stream of its stop set");
    let owned = |text: &Bound<'_, PyBytes>| text.as_bytes().to_vec();
    let errors = if state.strict { Errors::Strict } else { Errors::Replace };
    let include_stop = match &state.include_only {
        Some(some) => Include::Only(some.iter().map(owned).collect()),
        None => state.include_all.into(),
    };
    let ignore_inside: Vec<_> = state
        .region_markers
        .iter()
        .map(|(opener, closer)| (owned(opener), owned(closer)))
        .collect();
    if state.regions.as_ref().map_or(0, PyTupleMethods::len) != ignore_inside.len() {
        return Err(refused());
    }
    let atomic = state.atomic.iter().map(owned).collect();
    let scope = Scope {
        min_chars: state.min_chars,
        ignore_inside,
        start_inside: state.start_inside,
        atomic,
    };
    let options = StreamOptions { include_stop, scope, errors };
    let core = set.get().core.clone();
    let fresh =
        if state.raw { Matcher::bytes(core, &options)? } else { Matcher::text(core, &options)? };
    let window = owned(&state.window);
    let place = match state.scoped {
        None => Place::Plain(window),
        Some(PickledScope { region, armed_after, floor, partial, whole, held }) => {
            Place::Scoped(Frozen {
                window,
                region,
                armed_after,
                floor,
                partial: owned(&partial),
                whole,
                held: owned(&held),
            })
        }
    };
    let snapshot = Snapshot {
        seen: state.seen,
        chunks: state.chunks,
        marks: (state.first, state.later),
        place,
        matched: state.matched.as_ref().map(|found| found.get().to_core()),
    };
    let matcher = fresh.restore(snapshot).ok_or_else(refused)?;
    let decoder = Decoder::restore(state.waiting.as_bytes(), state.high).ok_or_else(refused)?;
    let held = state.flushed && matcher.held_len() > 0;
    if held || (state.raw && !decoder.is_empty()) {
        return Err(refused());
    }
    let flags = [state.raw, state.flushed, state.last_text];
    let regions = state.regions.map(Bound::unbind);
    let state = State::restored((matcher, decoder, errors), flags, regions, state.matched);
    Ok(StopStream { set: set.clone().unbind(), state: Exclusive::new(state) })
}
