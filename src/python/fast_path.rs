//! The fast path: a short `str` without surrogates, after nothing unfinished, in which no stop ends.
//!
//! Nearly every chunk is one. It needs no exception, no match and no copy of the state, and
//! when nothing is held before or after, the very `str` that came in goes out. Everything else is
//! left, untouched, to [`State::feed`], which is also the twin that tests compare with.

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::gil::DETACH_UNITS;
use super::state::State;
use super::text::{self, Chars};
use crate::raw::{Advance, CodeUnit, Held};

/// Whether `chunk` may take the fast path of `state`; only a match can still get in the way.
pub(super) fn is_fast(state: &State, chunk: &Bound<'_, PyString>) -> bool {
    let mut scratch = Vec::new();
    let fast = |chars: Chars<'_>| chars.len() < DETACH_UNITS && !chars.has_surrogate();
    state.reader.takes_text() && Chars::of(chunk, &mut scratch).is_ok_and(fast)
}

/// The text to send for such a chunk without a match (an error only if there is no memory for it);
/// `None`, with nothing changed, for any other chunk.
#[inline]
pub(super) fn feed_fast<'py>(
    state: &mut State,
    chunk: &Bound<'py, PyString>,
) -> Option<PyResult<Bound<'py, PyString>>> {
    let mut scratch = Vec::new();
    let chars = Chars::of(chunk, &mut scratch).ok()?;
    if !state.reader.takes_text() || chars.len() >= DETACH_UNITS {
        return None;
    }
    match chars {
        Chars::Narrow(units) => advance(state, chunk, chars, units),
        Chars::Wide(units) => wide(state, chunk, chars, units),
        Chars::Full(units) => wide(state, chunk, chars, units),
    }
}

/// Out of line, so that a narrow chunk does not carry the registers of the others.
#[inline(never)]
fn wide<'py, U: CodeUnit>(
    state: &mut State,
    chunk: &Bound<'py, PyString>,
    chars: Chars<'_>,
    units: &[U],
) -> Option<PyResult<Bound<'py, PyString>>> {
    if U::has_surrogate(units) { None } else { advance(state, chunk, chars, units) }
}

#[inline]
fn advance<'py, U: CodeUnit>(
    state: &mut State,
    chunk: &Bound<'py, PyString>,
    chars: Chars<'_>,
    units: &[U],
) -> Option<PyResult<Bound<'py, PyString>>> {
    let held = state.reader.held();
    let advance = state.reader.advance_unmatched(units)?;
    state.last_text = true;
    if advance.passed == units.len() && advance.released == 0 {
        return Some(Ok(chunk.clone()));
    }
    Some(cut(state, chunk, chars, held, advance))
}

#[inline(never)]
fn cut<'py>(
    state: &State,
    chunk: &Bound<'py, PyString>,
    chars: Chars<'_>,
    held: Held,
    advance: Advance,
) -> PyResult<Bound<'py, PyString>> {
    text::emitted(state.reader.released(held, advance), chunk, chars, advance.passed)
}
