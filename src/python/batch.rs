//! Many chunks, many streams, many texts in one call.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use super::error::type_name;
use super::matched::StopMatch;
use super::options::Parsed;
use super::set::StopSet;
use super::stream::{self, Fed, State, StopStream};
#[cfg(not(Py_LIMITED_API))]
use super::text::{self, Chars};
use super::usual::{feed_usual, is_usual};
#[cfg(not(Py_LIMITED_API))]
use crate::{Advance, Matcher};

/// Ctrl-C is looked for once in so many chunks.
const SIGNALS: usize = 4096;

/// `StopStream.feed_many`: a block of chunks, all of it or (on an error) nothing of it.
pub(super) fn feed_many<'py>(
    stream: &StopStream,
    chunks: &Bound<'py, PyAny>,
) -> PyResult<Fed<'py>> {
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
    let mut state = stream.state.enter(py)?;
    // A copy costs a few words, and makes the block all or nothing.
    let mut next = state.clone_ref(py);
    let empty =
        if state.raw { PyBytes::new(py, b"").into_any() } else { PyString::new(py, "").into_any() };
    let emits = PyList::empty(py);
    let mut found = next.matched(py);
    if found.is_none() {
        if next.flushed {
            return Err(stream::flushed());
        }
        for (at, chunk) in iterator.enumerate() {
            if at % SIGNALS == SIGNALS - 1 {
                py.check_signals()?;
            }
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

#[doc = doc!("feed_batch")]
#[pyfunction]
#[pyo3(signature = (streams, chunks, /))]
pub(super) fn feed_batch<'py>(
    py: Python<'py>,
    streams: &Bound<'py, PyAny>,
    chunks: &Bound<'py, PyAny>,
) -> PyResult<FedBatch<'py>> {
    let (streams, chunks) = (row(streams, "streams")?, row(chunks, "chunks")?);
    if streams.len() != chunks.len() {
        let (s, c) = (streams.len(), chunks.len());
        return Err(PyValueError::new_err(format!(
            "feed_batch takes one chunk for each stream: {s} streams, {c} chunks"
        )));
    }
    if let Some(fed) = feed_usual_batch(py, &streams, &chunks)? {
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

/// A batch in which every chunk is usual, as they are: first all are looked at, so that none can
/// fail once one was read. `None`, with nothing changed, for any other batch.
fn feed_usual_batch<'py>(
    py: Python<'py>,
    streams: &Bound<'py, PyTuple>,
    chunks: &Bound<'py, PyTuple>,
) -> PyResult<Option<FedBatch<'py>>> {
    // Every stream is entered before any is fed, and none is left before all are, so nothing comes
    // between.
    let mut entered = Vec::with_capacity(chunks.len());
    for (stream, chunk) in streams.iter_borrowed().zip(chunks.iter_borrowed()) {
        let (Ok(stream), Ok(chunk)) = (stream.cast::<StopStream>(), chunk.cast::<PyString>())
        else {
            return Ok(None);
        };
        let stream = stream.get();
        // A stream that stands in the list twice is in use already.
        let Ok(state) = stream.state.enter(py) else { return Ok(None) };
        if !is_usual(&state, &chunk) {
            return Ok(None);
        }
        entered.push((stream, state, chunk));
    }
    let mut emits = Vec::with_capacity(chunks.len());
    let mut ended = Vec::new();
    for (at, (stream, state, chunk)) in entered.iter_mut().enumerate() {
        if let Some(emit) = feed_usual(state, chunk) {
            emits.push(emit?.into_any());
        } else {
            let (emit, found) = state.feed(&stream.set, chunk.as_any())?;
            emits.push(emit);
            ended.extend(found.map(|found| (at, found)));
        }
    }
    drop(entered);
    Ok(Some((PyList::new(py, emits)?, ended)))
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
    let stream = StopStream::new(set, options, false)?;
    if let Ok(list) = texts.cast_exact::<PyList>() {
        if let Some(cut) = truncate_usual(&stream, &list.to_tuple())? {
            return Ok(cut);
        }
    }
    let (emits, matches) = (PyList::empty(py), PyList::empty(py));
    for (at, text) in texts.try_iter()?.enumerate() {
        if at % SIGNALS == SIGNALS - 1 {
            py.check_signals()?;
        }
        stream.reset(py)?;
        let (emit, found) = stream.feed_last(&text?)?;
        emits.append(emit)?;
        matches.append(found)?;
    }
    Ok((emits, matches))
}

/// A list of `str` without halves of surrogate pairs: all of it is read in one go, without the GIL
/// if it is long. `None` for any other.
#[cfg(not(Py_LIMITED_API))]
fn truncate_usual<'py>(
    stream: &StopStream,
    texts: &Bound<'py, PyTuple>,
) -> PyResult<Option<(Bound<'py, PyList>, Bound<'py, PyList>)>> {
    let py = texts.py();
    let texts: Vec<Bound<'py, PyString>> = match texts.iter().map(Bound::cast_into).collect() {
        Ok(texts) => texts,
        Err(_) => return Ok(None),
    };
    let mut rows = Vec::with_capacity(texts.len());
    let mut units = 0;
    for text in &texts {
        let chars = Chars::of_stored(text)?;
        if chars.has_surrogate() {
            return Ok(None);
        }
        units += chars.len();
        rows.push(chars);
    }
    let mut state = stream.state.enter(py)?;
    let matcher = &mut state.matcher;
    let read = |matcher: &mut Matcher| -> PyResult<Vec<Advance>> {
        let mut read = Vec::with_capacity(rows.len());
        let mut since = 0;
        for chars in &rows {
            matcher.reset();
            read.push(match *chars {
                Chars::Narrow(units) => matcher.advance(units),
                Chars::Wide(units) => matcher.advance(units),
                Chars::Full(units) => matcher.advance(units),
            });
            since += chars.len();
            if since > stream::SLICE_UNITS {
                since = 0;
                stream::check_signals()?;
            }
        }
        Ok(read)
    };
    let read =
        if units < stream::DETACH_UNITS { read(matcher)? } else { py.detach(|| read(matcher))? };
    let (mut emits, mut matches) =
        (Vec::with_capacity(texts.len()), Vec::with_capacity(texts.len()));
    for ((text, chars), advance) in texts.iter().zip(&rows).zip(read) {
        let Some(found) = advance.matched else {
            // Nothing follows, so what was held goes out with the rest.
            emits.push(text.clone());
            matches.push(None);
            continue;
        };
        emits.push(text::emitted(&[], text, *chars, advance.passed)?);
        let rest = text::substring(text, found.read, chars.len())?.into_any().unbind();
        let stop = stream.set.get().stop(py, found.index)?;
        matches.push(Some(StopMatch::wrap(py, &found, stop, rest)?));
    }
    Ok(Some((PyList::new(py, emits)?, PyList::new(py, matches)?)))
}

#[cfg(Py_LIMITED_API)]
#[expect(clippy::unnecessary_wraps, reason = "it stands in for one that can fail")]
fn truncate_usual<'py>(
    _: &StopStream,
    _: &Bound<'py, PyTuple>,
) -> PyResult<Option<(Bound<'py, PyList>, Bound<'py, PyList>)>> {
    // String storage is hidden, so there is nothing to read without the GIL.
    Ok(None)
}
