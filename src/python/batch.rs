//! Many chunks, many streams, many texts in one call.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use super::error::type_name;
use super::matched::StopMatch;
use super::options::Parsed;
use super::set::StopSet;
use super::stream::{self, Fed, State, StopStream};

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
    let mut found = next.matched(py);
    if found.is_none() {
        if next.flushed {
            return Err(stream::flushed());
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
) -> PyResult<FedBatch<'py>> {
    if streams.len() != chunks.len() {
        let (s, c) = (streams.len(), chunks.len());
        return Err(PyValueError::new_err(format!("feed_batch takes one chunk for each stream: {s} streams, {c} chunks")));
    }
    let mut before = Vec::new();
    let fed = feed_each(py, &streams, &chunks, &mut before);
    if fed.is_err() {
        // Backwards, so that a stream that stands twice in the list ends up as it was first.
        for (at, state) in before.into_iter().rev() {
            *streams[at].get().state.enter(py)? = state;
        }
    }
    fed
}

type FedBatch<'py> = (Bound<'py, PyList>, Vec<(usize, Py<StopMatch>)>);

/// Feeds in order; what a stream was before goes to `before`.
fn feed_each<'py>(
    py: Python<'py>,
    streams: &[Bound<'py, StopStream>],
    chunks: &[Bound<'py, PyAny>],
    before: &mut Vec<(usize, State)>,
) -> PyResult<FedBatch<'py>> {
    let emits = PyList::empty(py);
    let mut ended = Vec::new();
    for (at, (stream, chunk)) in streams.iter().zip(chunks).enumerate() {
        let mut state = stream.get().state.enter(py)?;
        before.push((at, state.clone_ref(py)));
        let (emit, found) = state.feed(&stream.get().set, chunk)?;
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
