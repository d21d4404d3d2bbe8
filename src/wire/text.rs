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
    /// Half of a surrogate pair that stands alone.
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

/// Decodes a raw string onto `out` for the matcher. `waiting` is the high half at the end of the
/// text before it; the high half at the end of this one is returned and not decoded: its low half
/// may come with the next text. A half that stays alone counts as U+FFFD.
pub(super) fn decode(
    raw: &[u8],
    waiting: Option<u16>,
    out: &mut String,
) -> Result<Option<u16>, &'static str> {
    let mut waiting = waiting;
    let mut rest = raw;
    while !rest.is_empty() {
        if waiting.is_none() {
            // The run up to the next escape is text as it stands.
            let run = rest.iter().position(|&byte| byte == b'\\').unwrap_or(rest.len());
            let (plain, behind) = rest.split_at(run);
            out.push_str(std::str::from_utf8(plain).map_err(|_| NOT_UTF8)?);
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        let (piece, length) = piece(rest)?;
        rest = rest.get(length..).unwrap_or(&[]);
        match (waiting.take(), piece) {
            (Some(high), Piece::Low(low)) => out.push(join(high, low)),
            (lone, piece) => {
                if lone.is_some() {
                    out.push(char::REPLACEMENT_CHARACTER);
                }
                match piece {
                    Piece::Char(character) => out.push(character),
                    Piece::High(high) => waiting = Some(high),
                    Piece::Low(_) => out.push(char::REPLACEMENT_CHARACTER),
                }
            }
        }
    }
    Ok(waiting)
}

/// How many bytes of `raw` its first `count` characters take. A pair counts as one, a lone half
/// too, as in [`decode`].
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

    fn decoded(raw: &str, waiting: Option<u16>) -> (String, Option<u16>) {
        let mut out = String::new();
        let waiting = decode(raw.as_bytes(), waiting, &mut out).unwrap();
        (out, waiting)
    }

    #[test]
    fn decodes_as_a_json_parser_does() {
        for text in
            ["", "plain", "tab\tquote\"back\\slash/\u{8}\u{c}\r\n", "caf\u{e9} \u{1f600} \u{0} end"]
        {
            let raw = serde_json::to_string(text).unwrap();
            assert_eq!(decoded(&raw[1..raw.len() - 1], None), (text.to_owned(), None));
            let escaped = text
                .encode_utf16()
                .map(|unit| format!("\\u{unit:04X}"))
                .collect::<Vec<_>>()
                .concat();
            assert_eq!(decoded(&escaped, None), (text.to_owned(), None));
            let mut ours = Vec::new();
            encode(text, &mut ours);
            let ours = [b"\"", ours.as_slice(), b"\""].concat();
            assert_eq!(serde_json::from_slice::<String>(&ours).unwrap(), text);
        }
    }

    #[test]
    fn halves_of_a_pair_wait_join_or_stand_alone() {
        let face = Some(0xD83D);
        assert_eq!(decoded(r"a\ud83d", None), ("a".into(), face));
        assert_eq!(decoded(r"\ude00b", face), ("\u{1f600}b".into(), None));
        assert_eq!(decoded("", face), (String::new(), face));
        assert_eq!(decoded("b", face), ("\u{fffd}b".into(), None));
        assert_eq!(decoded(r"\ud83d", face), ("\u{fffd}".into(), face));
        assert_eq!(decoded(r"\n", face), ("\u{fffd}\n".into(), None));
        assert_eq!(decoded(r"\ude00\ud83db", None), ("\u{fffd}\u{fffd}b".into(), None));
        assert_eq!(decoded(r"\ud83d\ud83d\ude00", None), ("\u{fffd}\u{1f600}".into(), None));
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
            assert!(decode(raw, None, &mut String::new()).is_err(), "{raw:?}");
        }
    }
}
