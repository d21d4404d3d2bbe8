//! `StopStream.feed` without the generated glue: a hand-written `METH_O` entry for the one method
//! that is called for every token.
//!
//! The generated method costs 15 to 20 ns more a call, a quarter of the whole: it counts
//! attachments, parses arguments and builds the result from Rust values. This entry takes the
//! fast path itself and leaves every other chunk to the generated one's code. Both are tested against each other: the
//! generated method stays reachable as `StopStream._feed_generated`.
//!
//! Not built for the stable ABI, which hides string storage.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::fast_path::feed_fast;
use super::stop_stream::StopStream;

const NAME: &CStr = c"feed";
const DOC: &CStr = match CStr::from_bytes_with_nul(
    concat!("feed($self, chunk, /)\n--\n\n", doc!("StopStream.feed"), "\0").as_bytes(),
) {
    Ok(doc) => doc,
    Err(_) => panic!("a docstring has no NUL"),
};

/// `PyMethodDef` holds pointers, which makes it neither `Send` nor `Sync` by itself.
struct Method(ffi::PyMethodDef);

// SAFETY: the definition is never written to, and its pointers are to constants.
unsafe impl Sync for Method {}

static METHOD: Method = Method(ffi::PyMethodDef {
    ml_name: NAME.as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunction: feed },
    ml_flags: ffi::METH_O,
    ml_doc: DOC.as_ptr(),
});

/// Puts the entry in the place of the generated method.
pub(super) fn install(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<StopStream>();
    class.setattr("_feed_generated", class.getattr("feed")?)?;
    // SAFETY: the class is alive, and so is the definition, for ever. CPython copies nothing of it
    // and writes nothing to it; the descriptor checks that `self` is a `StopStream` before it
    // calls. A new reference comes back, or null with an exception set.
    let method = unsafe {
        let definition = ptr::from_ref(&METHOD.0).cast_mut();
        Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), definition))?
    };
    class.setattr("feed", method)
}

/// The entry. Python passes a `StopStream` and any object, both borrowed, with the GIL held (or
/// attached, without one).
unsafe extern "C" fn feed(
    stream: *mut ffi::PyObject,
    chunk: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // Nothing here is known to panic; if something does, it must not cross into C.
    catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: see above. Both objects outlive the call, so borrowing them for its length is
        // sound, and the method descriptor has checked the type of the first.
        let (py, stream, chunk) = unsafe {
            let py = Python::assume_attached();
            let stream = Borrowed::from_ptr(py, stream).cast_unchecked::<StopStream>();
            (py, stream.get(), Borrowed::from_ptr(py, chunk))
        };
        if let Ok(text) = chunk.cast::<PyString>() {
            if let Ok(mut state) = stream.state.enter(py) {
                match feed_fast(&mut state, &text) {
                    Some(Ok(emit)) => {
                        drop(state);
                        // SAFETY: `emit` is a reference of ours to give away.
                        return unsafe { pair(emit.into_ptr()) };
                    }
                    Some(Err(error)) => {
                        error.restore(py);
                        return ptr::null_mut();
                    }
                    None => {}
                }
            }
        }
        // The rest may drop `Py` values, which is only immediate where PyO3 knows that the thread
        // is attached.
        Python::attach(|py| match stream.feed_any(&chunk).and_then(|fed| fed.into_pyobject(py)) {
            Ok(fed) => fed.into_any().into_ptr(),
            Err(error) => {
                error.restore(py);
                ptr::null_mut()
            }
        })
    }))
    .unwrap_or_else(|_| {
        Python::attach(|py| {
            PyRuntimeError::new_err("holdback failed on this chunk: please report it").restore(py);
        });
        ptr::null_mut()
    })
}

/// A new tuple `(emit, None)`; takes over the reference to `emit`.
#[inline]
unsafe fn pair(emit: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a fresh tuple of two places is filled with two references that it owns from then on:
    // the caller's, and a new one to `None`. Without a tuple the caller's is dropped and the
    // exception stays set.
    unsafe {
        let tuple = ffi::PyTuple_New(2);
        if tuple.is_null() {
            ffi::Py_DECREF(emit);
            return tuple;
        }
        ffi::PyTuple_SET_ITEM(tuple, 0, emit);
        ffi::PyTuple_SET_ITEM(tuple, 1, ffi::Py_NewRef(ffi::Py_None()));
        tuple
    }
}
