//! The rows of a column that came from outside, read with every number checked.
//!
//! What can be checked is: lengths, offsets, the order of offsets, indices of buffers, UTF-8. What
//! cannot, since the interface carries no such lengths, is that a buffer is as long as the array's
//! length or its last offset says, and that nobody writes to it; that is the producer's promise.

use std::ptr;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::abi::{Array, Schema};

/// The formats of strings.
#[derive(Clone, Copy)]
pub(super) enum Format {
    /// `u`: 32-bit offsets into one buffer.
    Utf8,
    /// `U`: 64-bit offsets.
    LargeUtf8,
    /// `vu`: 16 bytes a row, which hold a short text or say where a long one is.
    View,
}

impl Format {
    /// The format that a type says, or a `TypeError` that names what it is.
    pub(super) fn of(schema: &Schema) -> PyResult<Self> {
        const SHOWN: usize = 40;
        let format = schema.format();
        let hint = match (&*format, schema.has_dictionary()) {
            ("u", false) => return Ok(Self::Utf8),
            ("U", false) => return Ok(Self::LargeUtf8),
            ("vu", false) => return Ok(Self::View),
            (_, true) => " with a dictionary (cast it to strings)",
            ("+s", _) => " (a struct: pass one column of a table)",
            _ => "",
        };
        let format: String = format.chars().take(SHOWN).collect();
        Err(PyTypeError::new_err(format!(
            "an Arrow column of strings is needed (format 'u', 'U' or 'vu'), not one of format '{format}'{hint}"
        )))
    }
}

/// One piece of a column.
pub(super) struct Rows {
    array: Array,
    /// The number of its first row in the whole column, for messages.
    first: usize,
    len: usize,
    /// Rows of the buffers that come before the first row of the array.
    offset: usize,
    /// One bit a row of the buffers, or null when all are valid.
    valid: *const u8,
    texts: Texts,
}

enum Texts {
    /// There is no row, and nothing is looked at.
    None,
    /// `offsets` has an entry for each row of the buffers and one more, the greatest of which in
    /// use is `end`.
    Offsets { large: bool, offsets: *const u8, data: *const u8, end: usize },
    /// Views, and the buffers that they point into with their lengths.
    Views { views: *const u8, buffers: Vec<(*const u8, usize)> },
}

// SAFETY: the pointers are into `array`, which may be sent and shared; nothing is written through
// them.
unsafe impl Send for Rows {}
// SAFETY: as above.
unsafe impl Sync for Rows {}

impl Rows {
    /// Checks all that does not depend on a single row.
    pub(super) fn new(array: Array, format: Format, first: usize) -> PyResult<Self> {
        // So that no address below is computed beyond what memory can hold: 16 bytes is the most
        // that a row takes.
        const MOST: usize = isize::MAX as usize / 16 - 1;
        let Array { length, null_count, offset, n_buffers, n_children, .. } = array;
        let within = |number: i64| usize::try_from(number).ok().filter(|&number| number <= MOST);
        let (Some(len), Some(offset)) = (within(length), within(offset)) else {
            return Err(corrupt(format!("its length is {length}, its offset {offset}")));
        };
        let Some(end) = offset.checked_add(len).filter(|&end| end <= MOST) else {
            return Err(corrupt(format!("its length is {length}, its offset {offset}")));
        };
        if null_count < -1 || null_count > length {
            return Err(corrupt(format!("its null count is {null_count}, its length {length}")));
        }
        if n_children != 0 || !array.dictionary.is_null() {
            return Err(corrupt("strings have no children and no dictionary"));
        }
        let wanted = match format {
            Format::Utf8 | Format::LargeUtf8 => 3..=3,
            Format::View => 3..=i64::from(i32::MAX),
        };
        if !wanted.contains(&n_buffers) || array.buffers.is_null() {
            return Err(corrupt(format!("it has {n_buffers} buffers")));
        }
        let mut rows = Self { array, first, len, offset, valid: ptr::null(), texts: Texts::None };
        if len == 0 {
            return Ok(rows);
        }
        rows.valid = rows.buffer(0);
        if rows.valid.is_null() && null_count > 0 {
            return Err(corrupt(format!(
                "it has {null_count} nulls and no buffer that says where"
            )));
        }
        rows.texts = match format {
            Format::Utf8 => rows.offsets(false, end)?,
            Format::LargeUtf8 => rows.offsets(true, end)?,
            Format::View => rows.views(usize::try_from(n_buffers).unwrap_or(0))?,
        };
        Ok(rows)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// About how many bytes the texts are: at most so many, unless they are corrupt.
    pub(super) fn size(&self) -> usize {
        match self.texts {
            Texts::None => 0,
            Texts::Offsets { large, offsets, end, .. } => {
                // SAFETY: the buffer has an offset for each row and one more.
                let first = unsafe { read_offset(offsets, large, self.offset) };
                end.saturating_sub(usize::try_from(first).unwrap_or(0))
            }
            Texts::Views { .. } => (0..self.len).fold(0, |sum: usize, at| {
                sum.saturating_add(self.bytes(at).ok().flatten().map_or(0, <[u8]>::len))
            }),
        }
    }

    /// The number of row `at` in the whole column.
    fn number(&self, at: usize) -> usize {
        self.first + at
    }

    /// Buffer `at`, which must be less than `n_buffers`.
    fn buffer(&self, at: usize) -> *const u8 {
        // SAFETY: the array has `n_buffers` pointers to buffers, each of which may be null.
        unsafe { self.array.buffers.add(at).read().cast() }
    }

    fn offsets(&self, large: bool, last: usize) -> PyResult<Texts> {
        let (offsets, data) = (self.buffer(1), self.buffer(2));
        if offsets.is_null() {
            return Err(corrupt("it has no offsets"));
        }
        // SAFETY: not null, and the buffer has an offset for each row and one more.
        let end = unsafe { read_offset(offsets, large, last) };
        match usize::try_from(end) {
            Ok(end) if end > 0 && data.is_null() => {
                Err(corrupt(format!("its last offset is {end}, and it has no data")))
            }
            Ok(end) if isize::try_from(end).is_ok() => {
                Ok(Texts::Offsets { large, offsets, data, end })
            }
            _ => Err(corrupt(format!("its last offset is {end}"))),
        }
    }

    fn views(&self, n_buffers: usize) -> PyResult<Texts> {
        // Validity, views, any number of data buffers, and the lengths of these.
        let (views, lengths) = (self.buffer(1), self.buffer(n_buffers - 1));
        if views.is_null() {
            return Err(corrupt("it has no views"));
        }
        let mut buffers = Vec::new();
        for at in 0..n_buffers - 3 {
            if lengths.is_null() {
                return Err(corrupt("it does not say how long its buffers are"));
            }
            let data = self.buffer(2 + at);
            // SAFETY: the last buffer has a 64-bit length for each data buffer.
            let length = unsafe { i64::from_ne_bytes(lengths.cast::<[u8; 8]>().add(at).read()) };
            match usize::try_from(length) {
                Ok(length)
                    if isize::try_from(length).is_ok() && (length == 0 || !data.is_null()) =>
                {
                    buffers.push((data, length));
                }
                _ => return Err(corrupt(format!("its data buffer {at} is of length {length}"))),
            }
        }
        Ok(Texts::Views { views, buffers })
    }

    /// The text of row `at`, or `None` for a null. A row that is corrupt is a `ValueError` that
    /// names it.
    pub(super) fn text(&self, at: usize) -> PyResult<Option<&str>> {
        let Some(bytes) = self.bytes(at)? else { return Ok(None) };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => {
                let (row, byte) = (self.number(at), error.valid_up_to());
                Err(PyValueError::new_err(format!(
                    "row {row} of the Arrow column is not UTF-8: see its byte {byte}"
                )))
            }
        }
    }

    /// The same before it is known to be UTF-8.
    pub(super) fn bytes(&self, at: usize) -> PyResult<Option<&[u8]>> {
        if at >= self.len {
            return Ok(None);
        }
        let place = self.offset + at;
        if !self.valid.is_null() {
            // SAFETY: not null, and the buffer has a bit for each row.
            let eight = unsafe { self.valid.add(place / 8).read() };
            if eight >> (place % 8) & 1 == 0 {
                return Ok(None);
            }
        }
        match &self.texts {
            Texts::None => Ok(None),
            &Texts::Offsets { large, offsets, data, end } => {
                // SAFETY: the buffer has an offset for each row and one more.
                let (from, to) = unsafe {
                    (read_offset(offsets, large, place), read_offset(offsets, large, place + 1))
                };
                match (usize::try_from(from), usize::try_from(to)) {
                    (Ok(start), Ok(stop)) if start <= stop && stop <= end => {
                        // SAFETY: the data buffer is as long as the last offset says, and these
                        // bytes are before it.
                        Ok(Some(unsafe { slice(data, start, stop - start) }))
                    }
                    _ => Err(self.corrupt_row(
                        at,
                        &format!("it goes from {from} to {to}, and the column to {end}"),
                    )),
                }
            }
            Texts::Views { views, buffers } => self.viewed(at, *views, buffers),
        }
    }

    fn viewed(
        &self,
        at: usize,
        views: *const u8,
        buffers: &[(*const u8, usize)],
    ) -> PyResult<Option<&[u8]>> {
        const SHORT: usize = 12;
        // SAFETY: the buffer has 16 bytes for each row, and lives as long as the array.
        let view: &[u8; 16] = unsafe { &*views.cast::<[u8; 16]>().add(self.offset + at) };
        let number = |from: usize| {
            i32::from_ne_bytes([view[from], view[from + 1], view[from + 2], view[from + 3]])
        };
        let length = number(0);
        let Ok(len) = usize::try_from(length) else {
            return Err(self.corrupt_row(at, &format!("its length is {length}")));
        };
        if len <= SHORT {
            return Ok(Some(&view[4..4 + len]));
        }
        // Bytes 4 to 8 repeat the beginning of the text.
        let (buffer, offset) = (number(8), number(12));
        let data = usize::try_from(buffer).ok().and_then(|buffer| buffers.get(buffer));
        match (data, usize::try_from(offset)) {
            (Some(&(data, size)), Ok(start)) if start <= size && len <= size - start => {
                // SAFETY: these bytes are in the buffer.
                Ok(Some(unsafe { slice(data, start, len) }))
            }
            _ => Err(self.corrupt_row(
                at,
                &format!("{length} bytes at {offset} of buffer {buffer}, which are not there"),
            )),
        }
    }

    fn corrupt_row(&self, at: usize, what: &str) -> PyErr {
        corrupt(format!("row {}: {what}", self.number(at)))
    }
}

/// `len` bytes of a buffer, which must be there for `'a`; of a buffer that is null, none.
unsafe fn slice<'a>(data: *const u8, start: usize, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.add(start), len) }
}

/// Entry `at` of a buffer of offsets, which must be there.
unsafe fn read_offset(offsets: *const u8, large: bool, at: usize) -> i64 {
    // SAFETY: the caller's promise. Entries are read as bytes, since nothing is sure about their
    // alignment.
    unsafe {
        if large {
            i64::from_ne_bytes(offsets.cast::<[u8; 8]>().add(at).read())
        } else {
            i64::from(i32::from_ne_bytes(offsets.cast::<[u8; 4]>().add(at).read()))
        }
    }
}

fn corrupt(what: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("the Arrow array is corrupt: {what}"))
}
