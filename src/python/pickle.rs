//! Streams in mid-flight as pickles: text and counters, checked when they come back.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::exclusive::Exclusive;
use super::matched::StopMatch;
use super::set::StopSet;
use super::stream::{State, StopStream};
use crate::{Decoder, Errors, Matcher, Snapshot, StreamOptions};

/// What is pickled: a dictionary of plain values.
#[derive(FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Frozen<'py> {
    raw: bool,
    include_stop: bool,
    strict: bool,
    flushed: bool,
    last_text: bool,
    waiting: Bound<'py, PyBytes>,
    high: Option<u16>,
    window: Bound<'py, PyBytes>,
    seen: u64,
    chunks: u64,
    first: u64,
    later: Vec<(u64, u64)>,
    matched: Option<Py<StopMatch>>,
}

pub(super) fn reduce<'py>(stream: &Bound<'py, StopStream>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    let py = stream.py();
    let state = stream.get().state.enter(py)?;
    let Snapshot { window, seen, chunks, marks: (first, later), .. } = state.matcher.snapshot();
    let frozen = Frozen {
        raw: state.raw,
        include_stop: state.matcher.options().include_stop,
        strict: state.errors == Errors::Strict,
        flushed: state.flushed,
        last_text: state.last_text,
        waiting: PyBytes::new(py, state.decoder.waiting_bytes()),
        high: state.decoder.waiting_surrogate(),
        window: PyBytes::new(py, &window),
        seen,
        chunks,
        first,
        later,
        matched: state.matched.as_ref().map(|found| found.clone_ref(py)),
    };
    let rebuild = py.import("holdback._core")?.getattr("_rebuild_stream")?;
    Ok((rebuild, (stream.get().set.bind(py), frozen).into_pyobject(py)?))
}

/// What `StopStream.__reduce__` names.
#[pyfunction]
#[pyo3(signature = (set, frozen, /))]
pub(super) fn _rebuild_stream(set: &Bound<'_, StopSet>, frozen: Frozen<'_>) -> PyResult<StopStream> {
    let py = set.py();
    let refused = || PyValueError::new_err("this pickle is not the state of a stream of its stop set");
    let errors = if frozen.strict { Errors::Strict } else { Errors::Replace };
    let options = StreamOptions { include_stop: frozen.include_stop, errors };
    let core = set.get().core.clone();
    let fresh = if frozen.raw { Matcher::bytes(core, &options)? } else { Matcher::text(core, &options)? };
    let snapshot = Snapshot {
        window: frozen.window.as_bytes().to_vec(),
        seen: frozen.seen,
        chunks: frozen.chunks,
        marks: (frozen.first, frozen.later),
        matched: frozen.matched.as_ref().map(|found| found.bind(py).get().unwrap()),
    };
    let matcher = fresh.restore(snapshot).ok_or_else(refused)?;
    let decoder = Decoder::restore(frozen.waiting.as_bytes(), frozen.high).ok_or_else(refused)?;
    let state = State {
        matcher,
        decoder,
        errors,
        raw: frozen.raw,
        flushed: frozen.flushed,
        last_text: frozen.last_text,
        matched: frozen.matched,
    };
    Ok(StopStream { set: set.clone().unbind(), state: Exclusive::new(state) })
}
