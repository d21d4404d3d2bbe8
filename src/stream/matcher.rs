//! One response, without text of its own: chunks of units in, and out comes how much may be
//! emitted.
//!
//! This is what [`Reader`](super::Reader) puts after a decoder. It does not touch the caller's
//! text: [`Advance`] counts, and [`Matcher::released`] gives what had been held back.
#![forbid(unsafe_code)]

use std::convert::Infallible;

use super::machine::Machine;
use super::patterned::Patterned;
use super::plain::Plain;
use super::scoped::Scoped;
use super::{Advance, Match, StreamOptions};
use crate::automaton::{CodeUnit, State, UnitKind};
use crate::error::Error;
use crate::scope::Include;
use crate::set::StopSet;

/// The state of one response. A copy goes on independently of the original.
#[derive(Clone, Debug)]
pub struct Matcher {
    pub(super) set: StopSet,
    pub(super) engine: Engine,
    pub(super) matched: Option<Box<Match>>,
}

/// The machine of a stream, chosen when it is made.
#[derive(Clone, Debug)]
pub(super) enum Engine {
    Plain(Plain),
    Scoped(Box<Scoped>),
    Patterned(Box<Patterned>),
}

/// The same method of whichever machine there is.
macro_rules! each {
    ($engine:expr, $machine:ident => $call:expr) => {
        match $engine {
            Engine::Plain($machine) => $call,
            Engine::Scoped($machine) => $call,
            Engine::Patterned($machine) => $call,
        }
    };
}

/// A reference to what was held back before a chunk, to be asked for after it. It costs nothing to
/// take.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The state that stands for it; the root for a machine that keeps the text itself.
    pub(super) state: State,
}

impl Matcher {
    /// A matcher over the characters of a text.
    ///
    /// # Errors
    /// When a stop was given as bytes, or an option contradicts the set.
    pub fn text(set: StopSet, options: &StreamOptions) -> Result<Self, Error> {
        set.stops().check_text()?;
        Self::new(set, UnitKind::Characters, options)
    }

    /// A matcher over raw bytes.
    ///
    /// # Errors
    /// When an option contradicts the set.
    pub fn bytes(set: StopSet, options: &StreamOptions) -> Result<Self, Error> {
        Self::new(set, UnitKind::Bytes, options)
    }

    fn new(set: StopSet, kind: UnitKind, options: &StreamOptions) -> Result<Self, Error> {
        let StreamOptions { include_stop, scope, .. } = options;
        // With all stops included nothing is held, so arming later must find stops that pruning
        // would have taken out.
        let straddles = *include_stop == Include::All && !set.unreachable().is_empty();
        let plain = scope.is_default() && !matches!(include_stop, Include::Only(_)) && !straddles;
        let engine = if set.has_patterns() {
            Engine::Patterned(Box::new(Patterned::new(&set, kind, include_stop, scope)?))
        } else if plain {
            Engine::Plain(Plain::new(kind, *include_stop == Include::All))
        } else {
            Engine::Scoped(Box::new(Scoped::new(&set, kind, include_stop, scope)?))
        };
        Ok(Self { set, engine, matched: None })
    }

    /// True for a matcher over bytes.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        let kind = match &self.engine {
            Engine::Plain(plain) => plain.kind,
            Engine::Scoped(scoped) => scoped.kind(),
            Engine::Patterned(patterned) => patterned.kind,
        };
        kind == UnitKind::Bytes
    }

    /// The compiled set.
    #[must_use]
    pub fn set(&self) -> &StopSet {
        &self.set
    }

    /// The options it was made with, as far as they concern matching.
    #[must_use]
    pub fn options(&self) -> StreamOptions {
        each!(&self.engine, machine => machine.options())
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
        each!(&self.engine, machine => machine.progress().seen)
    }

    /// Chunks read.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        each!(&self.engine, machine => machine.progress().chunks)
    }

    /// What is held back now.
    #[inline]
    #[must_use]
    pub fn held(&self) -> Held {
        each!(&self.engine, machine => machine.held())
    }

    /// Units held back now.
    #[must_use]
    pub fn held_len(&self) -> usize {
        each!(&self.engine, machine => machine.held_len(&self.set))
    }

    /// The text held back now, as (UTF-8) bytes.
    #[must_use]
    pub fn held_bytes(&self) -> &[u8] {
        each!(&self.engine, machine => machine.held_bytes(&self.set))
    }

    /// The first `count` units of what was held back before the last chunk, as many as that chunk
    /// released.
    #[inline]
    #[must_use]
    pub fn released(&self, held: Held, count: usize) -> &[u8] {
        if count == 0 {
            return &[];
        }
        each!(&self.engine, machine => machine.released(&self.set, held, count))
    }

    /// Reads one chunk: characters of a text in whatever storage (no surrogates), or bytes.
    /// [`Matcher::matched`] tells whether a stop ended in it; after one, nothing passes any more.
    #[inline]
    pub fn advance<U: CodeUnit>(&mut self, chunk: &[U]) -> Advance {
        let Ok(advance) = self.advance_in_slices(chunk, usize::MAX, || Ok::<(), Infallible>(()));
        advance
    }

    /// Reads one chunk if no stop fires in it; `None`, with nothing changed, else.
    ///
    /// For callers whose way of handling a match is slow: the usual chunk needs no copy and no
    /// match.
    #[expect(clippy::inline_always, reason = "one call more elsewhere costs a token 6 % else")]
    #[inline(always)]
    pub fn advance_unmatched<U: CodeUnit>(&mut self, chunk: &[U]) -> Option<Advance> {
        if self.matched.is_some() {
            return None;
        }
        each!(&mut self.engine, machine => machine.advance_unmatched(&self.set, chunk))
    }

    /// The same as [`Matcher::advance`] in slices of `slice` units with `pause` called between
    /// them, which can end the work: the matcher is as before then.
    ///
    /// # Errors
    /// Whatever `pause` returns.
    pub fn advance_in_slices<U: CodeUnit, E>(
        &mut self,
        chunk: &[U],
        slice: usize,
        pause: impl FnMut() -> Result<(), E>,
    ) -> Result<Advance, E> {
        if self.matched.is_some() {
            return Ok(Advance::default());
        }
        let (advance, matched) = each!(
            &mut self.engine,
            machine => machine.advance_in_slices(&self.set, chunk, slice, pause)?
        );
        self.matched = matched.map(Box::new);
        Ok(advance)
    }

    /// Reads one more unit as part of the last chunk: the U+FFFD that the end of the text makes of
    /// an unfinished character.
    pub fn advance_last_chunk(&mut self, unit: u32) -> Advance {
        if self.matched.is_none() {
            let progress = each!(&mut self.engine, machine => machine.progress_mut());
            progress.chunks = progress.chunks.saturating_sub(1);
        }
        self.advance(&[unit])
    }

    /// The end of the text is known: if it completes a stop (a look at the end of a pattern waits
    /// for what follows), gives how many of the units held are released in front of it.
    pub fn end_of_text(&mut self) -> Option<usize> {
        if self.matched.is_some() {
            return None;
        }
        let (released, found) = each!(&mut self.engine, machine => machine.end_of_text())?;
        self.matched = Some(Box::new(found));
        Some(released)
    }

    /// Ends the text: everything held is released; gives how many units, to be asked for by
    /// [`Matcher::released`]. What the caller feeds after it is matched afresh.
    #[must_use = "what is released must go out"]
    pub fn flush(&mut self) -> usize {
        let held = self.held_len();
        each!(&mut self.engine, machine => machine.flush());
        held
    }

    /// Back to the state in which the matcher was made.
    pub fn reset(&mut self) {
        each!(&mut self.engine, machine => machine.reset());
        self.matched = None;
    }

    /// From the next unit on stops count, or do not, until the next call. After a match this does
    /// nothing, and neither does it in a stream of a set with patterns, which is always armed.
    pub fn set_armed(&mut self, armed: bool) {
        if self.matched.is_some() {
            return;
        }
        if let Engine::Plain(plain) = &self.engine {
            if armed {
                return;
            }
            // Without markers there is nothing to refuse.
            let Ok(twin) = Scoped::of(&self.set, plain) else { return };
            self.engine = Engine::Scoped(Box::new(twin));
        }
        each!(&mut self.engine, machine => machine.set_armed(armed));
    }

    /// True when a stop that ends at the very next unit would count.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        each!(&self.engine, machine => machine.is_armed())
    }

    /// The number of the region the stream is in.
    #[must_use]
    pub fn region(&self) -> Option<usize> {
        each!(&self.engine, machine => machine.region())
    }
}
