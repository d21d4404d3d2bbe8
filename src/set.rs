//! The compiled stop set: immutable, cheap to clone, shared by any number of streams and threads.
#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::automaton::{Automaton, TestKnobs, UnitKind};
use crate::error::Error;
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
    /// Compiled scopes, the one used last in front: streams of one server have one scope or a few.
    scopes: Mutex<Vec<(ScopeKey, Arc<ScopeProgram>)>>,
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
            scopes: Mutex::default(),
        }))
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
        let scopes: usize = scopes.iter().map(|(_, program)| program.heap_bytes()).sum();
        size_of::<Inner>() + self.0.list.heap_bytes() + self.0.main.heap_bytes() + bytes + scopes
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
