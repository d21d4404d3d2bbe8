//! `compile`: a cache of compiled sets keyed by the stop list, for servers where every request
//! brings its own.
//!
//! Two generations instead of a linked list: a hit in the young one is a single dictionary look-up
//! and moves nothing; when the young one is full it becomes the old one, and what is asked for
//! again comes back from there. So at least the `GENERATION` lists used most recently are kept. The
//! cache is bounded in bytes as well, since lists come from clients; a large set is compiled and
//! not kept.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::sync::{MutexExt, PyOnceLock};
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use super::options;
use super::stop_set::StopSet;
use crate::Tie;

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

/// One cache for each tie rule, so that a key is the stops and nothing else.
static CACHES: [PyOnceLock<Mutex<Cache>>; 2] = [PyOnceLock::new(), PyOnceLock::new()];

#[doc = doc!("compile")]
#[pyfunction]
#[pyo3(signature = (stops=None, /, *, tie=None, max_stops=None, max_bytes=None))]
pub(super) fn compile<'py>(
    py: Python<'py>,
    stops: Option<&Bound<'py, PyAny>>,
    tie: Option<&Bound<'py, PyAny>>,
    max_stops: Option<&Bound<'py, PyAny>>,
    max_bytes: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, StopSet>> {
    let build = |stops: Option<&Bound<'py, PyAny>>| {
        Bound::new(py, StopSet::new(stops, tie, max_stops, max_bytes, py)?)
    };
    if max_stops.is_some() || max_bytes.is_some() {
        return build(stops);
    }
    let Some(key) = stops.and_then(key) else { return build(stops) };
    let cache = &CACHES[usize::from(options::tie(tie)? == Tie::First)];
    let empty = || PyDict::new(py).unbind();
    let cache =
        cache.get_or_init(py, || Mutex::new(Cache { young: empty(), old: empty(), bytes: 0 }));
    // The lock is held for pointers and numbers only. Whatever may run code of the caller's, or
    // free an object, is done outside.
    let generations = || {
        cache
            .lock_py_attached(py)
            .ok()
            .map(|cache| (cache.young.clone_ref(py), cache.old.clone_ref(py)))
    };
    let Some((young, old)) = generations() else { return build(stops) };
    if let Some(set) = young.bind(py).get_item(&key)? {
        return Ok(set.cast_into()?);
    }
    let set = match old.bind(py).get_item(&key)? {
        Some(set) => set.cast_into()?,
        None => build(stops)?,
    };
    let bytes = set.get().core.nbytes();
    if bytes <= KEPT_BYTES {
        young.bind(py).set_item(&key, &set)?;
        let (full, next) = (young.bind(py).len() > GENERATION, empty());
        let mut dropped = None;
        if let Ok(mut cache) = cache.lock_py_attached(py) {
            cache.bytes += bytes;
            if full || cache.bytes > GENERATION_BYTES {
                let young = std::mem::replace(&mut cache.young, next);
                dropped = Some(std::mem::replace(&mut cache.old, young));
                cache.bytes = 0;
            }
        }
        drop(dropped);
    }
    Ok(set)
}

/// The stop list as a key: a tuple of the stops. `None` for an iterator, which must be read to be
/// known, and for anything but plain `str` and `bytes`: an object that says it equals a stop is not
/// that stop.
fn key<'py>(stops: &Bound<'py, PyAny>) -> Option<Bound<'py, PyTuple>> {
    let plain = |stop: &Bound<'py, PyAny>| {
        stop.is_exact_instance_of::<PyString>() || stop.is_exact_instance_of::<PyBytes>()
    };
    if plain(stops) {
        return PyTuple::new(stops.py(), [stops]).ok();
    }
    let key = match stops.cast_exact::<PyList>() {
        Ok(list) => list.to_tuple(),
        Err(_) => stops.cast_exact::<PyTuple>().ok()?.clone(),
    };
    key.iter_borrowed().all(|stop| plain(&stop)).then_some(key)
}
