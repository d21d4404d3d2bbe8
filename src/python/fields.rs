//! Fields of a JSON object by their positions, for requests too large to be parsed on an event
//! loop. Large texts are read without the GIL.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::gil::detach_if_long;
use crate::wire::fields;

/// `(key, start of the key, start of the value, its end)`.
type Found = (String, usize, usize, usize);

#[doc = doc!("_json_object")]
#[allow(clippy::needless_pass_by_value, reason = "what Python gives is converted")]
#[pyfunction]
#[pyo3(signature = (json, from_, keys, whole, /))]
pub(super) fn _json_object(
    py: Python<'_>,
    json: &[u8],
    from_: usize,
    keys: Vec<String>,
    whole: bool,
) -> PyResult<(usize, usize, usize, Vec<Found>)> {
    let object = detach_if_long(py, json.len(), || fields::object(json, from_, &keys, whole))
        .map_err(refused)?;
    let found = object.fields.into_iter().map(|field| {
        let key = keys.get(field.key).cloned().unwrap_or_default();
        (key, field.start, field.value.start, field.value.end)
    });
    Ok((object.span.start, object.span.end, object.count, found.collect()))
}

#[doc = doc!("_json_elements")]
#[pyfunction]
#[pyo3(signature = (json, from_, most, /))]
pub(super) fn _json_elements(
    py: Python<'_>,
    json: &[u8],
    from_: usize,
    most: usize,
) -> PyResult<(usize, bool)> {
    detach_if_long(py, json.len(), || fields::elements(json, from_, most)).map_err(refused)
}

fn refused((what, at): (&'static str, usize)) -> PyErr {
    PyValueError::new_err(format!("{what}, at byte {at}"))
}
