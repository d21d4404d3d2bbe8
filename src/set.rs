//! The compiled stop set: immutable, cheap to clone, shared by any number of streams and threads.
#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::automaton::{Automaton, TestKnobs, UnitKind};
use crate::error::Error;
use crate::pattern;
use crate::pattern::{Compiled, Pattern};
use crate::scope::{Include, Scope, ScopeProgram};
use crate::stops::{Limits, StopList, Tie};

/// An immutable, compiled list of stop strings. Cloning copies a pointer.
///
/// ```
/// let set = holdback::StopSet::new(["</answer>", "\n\nUser:"])?;
/// let mut stream = set.stream()?;
/// let mut out = String::new();
/// assert!(stream.feed("42</ans", &mut out)?.is_none());
/// assert_eq!(out, "42");                       // `</ans` may become a stop, so it is held back
/// let found = stream.feed("wer> and more", &mut out)?.unwrap();
/// assert_eq!((out.as_str(), found.index, found.start, found.end), ("42", 0, 2, 11));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct StopSet(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    list: StopList,
    tie: Tie,
    knobs: TestKnobs,
    unreachable: Vec<usize>,
    /// Over characters if every stop is text, else over bytes; for an ASCII list, both.
    main: Automaton,
    /// Over bytes, for a byte stream of a list that is text but not ASCII; compiled when first
    /// asked for.
    bytes: OnceLock<Automaton>,
    /// With patterns, all stops compiled for text (or for bytes, if one is bytes), and for bytes.
    patterned: Option<Patterned>,
    /// Compiled scopes, the one used last in front: streams of one server have one scope or a few.
    scopes: Mutex<Vec<(ScopeKey, Arc<ScopeProgram>)>>,
}

#[derive(Debug)]
struct Patterned {
    /// Patterns with their places in the list of stops, ascending.
    list: Vec<(usize, Pattern)>,
    main: Arc<Compiled>,
    bytes: OnceLock<Result<Arc<Compiled>, Error>>,
    most: usize,
}

/// One stop as it is given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// A literal.
    Text(String),
    /// A literal of bytes, for byte streams only.
    Bytes(Vec<u8>),
    /// A regular expression.
    Pattern(Pattern),
}

impl From<&str> for Stop {
    fn from(stop: &str) -> Self {
        Self::Text(stop.to_owned())
    }
}

impl From<Pattern> for Stop {
    fn from(stop: Pattern) -> Self {
        Self::Pattern(stop)
    }
}

/// What a compiled scope depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ScopeKey {
    kind: UnitKind,
    include: Include,
    ignore_inside: Vec<(Vec<u8>, Vec<u8>)>,
    atomic: Vec<Vec<u8>>,
}

/// Compiled scopes kept with a set, and their size together.
const SCOPES: usize = 8;
const SCOPE_BYTES: usize = 16 << 20;

impl StopSet {
    /// Compiles stop strings under the default limits and tie rule.
    ///
    /// # Errors
    /// For an empty stop (naming its index) or a list beyond the limits (naming both numbers).
    pub fn new<S: AsRef<str>>(stops: impl IntoIterator<Item = S>) -> Result<Self, Error> {
        let mut list = StopList::new(Limits::default());
        for stop in stops {
            list.push(stop.as_ref())?;
        }
        Ok(Self::compile(list, Tie::default()))
    }

    /// Compiles a list that is already validated.
    #[must_use]
    pub fn compile(list: StopList, tie: Tie) -> Self {
        Self::compile_forced(list, tie, TestKnobs::default())
    }

    /// The same with fast paths switched, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn compile_forced(mut list: StopList, tie: Tie, knobs: TestKnobs) -> Self {
        list.trim();
        let kind = if list.is_text() { UnitKind::Characters } else { UnitKind::Bytes };
        let (main, unreachable) = Automaton::new(&list, kind, tie, knobs);
        Self(Arc::new(Inner {
            list,
            tie,
            knobs,
            unreachable,
            main,
            bytes: OnceLock::new(),
            patterned: None,
            scopes: Mutex::default(),
        }))
    }

    /// Compiles literals and patterns together; `max_states` bounds the compiled form of a set that
    /// has a pattern (65,536 is plenty, 4,096 for patterns of strangers).
    ///
    /// ```
    /// use holdback::{Limits, Pattern, PatternOptions, Stop, StopSet, Tie};
    /// let turn = Pattern::new(r"\n(?:Step|Turn) \d{1,3}:", PatternOptions::default())?;
    /// let stops = [Stop::from("</answer>"), turn.into()];
    /// let set = StopSet::of(stops, Limits::default(), Tie::Longest, 4_096)?;
    /// let (mut stream, mut out) = (set.stream()?, String::new());
    /// assert!(stream.feed("done\nStep 1", &mut out)?.is_none());
    /// assert_eq!(out, "done");
    /// let found = stream.feed("2: go on", &mut out)?.unwrap();
    /// assert_eq!((out.as_str(), found.index, found.start, found.end), ("done", 1, 4, 13));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A set with patterns has streams that are always armed, without scopes, in which all stops are
    /// included or none is.
    ///
    /// # Errors
    /// For an empty stop, a list beyond the limits, or patterns that need more than `max_states`.
    pub fn of(
        stops: impl IntoIterator<Item = Stop>,
        limits: Limits,
        tie: Tie,
        max_states: usize,
    ) -> Result<Self, Error> {
        let (mut list, mut patterns) = (StopList::new(limits), Vec::new());
        for stop in stops {
            match stop {
                Stop::Text(text) => list.push(&text)?,
                Stop::Bytes(bytes) => list.push_bytes(&bytes)?,
                Stop::Pattern(pattern) => {
                    list.push_other(pattern.text(), pattern.is_text())?;
                    patterns.push((list.len() - 1, pattern));
                }
            }
        }
        if patterns.is_empty() {
            return Ok(Self::compile(list, tie));
        }
        let kind = if list.is_text() { UnitKind::Characters } else { UnitKind::Bytes };
        let most = max_states.min(pattern::MOST_STATES);
        let compiled = compile_patterns(&list, &patterns, kind, tie, most)?;
        let reachable = compiled.firsts.reachable();
        let unreachable = (0..list.len()).filter(|&stop| !reachable[stop]).collect();
        let main = Arc::new(compiled);
        let none = StopList::new(Limits::default());
        Ok(Self(Arc::new(Inner {
            main: Automaton::new(&none, kind, tie, TestKnobs::default()).0,
            list,
            tie,
            knobs: TestKnobs::default(),
            unreachable,
            bytes: OnceLock::new(),
            patterned: Some(Patterned { list: patterns, main, bytes: OnceLock::new(), most }),
            scopes: Mutex::default(),
        })))
    }

    /// The pattern at `index`; `None` for a literal.
    #[must_use]
    pub fn pattern(&self, index: usize) -> Option<&Pattern> {
        find_pattern(&self.0.patterned.as_ref()?.list, index)
    }

    /// Whether any stop is a pattern.
    pub(crate) fn has_patterns(&self) -> bool {
        self.0.patterned.is_some()
    }

    /// All stops of a set with patterns, compiled for text or for raw bytes.
    pub(crate) fn compiled(&self, kind: UnitKind) -> Result<Arc<Compiled>, Error> {
        let Inner { list, tie, patterned, .. } = &*self.0;
        let Some(Patterned { list: patterns, main, bytes, most }) = patterned else {
            return Err(Error::option("the set has no pattern".to_owned()));
        };
        if kind == UnitKind::Characters {
            return Ok(main.clone());
        }
        for (index, pattern) in patterns {
            if pattern.is_text() && pattern.has_word_look() {
                return Err(Error::option(format!(
                    "stop {index}, pattern {pattern}, has \\b: a byte stream does not know what a \
                     character is; give a pattern of bytes"
                )));
            }
        }
        if !list.is_text() {
            return Ok(main.clone());
        }
        let compile = || compile_patterns(list, patterns, kind, *tie, *most).map(Arc::new);
        bytes.get_or_init(compile).clone()
    }

    /// Refuses a set in which a stop could hold back text without end.
    pub(crate) fn check_bounds(&self, compiled: &Compiled) -> Result<(), Error> {
        let bounds = compiled.firsts.bounds();
        let Some(index) = bounds.iter().position(Option::is_none) else { return Ok(()) };
        let pattern = self.pattern(index).map(ToString::to_string).unwrap_or_default();
        Err(Error::option(format!(
            "stop {index}, pattern {pattern}, can hold back text without end after {:?}; give it a \
             max_hold, or include the stop",
            compiled.endless_after(u32::try_from(index).unwrap_or(0))
        )))
    }

    /// For each stop how many characters (bytes, if a stop is bytes) it can hold back at the most;
    /// 0 for one that is unreachable, `None` where there is no such number.
    #[must_use]
    pub fn bounds(&self) -> Vec<Option<u64>> {
        if let Some(patterned) = &self.0.patterned {
            let bounds = patterned.main.firsts.bounds().iter();
            return bounds.map(|bound| bound.map(u64::from)).collect();
        }
        let list = &self.0.list;
        let kind = if list.is_text() { UnitKind::Characters } else { UnitKind::Bytes };
        let length = |stop: &[u8]| kind.units(stop).count() as u64 - 1;
        let mut bounds: Vec<_> = list.iter().map(|stop| Some(length(stop))).collect();
        for &stop in &self.0.unreachable {
            bounds[stop] = Some(0);
        }
        bounds
    }

    /// The stops as given.
    #[must_use]
    pub fn stops(&self) -> &StopList {
        &self.0.list
    }

    /// Stop `index` as (UTF-8) bytes.
    ///
    /// # Panics
    /// When there is no such stop.
    #[must_use]
    pub fn get(&self, index: usize) -> &[u8] {
        self.0.list.get(index)
    }

    /// Which stop wins when several end at the same position.
    #[must_use]
    pub fn tie(&self) -> Tie {
        self.0.tie
    }

    /// Indices of the stops that can never be the match, ascending.
    #[must_use]
    pub fn unreachable(&self) -> &[usize] {
        &self.0.unreachable
    }

    /// Memory of the compiled form, in bytes: this object and its heap.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        let bytes = self.0.bytes.get().map_or(0, Automaton::heap_bytes);
        let scopes = self.0.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let patterned = self.0.patterned.as_ref().map_or(0, |p| p.main.heap_bytes());
        let scopes: usize = scopes.iter().map(|(_, program)| program.heap_bytes()).sum();
        size_of::<Inner>()
            + self.0.list.heap_bytes()
            + self.0.main.heap_bytes()
            + bytes
            + scopes
            + patterned
    }

    /// The compiled form of a scope, shared with other streams of the same one.
    pub(crate) fn program(
        &self,
        kind: UnitKind,
        include: &Include,
        scope: &Scope,
    ) -> Result<Arc<ScopeProgram>, Error> {
        // Not part of the key, so it is looked at whether or not the rest is known.
        if scope.start_inside && scope.ignore_inside.is_empty() {
            return Err(Error::option(
                "start_inside needs a region to begin in: ignore_inside has none".to_owned(),
            ));
        }
        let same = |key: &ScopeKey| {
            key.kind == kind
                && key.include == *include
                && key.ignore_inside == scope.ignore_inside
                && key.atomic == scope.atomic
        };
        let find = || {
            let mut scopes = self.0.scopes.lock().unwrap_or_else(PoisonError::into_inner);
            let at = scopes.iter().position(|(key, _)| same(key))?;
            scopes[..=at].rotate_right(1);
            Some(scopes[0].1.clone())
        };
        if let Some(program) = find() {
            return Ok(program);
        }
        // Compiled outside the lock: another thread may do the same, which costs it a moment and
        // nothing else.
        let program = Arc::new(ScopeProgram::new(
            (&self.0.list, self.0.tie, self.0.knobs),
            kind,
            include,
            scope,
        )?);
        let (ignore_inside, atomic) = (scope.ignore_inside.clone(), scope.atomic.clone());
        let key = ScopeKey { kind, include: include.clone(), ignore_inside, atomic };
        let mut scopes = self.0.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        if !scopes.iter().any(|(key, _)| same(key)) {
            scopes.insert(0, (key, program.clone()));
            scopes.truncate(SCOPES);
            // At least the one just made is kept, whatever its size.
            while scopes.len() > 1
                && scopes.iter().map(|(_, program)| program.heap_bytes()).sum::<usize>()
                    > SCOPE_BYTES
            {
                scopes.pop();
            }
        }
        Ok(program)
    }

    /// The automaton for text or for raw bytes.
    #[inline]
    pub(crate) fn automaton(&self, kind: UnitKind) -> &Automaton {
        let Inner { list, tie, knobs, main, bytes, .. } = &*self.0;
        if kind == UnitKind::Characters || list.is_ascii() || !list.is_text() {
            return main;
        }
        bytes.get_or_init(|| Automaton::new(list, UnitKind::Bytes, *tie, *knobs).0)
    }
}

fn find_pattern(patterns: &[(usize, Pattern)], index: usize) -> Option<&Pattern> {
    let at = patterns.binary_search_by_key(&index, |&(index, _)| index).ok()?;
    Some(&patterns[at].1)
}

fn compile_patterns(
    list: &StopList,
    patterns: &[(usize, Pattern)],
    kind: UnitKind,
    tie: Tie,
    most: usize,
) -> Result<Compiled, Error> {
    let stop = |index| match find_pattern(patterns, index) {
        Some(pattern) => pattern::Stop::Pattern(pattern),
        None => pattern::Stop::Literal(list.get(index)),
    };
    Compiled::new((0..list.len()).map(stop), kind, tie, most)
}
