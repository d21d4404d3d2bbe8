//! A cursor over one JSON text that finds the spans of the fields a dialect names and skips the
//! rest.
//!
//! Nothing is built: an object is walked key by key, a value nobody asked for is passed over by
//! looking only for quotes and brackets, eight bytes at a time. So a frame is checked as far as is
//! needed to know where its strings begin and end, and what stands in skipped values (a number like
//! `1.2.3`) is the business of whoever parses the frame next.
#![forbid(unsafe_code)]

use std::borrow::Cow;

/// Where something is in the frame's JSON: `start..end` in bytes. A string's span is between its
/// quotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    /// The bytes of it; empty if the span is not of this text.
    #[inline]
    pub(super) fn of(self, json: &[u8]) -> &[u8] {
        json.get(self.start..self.end).unwrap_or(&[])
    }

    /// The same with the quotes around a string's span.
    pub(super) fn quoted(self) -> Self {
        Self { start: self.start.saturating_sub(1), end: self.end + 1 }
    }

    pub(super) fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

/// What is wrong with a frame's JSON, and at which byte of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) what: &'static str,
    pub(super) at: usize,
}

pub(super) type JsonResult<T> = Result<T, Malformed>;

/// What a reading looked at and what it skipped, for the template of a frame.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    /// Strings nobody looked at, between their quotes.
    pub(super) skipped: Vec<Span>,
    /// Strings and numbers that were looked at.
    pub(super) read: Vec<Span>,
}

impl Notes {
    /// Frames beyond this are not worth a template, so that no notes are taken of them either.
    pub(super) const LONGEST_FRAME: usize = 16 << 10;
}

/// A position in one JSON text.
pub(super) struct Cursor<'a> {
    json: &'a [u8],
    at: usize,
    notes: Option<Notes>,
}

/// The kinds of value a dialect has to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    String,
    Null,
    True,
    Other,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(json: &'a [u8]) -> Self {
        Self { json, at: 0, notes: None }
    }

    /// A cursor that takes notes, into the buffers of older ones.
    pub(super) fn with_notes(json: &'a [u8], mut notes: Notes) -> Self {
        notes.skipped.clear();
        notes.read.clear();
        // Of a frame that no template is made of, none are needed.
        let notes = (json.len() <= Notes::LONGEST_FRAME).then_some(notes);
        Self { json, at: 0, notes }
    }

    pub(super) fn into_notes(self) -> Notes {
        self.notes.unwrap_or_default()
    }

    /// A cursor at the value that `span` covers.
    pub(super) fn at(json: &'a [u8], span: Span) -> Self {
        Self { json, at: span.start, notes: None }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn fail<T>(&self, what: &'static str) -> JsonResult<T> {
        Err(Malformed { what, at: self.at.min(self.json.len()) })
    }

    /// The next byte behind white space, not consumed; 0 at the end (a NUL is no part of JSON
    /// either).
    #[inline]
    fn peek(&mut self) -> u8 {
        loop {
            match self.json.get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(&byte) => return byte,
                None => return 0,
            }
        }
    }

    /// The kind of the next value.
    #[inline]
    pub(super) fn kind(&mut self) -> Kind {
        match self.peek() {
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'"' => Kind::String,
            b'n' => Kind::Null,
            b't' => Kind::True,
            _ => Kind::Other,
        }
    }

    /// Walks an object: `field` gets each key, unescaped, and must consume its value.
    #[inline]
    pub(super) fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, &[u8]) -> JsonResult<()>,
    ) -> JsonResult<Span> {
        self.object_with_keys(|cursor, _, name| field(cursor, name))
    }

    /// The same; `field` also gets where the key begins, with its quote.
    #[inline]
    pub(super) fn object_with_keys(
        &mut self,
        mut field: impl FnMut(&mut Self, usize, &[u8]) -> JsonResult<()>,
    ) -> JsonResult<Span> {
        let start = self.open(b'{', "an object is expected here")?;
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(Span { start, end: self.at });
        }
        loop {
            if self.peek() != b'"' {
                return self.fail("a key in quotes is expected here");
            }
            let key = self.string()?;
            if self.peek() != b':' {
                return self.fail("a colon is expected here");
            }
            self.at += 1;
            let raw = key.of(self.json);
            if raw.contains(&b'\\') {
                let name =
                    super::text::decode(raw).map_err(|what| Malformed { what, at: key.start })?;
                field(self, key.start - 1, name.as_bytes())?;
            } else {
                field(self, key.start - 1, raw)?;
            }
            match self.peek() {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(Span { start, end: self.at });
                }
                _ => return self.fail("a comma or a closing brace is expected here"),
            }
        }
    }

    /// Walks an array: `element` gets each position and must consume the value there.
    #[inline]
    pub(super) fn array(
        &mut self,
        mut element: impl FnMut(&mut Self, usize) -> JsonResult<()>,
    ) -> JsonResult<Span> {
        let start = self.open(b'[', "an array is expected here")?;
        if self.peek() == b']' {
            self.at += 1;
            return Ok(Span { start, end: self.at });
        }
        for index in 0.. {
            self.peek();
            element(self, index)?;
            match self.peek() {
                b',' => self.at += 1,
                b']' => break,
                _ => return self.fail("a comma or a closing bracket is expected here"),
            }
        }
        self.at += 1;
        Ok(Span { start, end: self.at })
    }

    fn open(&mut self, bracket: u8, what: &'static str) -> JsonResult<usize> {
        if self.peek() != bracket {
            return self.fail(what);
        }
        self.at += 1;
        Ok(self.at - 1)
    }

    /// The string here, looked at: the span between its quotes.
    #[inline]
    pub(super) fn string(&mut self) -> JsonResult<Span> {
        let span = self.any_string()?;
        if let Some(notes) = &mut self.notes {
            notes.read.push(span);
        }
        Ok(span)
    }

    #[inline]
    fn any_string(&mut self) -> JsonResult<Span> {
        if self.peek() != b'"' {
            return self.fail("a string is expected here");
        }
        let start = self.at + 1;
        let end = end_of_string(self.json, start);
        if end >= self.json.len() {
            return self.fail("this string never ends");
        }
        self.at = end + 1;
        Ok(Span { start, end })
    }

    #[inline]
    fn skip_string(&mut self) -> JsonResult<Span> {
        let span = self.any_string()?;
        if let Some(notes) = &mut self.notes {
            notes.skipped.push(span);
        }
        Ok(span)
    }

    /// A string that says why a text ended. Servers that have nothing to say yet send `""`,
    /// `"null"` or a word for it, where others send null. Gives the whole value, and whether it
    /// says something.
    pub(super) fn reason(&mut self, nothing: &[&[u8]]) -> JsonResult<(Span, bool)> {
        if self.kind() != Kind::String {
            return Ok((self.skip()?, false));
        }
        let inside = self.string()?;
        let said = word(self.json, Some(inside));
        Ok((inside.quoted(), !said.is_empty() && !nothing.contains(&&*said)))
    }

    /// The string here, or `None` for any other value, which is skipped.
    #[inline]
    pub(super) fn string_or_skip(&mut self) -> JsonResult<Option<Span>> {
        if self.peek() == b'"' { self.string().map(Some) } else { self.skip().map(|_| None) }
    }

    /// Passes over any value.
    #[inline]
    pub(super) fn skip(&mut self) -> JsonResult<Span> {
        match self.peek() {
            b'"' => self.skip_string().map(Span::quoted),
            b'{' | b'[' => self.skip_nested(),
            _ => {
                let start = self.at;
                while self.json.get(self.at).is_some_and(|byte| {
                    !matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
                }) {
                    self.at += 1;
                }
                if start == self.at {
                    return self.fail("a value is expected here");
                }
                Ok(Span { start, end: self.at })
            }
        }
    }

    /// Passes over an object or array by counting brackets, without recursion: nesting costs no
    /// stack.
    fn skip_nested(&mut self) -> JsonResult<Span> {
        let start = self.at;
        let mut depth = 0usize;
        loop {
            // `|0x20` makes one of each pair of brackets: `[` becomes `{`, `]` becomes `}`.
            self.at = find(
                self.json,
                self.at,
                |word| equal(word, b'"') | equal(word | SPACES, b'{') | equal(word | SPACES, b'}'),
                |byte| byte == b'"' || matches!(byte | 0x20, b'{' | b'}'),
            );
            match self.json.get(self.at) {
                Some(b'"') => {
                    self.skip_string()?;
                }
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(_) => {
                    depth -= 1;
                    self.at += 1;
                    if depth == 0 {
                        return Ok(Span { start, end: self.at });
                    }
                }
                None => return self.fail("this object or array never ends"),
            }
        }
    }

    /// A number that fits; any other value is malformed.
    pub(super) fn number(&mut self) -> JsonResult<u32> {
        let at = self.at;
        let span = self.skip()?;
        if let Some(notes) = &mut self.notes {
            notes.read.push(span);
        }
        let text = std::str::from_utf8(span.of(self.json)).unwrap_or("");
        text.parse().map_err(|_| Malformed {
            what: "an index (a whole number from 0 on) is expected here",
            at,
        })
    }

    /// Only white space is left.
    pub(super) fn end(&mut self) -> JsonResult<()> {
        if self.peek() == 0 && self.at >= self.json.len() {
            Ok(())
        } else {
            self.fail("something follows the JSON object")
        }
    }
}

/// Where the string that begins at `at`, behind its quote, has its closing quote; the end of the
/// text if it has none.
#[inline]
pub(super) fn end_of_string(json: &[u8], mut at: usize) -> usize {
    loop {
        at = find(
            json,
            at,
            |word| equal(word, b'"') | equal(word, b'\\'),
            |byte| byte == b'"' || byte == b'\\',
        );
        match json.get(at) {
            Some(b'\\') => at += 2, // and what it escapes
            Some(_) => return at,
            None => return json.len(),
        }
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;
const SPACES: u64 = 0x2020_2020_2020_2020;

/// The top bit of each byte of `word` that equals `byte`. A byte above the first one that does may
/// be marked wrongly (the borrow of the subtraction), so only the lowest mark counts: the first
/// such byte in reading order.
#[inline]
pub(super) fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ (ONES * u64::from(byte));
    difference.wrapping_sub(ONES) & !difference & TOPS
}

/// The first position from `at` on whose byte is wanted, or the end.
#[inline]
pub(super) fn find(
    json: &[u8],
    mut at: usize,
    marks: impl Fn(u64) -> u64,
    wanted: impl Fn(u8) -> bool,
) -> usize {
    while let Some(bytes) = json.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let marked = marks(u64::from_le_bytes(*bytes));
        if marked != 0 {
            return at + (marked.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    json.get(at..)
        .and_then(|rest| rest.iter().position(|&byte| wanted(byte)))
        .map_or(json.len(), |found| at + found)
}

/// What stands between JSON's white space.
pub(super) fn trimmed(bytes: &[u8]) -> Span {
    let inside = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let start = bytes.iter().position(inside).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(inside).map_or(start, |last| last + 1);
    Span { start, end }
}

/// A string's value, to be compared with words: unescaped, which costs something only if there is
/// an escape in it.
pub(super) fn word(json: &[u8], span: Option<Span>) -> Cow<'_, [u8]> {
    let raw = span.map_or(&[][..], |span| span.of(json));
    if !raw.contains(&b'\\') {
        return Cow::Borrowed(raw);
    }
    match super::text::decode(raw) {
        Ok(text) => Cow::Owned(text.into_bytes()),
        Err(_) => Cow::Borrowed(raw),
    }
}

/// Sets a field once: a second value for the same key is malformed, since parsers differ in which
/// one they take.
pub(super) fn once<T>(field: &mut Option<T>, value: T, at: usize) -> JsonResult<()> {
    if field.replace(value).is_some() {
        return Err(Malformed {
            what: "a key the cutter has to read stands here for the second time",
            at,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(json: &str) -> JsonResult<Span> {
        let mut cursor = Cursor::new(json.as_bytes());
        let span = cursor.skip()?;
        cursor.end()?;
        Ok(span)
    }

    #[test]
    fn skips_every_kind_of_value_whole() {
        for json in [
            "1",
            "-1.5e3",
            "null",
            "\"\"",
            r#""a\"b\\""#,
            "[]",
            "{}",
            r#"{"a":[1,{"b":"]}"}],"c":"{"}"#,
            r#"["\\","\"","[[[[[[[["]"#,
        ] {
            assert_eq!(skip(json), Ok(Span { start: 0, end: json.len() }), "{json}");
            let spaced = format!(" \t\r\n{json} \n");
            assert_eq!(skip(&spaced), Ok(Span { start: 4, end: 4 + json.len() }), "{json}");
        }
    }

    #[test]
    fn says_what_is_missing_at_every_cut() {
        let json = r#"{"a":[1,{"b":"x\"y"}],"c":"{"}"#;
        for cut in 0..json.len() {
            assert!(skip(&json[..cut]).is_err(), "{}", &json[..cut]);
        }
        assert_eq!(
            skip("{} x").unwrap_err(),
            Malformed { what: "something follows the JSON object", at: 3 }
        );
    }

    #[test]
    fn finds_the_first_of_several_marks_in_a_word() {
        // A byte that is one above the wanted one, right behind it, is the case the borrow would
        // mark.
        assert_eq!(find(b"ab\"#\\####\"", 0, |w| equal(w, b'"'), |b| b == b'"'), 2);
        assert_eq!(find(b"#######\"", 0, |w| equal(w, b'"'), |b| b == b'"'), 7);
        assert_eq!(find(b"########", 0, |w| equal(w, b'"'), |b| b == b'"'), 8);
    }

    #[test]
    fn deep_nesting_costs_no_stack() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        assert!(skip(&deep).is_ok());
    }

    #[test]
    fn a_key_is_compared_unescaped() {
        let mut seen = Vec::new();
        let json = br#"{"cont\u0065nt":1,"b":2}"#;
        Cursor::new(json)
            .object(|cursor, key| {
                seen.push(key.to_vec());
                cursor.skip().map(|_| ())
            })
            .unwrap();
        assert_eq!(seen, [b"content".to_vec(), b"b".to_vec()]);
    }
}
