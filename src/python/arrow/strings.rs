//! `ArrowStrings`: the column that is given back. Any number of consumers share its memory.

use std::ffi::CStr;
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PySlice, PyString};

use super::abi::{Array, Schema};

/// What is given unless something else is asked for: a type that changed with the size of the data
/// would surprise at the worst moment.
const LARGE_UTF8: &CStr = c"U";
const UTF8: &CStr = c"u";

/// Strings as the format `large_utf8` lays them out.
pub(super) struct Strings {
    /// One bit a row, lowest first; 1 where there is a text.
    valid: Vec<u8>,
    /// Where each text begins in `data`, and at last where the last one ends.
    offsets: Vec<i64>,
    data: Vec<u8>,
    nulls: usize,
}

impl Strings {
    pub(super) fn new() -> Self {
        Self { valid: Vec::new(), offsets: vec![0], data: Vec::new(), nulls: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(super) fn nulls(&self) -> usize {
        self.nulls
    }

    /// 32-bit offsets, if the texts are not too long for them.
    fn short_offsets(&self) -> Option<Vec<i32>> {
        i32::try_from(self.data.len()).ok()?;
        self.offsets.iter().map(|&offset| i32::try_from(offset).ok()).collect()
    }

    /// Makes room for so many rows, and if it is to be had for so many bytes. How many there are
    /// was said by somebody else, and views may say the same bytes a million times: what is too
    /// much is a `MemoryError`.
    pub(super) fn reserve(&mut self, rows: usize, bytes: usize) -> PyResult<()> {
        self.offsets.try_reserve(rows).map_err(|_| no_memory())?;
        self.valid.try_reserve(rows / 8 + 1).map_err(|_| no_memory())?;
        // In one go, since each growth would move all that is there. Less may be kept, and then
        // less is touched.
        let _ = self.data.try_reserve(bytes);
        Ok(())
    }

    /// Adds a row.
    pub(super) fn push(&mut self, text: Option<&str>) -> PyResult<()> {
        let at = self.len();
        if at % 8 == 0 {
            self.valid.push(0);
        }
        match text {
            Some(text) => {
                self.data.try_reserve(text.len()).map_err(|_| no_memory())?;
                self.valid[at / 8] |= 1 << (at % 8);
                self.data.extend_from_slice(text.as_bytes());
            }
            None => self.nulls += 1,
        }
        // A vector is never longer than `isize::MAX` bytes.
        self.offsets.push(i64::try_from(self.data.len()).unwrap_or(i64::MAX));
        Ok(())
    }

    /// No row will follow: gives room back if most of it was not needed. Always to do so was tried:
    /// it moved the texts, which took four times as long as reading them, to give back pages that
    /// were never touched.
    pub(super) fn finish(mut self) -> Self {
        if self.data.len() < self.data.capacity() / 2 {
            self.data.shrink_to_fit();
        }
        self
    }

    /// The text of a row, `None` for a null or a row that is not there.
    fn text(&self, row: usize) -> Option<&str> {
        if self.valid.get(row / 8)? >> (row % 8) & 1 == 0 {
            return None;
        }
        let place = |at: usize| usize::try_from(*self.offsets.get(at)?).ok();
        std::str::from_utf8(self.data.get(place(row)?..place(row + 1)?)?).ok()
    }

    /// The three buffers of the format; without nulls there is no first one.
    pub(super) fn buffers(&self) -> [Option<*const u8>; 3] {
        // An empty vector points nowhere; consumers are spared the question whether they may look
        // there.
        static NOTHING: [u64; 1] = [0];
        let valid = (self.nulls > 0).then_some(self.valid.as_ptr());
        let data = if self.data.is_empty() { NOTHING.as_ptr().cast() } else { self.data.as_ptr() };
        [valid, Some(self.offsets.as_ptr().cast()), Some(data)]
    }
}

fn no_memory() -> PyErr {
    PyMemoryError::new_err("no room for the texts of this Arrow column")
}

#[doc = doc!("ArrowStrings")]
#[pyclass(frozen, module = "holdback._core")]
pub(in crate::python) struct ArrowStrings {
    strings: Arc<Strings>,
}

impl From<Strings> for ArrowStrings {
    fn from(strings: Strings) -> Self {
        Self { strings: Arc::new(strings.finish()) }
    }
}

#[pymethods]
impl ArrowStrings {
    // Of the types that may be asked for, `utf8` is given too where it fits; for any other it is
    // the consumer's part to cast.
    #[doc = doc!("ArrowStrings.__arrow_c_array__")]
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let wanted = requested_schema.map(Schema::take).transpose()?;
        let short = wanted
            .filter(|wanted| wanted.format() == "u")
            .and_then(|_| self.strings.short_offsets());
        let format = if short.is_some() { UTF8 } else { LARGE_UTF8 };
        Ok((Schema::export(py, format)?, Array::export(py, self.strings.clone(), short)?))
    }

    #[doc = doc!("ArrowStrings.__arrow_c_schema__")]
    #[allow(clippy::unused_self, reason = "a method, by the interface")]
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Schema::export(py, LARGE_UTF8)
    }

    #[doc = doc!("ArrowStrings.to_pylist")]
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows: Vec<_> = (0..self.strings.len()).map(|row| self.strings.text(row)).collect();
        PyList::new(py, rows)
    }

    // What numpy, and through it pandas, makes of a column: an array of objects.
    #[doc = doc!("ArrowStrings.__array__")]
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(copy) = copy.filter(|copy| !copy.is_none()) {
            if !copy.is_truthy()? {
                return Err(PyValueError::new_err(
                    "an array of objects cannot share the memory of Arrow strings: copy=False",
                ));
            }
        }
        let dtype = dtype.filter(|dtype| !dtype.is_none());
        let dtype = dtype.unwrap_or_else(|| PyString::new(py, "O").into_any());
        py.import("numpy")?.call_method1("array", (self.to_pylist(py)?, dtype))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(Bound::new(py, RowIterator { strings: self.strings.clone(), next: 0 })?.into_any())
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        row: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let len = self.strings.len();
        if let Ok(slice) = row.cast::<PySlice>() {
            return self.to_pylist(py)?.as_any().get_item(slice);
        }
        let row: isize = row.extract()?;
        let at = if row < 0 { row.checked_add_unsigned(len) } else { Some(row) };
        let at = at.and_then(|at| usize::try_from(at).ok()).filter(|&at| at < len);
        let at = at.ok_or_else(|| PyIndexError::new_err(format!("no row {row} of {len}")))?;
        self.strings.text(at).into_bound_py_any(py)
    }

    fn __len__(&self) -> usize {
        self.strings.len()
    }

    fn __repr__(&self) -> String {
        format!("<ArrowStrings: {} rows, {} null>", self.strings.len(), self.strings.nulls())
    }
}

/// Goes through the rows; shares their memory.
#[pyclass(module = "holdback._core")]
struct RowIterator {
    strings: Arc<Strings>,
    next: usize,
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.next >= self.strings.len() {
            return Ok(None);
        }
        self.next += 1;
        Ok(Some(self.strings.text(self.next - 1).into_bound_py_any(py)?))
    }
}
