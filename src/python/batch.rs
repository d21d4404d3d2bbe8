//! Many chunks, many streams, many texts in one call.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use super::error::type_name;
use super::matched::StopMatch;
use super::options::Parsed;
use super::set::StopSet;
use super::stream::{Fed, StopStream};

/// `StopStream.feed_many`: a block of chunks, all of it or (on an error) nothing of it.
pub(super) fn feed_many<'py>(stream: &StopStream, chunks: &Bound<'py, PyAny>) -> PyResult<Fed<'py>> {
    let py = chunks.py();
    if chunks.is_instance_of::<PyString>() || chunks.is_instance_of::<PyBytes>() {
        let name = type_name(chunks);
        return Err(PyTypeError::new_err(format!("feed_many takes an iterable of chunks, not one {name}: use feed")));
    }
    let iterator = chunks
        .try_iter()
        .map_err(|_| PyTypeError::new_err(format!("feed_many takes an iterable of chunks, not {}", type_name(chunks))))?;
    let mut state = stream.state.enter(py)?;
    // A copy costs a few words, and makes the block all or nothing.
    let mut next = state.clone_ref(py);
    let empty = if state.raw { PyBytes::new(py, b"").into_any() } else { PyString::new(py, "").into_any() };
    let emits = PyList::empty(py);
    let mut found = next.matched.as_ref().map(|found| found.clone_ref(py));
    if found.is_none() {
        if next.flushed {
            return Err(PyValueError::new_err("this stream was flushed: no more text can follow, reset() starts afresh"));
        }
        for chunk in iterator {
            let (emit, matched) = next.feed(&stream.set, &chunk?)?;
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

/// One engine step: chunk `i` for stream `i`, all of them or (on an error) none.
#[pyfunction]
#[pyo3(signature = (streams, chunks, /))]
pub(super) fn feed_batch<'py>(
    py: Python<'py>,
    streams: Vec<Bound<'py, StopStream>>,
    chunks: Vec<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyList>, Vec<(usize, Py<StopMatch>)>)> {
    if streams.len() != chunks.len() {
        let (s, c) = (streams.len(), chunks.len());
        return Err(PyValueError::new_err(format!("feed_batch takes one chunk for each stream: {s} streams, {c} chunks")));
    }
    let emits = PyList::empty(py);
    let mut ended = Vec::new();
    for (at, (stream, chunk)) in streams.iter().zip(&chunks).enumerate() {
        let (emit, found) = stream.get().feed_any(chunk)?;
        emits.append(emit)?;
        ended.extend(found.map(|found| (at, found)));
    }
    Ok((emits, ended))
}

/// `StopSet.truncate_many`: each text by itself.
pub(super) fn truncate_many<'py>(
    set: &Bound<'py, StopSet>,
    texts: &Bound<'py, PyAny>,
    options: Parsed,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
    let py = set.py();
    let (emits, matches) = (PyList::empty(py), PyList::empty(py));
    let stream = StopStream::new(set, options, false)?;
    for text in texts.try_iter()? {
        stream.reset(py)?;
        let (emit, found) = stream.feed_last(&text?)?;
        emits.append(emit)?;
        matches.append(found)?;
    }
    Ok((emits, matches))
}
