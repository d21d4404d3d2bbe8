//! Reading a `str` where it is stored, and making new ones: the binding's only access to string
//! storage.
//!
//! Going through UTF-8 would cost 40 ns for a short CJK string, which would then carry its UTF-8
//! copy for life. The stable ABI offers no other way, so under it characters are decoded from
//! UTF-8; the two ways are each other's twin in the tests.

use pyo3::prelude::*;
#[cfg(Py_LIMITED_API)]
use pyo3::types::PyBytes;
use pyo3::types::PyString;

use crate::raw::CodeUnit;

/// The characters of a `str`, in the storage they have.
#[derive(Clone, Copy)]
pub(super) enum Chars<'a> {
    /// Up to U+00FF.
    Narrow(&'a [u8]),
    /// Up to U+FFFF, surrogates included.
    #[cfg_attr(Py_LIMITED_API, allow(dead_code, reason = "the stable ABI shows no storage"))]
    Wide(&'a [u16]),
    /// Anything, surrogates included.
    Full(&'a [u32]),
}

impl<'a> Chars<'a> {
    /// The characters of `text`, which must outlive them (a reference to it is what `'a` borrows).
    #[cfg(not(Py_LIMITED_API))]
    #[inline]
    pub(super) fn of(text: &'a Bound<'_, PyString>, _scratch: &'a mut Vec<u32>) -> PyResult<Self> {
        Self::of_stored(text)
    }

    /// The same where storage can be seen, so that nothing need be decoded.
    #[cfg(not(Py_LIMITED_API))]
    #[inline]
    pub(super) fn of_stored(text: &'a Bound<'_, PyString>) -> PyResult<Self> {
        use pyo3::ffi;
        let object = text.as_ptr();
        // SAFETY: `object` is a `str`, kept alive by `text` for `'a` and immutable once other code
        // can see it. `ready` is called first, for those Pythons where storage may be missing.
        // Kind, length and data belong together by the definition of the object.
        unsafe {
            ready(object)?;
            let len = usize::try_from(ffi::PyUnicode_GET_LENGTH(object)).unwrap_or(0);
            let data = ffi::PyUnicode_DATA(object);
            Ok(match ffi::PyUnicode_KIND(object) {
                ffi::PyUnicode_1BYTE_KIND => {
                    Self::Narrow(std::slice::from_raw_parts(data.cast(), len))
                }
                ffi::PyUnicode_2BYTE_KIND => {
                    Self::Wide(std::slice::from_raw_parts(data.cast(), len))
                }
                _ => Self::Full(std::slice::from_raw_parts(data.cast(), len)),
            })
        }
    }

    /// The characters of `text`, by way of UTF-8; what is not ASCII goes to `scratch`.
    #[cfg(Py_LIMITED_API)]
    pub(super) fn of(text: &'a Bound<'_, PyString>, scratch: &'a mut Vec<u32>) -> PyResult<Self> {
        match text.to_str() {
            Ok(utf8) if utf8.is_ascii() => return Ok(Self::Narrow(utf8.as_bytes())),
            Ok(utf8) => scratch.extend(utf8.chars().map(u32::from)),
            Err(_) => {
                // Lone surrogates: no UTF-8, but UTF-32 can be had.
                let codes = text.call_method1("encode", ("utf-32-le", "surrogatepass"))?;
                let codes = codes.cast::<PyBytes>()?.as_bytes();
                scratch.extend(
                    codes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])),
                );
            }
        }
        Ok(Self::Full(scratch))
    }

    /// Number of characters.
    #[inline]
    pub(super) fn len(self) -> usize {
        match self {
            Self::Narrow(units) => units.len(),
            Self::Wide(units) => units.len(),
            Self::Full(units) => units.len(),
        }
    }

    /// True when a unit is a surrogate.
    #[inline]
    pub(super) fn has_surrogate(self) -> bool {
        match self {
            Self::Narrow(_) => false,
            Self::Wide(units) => CodeUnit::has_surrogate(units),
            Self::Full(units) => CodeUnit::has_surrogate(units),
        }
    }
}

/// Before Python 3.12 a `str` made by a deprecated C function may be without its storage until this
/// is called.
#[cfg(not(Py_LIMITED_API))]
#[inline]
unsafe fn ready(object: *mut pyo3::ffi::PyObject) -> PyResult<()> {
    #[cfg(Py_3_12)]
    let _ = object;
    #[cfg(not(Py_3_12))]
    {
        // SAFETY: the caller passes a `str`.
        if unsafe { pyo3::ffi::PyUnicode_READY(object) } != 0 {
            // SAFETY: only reached with the GIL held, and an exception set.
            return Err(unsafe { PyErr::fetch(Python::assume_attached()) });
        }
    }
    Ok(())
}

/// What is sent on: `head` (UTF-8) followed by the first `count` characters of `text`, whose
/// storage is `chars`. `text` itself if that is all.
///
/// A new `str` is in its canonical form: one that is wider than its characters would compare
/// unequal to the same text.
#[inline]
pub(super) fn emitted<'py>(
    head: &[u8],
    text: &Bound<'py, PyString>,
    chars: Chars<'_>,
    count: usize,
) -> PyResult<Bound<'py, PyString>> {
    if head.is_empty() && count == chars.len() {
        return Ok(text.clone());
    }
    #[cfg(not(Py_LIMITED_API))]
    if let Chars::Narrow(units) = chars {
        if head.is_ascii() && units[..count].is_ascii() {
            return ascii(text.py(), head, &units[..count]);
        }
    }
    let py = text.py();
    let head = PyString::new(py, std::str::from_utf8(head).unwrap_or(""));
    if count == 0 {
        return Ok(head);
    }
    let tail = substring(text, 0, count)?;
    // SAFETY: both are `str`; the function returns a new reference or sets an exception.
    unsafe {
        let joined = pyo3::ffi::PyUnicode_Concat(head.as_ptr(), tail.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(py, joined)?.cast_into_unchecked())
    }
}

/// A new ASCII `str`, in one allocation.
#[cfg(not(Py_LIMITED_API))]
fn ascii<'py>(py: Python<'py>, head: &[u8], tail: &[u8]) -> PyResult<Bound<'py, PyString>> {
    use pyo3::ffi;
    let len = head.len() + tail.len();
    // SAFETY: a `str` of `len` ASCII characters has `len` bytes of storage behind `PyUnicode_DATA`,
    // which no one else can see yet; `head` and `tail` fill them exactly. For `len` 0 CPython gives
    // the shared empty string, and nothing is written.
    unsafe {
        let text = ffi::PyUnicode_New(isize::try_from(len).unwrap_or(isize::MAX), 127);
        let text = Bound::from_owned_ptr_or_err(py, text)?.cast_into_unchecked();
        if len > 0 {
            let data = ffi::PyUnicode_DATA(text.as_ptr()).cast::<u8>();
            std::ptr::copy_nonoverlapping(head.as_ptr(), data, head.len());
            std::ptr::copy_nonoverlapping(tail.as_ptr(), data.add(head.len()), tail.len());
        }
        Ok(text)
    }
}

/// `text[start:end]`, in its canonical form: a `str` that is wider than its characters compares
/// unequal to the same text.
pub(super) fn substring<'py>(
    text: &Bound<'py, PyString>,
    start: usize,
    end: usize,
) -> PyResult<Bound<'py, PyString>> {
    let (start, end) =
        (isize::try_from(start).unwrap_or(isize::MAX), isize::try_from(end).unwrap_or(isize::MAX));
    // SAFETY: `text` is a `str`; the function checks the bounds itself and returns a new reference
    // or sets an exception.
    unsafe {
        let part = pyo3::ffi::PyUnicode_Substring(text.as_ptr(), start, end);
        Ok(Bound::from_owned_ptr_or_err(text.py(), part)?.cast_into_unchecked())
    }
}
