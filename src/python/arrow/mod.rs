//! Columns of texts in Arrow memory: `truncate_many` takes one through the `PyCapsule` interface
//! and gives one back.
//!
//! The rows are read where they are and the texts that are kept are written into one buffer, so no
//! `str` is made of any row. Only matches become Python objects. Nothing of Arrow is needed: the
//! interface is two C structures in capsules (`abi`).

mod abi;
mod rows;
mod strings;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use self::abi::{Array, Schema, Stream};
use self::rows::{Format, Rows};
pub(super) use self::strings::ArrowStrings;
use self::strings::Strings;
use super::gil::{DETACH_UNITS, Pauses};
use super::options::ParsedOptions;
use super::stop_match::StopMatch;
use crate::raw::Matcher;
use crate::stream::prefix;
use crate::{Match, StopSet};

/// A row is read in pieces of about so many bytes: what has to be decoded stays small, whatever the
/// row, and after a stop nothing is.
const PIECE: usize = 16 << 10;

/// Units between two looks at the clock.
const UNLOOKED: usize = 1 << 20;

/// `StopSet.truncate_many` of an Arrow column; `None` if `texts` is no such thing.
pub(super) fn truncate_many<'py>(
    set: &StopSet,
    stops: &Py<PyTuple>,
    texts: &Bound<'py, PyAny>,
    options: &ParsedOptions,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyList>)>> {
    let py = texts.py();
    let Some(mut source) = Source::of(texts)? else { return Ok(None) };
    let mut matcher = Matcher::text(set.clone(), &options.core)?;
    // In UTF-8 a stop stands where its bytes stand, so nothing need be decoded; only arming counts
    // characters.
    let raw = options.core.scope.min_chars == 0;
    if raw {
        matcher = Matcher::bytes(set.clone(), &options.core)?;
    }
    let mut cut = Cut {
        matcher,
        raw,
        codes: Vec::new(),
        kept: Strings::new(),
        found: Vec::new(),
        unpaused: 0,
    };
    let (mut matches, mut pauses) = (Vec::new(), Pauses::default());
    while let Some(rows) = source.next(py)? {
        let first = matches.len();
        // A row is some work even if it is empty.
        if rows.size().saturating_add(rows.len()) >= DETACH_UNITS {
            py.detach(|| cut.read(&rows, || pauses.look()))?;
        } else {
            cut.read(&rows, || Ok(()))?;
        }
        for found in cut.found.drain(..) {
            matches.resize_with(first + found.row, || None);
            matches.push(Some(found.wrap(py, stops, &rows)?));
            if matches.len() % DETACH_UNITS == 0 {
                py.check_signals()?;
            }
        }
        matches.resize_with(first + rows.len(), || None);
    }
    let kept = Bound::new(py, ArrowStrings::from(cut.kept))?.into_any();
    Ok(Some((kept, PyList::new(py, matches)?)))
}

/// Where rows come from.
enum Source {
    Array(Option<Rows>),
    Stream { stream: Stream, format: Format, rows: usize },
}

impl Source {
    /// The source of an object that has one of the interface's methods.
    fn of(texts: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if texts.is_exact_instance_of::<PyList>() || texts.is_exact_instance_of::<PyTuple>() {
            return Ok(None);
        }
        if let Some(method) = texts.getattr_opt("__arrow_c_array__")? {
            let (schema, array) =
                method.call0()?.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            // Both are taken before either is judged, so that both are released in any case.
            let (schema, array) = (Schema::take(&schema), Array::take(&array));
            return Ok(Some(Self::Array(Some(Rows::new(array?, Format::of(&schema?)?, 0)?))));
        }
        if let Some(method) = texts.getattr_opt("__arrow_c_stream__")? {
            let mut stream = Stream::take(&method.call0()?)?;
            let format = Format::of(&stream.schema()?)?;
            return Ok(Some(Self::Stream { stream, format, rows: 0 }));
        }
        Ok(None)
    }

    /// The next piece of the column.
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Rows>> {
        match self {
            Self::Array(rows) => Ok(rows.take()),
            Self::Stream { stream, format, rows } => {
                // Without the GIL: a producer may wait for threads of its own that need it.
                let Some(array) = py.detach(|| stream.next())? else { return Ok(None) };
                py.check_signals()?;
                let piece = Rows::new(array, *format, *rows)?;
                *rows = rows.saturating_add(piece.len());
                Ok(Some(piece))
            }
        }
    }
}

/// The work on one column.
struct Cut {
    matcher: Matcher,
    /// The matcher reads bytes, not characters.
    raw: bool,
    /// The characters of a piece that is not ASCII.
    codes: Vec<u32>,
    kept: Strings,
    /// Matches in the rows read last.
    found: Vec<Found>,
    /// Units read since signals were looked at.
    unpaused: usize,
}

struct Found {
    row: usize,
    matched: Match,
    /// Bytes of the row up to and with the stop.
    read: usize,
}

impl Cut {
    /// Reads rows; touches no Python object but in `pause`, which is called now and then and may
    /// end the work.
    fn read(&mut self, rows: &Rows, mut pause: impl FnMut() -> PyResult<()>) -> PyResult<()> {
        self.kept.reserve(rows.len(), rows.size())?;
        for row in 0..rows.len() {
            let text = rows.text(row)?;
            let kept = text.map(|text| self.read_row(row, text, &mut pause)).transpose()?;
            self.kept.push(kept)?;
            self.unpaused += 1;
        }
        Ok(())
    }

    /// Reads one text; gives what is kept of it.
    fn read_row<'a>(
        &mut self,
        row: usize,
        text: &'a str,
        pause: &mut impl FnMut() -> PyResult<()>,
    ) -> PyResult<&'a str> {
        self.matcher.reset();
        let (mut before, mut emitted) = (0, 0);
        while before < text.len() {
            if self.unpaused >= UNLOOKED {
                self.unpaused = 0;
                pause()?;
            }
            let piece = piece(&text[before..]);
            self.unpaused += piece.len();
            let advance = if self.raw || piece.is_ascii() {
                self.matcher.advance(piece.as_bytes())
            } else {
                self.codes.clear();
                self.codes.extend(piece.chars().map(u32::from));
                self.matcher.advance(&self.codes)
            };
            emitted += (advance.released + advance.passed) as u64;
            let Some(found) = self.matcher.matched() else {
                before += piece.len();
                continue;
            };
            let read = before + if self.raw { found.read } else { prefix(piece, found.read).len() };
            let stop = self.matcher.set().get(found.index);
            // What is emitted ends after the stop, if it is included, or else in front of it.
            let kept = if emitted == found.end { read } else { read - stop.len() };
            let end = if self.raw { characters(&text[..read]) } else { found.end };
            let start = end - std::str::from_utf8(stop).map_or(0, characters);
            // The row was one chunk, in however many pieces it was read.
            let matched = Match::new(found.index, start..end, 0..=0);
            self.found.push(Found { row, matched, read });
            return Ok(&text[..kept]);
        }
        // No more text comes, so what the matcher holds goes out too.
        Ok(text)
    }
}

impl Found {
    fn wrap(self, py: Python<'_>, stops: &Py<PyTuple>, rows: &Rows) -> PyResult<Py<StopMatch>> {
        let row = rows.bytes(self.row)?.unwrap_or_default();
        // The row was UTF-8, and a character ends here.
        let rest = PyString::new(
            py,
            std::str::from_utf8(row.get(self.read..).unwrap_or_default()).unwrap_or_default(),
        );
        StopMatch::wrap(py, &self.matched, stops, rest.into_any().unbind())
    }
}

/// The beginning of a text: about [`PIECE`] bytes, whole characters.
fn piece(text: &str) -> &str {
    let mut end = text.len().min(PIECE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn characters(text: &str) -> u64 {
    text.chars().count() as u64
}
