//! Incremental UTF-8, cut anywhere: Python's replacement rule, and surrogates that meet across chunks.
//!
//! A decoder keeps what waits for its other half: up to three bytes of a character, or a high surrogate of a `str` chunk,
//! never both. Every call is transactional: with [`Errors::Strict`] a fault leaves the decoder as it was.
//!
//! Which bytes make one U+FFFD: a maximal prefix of a well-formed sequence, as Unicode recommends, as `std::str::from_utf8`
//! reports it and as Python's incremental decoder replaces it.
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

/// Why a chunk was refused under [`Errors::Strict`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `bytes[start..end]` is not UTF-8; `bytes` begins with what had been waiting.
    Utf8 {
        /// The waiting bytes and the chunk.
        bytes: Vec<u8>,
        /// Where the bad sequence begins.
        start: usize,
        /// Where it ends.
        end: usize,
    },
    /// The unit at `at` of the text, counted from `waiting`, is half of a surrogate pair without its other half.
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
            Self::Utf8 { start, end, .. } => write!(f, "bytes {start} to {end} are not UTF-8"),
            Self::Surrogate { at, .. } => write!(f, "unit {at} is half of a surrogate pair"),
        }
    }
}

impl std::error::Error for Fault {}

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
        let mut decoder = Self::default();
        if let Some(high) = high {
            let fits = bytes.is_empty() && is_high(u32::from(high));
            decoder.high = high;
            return fits.then_some(decoder);
        }
        let unfinished = matches!(str::from_utf8(bytes), Err(e) if e.valid_up_to() == 0 && e.error_len().is_none());
        if !bytes.is_empty() && !unfinished {
            return None;
        }
        decoder.wait(bytes);
        Some(decoder)
    }

    fn wait(&mut self, tail: &[u8]) {
        // An incomplete character is at most three bytes long.
        let len = tail.len().min(3);
        self.bytes[..len].copy_from_slice(&tail[..len]);
        self.len = u8::try_from(len).unwrap_or(0);
    }

    /// Decodes a chunk of bytes. What is complete comes back; borrowed when it is the chunk itself.
    ///
    /// # Errors
    /// Under [`Errors::Strict`], a [`Fault`] for the first bad sequence; the decoder is unchanged then.
    pub fn decode<'a>(&mut self, chunk: &'a [u8], errors: Errors) -> Result<Cow<'a, str>, Fault> {
        if self.is_empty() {
            match str::from_utf8(chunk) {
                Ok(text) => return Ok(Cow::Borrowed(text)),
                Err(e) if e.error_len().is_none() => {
                    let (whole, tail) = chunk.split_at(e.valid_up_to());
                    self.wait(tail);
                    return Ok(Cow::Borrowed(str::from_utf8(whole).unwrap_or("")));
                }
                Err(_) => {}
            }
        }
        let mut text = String::with_capacity(chunk.len() + 8);
        if self.high != 0 {
            // A bytes chunk ends the wait of a high surrogate.
            self.lone(errors, 0)?;
            text.push(char::REPLACEMENT_CHARACTER);
        }
        let joined: Cow<'_, [u8]> =
            if self.len == 0 { Cow::Borrowed(chunk) } else { Cow::Owned([self.waiting_bytes(), chunk].concat()) };
        let mut next = Self::default();
        for piece in Pieces(&joined) {
            match piece {
                Piece::Text(valid) => text.push_str(valid),
                Piece::Unfinished(tail) => next.wait(tail),
                Piece::Bad(bad) => {
                    if errors == Errors::Strict {
                        let start = bad.as_ptr() as usize - joined.as_ptr() as usize;
                        let end = start + bad.len();
                        return Err(Fault::Utf8 { bytes: joined.into_owned(), start, end });
                    }
                    text.push(char::REPLACEMENT_CHARACTER);
                }
            }
        }
        *self = next;
        Ok(Cow::Owned(text))
    }

    /// Reads a `str` chunk in units that may hold surrogates, behind whatever waits; gives its characters.
    ///
    /// # Errors
    /// Under [`Errors::Strict`], a [`Fault`]; the decoder is unchanged then.
    pub fn join(&mut self, units: impl Iterator<Item = u32>, errors: Errors) -> Result<Vec<u32>, Fault> {
        let mut text = Vec::with_capacity(units.size_hint().0 + 1);
        if self.len != 0 {
            // A `str` chunk ends an incomplete byte sequence.
            self.unfinished(errors)?;
            text.push(REPLACEMENT);
        }
        let mut high = (self.high != 0).then_some(u32::from(self.high));
        let offset = usize::from(high.is_some());
        for (at, unit) in units.enumerate() {
            let at = at + offset;
            let before = high.take();
            match (before, unit) {
                (Some(high), low) if is_low(low) => text.push(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)),
                (before, unit) => {
                    if before.is_some() {
                        self.lone(errors, at - 1)?;
                        text.push(REPLACEMENT);
                    }
                    if is_high(unit) {
                        high = Some(unit);
                    } else if is_low(unit) {
                        self.lone(errors, at)?;
                        text.push(REPLACEMENT);
                    } else {
                        text.push(unit);
                    }
                }
            }
        }
        *self = Self { high: u16::try_from(high.unwrap_or(0)).unwrap_or(0), ..Self::default() };
        Ok(text)
    }

    /// The end of the text: true when a U+FFFD stands for what was still waiting.
    ///
    /// # Errors
    /// Under [`Errors::Strict`], a [`Fault`] if anything waits; the decoder is unchanged then.
    pub fn finish(&mut self, errors: Errors) -> Result<bool, Fault> {
        if self.is_empty() {
            return Ok(false);
        }
        if self.len != 0 {
            self.unfinished(errors)?;
        } else {
            self.lone(errors, 0)?;
        }
        *self = Self::default();
        Ok(true)
    }

    fn unfinished(&self, errors: Errors) -> Result<(), Fault> {
        match errors {
            Errors::Replace => Ok(()),
            Errors::Strict => Err(Fault::Utf8 { bytes: self.waiting_bytes().to_vec(), start: 0, end: self.len.into() }),
        }
    }

    fn lone(&self, errors: Errors, at: usize) -> Result<(), Fault> {
        match errors {
            Errors::Replace => Ok(()),
            Errors::Strict => Err(Fault::Surrogate { waiting: self.waiting_surrogate(), at }),
        }
    }

    /// How many bytes of `chunk` had been read when the `count`th character of its decoding (from 1) was known.
    ///
    /// Decodes again, character by character: only a match asks for it. `self` is the decoder before the chunk.
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

    /// How many units of a `str` chunk had been read when the `count`th character (from 1) was known.
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
            known += decoder.join(std::iter::once(unit), Errors::Replace).map_or(0, |text| text.len());
            if lone && known - usize::from(decoder.high == 0) >= count {
                // The unit only showed that the one before it stays alone; it is not part of that character.
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
        let (valid, bad) = match str::from_utf8(self.0) {
            Ok(text) => {
                self.0 = &[];
                return Some(Piece::Text(text));
            }
            Err(e) => (e.valid_up_to(), e.error_len()),
        };
        if valid > 0 {
            let (text, rest) = self.0.split_at(valid);
            self.0 = rest;
            return Some(Piece::Text(str::from_utf8(text).unwrap_or("")));
        }
        let (piece, rest) = self.0.split_at(bad.unwrap_or(self.0.len()));
        self.0 = rest;
        Some(if bad.is_some() { Piece::Bad(piece) } else { Piece::Unfinished(piece) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte string over bytes that meet each edge of the UTF-8 table, at every cutting, against the standard library.
    #[test]
    fn every_cutting_of_short_byte_strings_decodes_alike() {
        let alphabet = [0x41, 0x80, 0x9f, 0xa0, 0xbf, 0xc2, 0xe0, 0xe2, 0xed, 0xf0, 0xf4, 0xff];
        let mut cases = 0;
        for len in 0..=4usize {
            for number in 0..alphabet.len().pow(u32::try_from(len).unwrap()) {
                let bytes: Vec<u8> = (0..len).map(|k| alphabet[number / alphabet.len().pow(k as u32) % alphabet.len()]).collect();
                let whole = String::from_utf8_lossy(&bytes);
                for cuts in 0..1u32 << len.saturating_sub(1) {
                    let mut decoder = Decoder::default();
                    let mut text = String::new();
                    let mut from = 0;
                    for to in 1..=len {
                        if to == len || cuts >> (to - 1) & 1 == 1 {
                            let before = decoder;
                            let piece = decoder.decode(&bytes[from..to], Errors::Replace).unwrap();
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
    fn strict_faults_name_the_place_and_change_nothing() {
        let mut decoder = Decoder::default();
        decoder.decode(b"ab\xe2\x82", Errors::Strict).unwrap();
        let before = decoder;
        let fault = decoder.decode(b"x", Errors::Strict).unwrap_err();
        assert_eq!(fault, Fault::Utf8 { bytes: b"\xe2\x82x".to_vec(), start: 0, end: 2 });
        assert_eq!(decoder, before);
        assert_eq!(decoder.decode(b"\xac", Errors::Strict).unwrap(), "€");
        decoder.join([0x61, 0xd83d].into_iter(), Errors::Strict).unwrap();
        assert_eq!(
            decoder.join([0x62].into_iter(), Errors::Strict).unwrap_err(),
            Fault::Surrogate { waiting: Some(0xd83d), at: 0 }
        );
        assert_eq!(decoder.join([0xde00, 0x62].into_iter(), Errors::Strict).unwrap(), [0x1f600, 0x62]);
    }

    #[test]
    fn surrogates_meet_stay_alone_and_end() {
        let mut decoder = Decoder::default();
        let text = decoder.join([0xdc00, 0xd800, 0xd83d, 0xde00, 0xd801].into_iter(), Errors::Replace).unwrap();
        assert_eq!(text, [REPLACEMENT, REPLACEMENT, 0x1f600]);
        assert_eq!(decoder.decode(b"a", Errors::Replace).unwrap(), "\u{fffd}a");
        decoder.decode(b"\xf0\x9f", Errors::Replace).unwrap();
        assert_eq!(decoder.join([0xd83d].into_iter(), Errors::Replace).unwrap(), [REPLACEMENT]);
        assert!(decoder.finish(Errors::Replace).unwrap() && decoder.is_empty());
    }

    #[test]
    fn how_much_of_a_chunk_a_character_took() {
        let start = Decoder::default();
        // A lone high surrogate, shown alone by the `x` behind it, which is not part of it.
        let units = [0xd83d, u32::from('x'), 0xd83d, 0xde00, u32::from('y')];
        let read: Vec<usize> = (1..=4).map(|k| start.units_read(units.iter().copied(), k)).collect();
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
        for (bytes, high) in
            [(b"a".as_slice(), None), (b"\xe2\x82\xac", None), (b"\xff", None), (b"", Some(0xdc00)), (b"\xe2", Some(0xd800))]
        {
            assert_eq!(Decoder::restore(bytes, high), None, "{bytes:x?} {high:x?}");
        }
    }
}
