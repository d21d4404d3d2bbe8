//! `feed_batch`: a step of many streams in one call.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use super::error::type_name;
use super::fast_path::{feed_fast, is_fast};
use super::gil::{CHUNK, Signals};
use super::state::{State, units};
use super::stop_match::StopMatch;
use super::stop_stream::StopStream;

/// A batch of up to so many units is read without a look for Ctrl-C.
const UNINTERRUPTED: usize = 8 << 20;

#[doc = doc!("feed_batch")]
#[pyfunction]
#[pyo3(signature = (streams, chunks, /))]
pub(super) fn feed_batch<'py>(
    py: Python<'py>,
    streams: &Bound<'py, PyAny>,
    chunks: &Bound<'py, PyAny>,
) -> PyResult<BatchResult<'py>> {
    let (streams, chunks) = (row(streams, "streams")?, row(chunks, "chunks")?);
    if streams.len() != chunks.len() {
        let (s, c) = (streams.len(), chunks.len());
        return Err(PyValueError::new_err(format!(
            "feed_batch takes one chunk for each stream: {s} streams, {c} chunks"
        )));
    }
    if let Some(fed) = feed_fast_batch(py, &streams, &chunks)? {
        return Ok(fed);
    }
    let streams: Vec<_> = streams
        .iter()
        .enumerate()
        .map(|(at, stream)| as_stream(at, stream))
        .collect::<PyResult<_>>()?;
    let chunks: Vec<_> = chunks.iter().collect();
    let mut before = Vec::new();
    let fed = feed_each(py, &streams, &chunks, &mut before);
    if fed.is_err() {
        // Backwards, so that a stream that stands twice in the list ends up as it was first. What
        // another call has taken meanwhile, on a build without the GIL, is that call's.
        for (at, before) in before.into_iter().rev() {
            if let Ok(mut state) = streams[at].get().state.enter(py) {
                *state = before;
            }
        }
    }
    fed
}

/// A snapshot of a list, so that nobody changes it meanwhile.
fn row<'py>(many: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyTuple>> {
    match (many.cast_exact::<PyList>(), many.cast_exact::<PyTuple>()) {
        (Ok(list), _) => Ok(list.to_tuple()),
        (_, Ok(tuple)) => Ok(tuple.clone()),
        _ if many.is_instance_of::<PyString>() || many.is_instance_of::<PyBytes>() => {
            Err(PyTypeError::new_err(format!(
                "feed_batch takes a sequence of {name}, not one {}",
                type_name(many)
            )))
        }
        _ => PyTuple::new(many.py(), many.try_iter()?.collect::<PyResult<Vec<_>>>()?),
    }
}

fn as_stream(at: usize, stream: Bound<'_, PyAny>) -> PyResult<Bound<'_, StopStream>> {
    stream.cast_into().map_err(|error| {
        PyTypeError::new_err(format!(
            "streams[{at}] must be a StopStream, not {}",
            type_name(&error.into_inner())
        ))
    })
}

/// A batch in which every chunk takes the fast path, as they do: first all are looked at, so that none can
/// fail once one was read. `None`, with nothing changed, for any other batch.
fn feed_fast_batch<'py>(
    py: Python<'py>,
    streams: &Bound<'py, PyTuple>,
    chunks: &Bound<'py, PyTuple>,
) -> PyResult<Option<BatchResult<'py>>> {
    // Every stream is entered before any is fed, and none is left before all are, so nothing comes
    // between.
    let (mut entered, mut work) = (Vec::with_capacity(chunks.len()), 0);
    for (stream, chunk) in streams.iter_borrowed().zip(chunks.iter_borrowed()) {
        let (Ok(stream), Ok(chunk)) = (stream.cast::<StopStream>(), chunk.cast::<PyString>())
        else {
            return Ok(None);
        };
        let stream = stream.get();
        // A stream that stands in the list twice is in use already.
        let Ok(state) = stream.state.enter(py) else { return Ok(None) };
        work += units(&chunk) + CHUNK;
        // What takes long must be able to stop in the middle, and then to go back.
        if work > UNINTERRUPTED || !is_fast(&state, &chunk) {
            return Ok(None);
        }
        entered.push((stream, state, chunk));
    }
    let mut emits = Vec::with_capacity(chunks.len());
    let mut ended = Vec::new();
    for (at, (stream, state, chunk)) in entered.iter_mut().enumerate() {
        if let Some(emit) = feed_fast(state, chunk) {
            emits.push(emit?.into_any());
        } else {
            let (emit, found) = state.feed(stream.given_stops(), chunk.as_any())?;
            emits.push(emit);
            ended.extend(found.map(|found| (at, found)));
        }
    }
    drop(entered);
    Ok(Some((PyList::new(py, emits)?, ended)))
}

type BatchResult<'py> = (Bound<'py, PyList>, Vec<(usize, Py<StopMatch>)>);

/// Feeds in order; what a stream was before goes to `before`.
fn feed_each<'py>(
    py: Python<'py>,
    streams: &[Bound<'py, StopStream>],
    chunks: &[Bound<'py, PyAny>],
    before: &mut Vec<(usize, State)>,
) -> PyResult<BatchResult<'py>> {
    let emits = PyList::empty(py);
    let (mut ended, mut signals) = (Vec::new(), Signals::default());
    for (at, (stream, chunk)) in streams.iter().zip(chunks).enumerate() {
        signals.before(py, units(chunk))?;
        let mut state = stream.get().state.enter(py)?;
        before.push((at, state.clone_ref(py)));
        let (emit, found) = state.feed(stream.get().given_stops(), chunk)?;
        emits.append(emit)?;
        ended.extend(found.map(|found| (at, found)));
    }
    Ok((emits, ended))
}
