//! `StopMatch`: what a stream was ended by, and where.

use std::hash::{DefaultHasher, Hasher};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

#[doc = doc!("StopMatch")]
#[pyclass(frozen, generic, module = "holdback._core")]
pub(super) struct StopMatch {
    #[doc = doc!("StopMatch.stop")]
    #[pyo3(get)]
    stop: Py<PyAny>,
    #[doc = doc!("StopMatch.index")]
    #[pyo3(get)]
    index: usize,
    #[doc = doc!("StopMatch.start")]
    #[pyo3(get)]
    start: u64,
    #[doc = doc!("StopMatch.end")]
    #[pyo3(get)]
    end: u64,
    #[doc = doc!("StopMatch.start_chunk")]
    #[pyo3(get)]
    start_chunk: u64,
    #[doc = doc!("StopMatch.end_chunk")]
    #[pyo3(get)]
    end_chunk: u64,
    #[doc = doc!("StopMatch.rest")]
    #[pyo3(get)]
    rest: Py<PyAny>,
}

impl StopMatch {
    /// The Python face of a core match; `stops` are the caller's own objects, `rest` what followed
    /// in its chunk.
    pub(super) fn wrap(
        py: Python<'_>,
        found: &crate::Match,
        stops: &Py<PyTuple>,
        rest: Py<PyAny>,
    ) -> PyResult<Py<Self>> {
        let stop = stops.bind(py).get_item(found.index)?.unbind();
        let crate::Match { index, start, end, start_chunk, end_chunk, .. } = *found;
        Py::new(py, Self { stop, index, start, end, start_chunk, end_chunk, rest })
    }

    /// The core's view again; how much of the chunk was read is not kept, since no one asks after
    /// the match.
    pub(super) fn to_core(&self) -> crate::Match {
        crate::Match::new(self.index, self.start..self.end, self.start_chunk..=self.end_chunk)
    }

    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let stop = self.stop.bind(py);
        (
            stop,
            self.index,
            self.start,
            self.end,
            self.start_chunk,
            self.end_chunk,
            self.rest.bind(py),
        )
            .into_pyobject(py)
    }
}

#[pymethods]
impl StopMatch {
    #[new]
    fn new(
        stop: Py<PyAny>,
        index: usize,
        start: u64,
        end: u64,
        start_chunk: u64,
        end_chunk: u64,
        rest: Py<PyAny>,
    ) -> Self {
        Self { stop, index, start, end, start_chunk, end_chunk, rest }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.stop)?;
        visit.call(&self.rest)
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str, &'static str) {
        ("stop", "index", "start", "end")
    }

    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        match other.cast::<Self>() {
            Ok(other) => {
                Ok(pyo3::types::PyBool::new(py, self.fields(py)?.eq(other.get().fields(py)?)?)
                    .to_owned()
                    .into_any())
            }
            Err(_) => Ok(py.NotImplemented().into_bound(py)),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        hasher.write_isize(self.fields(py)?.hash()?);
        Ok(hasher.finish())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Self { index, start, end, start_chunk, end_chunk, .. } = self;
        let (stop, rest) = (self.stop.bind(py).repr()?, self.rest.bind(py).repr()?);
        Ok(format!(
            "StopMatch(stop={stop}, index={index}, start={start}, end={end}, start_chunk={start_chunk}, end_chunk={end_chunk}, rest={rest})"
        ))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        Ok((slf.get_type().into_any(), slf.get().fields(slf.py())?))
    }
}
