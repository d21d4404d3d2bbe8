//! Keyword arguments as core options, each refused with a message that says what was expected.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString, PyTuple};

use super::error::type_name;
use crate::scope::MARKERS;
use crate::{Errors, Include, Limits, Scope, StreamOptions, Tie};

/// The keyword arguments of `stream()`, as they came.
#[derive(Default)]
pub(super) struct RawOptions<'a, 'py> {
    pub(super) include_stop: Option<&'a Bound<'py, PyAny>>,
    pub(super) errors: Option<&'a Bound<'py, PyAny>>,
    pub(super) min_chars: Option<&'a Bound<'py, PyAny>>,
    pub(super) ignore_inside: Option<&'a Bound<'py, PyAny>>,
    pub(super) start_inside: Option<&'a Bound<'py, PyAny>>,
    pub(super) atomic: Option<&'a Bound<'py, PyAny>>,
}

/// Core options, and the regions as the caller gave them (`StopStream.region` hands out these very
/// objects).
pub(super) struct ParsedOptions {
    pub(super) core: StreamOptions,
    pub(super) regions: Option<Py<PyTuple>>,
}

impl<'py> RawOptions<'_, 'py> {
    /// Checks types; what contradicts the set is the core's to refuse. A `raw` stream takes `bytes`
    /// markers too.
    #[inline]
    pub(super) fn parse(&self, py: Python<'py>, raw: bool) -> PyResult<ParsedOptions> {
        let errors = choice(
            "errors",
            self.errors,
            Errors::default(),
            &[("replace", Errors::Replace), ("strict", Errors::Strict)],
        )?;
        let include_stop = self.include_stop.map_or(Ok(Include::None), include)?;
        let mut core = StreamOptions { include_stop, errors, scope: Scope::default() };
        let mut regions = None;
        if let Some(count) = self.min_chars {
            core.scope.min_chars = whole("min_chars", count)?;
        }
        if let Some(pairs) = self.ignore_inside {
            let (markers, given) = regions_of(py, pairs, raw)?;
            core.scope.ignore_inside = markers;
            regions = Some(given.unbind());
        }
        core.scope.start_inside = flag("start_inside", self.start_inside)?.unwrap_or(false);
        if let Some(markers) = self.atomic {
            core.scope.atomic = atomic(markers, &core.scope, raw)?;
        }
        Ok(ParsedOptions { core, regions })
    }
}

/// `tie=`: absent means the default.
pub(super) fn tie(value: Option<&Bound<'_, PyAny>>) -> PyResult<Tie> {
    choice("tie", value, Tie::default(), &[("longest", Tie::Longest), ("first", Tie::First)])
}

/// The word for a tie rule.
pub(super) fn tie_name(tie: Tie) -> &'static str {
    match tie {
        Tie::Longest => "longest",
        Tie::First => "first",
    }
}

/// One of a few words; absent means the default.
pub(super) fn choice<T: Copy>(
    name: &str,
    value: Option<&Bound<'_, PyAny>>,
    default: T,
    words: &[(&str, T)],
) -> PyResult<T> {
    let Some(value) = value else { return Ok(default) };
    let wanted =
        || words.iter().map(|(word, _)| format!("'{word}'")).collect::<Vec<_>>().join(" or ");
    let Ok(text) = value.cast::<PyString>() else {
        return Err(PyTypeError::new_err(format!(
            "{name} must be {}, not {}",
            wanted(),
            type_name(value)
        )));
    };
    let text = text.to_string_lossy();
    match words.iter().find(|(word, _)| *word == text) {
        Some((_, chosen)) => Ok(*chosen),
        None => Err(PyValueError::new_err(format!(
            "{name} must be {}, not {}",
            wanted(),
            value.repr()?
        ))),
    }
}

fn include(value: &Bound<'_, PyAny>) -> PyResult<Include> {
    if let Ok(all) = value.cast::<PyBool>() {
        return Ok(all.is_true().into());
    }
    // `raw`: whether the set can be fed bytes stops is not for this option to say.
    Ok(Include::Only(
        several(value, "include_stop", true, Limits::default().max_stops)?.into_iter().collect(),
    ))
}

/// A count that is given; the error names the argument, and the range that its type has.
pub(super) fn whole<T: Unsigned>(name: &str, value: &Bound<'_, PyAny>) -> PyResult<T> {
    if !value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(format!(
            "{name} must be an int, not {}",
            type_name(value)
        )));
    }
    let given = value.extract::<u64>().ok().and_then(|given| T::try_from(given).ok());
    given.ok_or_else(|| {
        PyValueError::new_err(format!("{name} must be from 0 to 2**{} - 1, not {value}", T::BITS))
    })
}

/// The types that counts have in the core.
pub(super) trait Unsigned: TryFrom<u64> {
    const BITS: u32;
}

impl Unsigned for u32 {
    const BITS: u32 = u32::BITS;
}

impl Unsigned for u64 {
    const BITS: u32 = u64::BITS;
}

impl Unsigned for usize {
    const BITS: u32 = usize::BITS;
}

/// A yes or no; absent means the default.
pub(super) fn flag(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<bool>> {
    let Some(value) = value else { return Ok(None) };
    match value.cast::<PyBool>() {
        Ok(given) => Ok(Some(given.is_true())),
        Err(_) => {
            Err(PyTypeError::new_err(format!("{name} must be a bool, not {}", type_name(value))))
        }
    }
}

type Markers = Vec<(Vec<u8>, Vec<u8>)>;

fn regions_of<'py>(
    py: Python<'py>,
    pairs: &Bound<'py, PyAny>,
    raw: bool,
) -> PyResult<(Markers, Bound<'py, PyTuple>)> {
    let wrong = |at: usize, pair: &Bound<'_, PyAny>| {
        PyTypeError::new_err(format!(
            "ignore_inside[{at}] must be an (opener, closer) pair, not {}",
            type_name(pair)
        ))
    };
    let (mut markers, mut given) = (Vec::new(), Vec::new());
    for (at, pair) in iterate(pairs, "ignore_inside")?.enumerate() {
        let pair = pair?;
        limit(at, MARKERS, "ignore_inside")?;
        if is_text(&pair) {
            return Err(wrong(at, &pair));
        }
        // A list of two will do: configurations in JSON have no tuples.
        let [opener, closer] =
            pair.extract::<[Bound<'_, PyAny>; 2]>().map_err(|_| wrong(at, &pair))?;
        let name = format!("ignore_inside[{at}]");
        markers.push((marker(&opener, &name, raw)?, marker(&closer, &name, raw)?));
        given.push((opener, closer).into_pyobject(py)?);
    }
    Ok((markers, PyTuple::new(py, given)?))
}

fn atomic(value: &Bound<'_, PyAny>, scope: &Scope, raw: bool) -> PyResult<Vec<Vec<u8>>> {
    if value.cast::<PyString>().is_ok_and(|word| word.to_string_lossy() == "regions") {
        let pairs = scope.ignore_inside.iter();
        return Ok(pairs.flat_map(|(opener, closer)| [opener.clone(), closer.clone()]).collect());
    }
    several(value, "atomic", raw, MARKERS)
}

/// A collection of markers, or one.
fn several(value: &Bound<'_, PyAny>, name: &str, raw: bool, most: usize) -> PyResult<Vec<Vec<u8>>> {
    if is_text(value) {
        return Ok(vec![marker(value, name, raw)?]);
    }
    let one = |(at, one): (usize, PyResult<Bound<'_, PyAny>>)| {
        limit(at, most, name)?;
        marker(&one?, name, raw)
    };
    iterate(value, name)?.enumerate().map(one).collect()
}

/// An iterable may be endless.
fn limit(at: usize, most: usize, name: &str) -> PyResult<()> {
    if at < most {
        Ok(())
    } else {
        Err(PyValueError::new_err(format!("{name} has more than {most} members")))
    }
}

fn iterate<'py>(
    value: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Bound<'py, pyo3::types::PyIterator>> {
    value.try_iter().map_err(|_| {
        PyTypeError::new_err(format!("{name} must be a collection, not {}", type_name(value)))
    })
}

fn is_text(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>()
}

/// A marker as (UTF-8) bytes.
fn marker(value: &Bound<'_, PyAny>, name: &str, raw: bool) -> PyResult<Vec<u8>> {
    if let Ok(text) = value.cast::<PyString>() {
        return match text.to_cow() {
            Ok(text) => Ok(text.as_bytes().to_vec()),
            Err(_) => Err(PyValueError::new_err(format!(
                "{name} holds a lone surrogate: {}",
                value.repr()?
            ))),
        };
    }
    match value.cast::<PyBytes>() {
        Ok(bytes) if raw => Ok(bytes.as_bytes().to_vec()),
        _ => {
            let wanted = if raw { "str or bytes" } else { "str" };
            Err(PyTypeError::new_err(format!(
                "{name} must hold {wanted}, not {}",
                type_name(value)
            )))
        }
    }
}
