//! Keyword arguments as core options, each refused with a message that says what was expected.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use super::error::type_name;
use crate::{Errors, StreamOptions, Tie};

/// `tie=`: absent means the default.
pub(super) fn tie(value: Option<&Bound<'_, PyAny>>) -> PyResult<Tie> {
    choice("tie", value, Tie::default(), &[("longest", Tie::Longest), ("first", Tie::First)])
}

/// The word for a tie rule.
pub(super) fn tie_name(tie: Tie) -> &'static str {
    match tie {
        Tie::Longest => "longest",
        Tie::First => "first",
    }
}

/// The options of `stream()`.
pub(super) fn stream(include_stop: Option<&Bound<'_, PyAny>>, errors: Option<&Bound<'_, PyAny>>) -> PyResult<StreamOptions> {
    let include_stop = match include_stop {
        None => false,
        Some(flag) if flag.is_instance_of::<PyBool>() => flag.is_truthy()?,
        Some(_) => false,
    };
    let errors = choice("errors", errors, Errors::default(), &[("replace", Errors::Replace), ("strict", Errors::Strict)])?;
    Ok(StreamOptions { include_stop, errors })
}

fn choice<T: Copy>(name: &str, value: Option<&Bound<'_, PyAny>>, default: T, words: &[(&str, T)]) -> PyResult<T> {
    let Some(value) = value else { return Ok(default) };
    let wanted = || words.iter().map(|(word, _)| format!("'{word}'")).collect::<Vec<_>>().join(" or ");
    let Ok(text) = value.cast::<PyString>() else {
        return Err(PyTypeError::new_err(format!("{name} must be {}, not {}", wanted(), type_name(value))));
    };
    let text = text.to_string_lossy();
    match words.iter().find(|(word, _)| *word == text) {
        Some((_, chosen)) => Ok(*chosen),
        None => Err(PyValueError::new_err(format!("{name} must be {}, not {}", wanted(), value.repr()?))),
    }
}
