//! What a machine is: the part of a stream that knows which stop ends where and what to hold back.
//!
//! A stream has one machine, chosen when it is made by what it needs: [`Plain`](super::plain) has a
//! state number and nothing else, [`Scoped`](super::scoped) a buffer and two automata,
//! [`Patterned`](super::patterned) a list of candidates. Another one
//! is another file, another arm of [`Engine`](super::matcher::Engine), and another arm of
//! [`Place`](super::Place); streams of the others do not pay for it.
#![forbid(unsafe_code)]

use super::progress::Progress;
use super::{Advance, Held, Match, Place, StreamOptions};
use crate::automaton::CodeUnit;
use crate::set::StopSet;

/// The methods that [`Matcher`](super::Matcher) needs; `set` is the one the machine was made for.
///
/// A machine never sees a unit after its match: the matcher stands before it.
pub(super) trait Machine: Sized {
    /// The options it was made with, as far as they concern matching.
    fn options(&self) -> StreamOptions;

    fn progress(&self) -> &Progress;

    fn progress_mut(&mut self) -> &mut Progress;

    /// A reference to what is held, for [`Machine::released`] after the next chunk.
    fn held(&self) -> Held;

    /// Units held.
    fn held_len(&self, set: &StopSet) -> usize;

    /// What is held, as (UTF-8) bytes.
    fn held_bytes<'a>(&'a self, set: &'a StopSet) -> &'a [u8];

    /// The first `count` units (as many as the last chunk, or `flush`, released) of what was held
    /// before.
    fn released<'a>(&'a self, set: &'a StopSet, held: Held, count: usize) -> &'a [u8];

    /// Reads one chunk if no stop ends in it; `None`, with nothing changed, if one does.
    fn advance_unmatched<U: CodeUnit>(&mut self, set: &StopSet, chunk: &[U]) -> Option<Advance>;

    /// Reads one chunk in slices; `pause` is called between them, and what it refuses leaves the
    /// machine as it was.
    fn advance_in_slices<U: CodeUnit, E>(
        &mut self,
        set: &StopSet,
        chunk: &[U],
        slice: usize,
        pause: impl FnMut() -> Result<(), E>,
    ) -> Result<(Advance, Option<Match>), E>;

    /// The match that the end of a text completes, if it does, with the number of held units that
    /// are released in front of it.
    fn end_of_text(&mut self) -> Option<(usize, Match)> {
        None
    }

    /// Ends a text: all that is held is released, and what comes next is matched afresh.
    fn flush(&mut self);

    /// Back to where it was made.
    fn reset(&mut self);

    /// True when a stop that ends at the very next unit would count.
    fn is_armed(&self) -> bool;

    /// From the next unit on stops count, or do not, until the next call.
    fn set_armed(&mut self, armed: bool);

    /// The number of the region the stream is in.
    fn region(&self) -> Option<usize>;

    /// Where it is, as plain values.
    fn place(&self, set: &StopSet) -> Place;

    /// The same machine somewhere else; `None` for a place where it could not be.
    fn at(self, set: &StopSet, place: Place, progress: Progress) -> Option<Self>;
}
