//! Text inside a JSON string, kept in the very escapes it came in.
//!
//! A matcher wants characters; what leaves should be the bytes that arrived. So a string is decoded
//! for the matcher only, and cut in its raw form by counting characters. Nothing is ever encoded
//! again, except a stop named in an end that we write.
#![forbid(unsafe_code)]

use crate::set::StopSet;

/// One raw unit of a JSON string: a character, an escape, or `\uD83D\uDE00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Char(char),
    /// Lone surrogates.
    High(u16),
    Low(u16),
}

/// The piece at the front of `raw` and its length in bytes.
fn piece(raw: &[u8]) -> Result<(Piece, usize), &'static str> {
    match raw {
        [b'\\', b'u', rest @ ..] => {
            let unit = unit(rest).ok_or("four hexadecimal digits are expected after \\u")?;
            match unit {
                0xD800..=0xDBFF => {
                    if let [_, _, _, _, b'\\', b'u', rest @ ..] = rest {
                        if let Some(low @ 0xDC00..=0xDFFF) = self::unit(rest) {
                            return Ok((Piece::Char(join(unit, low)), 12));
                        }
                    }
                    Ok((Piece::High(unit), 6))
                }
                0xDC00..=0xDFFF => Ok((Piece::Low(unit), 6)),
                _ => Ok((
                    Piece::Char(char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER)),
                    6,
                )),
            }
        }
        [b'\\', escape, ..] => {
            let character = match escape {
                b'"' | b'\\' | b'/' => char::from(*escape),
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                _ => return Err("an unknown escape in a string"),
            };
            Ok((Piece::Char(character), 2))
        }
        [ascii @ 0..=0x7F, ..] => Ok((Piece::Char(char::from(*ascii)), 1)),
        [first, ..] => {
            let length = match first {
                0xC2..=0xDF => 2,
                0xE0..=0xEF => 3,
                0xF0..=0xF4 => 4,
                _ => return Err(NOT_UTF8),
            };
            let bytes = raw.get(..length).ok_or(NOT_UTF8)?;
            let character = std::str::from_utf8(bytes)
                .ok()
                .and_then(|text| text.chars().next())
                .ok_or(NOT_UTF8)?;
            Ok((Piece::Char(character), length))
        }
        [] => Err("a string ends where a character is expected"),
    }
}

const NOT_UTF8: &str = "a string that is not UTF-8";

fn unit(digits: &[u8]) -> Option<u16> {
    let digits = digits.get(..4)?;
    digits.iter().try_fold(0u16, |unit, digit| {
        Some(unit << 4 | u16::try_from(char::from(*digit).to_digit(16)?).ok()?)
    })
}

fn join(high: u16, low: u16) -> char {
    let code = 0x1_0000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(low) - 0xDC00);
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Appends the characters of a raw string to `out`, and lone surrogates as they are: whether they
/// find their other half in another text is for the reader to know.
pub(super) fn units(raw: &[u8], out: &mut Vec<u32>) -> Result<(), &'static str> {
    let mut rest = raw;
    loop {
        // The run up to the next escape is text as it stands.
        let run = rest.iter().position(|&byte| byte == b'\\').unwrap_or(rest.len());
        let (plain, after) = rest.split_at(run);
        plain_units(plain, out)?;
        if after.is_empty() {
            return Ok(());
        }
        let (piece, length) = piece(after)?;
        out.push(match piece {
            Piece::Char(character) => character.into(),
            Piece::High(half) | Piece::Low(half) => half.into(),
        });
        rest = after.get(length..).unwrap_or(&[]);
    }
}

/// The same for a string without escapes.
#[inline]
pub(super) fn plain_units(raw: &[u8], out: &mut Vec<u32>) -> Result<(), &'static str> {
    out.extend(std::str::from_utf8(raw).map_err(|_| NOT_UTF8)?.chars().map(u32::from));
    Ok(())
}

/// A whole raw string as text; a lone surrogate in it is U+FFFD.
pub(super) fn decode(raw: &[u8]) -> Result<String, &'static str> {
    let mut codes = Vec::with_capacity(raw.len());
    units(raw, &mut codes)?;
    let text = |code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    Ok(codes.into_iter().map(text).collect())
}

/// True if two raw strings say the same text.
pub(super) fn same(one: &[u8], other: &[u8]) -> bool {
    if one == other {
        return true;
    }
    if !one.contains(&b'\\') && !other.contains(&b'\\') {
        return false;
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    units(one, &mut left).is_ok() && units(other, &mut right).is_ok() && left == right
}

/// How many bytes of `raw` its first `count` characters take. A pair counts as one, a lone
/// surrogate too.
pub(super) fn offset(raw: &[u8], count: usize) -> usize {
    let mut at = 0;
    for _ in 0..count {
        match raw.get(at..).map(piece) {
            Some(Ok((_, length))) => at += length,
            _ => return raw.len(), // not reached for a string that was decoded before
        }
    }
    at.min(raw.len())
}

/// True if `raw` begins with the second half of a surrogate pair.
pub(super) fn begins_with_low(raw: &[u8]) -> bool {
    matches!(piece(raw), Ok((Piece::Low(_), _)))
}

/// The UTF-8 length of a raw string once decoded. Half of a surrogate pair counts as two bytes,
/// half of what the pair takes: so lengths add up however a text is cut, also when a half turns out
/// to stand alone.
pub(super) fn decoded_len(raw: &[u8]) -> usize {
    let (mut rest, mut len) = (raw, 0);
    loop {
        let run = rest.iter().position(|&byte| byte == b'\\').unwrap_or(rest.len());
        len += run;
        rest = rest.get(run..).unwrap_or(&[]);
        match piece(rest) {
            Ok((Piece::Char(character), length)) => {
                len += character.len_utf8();
                rest = rest.get(length..).unwrap_or(&[]);
            }
            Ok((Piece::High(_) | Piece::Low(_), length)) => {
                len += 2;
                rest = rest.get(length..).unwrap_or(&[]);
            }
            Err(_) => return len, // the end; a string that was decoded before has no fault
        }
    }
}

/// Appends `text` as the inside of a JSON string.
pub(super) fn encode(text: &str, out: &mut Vec<u8>) {
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\0'..='\x1f' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
            }
            _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Puts stop `index` of a set into `out`, as the inside of a JSON string.
pub(super) fn encode_stop(set: &StopSet, index: usize, out: &mut Vec<u8>) {
    out.clear();
    encode(std::str::from_utf8(set.get(index)).unwrap_or(""), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units_of(raw: &str) -> Vec<u32> {
        let mut out = Vec::new();
        units(raw.as_bytes(), &mut out).unwrap();
        out
    }

    #[test]
    fn decodes_as_a_json_parser_does() {
        for text in
            ["", "plain", "tab\tquote\"back\\slash/\u{8}\u{c}\r\n", "caf\u{e9} \u{1f600} \u{0} end"]
        {
            let raw = serde_json::to_string(text).unwrap();
            assert_eq!(decode(&raw.as_bytes()[1..raw.len() - 1]).unwrap(), text);
            let escaped = text
                .encode_utf16()
                .map(|unit| format!("\\u{unit:04X}"))
                .collect::<Vec<_>>()
                .concat();
            assert_eq!(decode(escaped.as_bytes()).unwrap(), text);
            let mut ours = Vec::new();
            encode(text, &mut ours);
            let ours = [b"\"", ours.as_slice(), b"\""].concat();
            assert_eq!(serde_json::from_slice::<String>(&ours).unwrap(), text);
        }
    }

    #[test]
    fn surrogates_that_do_not_meet_here_come_out_as_they_are() {
        assert_eq!(units_of(r"a\ud83d"), [0x61, 0xd83d]);
        assert_eq!(units_of(r"\ude00b"), [0xde00, 0x62]);
        assert_eq!(units_of(r"\ud83d\ude00"), [0x1f600]);
        assert_eq!(units_of(r"\ud83d\ud83d\ude00\n"), [0xd83d, 0x1f600, 0xa]);
        assert_eq!(decode(br"\ude00\ud83db").unwrap(), "\u{fffd}\u{fffd}b");
    }

    #[test]
    fn cuts_the_raw_form_by_characters() {
        let raw = br"a\n\ud83d\ude00\ud83d\u0062";
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 9].map(|count| offset(raw, count)),
            [0, 1, 3, 15, 21, 27, 27]
        );
        assert_eq!(decoded_len(raw), 1 + 1 + 4 + 2 + 1);
        for cut in [0, 1, 3, 9, 15, 21, 27] {
            assert_eq!(
                decoded_len(&raw[..cut]) + decoded_len(&raw[cut..]),
                decoded_len(raw),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn refuses_what_no_parser_takes() {
        for raw in
            [&br"\x"[..], br"\u12", br"\u12G4", b"\xff", b"\xe4\xb8", b"\xc0\x80", b"\xed\xa0\x80"]
        {
            assert!(decode(raw).is_err(), "{raw:?}");
        }
    }
}
