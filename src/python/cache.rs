//! `compile`: a cache of compiled sets keyed by the stop list, for servers where every request brings its own.
//!
//! Two generations instead of a linked list: a hit in the young one is a single dictionary look-up and moves nothing; when the young
//! one is full it becomes the old one, and what is asked for again comes back from there. So at least the `GENERATION` lists used most
//! recently are kept. The cache is bounded in bytes as well, since lists come from clients; a large set is compiled and not kept.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::sync::{MutexExt, PyOnceLock};
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::options;
use super::set::StopSet;

/// Lists in a generation.
const GENERATION: usize = 512;
/// Compiled bytes in a generation.
const GENERATION_BYTES: usize = 16 << 20;
/// A set larger than this is not kept.
const KEPT_BYTES: usize = 256 << 10;

struct Cache {
    young: Py<PyDict>,
    old: Py<PyDict>,
    bytes: usize,
}

static CACHE: PyOnceLock<Mutex<Cache>> = PyOnceLock::new();

/// The compiled set of a list: from the cache when the same list was compiled before.
#[pyfunction]
#[pyo3(signature = (stops=None, /, *, tie=None, max_stops=None, max_bytes=None))]
pub(super) fn compile<'py>(
    py: Python<'py>,
    stops: Option<&Bound<'py, PyAny>>,
    tie: Option<&Bound<'py, PyAny>>,
    max_stops: Option<usize>,
    max_bytes: Option<usize>,
) -> PyResult<Bound<'py, StopSet>> {
    let build = |stops: Option<&Bound<'py, PyAny>>| Bound::new(py, StopSet::new(stops, tie, max_stops, max_bytes, py)?);
    if max_stops.is_some() || max_bytes.is_some() {
        return build(stops);
    }
    let Some(key) = stops.and_then(snapshot) else { return build(stops) };
    let key = match options::tie(tie)? {
        crate::Tie::Longest => key,
        rule @ crate::Tie::First => (options::tie_name(rule), key).into_pyobject(py)?.into_any(),
    };
    let cache =
        CACHE.get_or_init(py, || Mutex::new(Cache { young: PyDict::new(py).unbind(), old: PyDict::new(py).unbind(), bytes: 0 }));
    let (young, old) = match cache.lock_py_attached(py) {
        Ok(cache) => (cache.young.bind(py).clone(), cache.old.bind(py).clone()),
        Err(_) => return build(stops),
    };
    // A key that cannot be hashed is a bad stop; building says which.
    let Ok(hit) = young.get_item(&key) else { return build(stops) };
    if let Some(set) = hit {
        return Ok(set.cast_into()?);
    }
    let set = match old.get_item(&key)? {
        Some(set) => set.cast_into()?,
        None => build(stops)?,
    };
    let bytes = set.get().core.nbytes();
    if bytes <= KEPT_BYTES {
        if let Ok(mut cache) = cache.lock_py_attached(py) {
            if cache.young.bind(py).len() >= GENERATION || cache.bytes + bytes > GENERATION_BYTES {
                cache.old = std::mem::replace(&mut cache.young, PyDict::new(py).unbind());
                cache.bytes = 0;
            }
            cache.bytes += bytes;
            cache.young.bind(py).set_item(&key, &set)?;
        }
    }
    Ok(set)
}

/// The stop list as a key: a tuple of the stops, or the one stop. `None` for an iterator, which must be read to be known.
fn snapshot<'py>(stops: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    if let Ok(list) = stops.cast_exact::<PyList>() {
        return Some(list.to_tuple().into_any());
    }
    let plain = stops.is_exact_instance_of::<PyTuple>() || stops.is_exact_instance_of::<PyString>();
    plain.then(|| stops.clone())
}
