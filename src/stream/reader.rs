//! A text as it comes in: decoder, matcher, `errors` and the end, in one.
//!
//! The rules that decoding and matching have with each other are here and nowhere else:
//!
//! * what stands after a match is not decoded, so a fault there is none;
//! * a `str` chunk ends the wait of an unfinished byte sequence, a bytes chunk that of a high
//!   surrogate;
//! * what still waits when the text ends is one more character, U+FFFD, of the last chunk;
//! * a call that is refused leaves everything as it was.
//!
//! A reader counts characters and leaves the caller's text alone, whatever its storage: Rust
//! strings, Python's strings, the insides of JSON strings.
#![forbid(unsafe_code)]

use std::borrow::Cow;

use super::{Advance, Held, Match, Matcher, Snapshot, StreamOptions};
use crate::automaton::{CodeUnit, UnitKind};
use crate::decode::{Decoded, Decoder, Errors, Fault, REPLACEMENT};
use crate::error::Error;
use crate::set::StopSet;

/// `pause` is called after so many units of a chunk.
const SLICE: usize = 1 << 20;

/// One response of text, or of raw bytes, without any text of its own.
#[derive(Clone, Debug)]
pub struct Reader {
    matcher: Matcher,
    decoder: Decoder,
    errors: Errors,
    raw: bool,
    flushed: bool,
}

/// What one chunk gave. The text to send is [`Reader::released`], then the first
/// `advance.passed` characters of `text`.
#[derive(Clone, Debug)]
#[must_use = "text that is not sent on is lost"]
pub struct Step<T> {
    /// The characters that the chunk completed.
    pub text: T,
    /// How many of them may be emitted, and of those held before.
    pub advance: Advance,
    /// What was held before.
    pub held: Held,
    /// If a stop ended in this chunk: how many units or bytes of the raw chunk had been read then.
    pub read: Option<usize>,
}

/// What the end of a text gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "text that is not sent on is lost"]
pub struct End {
    /// The text to send, as (UTF-8) bytes.
    pub text: Vec<u8>,
    /// The same in units.
    pub count: usize,
    /// A stop ended in the U+FFFD of an unfinished character, or the end of the text completed one.
    pub matched: bool,
}

impl Reader {
    /// A reader of text.
    ///
    /// # Errors
    /// When a stop was given as bytes, or an option contradicts the set.
    pub fn text(set: StopSet, options: &StreamOptions) -> Result<Self, Error> {
        Ok(Self::new(Matcher::text(set, options)?, options.errors))
    }

    /// A reader of raw bytes.
    ///
    /// # Errors
    /// When an option contradicts the set.
    pub fn bytes(set: StopSet, options: &StreamOptions) -> Result<Self, Error> {
        Ok(Self::new(Matcher::bytes(set, options)?, options.errors))
    }

    fn new(matcher: Matcher, errors: Errors) -> Self {
        let raw = matcher.is_raw();
        Self { matcher, decoder: Decoder::default(), errors, raw, flushed: false }
    }

    /// Reads a whole string.
    ///
    /// # Errors
    /// A [`Fault`], or whatever `pause` returns.
    #[inline]
    pub fn feed_str<'a, E: From<Fault>>(
        &mut self,
        chunk: &'a str,
        pause: impl FnMut() -> Result<(), E>,
    ) -> Result<Step<Cow<'a, str>>, E> {
        if self.takes_text() {
            return self.read_str(Cow::Borrowed(chunk), pause, |read| prefix(chunk, read).len());
        }
        if self.is_over()? {
            return Ok(self.nothing(Cow::Borrowed("")));
        }
        let before = self.decoder;
        let chars = || chunk.chars().map(u32::from);
        let Decoded { text, next, fault } = before.join(chars(), self.errors);
        let text: String = text.into_iter().filter_map(char::from_u32).collect();
        self.read_decoded(next, fault, |reader| {
            reader.read_str(Cow::Owned(text), pause, |read| {
                prefix(chunk, before.units_read(chars(), read)).len()
            })
        })
    }

    /// Reads UTF-8 cut anywhere.
    ///
    /// # Errors
    /// A [`Fault`], or whatever `pause` returns.
    pub fn feed_utf8<'a, E: From<Fault>>(
        &mut self,
        chunk: &'a [u8],
        pause: impl FnMut() -> Result<(), E>,
    ) -> Result<Step<Cow<'a, str>>, E> {
        if self.is_over()? {
            return Ok(self.nothing(Cow::Borrowed("")));
        }
        let before = self.decoder;
        let Decoded { text, next, fault } = before.decode(chunk, self.errors);
        self.read_decoded(next, fault, |reader| {
            reader.read_str(text, pause, |read| before.bytes_read(chunk, read))
        })
    }

    /// Reads text in units that may hold surrogates. `text` is `None` if its characters are the
    /// units themselves.
    ///
    /// # Errors
    /// A [`Fault`], or whatever `pause` returns.
    pub fn feed_units<U: CodeUnit, E: From<Fault>>(
        &mut self,
        chunk: &[U],
        pause: impl FnMut() -> Result<(), E>,
    ) -> Result<Step<Option<Vec<u32>>>, E> {
        if self.takes_text() && !U::has_surrogate(chunk) {
            let (held, advance) = self.advance(chunk, pause)?;
            return Ok(Step { text: None, advance, held, read: self.read() });
        }
        if self.is_over()? {
            return Ok(self.nothing(Some(Vec::new())));
        }
        let before = self.decoder;
        let units = || chunk.iter().map(|unit| unit.code());
        let Decoded { text, next, fault } = before.join(units(), self.errors);
        self.read_decoded(next, fault, |reader| {
            let (held, advance) = reader.advance(&text, pause)?;
            let read = reader.read().map(|read| before.units_read(units(), read));
            Ok(Step { text: Some(text), advance, held, read })
        })
    }

    /// Reads bytes as they are, for a reader made by [`Reader::bytes`].
    ///
    /// # Errors
    /// Whatever `pause` returns, or [`Fault::Flushed`].
    pub fn feed_raw<E: From<Fault>>(
        &mut self,
        chunk: &[u8],
        pause: impl FnMut() -> Result<(), E>,
    ) -> Result<Step<()>, E> {
        if self.is_over()? {
            return Ok(self.nothing(()));
        }
        let (held, advance) = self.advance(chunk, pause)?;
        Ok(Step { text: (), advance, held, read: self.read() })
    }

    /// Reads units without surrogates in which no stop ends, in front of which nothing waits:
    /// `None`, with nothing changed, else.
    ///
    /// The usual chunk, for callers whose way of handling all others is slow. The caller has asked
    /// [`Reader::takes_text`] and looked for surrogates.
    #[expect(clippy::inline_always, reason = "one call more elsewhere costs a token 6 % else")]
    #[inline(always)]
    pub fn advance_unmatched<U: CodeUnit>(&mut self, chunk: &[U]) -> Option<Advance> {
        self.matcher.advance_unmatched(chunk)
    }

    /// True when characters can be read as they are: a text that is not over, and nothing waits.
    #[inline]
    #[must_use]
    pub fn takes_text(&self) -> bool {
        !self.raw && !self.flushed && self.matcher.matched().is_none() && self.decoder.is_empty()
    }

    /// Ends the text. After it every chunk is refused.
    ///
    /// # Errors
    /// Under [`Errors::Strict`], a [`Fault`] if something waits; the reader is unchanged then.
    pub fn flush(&mut self) -> Result<End, Fault> {
        if self.flushed {
            return Ok(End::default());
        }
        let end = self.pause()?;
        self.flushed = self.matcher.matched().is_none();
        Ok(end)
    }

    /// The same for a text that may go on: what comes next is matched afresh, and offsets are
    /// counted on.
    ///
    /// # Errors
    /// As [`Reader::flush`].
    pub fn pause(&mut self) -> Result<End, Fault> {
        if self.matcher.matched().is_some() {
            return Ok(End::default());
        }
        let waited = self.decoder.finish(self.errors)?;
        let (mut text, mut count) = (self.matcher.held_bytes().to_vec(), self.matcher.held_len());
        if waited {
            let held = self.matcher.held();
            let Advance { released, passed } = self.matcher.advance_last_chunk(REPLACEMENT);
            let matched = self.matcher.matched().is_some();
            if matched {
                text.truncate(self.matcher.released(held, released).len());
                count = released + passed;
            } else {
                count += 1;
            }
            if passed > 0 || !matched {
                text.extend_from_slice("\u{fffd}".as_bytes());
            }
            if matched {
                return Ok(End { text, count, matched });
            }
        }
        let held = self.matcher.held_len();
        if let Some(released) = self.matcher.end_of_text() {
            count -= held - released;
            let kind = if self.raw { UnitKind::Bytes } else { UnitKind::Characters };
            text.truncate(kind.prefix_len(&text, count));
            return Ok(End { text, count, matched: true });
        }
        let _ = self.matcher.flush();
        Ok(End { text, count, matched: false })
    }

    /// Forgets what is held and what waits, as if it had never come: only positions are kept.
    pub fn drop_held(&mut self) {
        self.decoder = Decoder::default();
        let _ = self.matcher.flush();
    }

    /// What a step released of the text held before it, as (UTF-8) bytes.
    #[inline]
    #[must_use]
    pub fn released(&self, held: Held, advance: Advance) -> &[u8] {
        self.matcher.released(held, advance.released)
    }

    /// A reference to what is held now, for [`Reader::released`] after the next chunk.
    #[inline]
    #[must_use]
    pub fn held(&self) -> Held {
        self.matcher.held()
    }

    /// The matcher inside: counters, held text, region, arming.
    #[inline]
    #[must_use]
    pub fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    /// What waits for its other half.
    #[must_use]
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// What becomes of text that is not valid.
    #[must_use]
    pub fn errors(&self) -> Errors {
        self.errors
    }

    /// True for a reader of raw bytes.
    #[inline]
    #[must_use]
    pub fn is_raw(&self) -> bool {
        self.raw
    }

    /// True after [`Reader::flush`], unless a stop had ended the text.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.flushed
    }

    /// The match that ended the text, if one did.
    #[inline]
    #[must_use]
    pub fn matched(&self) -> Option<&Match> {
        self.matcher.matched()
    }

    /// From the next character on stops count, or do not, until the next call. Nothing once the
    /// text is over.
    pub fn set_armed(&mut self, armed: bool) {
        if !self.flushed {
            self.matcher.set_armed(armed);
        }
    }

    /// Back to the state in which it was made.
    pub fn reset(&mut self) {
        self.matcher.reset();
        self.decoder = Decoder::default();
        self.flushed = false;
    }

    /// Goes on from where another reader of the same set and options was; `None` if none could be
    /// there.
    #[must_use]
    pub fn restore(self, snapshot: Snapshot, decoder: Decoder, flushed: bool) -> Option<Self> {
        let matcher = self.matcher.restore(snapshot)?;
        let over = flushed || matcher.matched().is_some();
        let at_end = matcher.held_len() == 0 && matcher.matched().is_none();
        let sound = (at_end || !flushed) && (decoder.is_empty() || !(over || self.raw));
        sound.then_some(Self { matcher, decoder, flushed, ..self })
    }

    /// True after a match; refused after `flush`.
    fn is_over(&self) -> Result<bool, Fault> {
        if self.flushed { Err(Fault::Flushed) } else { Ok(self.matcher.matched().is_some()) }
    }

    fn nothing<T>(&self, text: T) -> Step<T> {
        Step { text, advance: Advance::default(), held: self.held(), read: None }
    }

    /// Units of the last chunk up to and with the stop, if one ended in it.
    fn read(&self) -> Option<usize> {
        self.matcher.matched().map(|found| found.read)
    }

    /// Characters in whatever storage, as far as they are valid.
    #[inline]
    fn advance<U: CodeUnit, E>(
        &mut self,
        units: &[U],
        pause: impl FnMut() -> Result<(), E>,
    ) -> Result<(Held, Advance), E> {
        let held = self.matcher.held();
        Ok((held, self.matcher.advance_in_slices(units, SLICE, pause)?))
    }

    #[inline]
    fn read_str<'a, E>(
        &mut self,
        text: Cow<'a, str>,
        pause: impl FnMut() -> Result<(), E>,
        raw: impl FnOnce(usize) -> usize,
    ) -> Result<Step<Cow<'a, str>>, E> {
        let (held, advance) = if text.is_ascii() {
            self.advance(text.as_bytes(), pause)?
        } else {
            let codes: Vec<u32> = text.chars().map(u32::from).collect();
            self.advance(&codes, pause)?
        };
        Ok(Step { advance, held, read: self.read().map(raw), text })
    }

    /// Reads what a chunk says as far as it is valid. Only if no stop ends in that does it matter
    /// what came after.
    fn read_decoded<T, E: From<Fault>>(
        &mut self,
        next: Decoder,
        fault: Option<Fault>,
        read: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let before = fault.is_some().then(|| self.matcher.clone());
        let step = read(self)?;
        if self.matcher.matched().is_some() {
            self.decoder = Decoder::default();
        } else if let (Some(fault), Some(before)) = (fault, before) {
            self.matcher = before;
            return Err(fault.into());
        } else {
            self.decoder = next;
        }
        Ok(step)
    }
}

/// The first `count` characters of `text`. As many bytes, if they are ASCII: which is seen at many
/// bytes a cycle, while counting characters is slower than the search for stops.
pub(crate) fn prefix(text: &str, count: usize) -> &str {
    if let Some(head) = text.get(..count).filter(|head| head.is_ascii()) {
        return head;
    }
    text.char_indices().nth(count).map_or(text, |(at, _)| &text[..at])
}
