//! Incremental UTF-8, cut anywhere: Python's replacement rule, and surrogates that meet across
//! chunks.
//!
//! A decoder keeps what waits for its other half: up to three bytes of a character, or a high
//! surrogate of a `str` chunk, never both. Reading a chunk changes nothing: the decoder after it
//! is part of the answer, for the caller to keep or not.
//!
//! Which bytes make one U+FFFD: a maximal prefix of a well-formed sequence, as Unicode recommends,
//! as `std::str::from_utf8` reports it and as Python's incremental decoder replaces it.
#![forbid(unsafe_code)]

use std::borrow::Cow;

/// What becomes of text that is not valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Errors {
    /// U+FFFD stands for it.
    #[default]
    Replace,
    /// It is refused, and the stream is left as it was.
    Strict,
}

/// Why a chunk was refused. Except for [`Fault::Flushed`], only under [`Errors::Strict`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The stream was flushed: no more text can follow.
    Flushed,
    /// `bytes[start..end]` is not UTF-8; `bytes` begins with what had been waiting.
    Utf8 {
        /// The waiting bytes and the chunk.
        bytes: Vec<u8>,
        /// Where the bad sequence begins.
        start: usize,
        /// Where it ends.
        end: usize,
    },
    /// The unit at `at` of the text, counted from `waiting`, is a lone surrogate.
    Surrogate {
        /// The high surrogate that had been waiting, if any; the text begins with it.
        waiting: Option<u16>,
        /// Its place in the text, in units.
        at: usize,
    },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flushed => write!(f, "the stream was flushed: no more text can follow"),
            Self::Utf8 { start, end, .. } => write!(f, "bytes {start} to {end} are not UTF-8"),
            Self::Surrogate { at, .. } => write!(f, "unit {at} is a lone surrogate"),
        }
    }
}

impl std::error::Error for Fault {}

/// What a chunk says, as far as it is valid.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Decoded<T> {
    /// Its characters, with those that it completed.
    pub text: T,
    /// The decoder after it.
    pub next: Decoder,
    /// Under [`Errors::Strict`], what ended it. It only counts if no stop ends in `text`: what
    /// stands after a match is not looked at.
    pub fault: Option<Fault>,
}

/// The character that stands for what cannot be decoded.
pub(crate) const REPLACEMENT: u32 = 0xfffd;

/// What a stream has seen of a character that is not complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoder {
    bytes: [u8; 3],
    len: u8,
    /// A high surrogate of a `str` chunk, or 0.
    high: u16,
}

impl Decoder {
    /// True when nothing waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0 && self.high == 0
    }

    /// The bytes of an unfinished character.
    #[must_use]
    pub fn waiting_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The high surrogate that waits for a low one.
    #[must_use]
    pub fn waiting_surrogate(&self) -> Option<u16> {
        (self.high != 0).then_some(self.high)
    }

    /// A decoder that waits as another one did; `None` for what no decoder can be waiting for.
    #[must_use]
    pub fn restore(bytes: &[u8], high: Option<u16>) -> Option<Self> {
        if let Some(high) = high {
            let fits = bytes.is_empty() && is_high(u32::from(high));
            return fits.then_some(Self { high, ..Self::default() });
        }
        let unfinished = matches!(std::str::from_utf8(bytes), Err(e) if e.valid_up_to() == 0 && e.error_len().is_none());
        if !bytes.is_empty() && !unfinished {
            return None;
        }
        Some(Self::waiting(bytes))
    }

    fn waiting(tail: &[u8]) -> Self {
        // An incomplete character is at most three bytes long.
        let len = tail.len().min(3);
        let mut decoder = Self { len: u8::try_from(len).unwrap_or(0), ..Self::default() };
        decoder.bytes[..len].copy_from_slice(&tail[..len]);
        decoder
    }

    /// Decodes a chunk of bytes after whatever waits. The text is borrowed when it is the chunk
    /// itself.
    ///
    /// Under [`Errors::Strict`] decoding ends at the first fault.
    #[must_use]
    pub fn decode<'a>(&self, chunk: &'a [u8], errors: Errors) -> Decoded<Cow<'a, str>> {
        if self.is_empty() {
            match std::str::from_utf8(chunk) {
                Ok(text) => return Decoded { text: Cow::Borrowed(text), next: *self, fault: None },
                Err(e) if e.error_len().is_none() => {
                    let (whole, tail) = chunk.split_at(e.valid_up_to());
                    let text = Cow::Borrowed(std::str::from_utf8(whole).unwrap_or(""));
                    return Decoded { text, next: Self::waiting(tail), fault: None };
                }
                Err(_) => {}
            }
        }
        let mut text = String::with_capacity(chunk.len() + 8);
        if self.high != 0 {
            // A bytes chunk ends the wait of a high surrogate.
            if errors == Errors::Strict {
                let fault = Fault::Surrogate { waiting: self.waiting_surrogate(), at: 0 };
                return Decoded { text: Cow::Owned(text), next: *self, fault: Some(fault) };
            }
            text.push(char::REPLACEMENT_CHARACTER);
        }
        let joined: Cow<'_, [u8]> = if self.len == 0 {
            Cow::Borrowed(chunk)
        } else {
            Cow::Owned([self.waiting_bytes(), chunk].concat())
        };
        let mut next = Self::default();
        let mut at = 0;
        for piece in Pieces(&joined) {
            match piece {
                Piece::Text(valid) => {
                    text.push_str(valid);
                    at += valid.len();
                }
                Piece::Unfinished(tail) => next = Self::waiting(tail),
                Piece::Bad(bad) => {
                    if errors == Errors::Strict {
                        let fault = Fault::Utf8 {
                            start: at,
                            end: at + bad.len(),
                            bytes: joined.into_owned(),
                        };
                        return Decoded { text: Cow::Owned(text), next, fault: Some(fault) };
                    }
                    at += bad.len();
                    text.push(char::REPLACEMENT_CHARACTER);
                }
            }
        }
        Decoded { text: Cow::Owned(text), next, fault: None }
    }

    /// Reads a `str` chunk in units that may hold surrogates, after whatever waits; gives its
    /// characters.
    ///
    /// Under [`Errors::Strict`] reading ends at the first fault.
    #[must_use]
    pub fn join(&self, units: impl Iterator<Item = u32>, errors: Errors) -> Decoded<Vec<u32>> {
        let mut text = Vec::with_capacity(units.size_hint().0 + 1);
        let strict = errors == Errors::Strict;
        if self.len != 0 {
            // A `str` chunk ends an incomplete byte sequence.
            if strict {
                return Decoded { text, next: *self, fault: Some(self.unfinished()) };
            }
            text.push(REPLACEMENT);
        }
        let mut high = (self.high != 0).then_some(u32::from(self.high));
        let offset = usize::from(high.is_some());
        let lone = |at| Fault::Surrogate { waiting: self.waiting_surrogate(), at };
        for (at, unit) in units.enumerate() {
            let at = at + offset;
            let before = high.take();
            if let Some(high) = before.filter(|_| is_low(unit)) {
                text.push(0x1_0000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
                continue;
            }
            if before.is_some() {
                if strict {
                    return Decoded { text, next: Self::default(), fault: Some(lone(at - 1)) };
                }
                text.push(REPLACEMENT);
            }
            if is_high(unit) {
                high = Some(unit);
            } else if is_low(unit) {
                if strict {
                    return Decoded { text, next: Self::default(), fault: Some(lone(at)) };
                }
                text.push(REPLACEMENT);
            } else {
                text.push(unit);
            }
        }
        let high = u16::try_from(high.unwrap_or(0)).unwrap_or(0);
        Decoded { text, next: Self { high, ..Self::default() }, fault: None }
    }

    /// The end of the text: true when a U+FFFD stands for what was still waiting.
    ///
    /// # Errors
    /// Under [`Errors::Strict`], a [`Fault`] if anything waits; the decoder is unchanged then.
    pub fn finish(&mut self, errors: Errors) -> Result<bool, Fault> {
        if self.is_empty() {
            return Ok(false);
        }
        if errors == Errors::Strict {
            let lone = |waiting| Fault::Surrogate { waiting, at: 0 };
            return Err(if self.len == 0 {
                lone(self.waiting_surrogate())
            } else {
                self.unfinished()
            });
        }
        *self = Self::default();
        Ok(true)
    }

    fn unfinished(self) -> Fault {
        Fault::Utf8 { bytes: self.waiting_bytes().to_vec(), start: 0, end: self.len.into() }
    }

    /// How many bytes of `chunk` had been read when the `count`th character of its decoding (from
    /// 1) was known.
    ///
    /// Decodes again, character by character: only a match asks for it. `self` is the decoder
    /// before the chunk.
    #[must_use]
    pub fn bytes_read(&self, chunk: &[u8], count: usize) -> usize {
        let mut left = count - usize::from(self.high != 0 && count > 0);
        if left == 0 {
            return 0;
        }
        let joined = [self.waiting_bytes(), chunk].concat();
        let mut read = 0;
        for piece in Pieces(&joined) {
            match piece {
                Piece::Text(valid) => {
                    for c in valid.chars() {
                        read += c.len_utf8();
                        left -= 1;
                        if left == 0 {
                            return read.saturating_sub(self.len.into());
                        }
                    }
                }
                Piece::Bad(bad) => {
                    read += bad.len();
                    left -= 1;
                    if left == 0 {
                        return read.saturating_sub(self.len.into());
                    }
                }
                Piece::Unfinished(_) => {}
            }
        }
        chunk.len()
    }

    /// How many units of a `str` chunk had been read when the `count`th character (from 1) was
    /// known.
    #[must_use]
    pub fn units_read(&self, units: impl Iterator<Item = u32>, count: usize) -> usize {
        let mut decoder = *self;
        let mut known = 0;
        if decoder.len != 0 && count > 0 {
            // The U+FFFD for the bytes is known before the first unit.
            known += 1;
            decoder = Self::default();
        }
        if known >= count {
            return 0;
        }
        let mut read = 0;
        for unit in units {
            let lone = decoder.high != 0 && !is_low(unit);
            let joined = decoder.join(std::iter::once(unit), Errors::Replace);
            known += joined.text.len();
            decoder = joined.next;
            if lone && known - usize::from(decoder.high == 0) >= count {
                // The unit only showed that the one before it is alone; it is not part of that
                // character.
                return read;
            }
            read += 1;
            if known >= count {
                return read;
            }
        }
        read
    }
}

fn is_high(unit: u32) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

fn is_low(unit: u32) -> bool {
    (0xdc00..0xe000).contains(&unit)
}

/// Bytes, split into what is valid, what is not, and what may become valid.
struct Pieces<'a>(&'a [u8]);

enum Piece<'a> {
    Text(&'a str),
    Bad(&'a [u8]),
    Unfinished(&'a [u8]),
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.0.is_empty() {
            return None;
        }
        let (valid, bad) = match std::str::from_utf8(self.0) {
            Ok(text) => {
                self.0 = &[];
                return Some(Piece::Text(text));
            }
            Err(e) => (e.valid_up_to(), e.error_len()),
        };
        if valid > 0 {
            let (text, rest) = self.0.split_at(valid);
            self.0 = rest;
            return Some(Piece::Text(std::str::from_utf8(text).unwrap_or("")));
        }
        let (piece, rest) = self.0.split_at(bad.unwrap_or(self.0.len()));
        self.0 = rest;
        Some(if bad.is_some() { Piece::Bad(piece) } else { Piece::Unfinished(piece) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte string over bytes that meet each edge of the UTF-8 table, at every cutting,
    /// against the standard library.
    #[test]
    fn every_cutting_of_short_byte_strings_decodes_alike() {
        let alphabet = [0x41, 0x80, 0x9f, 0xa0, 0xbf, 0xc2, 0xe0, 0xe2, 0xed, 0xf0, 0xf4, 0xff];
        let mut cases = 0;
        for len in 0..=4u32 {
            for number in 0..alphabet.len().pow(len) {
                let bytes: Vec<u8> = (0..len)
                    .map(|k| alphabet[number / alphabet.len().pow(k) % alphabet.len()])
                    .collect();
                let len = bytes.len();
                let whole = String::from_utf8_lossy(&bytes);
                for cuts in 0..1u32 << bytes.len().saturating_sub(1) {
                    let mut decoder = Decoder::default();
                    let mut text = String::new();
                    let mut from = 0;
                    for to in 1..=len {
                        if to == len || cuts >> (to - 1) & 1 == 1 {
                            let before = decoder;
                            let Decoded { text: piece, next, .. } =
                                decoder.decode(&bytes[from..to], Errors::Replace);
                            decoder = next;
                            for k in 1..=piece.chars().count() {
                                assert!(before.bytes_read(&bytes[from..to], k) <= to - from);
                            }
                            text.push_str(&piece);
                            from = to;
                        }
                    }
                    if decoder.finish(Errors::Replace).unwrap() {
                        text.push('\u{fffd}');
                    }
                    assert_eq!(text, whole, "{bytes:x?} cut {cuts:b}");
                    cases += 1;
                }
            }
        }
        assert!(cases > 150_000, "{cases}");
    }

    #[test]
    fn strict_faults_name_the_place() {
        let decoder = Decoder::default().decode(b"ab\xe2\x82", Errors::Strict).next;
        let bad = decoder.decode(b"x", Errors::Strict);
        assert_eq!(bad.fault, Some(Fault::Utf8 { bytes: b"\xe2\x82x".to_vec(), start: 0, end: 2 }));
        let good = decoder.decode(b"\xac!\xff", Errors::Strict);
        assert_eq!((&*good.text, good.fault.is_some()), ("€!", true));
        let decoder = Decoder::default().join([0x61, 0xd83d].into_iter(), Errors::Strict).next;
        let bad = decoder.join([0x62].into_iter(), Errors::Strict);
        assert_eq!(bad.fault, Some(Fault::Surrogate { waiting: Some(0xd83d), at: 0 }));
        assert_eq!(decoder.join([0xde00, 0x62].into_iter(), Errors::Strict).text, [0x1f600, 0x62]);
    }

    #[test]
    fn surrogates_meet_stay_alone_and_end() {
        let joined = Decoder::default()
            .join([0xdc00, 0xd800, 0xd83d, 0xde00, 0xd801].into_iter(), Errors::Replace);
        assert_eq!(joined.text, [REPLACEMENT, REPLACEMENT, 0x1f600]);
        assert_eq!(joined.next.decode(b"a", Errors::Replace).text, "\u{fffd}a");
        let decoder = Decoder::default().decode(b"\xf0\x9f", Errors::Replace).next;
        let mut joined = decoder.join([0xd83d].into_iter(), Errors::Replace);
        assert_eq!(joined.text, [REPLACEMENT]);
        assert!(joined.next.finish(Errors::Replace).unwrap() && joined.next.is_empty());
    }

    #[test]
    fn how_much_of_a_chunk_a_character_took() {
        let start = Decoder::default();
        // A lone high surrogate, shown alone by the `x` after it, which is not part of it.
        let units = [0xd83d, u32::from('x'), 0xd83d, 0xde00, u32::from('y')];
        let read: Vec<usize> =
            (1..=4).map(|k| start.units_read(units.iter().copied(), k)).collect();
        assert_eq!(read, [1, 2, 4, 5]);
        let waiting = Decoder::restore(&[], Some(0xd83d)).unwrap();
        assert_eq!(waiting.units_read([0xde00, 0x61].into_iter(), 1), 1);
        assert_eq!(waiting.units_read([0x61].into_iter(), 1), 0);
        let unfinished = Decoder::restore(b"\xe2\x82", None).unwrap();
        assert_eq!(unfinished.bytes_read(b"\xacA", 1), 1);
        assert_eq!(unfinished.bytes_read(b"AB", 1), 0);
        assert_eq!(unfinished.bytes_read(b"AB", 2), 1);
        assert_eq!(unfinished.units_read([0x61].into_iter(), 1), 0);
        assert_eq!(unfinished.units_read([0x61].into_iter(), 2), 1);
    }

    #[test]
    fn only_what_can_wait_is_restored() {
        for (bytes, high) in [
            (b"a".as_slice(), None),
            (b"\xe2\x82\xac", None),
            (b"\xff", None),
            (b"", Some(0xdc00)),
            (b"\xe2", Some(0xd800)),
        ] {
            assert_eq!(Decoder::restore(bytes, high), None, "{bytes:x?} {high:x?}");
        }
    }
}
