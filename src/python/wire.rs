//! `Cutter`: bytes of a provider's answer in, bytes of the same answer out. Every decision is the
//! core's.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use super::error::type_name;
use super::options::{RawOptions, Unsigned, choice, flag, whole};
use super::state::as_bytes;
use super::stop_set::StopSet;
use super::try_cell::TryCell;
use crate::wire::{
    self, Dialect, OnError, OnMalformed, OnMatch, OnUnread, Options, StopField, WireError,
};

/// From this many bytes on, input is read without the GIL; the reason is the one of
/// `gil::DETACH_UNITS`. A frame costs about as much for a byte as a text does, so the bound is
/// the same.
const DETACH_BYTES: usize = 16 << 10;

#[doc = doc!("Cutter")]
#[pyclass(frozen, module = "holdback._core")]
pub(super) struct Cutter {
    #[doc = doc!("Cutter.stops")]
    #[pyo3(get)]
    stops: Py<StopSet>,
    dialect: Dialect,
    state: TryCell<State>,
}

struct State {
    core: wire::Cutter,
    /// What one call gives, kept for its allocation.
    out: Vec<u8>,
}

#[doc = doc!("WireMatch")]
#[pyclass(frozen, get_all, module = "holdback._core")]
pub(super) struct WireMatch {
    #[doc = doc!("WireMatch.stop")]
    stop: Py<PyAny>,
    #[doc = doc!("WireMatch.index")]
    index: usize,
    #[doc = doc!("WireMatch.start")]
    start: u64,
    #[doc = doc!("WireMatch.end")]
    end: u64,
    #[doc = doc!("WireMatch.choice")]
    choice: u32,
    #[doc = doc!("WireMatch.block")]
    block: Option<u32>,
    #[doc = doc!("WireMatch.reasoning")]
    reasoning: bool,
    #[doc = doc!("WireMatch.start_frame")]
    start_frame: u64,
    #[doc = doc!("WireMatch.end_frame")]
    end_frame: u64,
}

#[pymethods]
impl Cutter {
    #[new]
    #[pyo3(signature = (dialect, stops=None, /, *, tie=None, include_stop=None, min_chars=None, ignore_inside=None, start_inside=None,
        atomic=None, choices=None, skip_chars=None, cut_reasoning=None, stop_field="auto", on_match=None, on_error=None,
        on_malformed=None, on_unread=None, max_frame_bytes=None, max_choices=None, max_held_bytes=None, max_text_bytes=None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new<'py>(
        dialect: &Bound<'py, PyAny>,
        stops: Option<&Bound<'py, PyAny>>,
        tie: Option<&Bound<'py, PyAny>>,
        include_stop: Option<&Bound<'py, PyAny>>,
        min_chars: Option<&Bound<'py, PyAny>>,
        ignore_inside: Option<&Bound<'py, PyAny>>,
        start_inside: Option<&Bound<'py, PyAny>>,
        atomic: Option<&Bound<'py, PyAny>>,
        choices: Option<&Bound<'py, PyAny>>,
        skip_chars: Option<&Bound<'py, PyAny>>,
        cut_reasoning: Option<&Bound<'py, PyAny>>,
        stop_field: Option<&str>,
        on_match: Option<&Bound<'py, PyAny>>,
        on_error: Option<&Bound<'py, PyAny>>,
        on_malformed: Option<&Bound<'py, PyAny>>,
        on_unread: Option<&Bound<'py, PyAny>>,
        max_frame_bytes: Option<&Bound<'py, PyAny>>,
        max_choices: Option<&Bound<'py, PyAny>>,
        max_held_bytes: Option<&Bound<'py, PyAny>>,
        max_text_bytes: Option<&Bound<'py, PyAny>>,
        py: Python<'py>,
    ) -> PyResult<Self> {
        let Ok(name) = dialect.cast::<PyString>() else {
            return Err(PyTypeError::new_err(format!(
                "dialect must be a str, not {}",
                type_name(dialect)
            )));
        };
        let dialect: Dialect = name
            .to_string_lossy()
            .parse()
            .map_err(|error: wire::UnknownDialect| PyValueError::new_err(error.to_string()))?;
        let stops = match stops.map(|stops| stops.cast::<StopSet>()) {
            Some(Ok(set)) if tie.is_none() => set.clone(),
            Some(Ok(_)) => {
                return Err(PyTypeError::new_err(
                    "tie belongs to the set: give it to StopSet, not to the cutter",
                ));
            }
            _ => Bound::new(py, StopSet::new(stops, tie, None, None, py)?)?,
        };
        let given = RawOptions {
            include_stop,
            errors: None,
            min_chars,
            ignore_inside,
            start_inside,
            atomic,
        };
        let mut options = Options { matching: given.parse(py, false)?.core, ..Options::default() };
        options.choices = count("choices", choices)?;
        set(&mut options.skip_chars, count("skip_chars", skip_chars)?);
        set(&mut options.cut_reasoning, flag("cut_reasoning", cut_reasoning)?);
        set(&mut options.max_frame_bytes, count("max_frame_bytes", max_frame_bytes)?);
        set(&mut options.max_choices, count("max_choices", max_choices)?);
        set(&mut options.max_held_bytes, count("max_held_bytes", max_held_bytes)?);
        set(&mut options.max_text_bytes, count("max_text_bytes", max_text_bytes)?);
        options.stop_field = match stop_field {
            None => StopField::Off,
            Some("auto") => StopField::Family,
            Some(name) => StopField::Named(name.to_owned()),
        };
        options.on_match = choice(
            "on_match",
            on_match,
            OnMatch::default(),
            &[("cancel", OnMatch::Cancel), ("drain", OnMatch::Drain)],
        )?;
        options.on_error = choice(
            "on_error",
            on_error,
            OnError::default(),
            &[("flush", OnError::Flush), ("drop", OnError::Drop)],
        )?;
        let words = [("fail", OnMalformed::Fail), ("pass", OnMalformed::Pass)];
        options.on_malformed =
            choice("on_malformed", on_malformed, OnMalformed::default(), &words)?;
        let words = [("pass", OnUnread::Pass), ("fail", OnUnread::Fail)];
        options.on_unread = choice("on_unread", on_unread, OnUnread::default(), &words)?;
        let core = wire::Cutter::new(dialect, &stops.get().core, options)?;
        Ok(Self {
            stops: stops.unbind(),
            dialect,
            state: TryCell::new(State { core, out: Vec::new() }),
        })
    }

    #[doc = doc!("Cutter.feed")]
    #[pyo3(signature = (data, /))]
    fn feed<'py>(&self, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.call(data, wire::Cutter::feed)
    }

    #[doc = doc!("Cutter.finish")]
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.run(py, b"", |core, _, out| core.finish(out))
    }

    #[doc = doc!("Cutter.body")]
    #[pyo3(signature = (data, /))]
    fn body<'py>(&self, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.call(data, wire::Cutter::body)
    }

    #[doc = doc!("Cutter.dialect")]
    #[getter]
    fn dialect(&self) -> &'static str {
        self.dialect.name()
    }

    #[doc = doc!("Cutter.ended")]
    #[getter]
    fn ended(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.state.enter(py)?.core.ended())
    }

    #[doc = doc!("Cutter.matches")]
    #[getter]
    fn matches<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let state = self.state.enter(py)?;
        let wrap = |found: &wire::WireMatch| {
            let crate::Match { index, start, end, start_chunk, end_chunk, .. } = found.found;
            let stop = self.stops.get().stops.bind(py).get_item(index)?.unbind();
            let wire::WireMatch { choice, block, reasoning, .. } = *found;
            let (start_frame, end_frame) = (start_chunk, end_chunk);
            Bound::new(
                py,
                WireMatch {
                    stop,
                    index,
                    start,
                    end,
                    choice,
                    block,
                    reasoning,
                    start_frame,
                    end_frame,
                },
            )
        };
        PyTuple::new(py, state.core.matches().iter().map(wrap).collect::<PyResult<Vec<_>>>()?)
    }

    #[doc = doc!("Cutter.texts_read")]
    #[getter]
    fn texts_read(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.state.enter(py)?.core.texts_read())
    }

    #[doc = doc!("Cutter.frames_unread")]
    #[getter]
    fn frames_unread(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.state.enter(py)?.core.frames_unread())
    }

    #[doc = doc!("Cutter.unread")]
    #[getter]
    fn unread(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.state.enter(py)?.core.unread().map(str::to_owned))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let state = self.state.enter(py)?;
        let (ended, matches) =
            (if state.core.ended() { "True" } else { "False" }, state.core.matches().len());
        Ok(format!(
            "<Cutter {}: {} stops, ended={ended}, {matches} matches>",
            self.dialect,
            state.core.set().stops().len()
        ))
    }
}

fn count<T: Unsigned>(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<T>> {
    value.map(|value| whole(name, value)).transpose()
}

fn set<T>(option: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *option = value;
    }
}

type Work = fn(&mut wire::Cutter, &[u8], &mut Vec<u8>) -> Result<(), WireError>;

impl Cutter {
    fn call<'py>(&self, data: &Bound<'py, PyAny>, work: Work) -> PyResult<Bound<'py, PyBytes>> {
        match as_bytes(data)? {
            Some(bytes) => self.run(data.py(), bytes.as_bytes(), work),
            None => Err(PyTypeError::new_err(format!(
                "a cutter takes bytes-like input, not {}",
                type_name(data)
            ))),
        }
    }

    fn run<'py>(&self, py: Python<'py>, input: &[u8], work: Work) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.state.enter(py)?;
        let State { core, out } = &mut *state;
        out.clear();
        let result = if input.len() < DETACH_BYTES {
            work(core, input, out)
        } else {
            py.detach(|| work(core, input, out))
        };
        let emit = PyBytes::new(py, out);
        if out.capacity() > DETACH_BYTES {
            *out = Vec::new(); // one large call must not pin its memory to an idle stream
        }
        match result {
            Ok(()) => Ok(emit),
            Err(error) => Err(raise(py, &error, &emit)),
        }
    }
}

/// A `holdback.wire.WireError` that carries what may still be sent.
fn raise(py: Python<'_>, error: &WireError, output: &Bound<'_, PyBytes>) -> PyErr {
    let arguments = (error.to_string(), output, error.frame(), error.offset());
    match py
        .import("holdback.wire")
        .and_then(|module| module.getattr("WireError")?.call1(arguments))
    {
        Ok(error) => PyErr::from_value(error),
        Err(failure) => failure,
    }
}

impl WireMatch {
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Self { stop, index, start, end, choice, block, reasoning, start_frame, end_frame } =
            self;
        (stop.bind(py), index, start, end, choice, block, reasoning, start_frame, end_frame)
            .into_pyobject(py)
    }
}

#[pymethods]
impl WireMatch {
    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        match other.cast::<Self>() {
            Ok(other) => {
                self.fields(py)?.rich_compare(other.get().fields(py)?, pyo3::basic::CompareOp::Eq)
            }
            Err(_) => Ok(py.NotImplemented().into_bound(py)),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.fields(py)?.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Self { index, start, end, choice, start_frame, end_frame, .. } = self;
        let stop = self.stop.bind(py).repr()?;
        let block = self.block.map_or_else(|| "None".to_owned(), |block| block.to_string());
        let reasoning = if self.reasoning { "True" } else { "False" };
        Ok(format!(
            "WireMatch(stop={stop}, index={index}, start={start}, end={end}, choice={choice}, block={block}, reasoning={reasoning}, \
             start_frame={start_frame}, end_frame={end_frame})"
        ))
    }
}
