//! One response, without text of its own: chunks of units in, and out comes how much may be
//! emitted.
//!
//! This is what [`Stream`](super::Stream), [`ByteStream`](super::ByteStream), the wire cutter and
//! the Python binding share. It does not touch the caller's text: [`Advance`] counts, and
//! [`Matcher::released`] gives what had been held back.
#![forbid(unsafe_code)]

use std::sync::Arc;

use super::plain::{Passed, Plain};
use super::{Advance, Match, StreamOptions};
use crate::automaton::{Over, Unit};
use crate::error::Error;
use crate::scope::{Include, Program, Scope, Scoped};
use crate::set::StopSet;

/// The state of one response. A copy goes on independently of the original.
#[derive(Clone, Debug)]
pub struct Matcher {
    pub(super) set: StopSet,
    pub(super) engine: Engine,
    pub(super) matched: Option<Box<Match>>,
}

/// Streams that use no scope, nearly all, pay nothing for those that do.
#[derive(Clone, Debug)]
pub(super) enum Engine {
    Plain(Plain),
    Scoped(Box<Scoping>),
}

/// A scoped state with what it was made from.
#[derive(Clone, Debug)]
pub(super) struct Scoping {
    pub(super) program: Arc<Program>,
    pub(super) scope: Arc<Scope>,
    pub(super) include: Include,
    pub(super) state: Scoped,
}

/// A reference to what was held back before a chunk, to be asked for after it. It costs nothing to
/// take.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The state that stands for it; 0 for a scoped stream, which keeps the text itself.
    state: u32,
}

impl Matcher {
    /// A matcher over the characters of a text.
    ///
    /// # Errors
    /// When a stop was given as bytes, or an option contradicts the set.
    pub fn text(set: StopSet, options: &StreamOptions) -> Result<Self, Error> {
        set.stops().check_text()?;
        Self::new(set, Over::Characters, options)
    }

    /// A matcher over raw bytes.
    ///
    /// # Errors
    /// When an option contradicts the set.
    pub fn bytes(set: StopSet, options: &StreamOptions) -> Result<Self, Error> {
        Self::new(set, Over::Bytes, options)
    }

    fn new(set: StopSet, over: Over, options: &StreamOptions) -> Result<Self, Error> {
        let StreamOptions { include_stop, scope, .. } = options;
        // With all stops included nothing is held, so arming later must find stops that pruning
        // would have taken out.
        let straddles = *include_stop == Include::All && !set.unreachable().is_empty();
        let plain = scope.is_default() && !matches!(include_stop, Include::Only(_)) && !straddles;
        let engine = if plain {
            Engine::Plain(Plain::new(over, *include_stop == Include::All))
        } else {
            let program = set.program(over, include_stop, scope)?;
            let state = Scoped::new(scope.min_chars, scope.start_inside);
            let (scope, include) = (Arc::new(scope.clone()), include_stop.clone());
            Engine::Scoped(Box::new(Scoping { program, scope, include, state }))
        };
        Ok(Self { set, engine, matched: None })
    }

    pub(super) fn over(&self) -> Over {
        match &self.engine {
            Engine::Plain(plain) => plain.over,
            Engine::Scoped(scoping) => scoping.program.over,
        }
    }

    /// The compiled set.
    #[must_use]
    pub fn set(&self) -> &StopSet {
        &self.set
    }

    /// The options it was made with, as far as they concern matching.
    #[must_use]
    pub fn options(&self) -> StreamOptions {
        let (include_stop, scope) = match &self.engine {
            Engine::Plain(plain) => (plain.include_stop.into(), Scope::default()),
            Engine::Scoped(scoping) => (scoping.include.clone(), (*scoping.scope).clone()),
        };
        StreamOptions { include_stop, scope, ..StreamOptions::default() }
    }

    /// The match that ended the stream, if one did.
    #[inline]
    #[must_use]
    pub fn matched(&self) -> Option<&Match> {
        self.matched.as_deref()
    }

    /// Units read, over all chunks.
    #[must_use]
    pub fn seen(&self) -> u64 {
        match &self.engine {
            Engine::Plain(plain) => plain.seen,
            Engine::Scoped(scoping) => scoping.state.seen(),
        }
    }

    /// Chunks read.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        match &self.engine {
            Engine::Plain(plain) => plain.chunks,
            Engine::Scoped(scoping) => scoping.state.chunks(),
        }
    }

    /// What is held back now.
    #[inline]
    #[must_use]
    pub fn held(&self) -> Held {
        match &self.engine {
            Engine::Plain(plain) => Held { state: plain.state },
            Engine::Scoped(_) => Held { state: 0 },
        }
    }

    /// Units held back now.
    #[must_use]
    pub fn held_len(&self) -> usize {
        match &self.engine {
            Engine::Plain(plain) => plain.held_len(&self.set),
            Engine::Scoped(scoping) => scoping.state.held().1,
        }
    }

    /// The text held back now, as (UTF-8) bytes.
    #[must_use]
    pub fn held_bytes(&self) -> &[u8] {
        match &self.engine {
            Engine::Plain(_) => self.released(self.held(), self.held_len()),
            Engine::Scoped(scoping) => scoping.state.held().0,
        }
    }

    /// The first `count` units of what was held back before the last chunk, as many as that chunk
    /// released.
    #[inline]
    #[must_use]
    pub fn released(&self, held: Held, count: usize) -> &[u8] {
        match &self.engine {
            _ if count == 0 => &[],
            Engine::Plain(plain) => {
                self.prefix_of(self.set.automaton(plain.over).stop(held.state), count)
            }
            Engine::Scoped(scoping) => scoping.state.released(),
        }
    }

    /// The first `count` units of a stop, as (UTF-8) bytes.
    pub(super) fn prefix_of(&self, stop: usize, count: usize) -> &[u8] {
        let stop = self.set.get(stop);
        let over = if self.set.stops().is_ascii() { Over::Bytes } else { self.over() };
        &stop[..over.prefix_len(stop, count)]
    }

    /// Reads one chunk: characters of a text in whatever storage (no surrogates), or bytes.
    ///
    /// After a match nothing passes and the same match is given.
    #[inline]
    pub fn advance<U: Unit>(&mut self, chunk: &[U]) -> Advance {
        if self.matched.is_some() {
            return self.ended();
        }
        let advance = match &mut self.engine {
            Engine::Plain(plain) => plain.advance(&self.set, chunk),
            Engine::Scoped(scoping) => scoping.state.advance(&scoping.program, chunk),
        };
        self.note(advance)
    }

    /// Reads one chunk if no stop fires in it; `None`, with nothing changed, else.
    ///
    /// For callers whose way of handling a match is slow: the usual chunk needs no copy and no
    /// match.
    #[inline]
    pub fn advance_unmatched<U: Unit>(&mut self, chunk: &[U]) -> Option<Passed> {
        match &mut self.engine {
            _ if self.matched.is_some() => None,
            Engine::Plain(plain) => plain.advance_unmatched(&self.set, chunk),
            Engine::Scoped(scoping) => scoping.state.advance_unmatched(&scoping.program, chunk),
        }
    }

    #[cold]
    fn ended(&self) -> Advance {
        Advance { released: 0, passed: 0, matched: self.matched().cloned() }
    }

    /// The same in slices of `slice` units with `pause` called between them, which can end the
    /// work: the matcher is as before then.
    ///
    /// # Errors
    /// Whatever `pause` returns.
    pub fn advance_in_slices<U: Unit, E>(
        &mut self,
        chunk: &[U],
        slice: usize,
        pause: impl FnMut() -> Result<(), E>,
    ) -> Result<Advance, E> {
        if self.matched.is_some() {
            return Ok(self.ended());
        }
        let advance = match &mut self.engine {
            Engine::Plain(plain) => plain.advance_in_slices(&self.set, chunk, slice, pause)?,
            Engine::Scoped(scoping) => {
                scoping.state.advance_in_slices(&scoping.program, chunk, slice, pause)?
            }
        };
        Ok(self.note(advance))
    }

    /// Reads one more unit as part of the last chunk: the U+FFFD that the end of the text makes of
    /// an unfinished character.
    pub fn advance_last_chunk(&mut self, unit: u32) -> Advance {
        if self.matched.is_some() {
            return self.ended();
        }
        let advance = match &mut self.engine {
            Engine::Plain(plain) => plain.advance_last_chunk(&self.set, unit),
            Engine::Scoped(scoping) => scoping.state.advance_last_chunk(&scoping.program, unit),
        };
        self.note(advance)
    }

    #[inline]
    fn note(&mut self, advance: Advance) -> Advance {
        if let Some(found) = &advance.matched {
            self.matched = Some(Box::new(found.clone()));
        }
        advance
    }

    /// Ends the text: everything held is released; gives how many units, to be asked for by
    /// [`Matcher::released`]. What the caller feeds after it is matched afresh.
    #[must_use = "what is released must go out"]
    pub fn flush(&mut self) -> usize {
        let held = self.held_len();
        match &mut self.engine {
            Engine::Plain(plain) => plain.state = 0,
            Engine::Scoped(scoping) => scoping.state.flush(),
        }
        held
    }

    /// Back to the state in which the matcher was made.
    pub fn reset(&mut self) {
        match &mut self.engine {
            Engine::Plain(plain) => *plain = Plain::new(plain.over, plain.include_stop),
            Engine::Scoped(scoping) => {
                scoping.state = Scoped::new(scoping.scope.min_chars, scoping.scope.start_inside);
            }
        }
        self.matched = None;
    }

    /// From the next unit on stops count, or do not, until the next call. After a match this does
    /// nothing.
    pub fn set_armed(&mut self, armed: bool) {
        if self.matched.is_some() {
            return;
        }
        if let Engine::Plain(plain) = &self.engine {
            if armed {
                return;
            }
            let (include, scope) = (plain.include_stop.into(), Scope::default());
            // Without markers there is nothing to refuse.
            let Ok(program) = self.set.program(plain.over, &include, &scope) else { return };
            let window = self.window();
            let counters = (plain.seen, plain.chunks, plain.marks.clone());
            let state = Scoped::take_over(&program, &window, !plain.include_stop, counters);
            self.engine = Engine::Scoped(Box::new(Scoping {
                program,
                scope: Arc::new(scope),
                include,
                state,
            }));
        }
        if let Engine::Scoped(scoping) = &mut self.engine {
            scoping.state.set_armed(&scoping.program, armed);
        }
    }

    /// What a plain state stands for: the held text, or what would be held if stops were not
    /// included.
    pub(super) fn window(&self) -> Vec<u8> {
        let Engine::Plain(plain) = &self.engine else { return Vec::new() };
        let automaton = self.set.automaton(plain.over);
        match automaton.depth(plain.state) as usize {
            0 => Vec::new(),
            depth => self.prefix_of(automaton.stop(plain.state), depth).to_vec(),
        }
    }

    /// True when a stop that ends at the very next unit would count.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        match &self.engine {
            Engine::Plain(_) => true,
            Engine::Scoped(scoping) => scoping.state.is_armed(),
        }
    }

    /// The number of the region the stream is asleep in.
    #[must_use]
    pub fn region(&self) -> Option<usize> {
        match &self.engine {
            Engine::Plain(_) => None,
            Engine::Scoped(scoping) => scoping.state.region(),
        }
    }
}
