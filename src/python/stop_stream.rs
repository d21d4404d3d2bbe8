//! `StopStream`: one response. Text in, text out; every decision is the core's.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::options::ParsedOptions;
use super::pickle::Pickled;
use super::state::{FeedResult, State};
use super::stop_match::StopMatch;
use super::stop_set::StopSet;
use super::try_cell::TryCell;

#[doc = doc!("StopStream")]
#[pyclass(frozen, generic, module = "holdback._core")]
pub(super) struct StopStream {
    set: Py<StopSet>,
    pub(super) state: TryCell<State>,
}

impl StopStream {
    /// A stream of text, or a `raw` one of bytes.
    pub(super) fn new(
        set: &Bound<'_, StopSet>,
        options: ParsedOptions,
        raw: bool,
    ) -> PyResult<Self> {
        let state = State::new(set.get().core.clone(), options, raw)?;
        Ok(Self { set: set.clone().unbind(), state: TryCell::new(state) })
    }

    /// The stops as the caller gave them.
    #[inline]
    pub(super) fn given_stops(&self) -> &Py<PyTuple> {
        &self.set.get().stops
    }

    /// Reads one chunk that is the whole text, and flushes.
    pub(super) fn feed_last<'py>(&self, chunk: &Bound<'py, PyAny>) -> PyResult<FeedResult<'py>> {
        self.state.enter(chunk.py())?.feed_last(self.given_stops(), chunk)
    }

    /// Reads one chunk of any kind.
    #[inline]
    pub(super) fn feed_any<'py>(&self, chunk: &Bound<'py, PyAny>) -> PyResult<FeedResult<'py>> {
        self.state.enter(chunk.py())?.feed(self.given_stops(), chunk)
    }
}

#[pymethods]
impl StopStream {
    #[doc = doc!("StopStream.feed")]
    #[pyo3(signature = (chunk, /))]
    fn feed<'py>(&self, chunk: &Bound<'py, PyAny>) -> PyResult<FeedResult<'py>> {
        self.feed_any(chunk)
    }

    #[doc = doc!("StopStream.feed_many")]
    #[pyo3(signature = (chunks, /))]
    fn feed_many<'py>(&self, chunks: &Bound<'py, PyAny>) -> PyResult<FeedResult<'py>> {
        super::feed_many::feed_many(&self.state, self.given_stops(), chunks)
    }

    #[doc = doc!("StopStream.flush")]
    fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.state.enter(py)?.flush(self.given_stops(), py)
    }

    #[doc = doc!("StopStream.reset")]
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.state.enter(py)?.reset();
        Ok(())
    }

    #[doc = doc!("StopStream.copy")]
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let state = self.state.enter(py)?.clone_ref(py);
        Ok(Self { set: self.set.clone_ref(py), state: TryCell::new(state) })
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
        Ok(state.object(py, state.reader.matcher().held_bytes()))
    }

    /// The collector skips a stream that is in use; it comes again.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.set)?;
        self.state.peek(|state| state.traverse(&visit)).unwrap_or(Ok(()))
    }

    #[doc = doc!("StopStream.arm")]
    fn arm(&self, py: Python<'_>) -> PyResult<()> {
        self.state.enter(py)?.reader.set_armed(true);
        Ok(())
    }

    #[doc = doc!("StopStream.disarm")]
    fn disarm(&self, py: Python<'_>) -> PyResult<()> {
        self.state.enter(py)?.reader.set_armed(false);
        Ok(())
    }

    #[doc = doc!("StopStream.armed")]
    #[getter]
    fn armed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.state.enter(py)?.reader.matcher().is_armed())
    }

    #[doc = doc!("StopStream.region")]
    #[getter]
    fn region<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let state = self.state.enter(py)?;
        let region = state.reader.matcher().region().zip(state.regions(py));
        region.map(|(at, regions)| regions.bind(py).get_item(at)).transpose()
    }

    #[doc = doc!("StopStream.stops")]
    #[getter]
    fn stops(&self, py: Python<'_>) -> Py<StopSet> {
        self.set.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Ok(state) = self.state.enter(py) else { return Ok("<StopStream (in use)>".to_owned()) };
        let kind = if state.reader.is_raw() { "byte_stream" } else { "stream" };
        let (held, matched) =
            (state.object(py, state.reader.matcher().held_bytes()), state.matched(py));
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
        let (py, stream) = (slf.py(), slf.get());
        let pickled = Pickled::of(&*stream.state.enter(py)?, py);
        let rebuild = py.import("holdback._core")?.getattr("_rebuild_stream")?;
        Ok((rebuild, (stream.set.bind(py), pickled).into_pyobject(py)?))
    }
}

/// What `StopStream.__reduce__` names.
#[pyfunction]
#[pyo3(signature = (set, state, /))]
pub(super) fn _rebuild_stream(
    set: &Bound<'_, StopSet>,
    state: Pickled<'_>,
) -> PyResult<StopStream> {
    let state = state.restore(set.get().core.clone())?;
    Ok(StopStream { set: set.clone().unbind(), state: TryCell::new(state) })
}
