//! Core errors as Python exceptions: the only place that decides which.

use pyo3::exceptions::{PyTypeError, PyUnicodeDecodeError, PyUnicodeEncodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::{Error, Fault};

/// Why a chunk was not read: its own fault, or an interrupt.
pub(super) enum Refused {
    Fault(Fault),
    Python(PyErr),
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<PyErr> for Refused {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl Refused {
    /// As an exception; `chunk` is what the caller passed, if it was text.
    #[cold]
    pub(super) fn raise(self, py: Python<'_>, chunk: Option<&Bound<'_, PyString>>) -> PyErr {
        match self {
            Self::Fault(found) => fault(py, found, chunk),
            Self::Python(error) => error,
        }
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        if error.is_bytes_stop() {
            PyTypeError::new_err(error.to_string())
        } else {
            PyValueError::new_err(error.to_string())
        }
    }
}

/// The exception that Python's own codec would raise; `chunk` is what the caller passed.
pub(super) fn fault(py: Python<'_>, fault: Fault, chunk: Option<&Bound<'_, PyString>>) -> PyErr {
    match fault {
        Fault::Flushed => flushed(),
        Fault::Utf8 { bytes, start, end } => {
            let reason = match std::str::from_utf8(&bytes[start..end]) {
                Err(error) if error.error_len().is_none() && end == bytes.len() => {
                    "unexpected end of data"
                }
                _ if matches!(bytes[start], 0xc2..=0xf4) => "invalid continuation byte",
                _ => "invalid start byte",
            };
            PyUnicodeDecodeError::new_err((
                "utf-8",
                PyBytes::new(py, &bytes).unbind(),
                start,
                end,
                reason,
            ))
        }
        Fault::Surrogate { waiting, at } => match surrogate_text(py, waiting, chunk) {
            Ok(text) => PyUnicodeEncodeError::new_err((
                "utf-8",
                text.unbind(),
                at,
                at + 1,
                "surrogates not allowed",
            )),
            Err(error) => error,
        },
    }
}

/// The text a lone surrogate stands in: the one that had been waiting, and the chunk.
fn surrogate_text<'py>(
    py: Python<'py>,
    waiting: Option<u16>,
    chunk: Option<&Bound<'py, PyString>>,
) -> PyResult<Bound<'py, PyAny>> {
    let chunk = chunk.map_or_else(|| PyString::new(py, "").into_any(), |c| c.clone().into_any());
    let Some(high) = waiting else { return Ok(chunk) };
    let high = PyBytes::new(py, &high.to_le_bytes())
        .call_method1("decode", ("utf-16-le", "surrogatepass"))?;
    high.add(chunk)
}

/// `TypeError` for a chunk that is neither text nor bytes.
#[cold]
pub(super) fn chunk_type(chunk: &Bound<'_, PyAny>, raw: bool) -> PyErr {
    let wanted = if raw {
        "a byte stream takes bytes-like chunks"
    } else {
        "a chunk must be str or bytes-like"
    };
    PyTypeError::new_err(format!("{wanted}, not {}", type_name(chunk)))
}

/// The name of an object's type, for messages.
pub(super) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}

/// `ValueError` for a chunk that comes after the end.
#[cold]
pub(super) fn flushed() -> PyErr {
    PyValueError::new_err("this stream was flushed: no more text can follow, reset() starts afresh")
}
