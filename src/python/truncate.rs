//! `StopSet.truncate_many`: many texts, each by itself, in one call.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PyString, PyTuple};

use super::error::type_name;
use super::gil::Signals;
#[cfg(not(Py_LIMITED_API))]
use super::gil::{CHUNK, Pauses, detach_if_long};
use super::options::ParsedOptions;
use super::state::{State, units};
#[cfg(not(Py_LIMITED_API))]
use super::stop_match::StopMatch;
#[cfg(not(Py_LIMITED_API))]
use super::text::{self, Chars};
use crate::Match;
#[cfg(not(Py_LIMITED_API))]
use crate::raw::{Advance, CodeUnit, Matcher};

/// What is kept of each text, and its match.
type Truncated<'py> = (Bound<'py, PyList>, Bound<'py, PyList>);

/// `stops` are the objects that matches name.
pub(super) fn truncate_many<'py>(
    set: &crate::StopSet,
    stops: &Py<PyTuple>,
    texts: &Bound<'py, PyAny>,
    options: ParsedOptions,
) -> PyResult<Truncated<'py>> {
    let py = texts.py();
    if texts.is_instance_of::<PyString>() || texts.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(format!(
            "truncate_many takes an iterable of texts, not one {}: use truncate",
            type_name(texts)
        )));
    }
    if let Ok(list) = texts.cast_exact::<PyList>() {
        if let Some(cut) = truncate_fast(set, stops, &list.to_tuple(), &options)? {
            return Ok(cut);
        }
    }
    let mut state = State::new(set.clone(), options, false)?;
    let (emits, matches) = (PyList::empty(py), PyList::empty(py));
    let mut signals = Signals::default();
    let texts = texts.try_iter().map_err(|_| {
        PyTypeError::new_err(format!(
            "truncate_many takes an iterable of texts, not {}",
            type_name(texts)
        ))
    })?;
    for (at, text) in texts.enumerate() {
        let text = text?;
        if text.is_none() {
            emits.append(&text)?;
            matches.append(text)?;
            continue;
        }
        signals.before(py, units(&text))?;
        state.reset();
        let (emit, found) =
            state.feed_last(stops, &text).map_err(|error| named(error, at, &text))?;
        emits.append(emit)?;
        matches.append(found)?;
    }
    Ok((emits, matches))
}

/// The error of a text that is none, with its position.
fn named(error: PyErr, at: usize, text: &Bound<'_, PyAny>) -> PyErr {
    let py = text.py();
    let readable = text.is_instance_of::<PyString>() || PyMemoryView::from(text).is_ok();
    if readable || !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    PyTypeError::new_err(format!("text {at} is {}, not str, bytes-like or None", type_name(text)))
}

/// A list of `str` without surrogates: all of it is read in one go, without the GIL if it is long.
/// `None` for any other.
#[cfg(not(Py_LIMITED_API))]
fn truncate_fast<'py>(
    set: &crate::StopSet,
    stops: &Py<PyTuple>,
    texts: &Bound<'py, PyTuple>,
    options: &ParsedOptions,
) -> PyResult<Option<Truncated<'py>>> {
    let py = texts.py();
    let texts: Vec<Bound<'py, PyString>> = match texts.iter().map(Bound::cast_into).collect() {
        Ok(texts) => texts,
        Err(_) => return Ok(None),
    };
    let mut signals = Signals::default();
    let mut rows = Vec::with_capacity(texts.len());
    let mut units = 0;
    for text in &texts {
        let chars = Chars::of_stored(text)?;
        signals.before(py, chars.len())?;
        if chars.has_surrogate() {
            return Ok(None);
        }
        units += chars.len();
        rows.push(chars);
    }
    let mut rows_of = Rows {
        matcher: Matcher::text(set.clone(), &options.core)?,
        unlooked: 0,
        pauses: Pauses::default(),
    };
    let read = detach_if_long(py, units, || {
        rows.iter()
            .map(|chars| match *chars {
                Chars::Narrow(units) => rows_of.read(units),
                Chars::Wide(units) => rows_of.read(units),
                Chars::Full(units) => rows_of.read(units),
            })
            .collect::<PyResult<Vec<_>>>()
    })?;
    let (mut emits, mut matches) =
        (Vec::with_capacity(texts.len()), Vec::with_capacity(texts.len()));
    for ((text, chars), (advance, matched)) in texts.iter().zip(&rows).zip(read) {
        let Some(found) = matched else {
            // Nothing follows, so what was held goes out with the rest.
            emits.push(text.clone());
            matches.push(None);
            continue;
        };
        signals.before(py, chars.len())?;
        emits.push(text::emitted(&[], text, *chars, advance.passed)?);
        let rest = text::substring(text, found.read, chars.len())?.into_any().unbind();
        matches.push(Some(StopMatch::wrap(py, &found, stops, rest)?));
    }
    Ok(Some((PyList::new(py, emits)?, PyList::new(py, matches)?)))
}

/// Reads texts one after the other.
#[cfg(not(Py_LIMITED_API))]
struct Rows {
    matcher: Matcher,
    /// Units since the last look for Ctrl-C.
    unlooked: usize,
    pauses: Pauses,
}

#[cfg(not(Py_LIMITED_API))]
impl Rows {
    /// Units in a row before a look: so few that it takes no time, and so many that the clock is
    /// not read for every short text.
    const SLICE: usize = 256 << 10;

    fn read<U: CodeUnit>(&mut self, units: &[U]) -> PyResult<(Advance, Option<Match>)> {
        self.unlooked += units.len() + CHUNK;
        if self.unlooked > Self::SLICE {
            self.unlooked = 0;
            self.pauses.look()?;
        }
        self.matcher.reset();
        let pauses = &mut self.pauses;
        let advance = self.matcher.advance_in_slices(units, Self::SLICE, || pauses.look())?;
        Ok((advance, self.matcher.matched().cloned()))
    }
}

#[cfg(Py_LIMITED_API)]
#[expect(clippy::unnecessary_wraps, reason = "it stands in for one that can fail")]
fn truncate_fast<'py>(
    _: &crate::StopSet,
    _: &Py<PyTuple>,
    _: &Bound<'py, PyTuple>,
    _: &ParsedOptions,
) -> PyResult<Option<Truncated<'py>>> {
    // String storage is hidden, so there is nothing to read without the GIL.
    Ok(None)
}
