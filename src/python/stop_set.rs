//! `StopSet`: the compiled set, with the caller's own stop objects beside it.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use super::error::type_name;
use super::options::{self, RawOptions};
use super::state::FeedResult;
use super::stop_stream::StopStream;
use crate::{Limits, StopList, Tie};

/// Lists of this many bytes take a millisecond and more to compile.
const DETACH_BYTES: usize = 64 << 10;

#[doc = doc!("StopSet")]
#[pyclass(frozen, module = "holdback._core")]
pub(super) struct StopSet {
    pub(super) core: crate::StopSet,
    /// The stops as the caller gave them: matches hand out these very objects.
    pub(super) stops: Py<PyTuple>,
    limits: Limits,
}

#[pymethods]
impl StopSet {
    #[new]
    #[pyo3(signature = (stops=None, /, *, tie=None, max_stops=None, max_bytes=None))]
    pub(super) fn new(
        stops: Option<&Bound<'_, PyAny>>,
        tie: Option<&Bound<'_, PyAny>>,
        max_stops: Option<&Bound<'_, PyAny>>,
        max_bytes: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let mut limits = Limits::default();
        if let Some(given) = max_stops {
            limits.max_stops = options::whole("max_stops", given)?;
        }
        if let Some(given) = max_bytes {
            limits.max_bytes = options::whole("max_bytes", given)?;
        }
        let tie = options::tie(tie)?;
        let mut list = StopList::new(limits);
        let stops = match stops {
            None => PyTuple::empty(py),
            Some(one) if is_stop(one) => {
                push(&mut list, one)?;
                PyTuple::new(py, [one])?
            }
            Some(many) => collect(&mut list, many)?,
        };
        // A list that takes long to compile is compiled without the GIL.
        let core = if list.total_bytes() < DETACH_BYTES {
            crate::StopSet::compile(list, tie)
        } else {
            py.detach(|| crate::StopSet::compile(list, tie))
        };
        Ok(Self { core, stops: stops.unbind(), limits })
    }

    /// Stops of a subclass of `str` can refer back to the set.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.stops)
    }

    #[doc = doc!("StopSet.stops")]
    #[getter]
    fn stops<'py>(&self, py: Python<'py>) -> &Bound<'py, PyTuple> {
        self.stops.bind(py)
    }

    #[doc = doc!("StopSet.tie")]
    #[getter]
    fn tie(&self) -> &'static str {
        options::tie_name(self.core.tie())
    }

    #[doc = doc!("StopSet.unreachable")]
    #[getter]
    fn unreachable<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.core.unreachable())
    }

    #[doc = doc!("StopSet.nbytes")]
    #[getter]
    fn nbytes(&self) -> usize {
        self.core.nbytes()
    }

    #[doc = doc!("StopSet.stream")]
    #[pyo3(signature = (*, include_stop=None, errors=None, min_chars=None, ignore_inside=None, start_inside=None, atomic=None))]
    fn stream<'py>(
        slf: &Bound<'py, Self>,
        include_stop: Option<&Bound<'py, PyAny>>,
        errors: Option<&Bound<'py, PyAny>>,
        min_chars: Option<&Bound<'py, PyAny>>,
        ignore_inside: Option<&Bound<'py, PyAny>>,
        start_inside: Option<&Bound<'_, PyAny>>,
        atomic: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<StopStream> {
        let given =
            RawOptions { include_stop, errors, min_chars, ignore_inside, start_inside, atomic };
        StopStream::new(slf, given.parse(slf.py(), false)?, false)
    }

    #[doc = doc!("StopSet.byte_stream")]
    #[pyo3(signature = (*, include_stop=None, min_chars=None, ignore_inside=None, start_inside=None, atomic=None))]
    fn byte_stream<'py>(
        slf: &Bound<'py, Self>,
        include_stop: Option<&Bound<'py, PyAny>>,
        min_chars: Option<&Bound<'py, PyAny>>,
        ignore_inside: Option<&Bound<'py, PyAny>>,
        start_inside: Option<&Bound<'_, PyAny>>,
        atomic: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<StopStream> {
        let given = RawOptions {
            include_stop,
            errors: None,
            min_chars,
            ignore_inside,
            start_inside,
            atomic,
        };
        StopStream::new(slf, given.parse(slf.py(), true)?, true)
    }

    // Feeds one whole text and flushes. (`atomic` would change nothing here.)
    #[doc = doc!("StopSet.truncate")]
    #[pyo3(signature = (text, /, *, include_stop=None, errors=None, min_chars=None, ignore_inside=None, start_inside=None))]
    fn truncate<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        include_stop: Option<&Bound<'py, PyAny>>,
        errors: Option<&Bound<'py, PyAny>>,
        min_chars: Option<&Bound<'py, PyAny>>,
        ignore_inside: Option<&Bound<'py, PyAny>>,
        start_inside: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<FeedResult<'py>> {
        let given = RawOptions {
            include_stop,
            errors,
            min_chars,
            ignore_inside,
            start_inside,
            atomic: None,
        };
        StopStream::new(slf, given.parse(slf.py(), false)?, false)?.feed_last(text)
    }

    #[doc = doc!("StopSet.truncate_many")]
    #[pyo3(signature = (texts, /, *, include_stop=None, errors=None, min_chars=None, ignore_inside=None, start_inside=None))]
    fn truncate_many<'py>(
        slf: &Bound<'py, Self>,
        texts: &Bound<'py, PyAny>,
        include_stop: Option<&Bound<'py, PyAny>>,
        errors: Option<&Bound<'py, PyAny>>,
        min_chars: Option<&Bound<'py, PyAny>>,
        ignore_inside: Option<&Bound<'py, PyAny>>,
        start_inside: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyList>)> {
        let given = RawOptions {
            include_stop,
            errors,
            min_chars,
            ignore_inside,
            start_inside,
            atomic: None,
        };
        let (set, options) = (slf.get(), given.parse(slf.py(), false)?);
        if let Some(cut) = super::arrow::truncate_many(&set.core, &set.stops, texts, &options)? {
            return Ok(cut);
        }
        let (emits, matches) =
            super::truncate::truncate_many(&set.core, &set.stops, texts, options)?;
        Ok((emits.into_any(), matches))
    }

    #[doc = doc!("StopSet.cut")]
    #[pyo3(signature = (chunks, /, **options))]
    fn cut<'py>(
        slf: &Bound<'py, Self>,
        chunks: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let stream = slf.call_method("stream", (), options)?;
        slf.py().import("holdback.cut")?.getattr("Cut")?.call1((stream, chunks))
    }

    #[doc = doc!("StopSet.acut")]
    #[pyo3(signature = (chunks, /, **options))]
    fn acut<'py>(
        slf: &Bound<'py, Self>,
        chunks: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let stream = slf.call_method("stream", (), options)?;
        slf.py().import("holdback.cut")?.getattr("AsyncCut")?.call1((stream, chunks))
    }

    fn __len__(&self) -> usize {
        self.core.stops().len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyIterator>> {
        self.stops.bind(py).try_iter()
    }

    /// Stops are equal when their bytes are: `"a"` and `b"a"` are the same stop.
    fn __contains__(&self, stop: &Bound<'_, PyAny>) -> bool {
        let has = |wanted: &[u8]| self.core.stops().iter().any(|stop| stop == wanted);
        match (stop.cast::<PyString>(), stop.cast::<PyBytes>()) {
            (Ok(text), _) => text.to_cow().is_ok_and(|text| has(text.as_bytes())),
            (_, Ok(bytes)) => has(bytes.as_bytes()),
            _ => false,
        }
    }

    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented().into_bound(py)) };
        let other = other.get();
        let equal = self.core.tie() == other.core.tie() && self.stops.bind(py).eq(&other.stops)?;
        Ok(pyo3::types::PyBool::new(py, equal).to_owned().into_any())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        (self.stops.bind(py).hash()?, self.core.tie()).hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        const SHOWN: usize = 8;
        let stops = self.stops.bind(py);
        let shown: Vec<String> =
            stops.iter().take(SHOWN).map(|s| Ok(s.repr()?.to_string())).collect::<PyResult<_>>()?;
        let more = stops.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let tie = if self.core.tie() == Tie::First { ", tie='first'" } else { "" };
        Ok(format!("StopSet([{}{more}]{tie})", shown.join(", ")))
    }

    /// Pickles carry the stops, never the tables: a foreign table would be a foreign index into
    /// memory.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, set) = (slf.py(), slf.get());
        let rebuild = py.import("holdback._core")?.getattr("_rebuild_set")?;
        let arguments = (&set.stops, slf.get().tie(), set.limits.max_stops, set.limits.max_bytes)
            .into_pyobject(py)?;
        Ok((rebuild, arguments))
    }
}

/// What `StopSet.__reduce__` names.
#[pyfunction]
#[pyo3(signature = (stops, tie, max_stops, max_bytes, /))]
pub(super) fn _rebuild_set(
    stops: &Bound<'_, PyAny>,
    tie: &Bound<'_, PyAny>,
    max_stops: &Bound<'_, PyAny>,
    max_bytes: &Bound<'_, PyAny>,
) -> PyResult<StopSet> {
    StopSet::new(Some(stops), Some(tie), Some(max_stops), Some(max_bytes), stops.py())
}

fn is_stop(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>()
}

/// Checks and copies every stop of an iterable; gives them back as a tuple.
///
/// The iterable may be endless: the limits end it.
fn collect<'py>(list: &mut StopList, stops: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let py = stops.py();
    let tuple = match stops.cast_exact::<PyList>() {
        Ok(stops) => {
            list.check_count(stops.len())?;
            Some(stops.to_tuple())
        }
        Err(_) => stops.cast_exact::<PyTuple>().ok().cloned(),
    };
    if let Some(tuple) = tuple {
        list.reserve(tuple.len());
        for stop in tuple.iter_borrowed() {
            push(list, &stop)?;
        }
        return Ok(tuple);
    }
    let Ok(iterator) = stops.try_iter() else {
        return Err(PyTypeError::new_err(format!(
            "stops must be a str, bytes, an iterable of them, or None, not {}",
            type_name(stops)
        )));
    };
    let mut kept = Vec::new();
    for stop in iterator {
        let stop = stop?;
        push(list, &stop)?;
        kept.push(stop);
    }
    PyTuple::new(py, kept)
}

fn push(list: &mut StopList, stop: &Bound<'_, PyAny>) -> PyResult<()> {
    let index = list.len();
    if let Ok(text) = stop.cast::<PyString>() {
        match text.to_cow() {
            Ok(text) => list.push(&text)?,
            Err(_) => {
                return Err(PyValueError::new_err(format!(
                    "stop {index} holds a lone surrogate, which no text that is emitted can hold: {}",
                    stop.repr()?
                )));
            }
        }
    } else if let Ok(bytes) = stop.cast::<PyBytes>() {
        list.push_bytes(bytes.as_bytes())?;
    } else {
        return Err(PyTypeError::new_err(format!(
            "stop {index} must be str or bytes, not {}",
            type_name(stop)
        )));
    }
    Ok(())
}
