//! `StopStream.feed_many`: a block of chunks in one call.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use super::error::{self, type_name};
use super::gil::Signals;
use super::state::{FeedResult, State, units};
use super::try_cell::TryCell;

/// Reads all of the chunks or (on an error) none of them.
pub(super) fn feed_many<'py>(
    stream: &TryCell<State>,
    stops: &Py<PyTuple>,
    chunks: &Bound<'py, PyAny>,
) -> PyResult<FeedResult<'py>> {
    let py = chunks.py();
    if chunks.is_instance_of::<PyString>() || chunks.is_instance_of::<PyBytes>() {
        let name = type_name(chunks);
        return Err(PyTypeError::new_err(format!(
            "feed_many takes an iterable of chunks, not one {name}: use feed"
        )));
    }
    let iterator = chunks.try_iter().map_err(|_| {
        PyTypeError::new_err(format!(
            "feed_many takes an iterable of chunks, not {}",
            type_name(chunks)
        ))
    })?;
    let mut state = stream.enter(py)?;
    // A copy costs a few words, and makes the block all or nothing.
    let mut next = state.clone_ref(py);
    let empty = state.object(py, b"");
    let emits = PyList::empty(py);
    let mut found = next.matched(py);
    if found.is_none() {
        if next.reader.is_flushed() {
            return Err(error::flushed());
        }
        let mut signals = Signals::default();
        for chunk in iterator {
            let chunk = chunk?;
            signals.before(py, units(&chunk))?;
            let (emit, matched) = next.feed(stops, &chunk)?;
            emits.append(emit)?;
            found = matched;
            if found.is_some() {
                break;
            }
        }
    }
    let emit = empty.call_method1("join", (emits,))?;
    *state = next;
    Ok((emit, found))
}
