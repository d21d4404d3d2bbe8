//! [`Stream`] takes text, or UTF-8 cut anywhere, and appends what may be emitted to a `String`;
//! [`ByteStream`] is its raw twin.
#![forbid(unsafe_code)]

use std::borrow::Cow;

use super::reader::prefix;
use super::{Match, Matcher, Reader, Step, StreamOptions};
use crate::decode::Fault;
use crate::error::Error;
use crate::set::StopSet;

impl StopSet {
    /// A stream of text with the default options: one response.
    ///
    /// # Errors
    /// When a stop was given as bytes, naming it.
    pub fn stream(&self) -> Result<Stream, Error> {
        Stream::new(self.clone(), &StreamOptions::default())
    }
}

/// Nothing to do between the slices of a long chunk.
#[inline]
#[expect(clippy::unnecessary_wraps, reason = "others can be interrupted there")]
fn go_on() -> Result<(), Fault> {
    Ok(())
}

/// One response of text.
///
/// A copy goes on independently of the original.
#[derive(Clone, Debug)]
pub struct Stream {
    reader: Reader,
}

impl Stream {
    /// A stream of `set`.
    ///
    /// # Errors
    /// When a stop was given as bytes, or an option contradicts the set.
    pub fn new(set: StopSet, options: &StreamOptions) -> Result<Self, Error> {
        Ok(Self { reader: Reader::text(set, options)? })
    }

    /// Reads text and appends to `out` what may be emitted. After a match it appends nothing and
    /// gives the same match.
    ///
    /// # Errors
    /// [`Fault::Flushed`] after [`Stream::flush`]. Under [`Errors::Strict`](crate::Errors::Strict),
    /// when an unfinished character of [`Stream::feed_bytes`] was waiting: text ends it. The stream
    /// is left as it was.
    #[inline]
    pub fn feed(&mut self, chunk: &str, out: &mut String) -> Result<Option<Match>, Fault> {
        let step = self.reader.feed_str(chunk, go_on)?;
        Ok(self.emit(&step, out))
    }

    /// Reads UTF-8 cut anywhere; an incomplete character waits for the next chunk.
    ///
    /// ```
    /// let mut stream = holdback::StopSet::new(["。"])?.stream()?;
    /// let mut out = String::new();
    /// for byte in "終わり".bytes() {
    ///     assert!(stream.feed_bytes(&[byte], &mut out)?.is_none());
    /// }
    /// assert!(stream.feed_bytes("。".as_bytes(), &mut out)?.is_some());
    /// assert_eq!(out, "終わり");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Fault::Flushed`] after [`Stream::flush`]. Under [`Errors::Strict`](crate::Errors::Strict),
    /// for bytes that are not UTF-8; what stands after a stop is not looked at. The stream is left
    /// as it was.
    pub fn feed_bytes(&mut self, chunk: &[u8], out: &mut String) -> Result<Option<Match>, Fault> {
        let step = self.reader.feed_utf8(chunk, go_on)?;
        Ok(self.emit(&step, out))
    }

    fn emit(&self, step: &Step<Cow<'_, str>>, out: &mut String) -> Option<Match> {
        out.push_str(utf8(self.reader.released(step.held, step.advance)));
        out.push_str(prefix(&step.text, step.advance.passed));
        self.matched().cloned()
    }

    /// Ends the text: appends all that was held, and U+FFFD for a character that never became
    /// complete. If that completes a stop, the match is given. After a match, and the second time,
    /// it appends nothing.
    ///
    /// # Errors
    /// Under [`Errors::Strict`](crate::Errors::Strict), for a character that never became complete;
    /// the stream is left as it was, and [`Stream::held_text`] has what was held.
    pub fn flush(&mut self, out: &mut String) -> Result<Option<Match>, Fault> {
        let end = self.reader.flush()?;
        out.push_str(utf8(&end.text));
        Ok(if end.matched { self.matched().cloned() } else { None })
    }

    /// What is held back now.
    #[must_use]
    pub fn held_text(&self) -> &str {
        utf8(self.matcher().held_bytes())
    }

    /// Characters held back now.
    #[must_use]
    pub fn held_len(&self) -> usize {
        self.matcher().held_len()
    }

    fn matcher(&self) -> &Matcher {
        self.reader.matcher()
    }

    /// True when a stop that ends at the very next character would count.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.matcher().is_armed()
    }

    /// The number of the region of [`Scope::ignore_inside`](crate::Scope) that the stream is in.
    #[must_use]
    pub fn region(&self) -> Option<usize> {
        self.matcher().region()
    }

    /// Characters read, over all chunks.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.matcher().seen()
    }

    /// From the next character on stops count, or do not, until the next call. Nothing once the
    /// stream is over.
    pub fn set_armed(&mut self, armed: bool) {
        self.reader.set_armed(armed);
    }

    /// The match that ended the stream, if one did.
    #[must_use]
    pub fn matched(&self) -> Option<&Match> {
        self.reader.matched()
    }
}

/// One response of raw bytes, where stops may be any bytes.
///
/// A copy goes on independently of the original.
#[derive(Clone, Debug)]
pub struct ByteStream {
    reader: Reader,
}

impl ByteStream {
    /// A raw stream of `set`.
    ///
    /// # Errors
    /// When an option contradicts the set.
    pub fn new(set: StopSet, options: &StreamOptions) -> Result<Self, Error> {
        Ok(Self { reader: Reader::bytes(set, options)? })
    }

    /// Reads bytes and appends to `out` what may be emitted. After a match it appends nothing and
    /// gives the same match.
    ///
    /// # Errors
    /// [`Fault::Flushed`] after [`ByteStream::flush`], and nothing else.
    pub fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<Option<Match>, Fault> {
        let Step { held, advance, .. } = self.reader.feed_raw(chunk, go_on)?;
        out.extend_from_slice(self.reader.released(held, advance));
        out.extend_from_slice(&chunk[..advance.passed]);
        Ok(self.matched().cloned())
    }

    /// Ends the stream: appends all that was held.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        // Bytes never wait for others, so there is nothing to refuse.
        out.extend(self.reader.flush().unwrap_or_default().text);
    }

    /// What is held back now.
    #[must_use]
    pub fn held(&self) -> &[u8] {
        self.matcher().held_bytes()
    }

    fn matcher(&self) -> &Matcher {
        self.reader.matcher()
    }

    /// True when a stop that ends at the very next byte would count.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.matcher().is_armed()
    }

    /// The number of the region of [`Scope::ignore_inside`](crate::Scope) that the stream is in.
    #[must_use]
    pub fn region(&self) -> Option<usize> {
        self.matcher().region()
    }

    /// Bytes read, over all chunks.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.matcher().seen()
    }

    /// From the next byte on stops count, or do not, until the next call. Nothing once the stream
    /// is over.
    pub fn set_armed(&mut self, armed: bool) {
        self.reader.set_armed(armed);
    }

    /// The match that ended the stream, if one did.
    #[must_use]
    pub fn matched(&self) -> Option<&Match> {
        self.reader.matched()
    }
}

/// Held text is whole characters.
fn utf8(held: &[u8]) -> &str {
    std::str::from_utf8(held).unwrap_or("")
}
