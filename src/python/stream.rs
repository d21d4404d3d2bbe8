//! `StopStream`: one response. Text in, text out; every decision is the core's.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString, PyTuple};

use super::error;
use super::exclusive::Exclusive;
use super::matched::StopMatch;
use super::options::Parsed;
use super::set::StopSet;
use super::text::{self, Chars};
use crate::{Advance, Decoded, Decoder, Errors, Matcher, Unit};

/// From this many units on, a chunk is read without the GIL.
///
/// Below, giving it away and taking it back costs more than the reading, and beside one busy Python
/// thread it puts the interpreter's switch interval (5 ms) on the tail of every call. Set by
/// `benches/test_gil.py`.
pub(super) const DETACH_UNITS: usize = 16 << 10;

/// A long chunk is read in slices of this many units, and signals are looked at between them.
pub(super) const SLICE_UNITS: usize = 64 << 20;

#[doc = doc!("StopStream")]
#[pyclass(frozen, generic, module = "holdback._core")]
pub(super) struct StopStream {
    pub(super) set: Py<StopSet>,
    pub(super) state: Exclusive<State>,
}

/// All that changes while a response is read.
pub(super) struct State {
    pub(super) matcher: Matcher,
    pub(super) decoder: Decoder,
    pub(super) errors: Errors,
    pub(super) raw: bool,
    pub(super) flushed: bool,
    /// The last chunk was `str` (its match would have a `str` rest).
    pub(super) last_text: bool,
    /// What only some streams have, out of the way of the rest: a stream is 128 bytes.
    extras: Option<Box<Extras>>,
}

#[derive(Default)]
struct Extras {
    /// The regions as the caller gave them.
    regions: Option<Py<PyTuple>>,
    matched: Option<Py<StopMatch>>,
}

/// What one call gives: the text to send, and the match.
pub(super) type Fed<'py> = (Bound<'py, PyAny>, Option<Py<StopMatch>>);

impl Extras {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.regions)?;
        visit.call(&self.matched)
    }
}

impl StopStream {
    /// A stream of text, or a `raw` one of bytes.
    pub(super) fn new(set: &Bound<'_, StopSet>, options: Parsed, raw: bool) -> PyResult<Self> {
        let Parsed { core, regions } = options;
        let set_core = set.get().core.clone();
        let matcher =
            if raw { Matcher::bytes(set_core, &core)? } else { Matcher::text(set_core, &core)? };
        let (decoder, errors) = (Decoder::default(), core.errors);
        let mut state =
            State { matcher, decoder, errors, raw, flushed: false, last_text: true, extras: None };
        if regions.is_some() {
            state.extras = Some(Box::new(Extras { regions, matched: None }));
        }
        Ok(Self { set: set.clone().unbind(), state: Exclusive::new(state) })
    }

    /// Reads one chunk that is the whole text, and flushes.
    pub(super) fn feed_last<'py>(&self, chunk: &Bound<'py, PyAny>) -> PyResult<Fed<'py>> {
        let py = chunk.py();
        let mut state = self.state.enter(py)?;
        let (mut emit, found) = state.feed(&self.set, chunk)?;
        let tail = state.flush(&self.set, py)?;
        if tail.len()? > 0 {
            emit = emit.add(tail)?;
        }
        let found = found.or_else(|| state.matched(py));
        Ok((emit, found))
    }

    fn set_armed(&self, py: Python<'_>, armed: bool) -> PyResult<()> {
        let mut state = self.state.enter(py)?;
        if !state.is_over() {
            state.matcher.set_armed(armed);
        }
        Ok(())
    }

    /// Reads one chunk of any kind.
    #[inline]
    pub(super) fn feed_any<'py>(&self, chunk: &Bound<'py, PyAny>) -> PyResult<Fed<'py>> {
        let mut state = self.state.enter(chunk.py())?;
        state.feed(&self.set, chunk)
    }
}

impl State {
    #[inline]
    pub(super) fn feed<'py>(
        &mut self,
        set: &Py<StopSet>,
        chunk: &Bound<'py, PyAny>,
    ) -> PyResult<Fed<'py>> {
        if let Ok(text) = chunk.cast::<PyString>() {
            if !self.raw {
                return self.feed_text(set, text);
            }
        } else if let Some(bytes) = as_bytes(chunk)? {
            return if self.raw { self.feed_raw(set, &bytes) } else { self.feed_utf8(set, &bytes) };
        }
        Err(error::chunk_type(chunk, self.raw))
    }

    /// True when text can be read as it is: a text stream that is not over, behind nothing
    /// unfinished.
    #[inline]
    pub(super) fn takes_text(&self) -> bool {
        !self.raw && !self.is_over() && self.decoder.is_empty()
    }

    /// True after a match, and after `flush`.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.flushed || self.matcher.matched().is_some()
    }

    /// The match that ended the stream, if one did.
    pub(super) fn matched(&self, py: Python<'_>) -> Option<Py<StopMatch>> {
        self.extras.as_ref()?.matched.as_ref().map(|found| found.clone_ref(py))
    }

    /// The regions as the caller gave them.
    pub(super) fn regions(&self, py: Python<'_>) -> Option<Py<PyTuple>> {
        self.extras.as_ref()?.regions.as_ref().map(|regions| regions.clone_ref(py))
    }

    /// The answer of a stream that is over, if it is.
    #[inline]
    fn over<'py>(&self, py: Python<'py>) -> PyResult<Option<Fed<'py>>> {
        if !self.is_over() {
            return Ok(None);
        }
        match self.matched(py) {
            Some(found) => Ok(Some((self.nothing(py), Some(found)))),
            None => Err(flushed()),
        }
    }

    fn nothing<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        if self.raw { PyBytes::new(py, b"").into_any() } else { PyString::new(py, "").into_any() }
    }

    #[inline]
    fn feed_text<'py>(
        &mut self,
        set: &Py<StopSet>,
        chunk: &Bound<'py, PyString>,
    ) -> PyResult<Fed<'py>> {
        let py = chunk.py();
        if let Some(answer) = self.over(py)? {
            return Ok(answer);
        }
        let mut scratch = Vec::new();
        let chars = Chars::of(chunk, &mut scratch)?;
        if !self.decoder.is_empty() || chars.has_surrogate() {
            return self.join_text(set, chunk, chars);
        }
        let fed = self.feed_chars(set, chunk, chars, |read| {
            text::substring(chunk, read, chars.len()).map(Bound::into_any)
        })?;
        self.last_text = true;
        Ok(fed)
    }

    /// A chunk with halves of surrogate pairs, or behind something unfinished.
    #[cold]
    fn join_text<'py>(
        &mut self,
        set: &Py<StopSet>,
        chunk: &Bound<'py, PyString>,
        chars: Chars<'_>,
    ) -> PyResult<Fed<'py>> {
        let py = chunk.py();
        let before = self.decoder;
        let Decoded { text: codes, next, fault } = before.join(chars.codes(), self.errors);
        let whole = text::from_codes(py, &codes);
        let fault = fault.map(|fault| error::fault(py, fault, Some(chunk)));
        let fed = self.feed_decoded(set, &whole, Chars::Full(&codes), next, fault, |read| {
            let from = before.units_read(chars.codes(), read);
            text::substring(chunk, from, chars.len()).map(Bound::into_any)
        })?;
        self.last_text = true;
        Ok(fed)
    }

    fn feed_utf8<'py>(
        &mut self,
        set: &Py<StopSet>,
        chunk: &Bound<'py, PyBytes>,
    ) -> PyResult<Fed<'py>> {
        let py = chunk.py();
        if let Some(answer) = self.over(py)? {
            return Ok(answer);
        }
        let (before, bytes) = (self.decoder, chunk.as_bytes());
        let Decoded { text: decoded, next, fault } = before.decode(bytes, self.errors);
        let whole = PyString::new(py, &decoded);
        let fault = fault.map(|fault| error::fault(py, fault, None));
        let mut scratch = Vec::new();
        let chars = Chars::of(&whole, &mut scratch)?;
        let fed = self.feed_decoded(set, &whole, chars, next, fault, |read| {
            Ok(PyBytes::new(py, &bytes[before.bytes_read(bytes, read)..]).into_any())
        })?;
        self.last_text = false;
        Ok(fed)
    }

    /// Reads what a chunk says as far as it is valid; a fault behind a match is never looked at.
    fn feed_decoded<'py>(
        &mut self,
        set: &Py<StopSet>,
        chunk: &Bound<'py, PyString>,
        chars: Chars<'_>,
        next: Decoder,
        fault: Option<PyErr>,
        rest: impl FnOnce(usize) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Fed<'py>> {
        let Some(fault) = fault else {
            let fed = self.feed_chars(set, chunk, chars, rest)?;
            self.decoder = next;
            return Ok(fed);
        };
        let before = self.matcher.clone();
        let fed = self.feed_chars(set, chunk, chars, rest)?;
        if fed.1.is_none() {
            self.matcher = before;
            return Err(fault);
        }
        Ok(fed)
    }

    /// Reads characters and makes the text to send; `rest` gives what follows the first `read`
    /// characters of the raw chunk.
    #[inline]
    fn feed_chars<'py>(
        &mut self,
        set: &Py<StopSet>,
        chunk: &Bound<'py, PyString>,
        chars: Chars<'_>,
        rest: impl FnOnce(usize) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Fed<'py>> {
        let py = chunk.py();
        let held = self.matcher.held();
        let advance = match chars {
            Chars::Narrow(units) => self.advance(py, units)?,
            Chars::Wide(units) => self.advance(py, units)?,
            Chars::Full(units) => self.advance(py, units)?,
        };
        let emit = text::emitted(
            self.matcher.released(held, advance.released),
            chunk,
            chars,
            advance.passed,
        )?;
        let found = self.note_match(py, set, advance, rest)?;
        Ok((emit.into_any(), found))
    }

    fn feed_raw<'py>(
        &mut self,
        set: &Py<StopSet>,
        chunk: &Bound<'py, PyBytes>,
    ) -> PyResult<Fed<'py>> {
        let py = chunk.py();
        if let Some(answer) = self.over(py)? {
            return Ok(answer);
        }
        let bytes = chunk.as_bytes();
        let held = self.matcher.held();
        let advance = self.advance(py, bytes)?;
        let emit = if advance.released == 0 && advance.passed == bytes.len() {
            chunk.clone()
        } else {
            let head = self.matcher.released(held, advance.released);
            PyBytes::new(py, &[head, &bytes[..advance.passed]].concat())
        };
        self.last_text = false;
        let found = self
            .note_match(py, set, advance, |read| Ok(PyBytes::new(py, &bytes[read..]).into_any()))?;
        Ok((emit.into_any(), found))
    }

    /// Short chunks keep the GIL; long ones go without it, in slices between which Ctrl-C is
    /// noticed.
    #[inline]
    fn advance<U: Unit>(&mut self, py: Python<'_>, units: &[U]) -> PyResult<Advance> {
        if units.len() < DETACH_UNITS {
            return Ok(self.matcher.advance(units));
        }
        self.advance_long(py, units)
    }

    #[cold]
    fn advance_long<U: Unit>(&mut self, py: Python<'_>, units: &[U]) -> PyResult<Advance> {
        let matcher = &mut self.matcher;
        // An interrupt leaves the matcher as it was before the call.
        py.detach(|| matcher.advance_in_slices(units, SLICE_UNITS, check_signals))
    }

    fn note_match<'py>(
        &mut self,
        py: Python<'py>,
        set: &Py<StopSet>,
        advance: Advance,
        rest: impl FnOnce(usize) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Py<StopMatch>>> {
        let Some(found) = advance.matched else { return Ok(None) };
        let rest = rest(found.read)?.unbind();
        let stop = set.get().stop(py, found.index)?;
        let found = StopMatch::wrap(py, &found, stop, rest)?;
        self.extras.get_or_insert_default().matched = Some(found.clone_ref(py));
        Ok(Some(found))
    }

    fn flush<'py>(&mut self, set: &Py<StopSet>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.is_over() {
            return Ok(self.nothing(py));
        }
        let mut out = self.nothing(py);
        if self.decoder.finish(self.errors).map_err(|fault| error::fault(py, fault, None))? {
            // What never became complete is one more character, of the last chunk.
            let (last_text, held) = (self.last_text, self.matcher.held());
            let advance = self.matcher.advance_last_chunk(0xfffd);
            let head =
                std::str::from_utf8(self.matcher.released(held, advance.released)).unwrap_or("");
            let tail = if advance.passed > 0 { "\u{fffd}" } else { "" };
            out = PyString::new(py, &[head, tail].concat()).into_any();
            let rest = if last_text {
                PyString::new(py, "").into_any()
            } else {
                PyBytes::new(py, b"").into_any()
            };
            if self.note_match(py, set, advance, |_| Ok(rest))?.is_some() {
                return Ok(out);
            }
        }
        self.flushed = true;
        let held = self.matcher.held();
        let count = self.matcher.flush();
        if count == 0 {
            Ok(out)
        } else {
            out.add(self.object(py, self.matcher.released(held, count)))
        }
    }

    /// (UTF-8) bytes of the core as what this stream emits.
    fn object<'py>(&self, py: Python<'py>, held: &[u8]) -> Bound<'py, PyAny> {
        if self.raw {
            PyBytes::new(py, held).into_any()
        } else {
            PyString::new(py, std::str::from_utf8(held).unwrap_or("")).into_any()
        }
    }
}

/// A bytes-like chunk; anything but `bytes` is copied, since it could change while it is read.
pub(super) fn as_bytes<'py>(chunk: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    if let Ok(bytes) = chunk.cast::<PyBytes>() {
        return Ok(Some(bytes.clone()));
    }
    if let Ok(bytes) = chunk.cast::<PyByteArray>() {
        return Ok(Some(PyBytes::new(chunk.py(), &bytes.to_vec())));
    }
    match PyMemoryView::from(chunk) {
        Ok(view) => Ok(Some(view.call_method0("tobytes")?.cast_into()?)),
        Err(error) if error.is_instance_of::<PyTypeError>(chunk.py()) => Ok(None),
        // It is a buffer, but cannot be read now.
        Err(error) => Err(error),
    }
}

#[pymethods]
impl StopStream {
    #[doc = doc!("StopStream.feed")]
    #[pyo3(signature = (chunk, /))]
    fn feed<'py>(&self, chunk: &Bound<'py, PyAny>) -> PyResult<Fed<'py>> {
        self.feed_any(chunk)
    }

    #[doc = doc!("StopStream.feed_many")]
    #[pyo3(signature = (chunks, /))]
    fn feed_many<'py>(&self, chunks: &Bound<'py, PyAny>) -> PyResult<Fed<'py>> {
        super::batch::feed_many(self, chunks)
    }

    #[doc = doc!("StopStream.flush")]
    fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.state.enter(py)?.flush(&self.set, py)
    }

    #[doc = doc!("StopStream.reset")]
    pub(super) fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state.enter(py)?;
        state.matcher.reset();
        state.decoder = Decoder::default();
        state.flushed = false;
        state.last_text = true;
        if let Some(extras) = &mut state.extras {
            extras.matched = None;
        }
        Ok(())
    }

    #[doc = doc!("StopStream.copy")]
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let state = self.state.enter(py)?.clone_ref(py);
        Ok(Self { set: self.set.clone_ref(py), state: Exclusive::new(state) })
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    #[pyo3(signature = (_memo, /))]
    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.copy(py)
    }

    #[doc = doc!("StopStream.match")]
    #[getter]
    fn r#match(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        Ok(self.state.enter(py)?.matched(py))
    }

    #[doc = doc!("StopStream.held")]
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let state = self.state.enter(py)?;
        Ok(state.object(py, state.matcher.held_bytes()))
    }

    /// The collector skips a stream that is in use; it comes again.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.set)?;
        self.state
            .peek(|state| state.extras.as_ref().map_or(Ok(()), |extras| extras.traverse(&visit)))
            .unwrap_or(Ok(()))
    }

    #[doc = doc!("StopStream.arm")]
    fn arm(&self, py: Python<'_>) -> PyResult<()> {
        self.set_armed(py, true)
    }

    #[doc = doc!("StopStream.disarm")]
    fn disarm(&self, py: Python<'_>) -> PyResult<()> {
        self.set_armed(py, false)
    }

    #[doc = doc!("StopStream.armed")]
    #[getter]
    fn armed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.state.enter(py)?.matcher.is_armed())
    }

    #[doc = doc!("StopStream.region")]
    #[getter]
    fn region<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let state = self.state.enter(py)?;
        let region = state.matcher.region().zip(state.regions(py));
        region.map(|(at, regions)| regions.bind(py).get_item(at)).transpose()
    }

    #[doc = doc!("StopStream.stops")]
    #[getter]
    fn stops(&self, py: Python<'_>) -> Py<StopSet> {
        self.set.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Ok(state) = self.state.enter(py) else { return Ok("<StopStream (in use)>".to_owned()) };
        let kind = if state.raw { "byte_stream" } else { "stream" };
        let (held, matched) = (state.object(py, state.matcher.held_bytes()), state.matched(py));
        // What follows may run code of the caller's.
        drop(state);
        let held = held.repr()?;
        let matched = match matched {
            Some(found) => found.bind(py).repr()?.to_string(),
            None => "None".to_owned(),
        };
        Ok(format!("<StopStream ({kind}) held={held} match={matched}>"))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        super::pickle::reduce(slf)
    }
}

impl State {
    /// A state as it was pickled.
    pub(super) fn restored(
        stream: (Matcher, Decoder, Errors),
        [raw, flushed, last_text]: [bool; 3],
        regions: Option<Py<PyTuple>>,
        matched: Option<Py<StopMatch>>,
    ) -> Self {
        let (matcher, decoder, errors) = stream;
        let extras =
            (regions.is_some() || matched.is_some()).then(|| Box::new(Extras { regions, matched }));
        Self { matcher, decoder, errors, raw, flushed, last_text, extras }
    }

    pub(super) fn clone_ref(&self, py: Python<'_>) -> Self {
        let extras = self
            .extras
            .as_ref()
            .map(|_| Box::new(Extras { regions: self.regions(py), matched: self.matched(py) }));
        let Self { decoder, errors, raw, flushed, last_text, .. } = *self;
        Self { matcher: self.matcher.clone(), decoder, errors, raw, flushed, last_text, extras }
    }
}

/// Notices Ctrl-C in the middle of work without the GIL.
#[allow(
    clippy::redundant_closure_for_method_calls,
    reason = "the method itself is tied to one lifetime"
)]
pub(super) fn check_signals() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}

/// `ValueError` for a chunk that comes after the end.
#[cold]
pub(super) fn flushed() -> PyErr {
    PyValueError::new_err("this stream was flushed: no more text can follow, reset() starts afresh")
}
