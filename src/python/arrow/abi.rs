//! The C structures of the Arrow data interface, each with one owner: they come out of capsules and
//! go into capsules.
//!
//! A structure from outside is moved out of its capsule, which marks it there as released, and its
//! `release` is called exactly once, when the owner is dropped. Layout and rules:
//! <https://arrow.apache.org/docs/format/CDataInterface.html> and `CStreamInterface.html`,
//! `CDataInterface/PyCapsuleInterface.html` beside it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::strings::Strings;
use crate::python::error::type_name;

/// `struct ArrowSchema`: a type.
#[repr(C)]
pub(super) struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`: one piece of a column. What its numbers and pointers say is not checked
/// here: see `Rows`.
#[repr(C)]
pub(super) struct Array {
    pub(super) length: i64,
    pub(super) null_count: i64,
    pub(super) offset: i64,
    pub(super) n_buffers: i64,
    pub(super) n_children: i64,
    pub(super) buffers: *mut *const c_void,
    children: *mut *mut Self,
    pub(super) dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`: a column in pieces.
#[repr(C)]
pub(super) struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Self, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Self, *mut Array) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// What the three have in common.
macro_rules! owned {
    ($structure:ident, $capsule:literal) => {
        // SAFETY: the interface lets a structure be moved, used and released by another thread than
        // the one that made it, as long as one at a time does so; there is one owner.
        unsafe impl Send for $structure {}

        impl Drop for $structure {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: not released yet, and never touched again.
                    unsafe { release(self) }
                }
            }
        }

        impl $structure {
            const CAPSULE: &CStr = $capsule;

            /// Moves the structure out of a capsule; one that somebody took before is a
            /// `ValueError`.
            pub(super) fn take(object: &Bound<'_, PyAny>) -> PyResult<Self> {
                let name = Self::CAPSULE.to_string_lossy();
                let capsule = object.cast::<PyCapsule>().map_err(|_| {
                    PyTypeError::new_err(format!(
                        "a capsule named {name} is needed, not {}",
                        type_name(object)
                    ))
                })?;
                let mut structure = capsule.pointer_checked(Some(Self::CAPSULE))?.cast::<Self>();
                // SAFETY: a capsule of this name holds a pointer to such a structure, aligned and
                // valid as long as the capsule is. The copy becomes the owner, and the original
                // says so.
                let taken = unsafe {
                    let taken = structure.read();
                    structure.as_mut().release = None;
                    taken
                };
                match taken.release {
                    Some(_) => Ok(taken),
                    None => Err(PyValueError::new_err(format!("this {name} was released before"))),
                }
            }
        }
    };
}

owned!(Schema, c"arrow_schema");
owned!(Array, c"arrow_array");
owned!(Stream, c"arrow_array_stream");

// SAFETY: while an array is shared, only its numbers and buffers are read, and the interface says
// that nobody writes to them.
unsafe impl Sync for Array {}

impl Schema {
    /// The format string: what kind of array this is.
    pub(super) fn format(&self) -> String {
        if self.format.is_null() {
            return String::new();
        }
        // SAFETY: the interface makes it a C string that lives as long as the structure.
        unsafe { CStr::from_ptr(self.format) }.to_string_lossy().into_owned()
    }

    /// The array holds indices into another one.
    pub(super) fn has_dictionary(&self) -> bool {
        !self.dictionary.is_null()
    }

    /// The type of what is given back, in a capsule.
    pub(super) fn export<'py>(
        py: Python<'py>,
        format: &'static CStr,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        const NULLABLE: i64 = 2;
        unsafe extern "C" fn release(schema: *mut Schema) {
            // SAFETY: the caller passes the structure below, all of whose pointers are to
            // constants.
            unsafe { (*schema).release = None }
        }
        let schema = Self {
            format: format.as_ptr(),
            name: c"".as_ptr(),
            metadata: ptr::null(),
            flags: NULLABLE,
            n_children: 0,
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: Some(release),
            private_data: ptr::null_mut(),
        };
        PyCapsule::new_with_value(py, schema, Self::CAPSULE)
    }

    fn empty() -> Self {
        let (format, name, metadata) = (ptr::null(), ptr::null(), ptr::null());
        let (children, dictionary, private_data) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        Self {
            format,
            name,
            metadata,
            flags: 0,
            n_children: 0,
            children,
            dictionary,
            release: None,
            private_data,
        }
    }
}

impl Array {
    /// Strings in a capsule, without a copy: the array shares them, and lives as long as its
    /// consumer wants. `short` are 32-bit offsets, for a consumer that asked for them.
    pub(super) fn export(
        py: Python<'_>,
        strings: Arc<Strings>,
        short: Option<Vec<i32>>,
    ) -> PyResult<Bound<'_, PyCapsule>> {
        struct Shared {
            _strings: Arc<Strings>,
            _short: Option<Vec<i32>>,
            buffers: [*const c_void; 3],
        }
        unsafe extern "C" fn release(array: *mut Array) {
            // SAFETY: the caller passes the structure below, or where it was moved to, before any
            // other release of it. What it holds was a box, and is one again.
            unsafe {
                (*array).release = None;
                drop(Box::from_raw((*array).private_data.cast::<Shared>()));
            }
        }
        let mut array = Self::empty();
        // Vectors do not fail to fit into `i64`.
        array.length = i64::try_from(strings.len()).unwrap_or(i64::MAX);
        array.null_count = i64::try_from(strings.nulls()).unwrap_or(i64::MAX);
        let mut buffers =
            strings.buffers().map(|buffer| buffer.map_or(ptr::null(), <*const u8>::cast));
        if let Some(short) = &short {
            buffers[1] = short.as_ptr().cast();
        }
        // A vector keeps its place in memory when it is moved.
        let shared = Box::into_raw(Box::new(Shared { _strings: strings, _short: short, buffers }));
        array.n_buffers = 3;
        // SAFETY: fresh from a box, so it may be written to; only the place is taken.
        array.buffers = unsafe { (&raw mut (*shared).buffers).cast() };
        array.private_data = shared.cast();
        array.release = Some(release);
        PyCapsule::new_with_value(py, array, Self::CAPSULE)
    }

    fn empty() -> Self {
        let (buffers, children) = (ptr::null_mut(), ptr::null_mut());
        let (dictionary, private_data) = (ptr::null_mut(), ptr::null_mut());
        let (length, null_count, offset, n_buffers, n_children) = (0, 0, 0, 0, 0);
        let release = None;
        Self {
            length,
            null_count,
            offset,
            n_buffers,
            n_children,
            buffers,
            children,
            dictionary,
            release,
            private_data,
        }
    }
}

impl Stream {
    /// The type of all pieces.
    pub(super) fn schema(&mut self) -> PyResult<Schema> {
        let mut schema = Schema::empty();
        let Some(get_schema) = self.get_schema else { return Err(no_callback("get_schema")) };
        // SAFETY: the stream is not released; the callback fills the structure, or says by its
        // result that it did not.
        let code = unsafe { get_schema(self, &raw mut schema) };
        self.check(code)?;
        match schema.release {
            Some(_) => Ok(schema),
            None => Err(PyValueError::new_err(
                "the Arrow stream gave a schema that was released before",
            )),
        }
    }

    /// The next piece; `None` at the end.
    pub(super) fn next(&mut self) -> PyResult<Option<Array>> {
        let mut array = Array::empty();
        let Some(get_next) = self.get_next else { return Err(no_callback("get_next")) };
        // SAFETY: as above. A structure that comes back released is the end of the stream.
        let code = unsafe { get_next(self, &raw mut array) };
        self.check(code)?;
        Ok(array.release.is_some().then_some(array))
    }

    /// What the producer says of a call that failed.
    fn check(&mut self, code: c_int) -> PyResult<()> {
        const EINVAL: c_int = 22;
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the stream is not released, and the last call failed, which is when this may be
        // asked.
        let told = self
            .get_last_error
            .map_or(ptr::null(), |get_last_error| unsafe { get_last_error(self) });
        let told = if told.is_null() {
            "no reason given".to_owned()
        } else {
            // SAFETY: a C string that lives until the next call.
            unsafe { CStr::from_ptr(told) }.to_string_lossy().into_owned()
        };
        let message = format!("the Arrow stream failed: {told}");
        Err(if code == EINVAL {
            PyValueError::new_err(message)
        } else {
            PyOSError::new_err((code, message))
        })
    }
}

fn no_callback(name: &str) -> PyErr {
    PyValueError::new_err(format!("the Arrow stream has no {name}"))
}
