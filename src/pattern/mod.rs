//! Patterns as stops: regular expressions with exact hold-back.
//!
//! From the stops of a set to tables, in rooms of their own: [`syntax`] reads a pattern and says what
//! is refused, [`nfa`] puts all stops of a set into one automaton over sets of units, [`classes`]
//! finds the units that nothing tells apart, [`subsets`] moves sets of nodes. Two languages are
//! built from these: [`firsts`], the words in which no stop ends before their own end, which is what
//! can be the match of an armed stream, and [`words`], all words. [`live`] is a stream's list of the
//! places at which a stop may have begun.
//!
//! Everything is bounded before it is made: nodes, ranges, states and the work of finding them.
#![forbid(unsafe_code)]

mod classes;
mod firsts;
mod live;
mod nfa;
mod subsets;
mod syntax;
#[cfg(test)]
mod tests;
#[allow(dead_code, reason = "what scopes and filters are built on; tested by itself")]
mod words;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use regex_syntax::hir::Hir;

use classes::Classes;
pub(crate) use firsts::{Firsts, UNLIMITED};
pub(crate) use live::{Candidate, Found, Live};
pub(crate) use nfa::Side;
use nfa::{Builder, Source};
use subsets::Subsets;
use syntax::Refusal;

use crate::automaton::{CodeUnit, UnitKind};
use crate::error::Error;
use crate::stops::Tie;

/// No set of patterns is compiled beyond this.
pub(crate) const MOST_STATES: usize = 1 << 16;

/// Units for which a stop may hold text at the most.
pub(crate) const MAX_HOLD: u32 = 1 << 20;

/// A stop that stands for many texts: a regular expression.
///
/// Which texts those are is all that it says: greedy and lazy mean the same, and groups only group.
///
/// ```
/// use holdback::{Pattern, PatternOptions};
/// let pattern = Pattern::new(r"\n(?:Step|Turn) \d{1,3}:", PatternOptions::default())?;
/// assert_eq!(pattern.text(), br"\n(?:Step|Turn) \d{1,3}:");
/// let refused = Pattern::new(r"(\w)\1", PatternOptions::default()).unwrap_err();
/// assert!(refused.to_string().contains("position 4"));
/// # Ok::<(), holdback::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern {
    text: Box<[u8]>,
    is_text: bool,
    options: PatternOptions,
}

/// What a pattern is given beside its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PatternOptions {
    /// Letters stand for both cases.
    pub ignore_case: bool,
    /// For logs; changes nothing.
    pub name: Option<String>,
    /// What has begun more than so many characters (byte streams: bytes) ago is held no more. It
    /// still ends the stream if it is completed.
    pub max_hold: Option<u32>,
}

impl Pattern {
    /// A pattern of text.
    ///
    /// # Errors
    /// For a pattern that cannot be read, that is refused (look-around other than `\b`, `^`, `$`,
    /// repeats above 1,000, a match of the empty text), or a `max_hold` above 1,048,576.
    pub fn new(text: &str, options: PatternOptions) -> Result<Self, Error> {
        Self::checked(text.as_bytes(), true, options)
    }

    /// A pattern of bytes, for byte streams only: each byte stands for itself, `.` is any byte but
    /// `\n`, and `\w`, `\d`, `\s`, `\b` know ASCII.
    ///
    /// # Errors
    /// As for [`Pattern::new`].
    pub fn of_bytes(text: &[u8], options: PatternOptions) -> Result<Self, Error> {
        Self::checked(text, false, options)
    }

    fn checked(text: &[u8], is_text: bool, options: PatternOptions) -> Result<Self, Error> {
        let pattern = Self { text: text.into(), is_text, options };
        let hold = pattern.options.max_hold.unwrap_or(0);
        if hold > MAX_HOLD {
            let reason = format!("max_hold is {hold}, the limit is {MAX_HOLD}");
            return Err(Error::pattern(&pattern, None, &reason));
        }
        pattern.hir().map_err(|refusal| Error::refused(&pattern, &refusal))?;
        Ok(pattern)
    }

    fn hir(&self) -> Result<Hir, Refusal> {
        let ignore_case = self.options.ignore_case;
        match std::str::from_utf8(&self.text) {
            Ok(text) if self.is_text => syntax::parse_text(text, ignore_case),
            _ => syntax::parse_bytes(&self.text, ignore_case),
        }
    }

    /// Whether it has `\b`.
    pub(crate) fn has_word_look(&self) -> bool {
        self.hir().is_ok_and(|hir| hir.properties().look_set().contains_word())
    }

    /// The pattern as it was given, as (UTF-8) bytes.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// True for a pattern of text, false for one of bytes.
    #[must_use]
    pub fn is_text(&self) -> bool {
        self.is_text
    }

    /// What it was given beside its text.
    #[must_use]
    pub fn options(&self) -> &PatternOptions {
        &self.options
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.text))
    }
}

impl Error {
    /// A pattern that was refused; `at` is a place in its text.
    fn refused(pattern: &Pattern, refusal: &Refusal) -> Self {
        Self::pattern(pattern, refusal.at, &refusal.reason)
    }

    fn pattern(pattern: &Pattern, at: Option<usize>, reason: &str) -> Self {
        let place = at.map_or_else(String::new, |at| format!(", at position {at}"));
        Self::option(format!("pattern {pattern}: {reason}{place}"))
    }
}

/// One stop of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop<'a> {
    Literal(&'a [u8]),
    Pattern(&'a Pattern),
}

/// The compiled form of a set that has a pattern.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) classes: Classes,
    /// For each class what a look sees of it.
    sides: Vec<Side>,
    pub(crate) firsts: Firsts,
    pub(crate) tie: Tie,
    /// For each stop its `max_hold`, or [`UNLIMITED`].
    pub(crate) limits: Vec<u32>,
    /// Whether a candidate may begin with a unit below 256; for each class.
    begins: [bool; 256],
    begins_class: Vec<bool>,
    pub(crate) memo: Memo,
}

/// Visits of nodes for each state that is allowed, when looking for states.
const WORK: usize = 512;

impl Compiled {
    /// Compiles `stops` into `most` states at the most.
    pub(crate) fn new<'a>(
        stops: impl Iterator<Item = Stop<'a>> + Clone,
        kind: UnitKind,
        tie: Tie,
        most: usize,
    ) -> Result<Self, Error> {
        let too_large = || {
            Error::option(format!(
                "the patterns are too large: their compiled form has more than {most} states, the \
                 limit is max_states"
            ))
        };
        let limits: Vec<u32> = stops
            .clone()
            .map(|stop| match stop {
                Stop::Literal(_) => UNLIMITED,
                Stop::Pattern(pattern) => pattern.options.max_hold.unwrap_or(UNLIMITED),
            })
            .collect();
        let nfa = build(stops, kind, most)?.ok_or_else(too_large)?;
        let mut work = most.saturating_mul(WORK).saturating_add(1 << 16);
        let bytes = kind == UnitKind::Bytes;
        let (classes, members) = Classes::new(&nfa.sets, bytes, &mut work).ok_or_else(too_large)?;
        let mut subsets = Subsets::new(&nfa, &classes, members, work);
        let firsts = Firsts::new(&mut subsets, tie, most, &limits).map_err(|_| too_large())?;
        let sides = std::mem::take(&mut subsets.sides);
        let begins_class: Vec<bool> = (0..classes.len()).map(|c| firsts.begins(c)).collect();
        let mut begins = [false; 256];
        for (unit, begins) in (0u32..).zip(&mut begins) {
            *begins = begins_class[classes.class(unit)];
        }
        let memo = Memo::default();
        Ok(Self { classes, sides, firsts, tie, limits, begins, begins_class, memo })
    }

    /// A short text after which `stop`, which has no bound, may stay uncertain without end.
    pub(crate) fn endless_after(&self, stop: u32) -> String {
        let letter = |class: u16| {
            let letters = (b'a'..=b'z').chain(b' '..=b'~').chain(0..=127).map(u32::from);
            let found = letters
                .filter_map(char::from_u32)
                .find(|&c| self.classes.class(u32::from(c)) == usize::from(class));
            found.unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        self.firsts.endless_after(stop).into_iter().map(letter).collect()
    }

    /// What a look sees of a class.
    #[inline]
    pub(crate) fn side(&self, class: usize) -> Side {
        self.sides[class]
    }

    /// How many units at the front begin no candidate.
    #[inline]
    pub(crate) fn skip<U: CodeUnit>(&self, units: &[U]) -> usize {
        let begins = |unit: &U| match self.begins.get(unit.code() as usize) {
            Some(&begins) => begins,
            None => self.begins_class[self.classes.class(*unit)],
        };
        units.iter().position(begins).unwrap_or(units.len())
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.classes.heap_bytes()
            + self.sides.len()
            + self.firsts.heap_bytes()
            + self.limits.len() * 4
            + self.begins_class.len()
    }
}

/// The automaton of `stops`; `None` if it would be too large.
fn build<'a>(
    stops: impl Iterator<Item = Stop<'a>>,
    kind: UnitKind,
    most: usize,
) -> Result<Option<nfa::Nfa>, Error> {
    let mut builder = Builder::new(kind, most.saturating_mul(4).saturating_add(1 << 10));
    for (index, stop) in (0..).zip(stops) {
        let added = match stop {
            Stop::Literal(literal) => builder.add(index, Source::Literal(literal)),
            Stop::Pattern(pattern) => {
                let hir = pattern.hir().map_err(|refusal| Error::refused(pattern, &refusal))?;
                builder.add(index, Source::Pattern(&hir))
            }
        };
        if added.is_err() {
            return Ok(None);
        }
    }
    Ok(builder.finish().ok())
}

/// Answers that took a search, kept for the next time; thrown away when there are many.
#[derive(Debug, Default)]
pub(crate) struct Memo(Mutex<HashMap<Vec<u32>, bool>>);

impl Memo {
    const MOST: usize = 1 << 12;

    fn get(&self, key: &[u32]) -> Option<bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    fn set(&self, key: Vec<u32>, answer: bool) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= Self::MOST {
            known.clear();
        }
        known.insert(key, answer);
    }
}
