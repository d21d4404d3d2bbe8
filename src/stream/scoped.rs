//! The machine of a stream with scopes: a state, and the program that it walks.
#![forbid(unsafe_code)]

use std::sync::Arc;

use super::machine::Machine;
use super::plain::Plain;
use super::progress::Progress;
use super::scoped_state::ScopedState;
use super::{Advance, Held, Match, Place, StreamOptions};
use crate::automaton::{CodeUnit, State, UnitKind};
use crate::error::Error;
use crate::scope::{Include, Scope, ScopeProgram};
use crate::set::StopSet;

#[derive(Clone, Debug)]
pub(super) struct Scoped {
    program: Arc<ScopeProgram>,
    scope: Arc<Scope>,
    include: Include,
    state: ScopedState,
}

impl Scoped {
    pub(super) fn new(
        set: &StopSet,
        kind: UnitKind,
        include: &Include,
        scope: &Scope,
    ) -> Result<Self, Error> {
        let program = set.program(kind, include, scope)?;
        let state = ScopedState::new(scope.min_chars, scope.start_inside);
        Ok(Self { program, scope: Arc::new(scope.clone()), include: include.clone(), state })
    }

    /// The scoped twin of a plain stream.
    pub(super) fn of(set: &StopSet, plain: &Plain) -> Result<Self, Error> {
        let mut twin = Self::new(set, plain.kind, &plain.include_stop.into(), &Scope::default())?;
        let (window, progress) = (plain.window(set), plain.progress.clone());
        twin.state = ScopedState::take_over(&twin.program, window, !plain.include_stop, progress);
        Ok(twin)
    }

    pub(super) fn kind(&self) -> UnitKind {
        self.program.kind
    }
}

impl Machine for Scoped {
    fn options(&self) -> StreamOptions {
        let (include_stop, scope) = (self.include.clone(), (*self.scope).clone());
        StreamOptions { include_stop, scope, ..StreamOptions::default() }
    }

    fn progress(&self) -> &Progress {
        &self.state.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.state.progress
    }

    /// Nothing: the state keeps the text that it released.
    fn held(&self) -> Held {
        Held { state: State::ROOT }
    }

    fn held_len(&self, _: &StopSet) -> usize {
        self.state.held().1
    }

    fn held_bytes<'a>(&'a self, _: &'a StopSet) -> &'a [u8] {
        self.state.held().0
    }

    fn released<'a>(&'a self, _: &'a StopSet, _: Held, _: usize) -> &'a [u8] {
        self.state.released()
    }

    fn advance_unmatched<U: CodeUnit>(&mut self, set: &StopSet, chunk: &[U]) -> Option<Advance> {
        self.state.advance_unmatched((&self.program, set.stops()), chunk)
    }

    fn advance_in_slices<U: CodeUnit, E>(
        &mut self,
        set: &StopSet,
        chunk: &[U],
        slice: usize,
        pause: impl FnMut() -> Result<(), E>,
    ) -> Result<(Advance, Option<Match>), E> {
        self.state.advance_in_slices((&self.program, set.stops()), chunk, slice, pause)
    }

    fn flush(&mut self) {
        self.state.flush();
    }

    fn reset(&mut self) {
        self.state = ScopedState::new(self.scope.min_chars, self.scope.start_inside);
    }

    fn is_armed(&self) -> bool {
        self.state.is_armed()
    }

    fn set_armed(&mut self, armed: bool) {
        self.state.set_armed(&self.program, armed);
    }

    fn region(&self) -> Option<usize> {
        self.state.region()
    }

    fn place(&self, set: &StopSet) -> Place {
        Place::Scoped(self.state.snapshot(&self.program, set.stops(), &self.scope))
    }

    fn at(mut self, _: &StopSet, place: Place, progress: Progress) -> Option<Self> {
        let Place::Scoped(snapshot) = place else { return None };
        self.state = ScopedState::restore(&self.program, snapshot, progress)?;
        Some(self)
    }
}
