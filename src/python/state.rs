//! What changes while a response is read: the core's reader, and what Python wants to know beside
//! it. No class; `StopStream` keeps one in a cell.

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString, PyTuple};

use super::error::{self, Refused};
use super::gil::{Pauses, detach_if_long};
use super::options::ParsedOptions;
use super::stop_match::StopMatch;
use super::text::{self, Chars};
use crate::raw::{CodeUnit, Reader, Step};
use crate::stream::prefix;

pub(super) struct State {
    pub(super) reader: Reader,
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
pub(super) type FeedResult<'py> = (Bound<'py, PyAny>, Option<Py<StopMatch>>);

impl State {
    /// The state of a new stream of text, or of a `raw` one of bytes.
    pub(super) fn new(set: crate::StopSet, options: ParsedOptions, raw: bool) -> PyResult<Self> {
        let ParsedOptions { core, regions } = options;
        let reader = if raw { Reader::bytes(set, &core)? } else { Reader::text(set, &core)? };
        Ok(Self::restored(reader, true, regions, None))
    }

    /// A state as it was pickled.
    pub(super) fn restored(
        reader: Reader,
        last_text: bool,
        regions: Option<Py<PyTuple>>,
        matched: Option<Py<StopMatch>>,
    ) -> Self {
        let extras =
            (regions.is_some() || matched.is_some()).then(|| Box::new(Extras { regions, matched }));
        Self { reader, last_text, extras }
    }

    pub(super) fn clone_ref(&self, py: Python<'_>) -> Self {
        let (regions, matched) = (self.regions(py), self.matched(py));
        Self::restored(self.reader.clone(), self.last_text, regions, matched)
    }

    pub(super) fn reset(&mut self) {
        self.reader.reset();
        self.last_text = true;
        if let Some(extras) = &mut self.extras {
            extras.matched = None;
        }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(extras) = &self.extras else { return Ok(()) };
        visit.call(&extras.regions)?;
        visit.call(&extras.matched)
    }

    /// The match that ended the stream, if one did.
    pub(super) fn matched(&self, py: Python<'_>) -> Option<Py<StopMatch>> {
        self.extras.as_ref()?.matched.as_ref().map(|found| found.clone_ref(py))
    }

    /// The regions as the caller gave them.
    pub(super) fn regions(&self, py: Python<'_>) -> Option<Py<PyTuple>> {
        self.extras.as_ref()?.regions.as_ref().map(|regions| regions.clone_ref(py))
    }

    /// Reads one chunk of any kind. `stops` are the objects that matches name.
    #[inline]
    pub(super) fn feed<'py>(
        &mut self,
        stops: &Py<PyTuple>,
        chunk: &Bound<'py, PyAny>,
    ) -> PyResult<FeedResult<'py>> {
        let (py, raw) = (chunk.py(), self.reader.is_raw());
        let text = chunk.cast::<PyString>().ok().filter(|_| !raw);
        let bytes = if text.is_some() { None } else { as_bytes(chunk)? };
        if text.is_none() && bytes.is_none() {
            return Err(error::chunk_type(chunk, raw));
        }
        if let Some(found) = self.matched(py) {
            return Ok((self.object(py, b""), Some(found)));
        }
        let (emit, rest) = match (text, bytes) {
            (Some(text), _) => self.read_text(text)?,
            (_, Some(bytes)) if raw => self.read_raw(&bytes)?,
            (_, Some(bytes)) => self.read_utf8(&bytes)?,
            (None, None) => return Err(error::chunk_type(chunk, raw)),
        };
        self.last_text = text.is_some();
        let found = rest.map(|rest| self.note_match(py, stops, rest)).transpose()?;
        Ok((emit, found))
    }

    /// Reads one chunk that is the whole text, and flushes.
    pub(super) fn feed_last<'py>(
        &mut self,
        stops: &Py<PyTuple>,
        chunk: &Bound<'py, PyAny>,
    ) -> PyResult<FeedResult<'py>> {
        let py = chunk.py();
        let (mut emit, found) = self.feed(stops, chunk)?;
        let tail = self.flush(stops, py)?;
        if tail.len()? > 0 {
            emit = emit.add(tail)?;
        }
        Ok((emit, found.or_else(|| self.matched(py))))
    }

    /// Ends the text; gives what is left of it.
    pub(super) fn flush<'py>(
        &mut self,
        stops: &Py<PyTuple>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let end = self.reader.flush().map_err(|fault| error::fault(py, fault, None))?;
        if end.matched {
            let rest = if self.last_text {
                PyString::new(py, "").into_any()
            } else {
                PyBytes::new(py, b"").into_any()
            };
            self.note_match(py, stops, rest)?;
        }
        Ok(self.object(py, &end.text))
    }

    /// (UTF-8) bytes of the core as what this stream emits.
    pub(super) fn object<'py>(&self, py: Python<'py>, text: &[u8]) -> Bound<'py, PyAny> {
        if self.reader.is_raw() {
            PyBytes::new(py, text).into_any()
        } else {
            PyString::new(py, utf8(text)).into_any()
        }
    }

    /// Gives the text to send and, after a match, what follows it in the chunk. So do the next two.
    #[inline]
    fn read_text<'py>(&mut self, chunk: &Bound<'py, PyString>) -> PyResult<Emitted<'py>> {
        let py = chunk.py();
        let mut scratch = Vec::new();
        let chars = Chars::of(chunk, &mut scratch)?;
        let step = match chars {
            Chars::Narrow(units) => self.read_units(py, units),
            Chars::Wide(units) => self.read_units(py, units),
            Chars::Full(units) => self.read_units(py, units),
        };
        let Step { text, advance, held, read } =
            step.map_err(|refused| refused.raise(py, Some(chunk)))?;
        let head = self.reader.released(held, advance);
        let emit = match text {
            None => text::emitted(head, chunk, chars, advance.passed)?,
            Some(codes) => {
                let tail = codes[..advance.passed].iter().filter_map(|&code| char::from_u32(code));
                PyString::new(py, &utf8(head).chars().chain(tail).collect::<String>())
            }
        };
        let rest = read.map(|read| text::substring(chunk, read, chars.len())).transpose()?;
        Ok((emit.into_any(), rest.map(Bound::into_any)))
    }

    #[inline]
    fn read_units<U: CodeUnit>(
        &mut self,
        py: Python<'_>,
        units: &[U],
    ) -> Result<Step<Option<Vec<u32>>>, Refused> {
        let reader = &mut self.reader;
        let mut pauses = Pauses::default();
        let pause = || Ok(pauses.look()?);
        detach_if_long(py, units.len(), || reader.feed_units(units, pause))
    }

    fn read_utf8<'py>(&mut self, chunk: &Bound<'py, PyBytes>) -> PyResult<Emitted<'py>> {
        let (py, bytes) = (chunk.py(), chunk.as_bytes());
        let reader = &mut self.reader;
        let mut pauses = Pauses::default();
        let pause = || Ok(pauses.look()?);
        let step = detach_if_long(py, bytes.len(), || reader.feed_utf8(bytes, pause));
        let Step { text, advance, held, read } =
            step.map_err(|refused: Refused| refused.raise(py, None))?;
        let (head, tail) = (self.reader.released(held, advance), prefix(&text, advance.passed));
        let emit = if head.is_empty() {
            PyString::new(py, tail)
        } else {
            PyString::new(py, &[utf8(head), tail].concat())
        };
        Ok((emit.into_any(), read.map(|read| PyBytes::new(py, &bytes[read..]).into_any())))
    }

    fn read_raw<'py>(&mut self, chunk: &Bound<'py, PyBytes>) -> PyResult<Emitted<'py>> {
        let (py, bytes) = (chunk.py(), chunk.as_bytes());
        let reader = &mut self.reader;
        let mut pauses = Pauses::default();
        let pause = || Ok(pauses.look()?);
        let step = detach_if_long(py, bytes.len(), || reader.feed_raw(bytes, pause));
        let Step { advance, held, read, .. } =
            step.map_err(|refused: Refused| refused.raise(py, None))?;
        let emit = if advance.released == 0 && advance.passed == bytes.len() {
            chunk.clone()
        } else {
            let head = self.reader.released(held, advance);
            PyBytes::new(py, &[head, &bytes[..advance.passed]].concat())
        };
        Ok((emit.into_any(), read.map(|read| PyBytes::new(py, &bytes[read..]).into_any())))
    }

    /// Keeps the match that the reader has come to.
    fn note_match<'py>(
        &mut self,
        py: Python<'py>,
        stops: &Py<PyTuple>,
        rest: Bound<'py, PyAny>,
    ) -> PyResult<Py<StopMatch>> {
        let Some(found) = self.reader.matched() else {
            return Err(error::flushed()); // not reached: only called after a match
        };
        let found = StopMatch::wrap(py, found, stops, rest.unbind())?;
        self.extras.get_or_insert_default().matched = Some(found.clone_ref(py));
        Ok(found)
    }
}

/// The text to send, and what follows a match in the chunk.
type Emitted<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

/// What a text stream holds is whole characters.
fn utf8(text: &[u8]) -> &str {
    std::str::from_utf8(text).unwrap_or("")
}

/// About how long a chunk is, without looking into it.
#[inline]
pub(super) fn units(chunk: &Bound<'_, PyAny>) -> usize {
    // Anything but `str` and `bytes` can be of any size, and is rare.
    const UNKNOWN: usize = 1 << 20;
    if chunk.is_instance_of::<PyString>() || chunk.is_instance_of::<PyBytes>() {
        chunk.len().unwrap_or(UNKNOWN)
    } else {
        UNKNOWN
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
    if chunk.is_instance_of::<PyString>() {
        return Ok(None);
    }
    match PyMemoryView::from(chunk) {
        Ok(view) => Ok(Some(view.call_method0("tobytes")?.cast_into()?)),
        Err(error) if error.is_instance_of::<PyTypeError>(chunk.py()) => Ok(None),
        // It is a buffer, but cannot be read now.
        Err(error) => Err(error),
    }
}
