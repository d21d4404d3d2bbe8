//! Where the fields of a JSON object stand, for whoever changes a few of them in a large request.
//!
//! Nothing is built: the time is that of looking for quotes and brackets, and the memory that of
//! the fields asked for, whatever the object holds. Brackets have to match, strings to end and
//! numbers and words to be such; what is inside strings nobody asked for is the business of whoever
//! parses the object next.
#![forbid(unsafe_code)]

use std::ops::Range;

use super::json::{Cursor, JsonResult, Kind, Malformed, Span, end_of_string, equal, find};

/// Arrays and objects inside each other; parsers that recurse take about as many.
pub(crate) const MAX_DEPTH: usize = 512;

/// One field of an object. Positions are in bytes of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Which of the wanted keys it is.
    pub(crate) key: usize,
    /// Where its key begins, with the quote.
    pub(crate) start: usize,
    pub(crate) value: Range<usize>,
}

/// An object and those of its fields that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// From its brace to behind the other one.
    pub(crate) span: Range<usize>,
    /// How many fields it has, wanted or not.
    pub(crate) count: usize,
    /// In the order in which they stand, each key once.
    pub(crate) fields: Vec<Field>,
}

/// The object that is all of `json[from..]`, or all of it up to other text if `whole` is not set.
///
/// # Errors
///
/// If it is no object, if a wanted key stands in it twice (readers differ in which one they take),
/// or if something in it is not JSON or nested too deeply.
pub(crate) fn object(
    json: &[u8],
    from: usize,
    keys: &[String],
    whole: bool,
) -> Result<Object, (&'static str, usize)> {
    let mut cursor = Cursor::at(json, Span { start: from, end: json.len() });
    let mut fields = Vec::with_capacity(keys.len().min(32));
    let mut count = 0;
    let span = cursor
        .object_with_keys(|cursor, start, name| {
            count += 1;
            let value = value(json, cursor)?;
            if let Some(key) = keys.iter().position(|key| key.as_bytes() == name) {
                if fields.iter().any(|field: &Field| field.key == key) {
                    return Err(Malformed { what: "this key stands here twice", at: start });
                }
                fields.push(Field { key, start, value: value.start..value.end });
            }
            Ok(())
        })
        .and_then(|span| if whole { cursor.end().map(|()| span) } else { Ok(span) })
        .map_err(|fault| (fault.what, fault.at))?;
    Ok(Object { span: span.start..span.end, count, fields })
}

/// How many elements the array at `json[from..]` has, at most `most + 1`, and whether all of them
/// are numbers.
///
/// # Errors
///
/// If it is no array, or something in it is not JSON or nested too deeply.
pub(crate) fn elements(
    json: &[u8],
    from: usize,
    most: usize,
) -> Result<(usize, bool), (&'static str, usize)> {
    let mut cursor = Cursor::at(json, Span { start: from, end: json.len() });
    let (mut count, mut numbers) = (0, true);
    // An error without words ends the walk early.
    let walked = cursor.array(|cursor, index| {
        count = index + 1;
        if index == most {
            return Err(Malformed { what: "", at: index });
        }
        let span = value(json, cursor)?;
        numbers &= matches!(span.of(json).first(), Some(b'-' | b'0'..=b'9'));
        Ok(())
    });
    match walked {
        Err(fault) if !fault.what.is_empty() => Err((fault.what, fault.at)),
        _ => Ok((count, numbers)),
    }
}

/// Passes over a value and checks it.
fn value<'a>(json: &'a [u8], cursor: &mut Cursor<'a>) -> JsonResult<Span> {
    match cursor.kind() {
        Kind::String => cursor.skip(),
        Kind::Object | Kind::Array => {
            let start = cursor.position();
            let end = nested(json, start)?;
            *cursor = Cursor::at(json, Span { start: end, end });
            Ok(Span { start, end })
        }
        _ => {
            let span = cursor.skip()?;
            if is_scalar(span.of(json)) {
                Ok(span)
            } else {
                Err(Malformed { what: "this is not a value of JSON", at: span.start })
            }
        }
    }
}

/// The end of the array or object at `at`: brackets have to match.
fn nested(json: &[u8], mut at: usize) -> JsonResult<usize> {
    let mut open = Vec::with_capacity(16);
    loop {
        at = find(
            json,
            at,
            |word| {
                equal(word, b'"')
                    | equal(word | 0x2020_2020_2020_2020, b'{')
                    | equal(word | 0x2020_2020_2020_2020, b'}')
            },
            |byte| byte == b'"' || matches!(byte | 0x20, b'{' | b'}'),
        );
        let Some(&byte) = json.get(at) else {
            return Err(Malformed { what: "this object or array never ends", at: json.len() });
        };
        at += 1;
        match byte {
            b'"' => {
                at = end_of_string(json, at) + 1;
                if at > json.len() {
                    return Err(Malformed { what: "this string never ends", at: json.len() });
                }
            }
            b'{' | b'[' if open.len() == MAX_DEPTH => {
                return Err(Malformed { what: "values are nested too deeply", at: at - 1 });
            }
            b'{' | b'[' => open.push(byte),
            // `{` and `}` are two apart, and so are `[` and `]`.
            _ if open.pop() != Some(byte - 2) => {
                return Err(Malformed { what: "this bracket closes another one", at: at - 1 });
            }
            _ if open.is_empty() => return Ok(at),
            _ => {}
        }
    }
}

/// A number or a word of JSON. `NaN` and `Infinity` are none, although some readers take them.
fn is_scalar(text: &[u8]) -> bool {
    if matches!(text, b"true" | b"false" | b"null") {
        return true;
    }
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, text) = split(text);
    if whole.is_empty() || (whole.len() > 1 && whole.first() == Some(&b'0')) {
        return false;
    }
    let text = match text.strip_prefix(b".") {
        Some(rest) => {
            let (fraction, rest) = split(rest);
            if fraction.is_empty() {
                return false;
            }
            rest
        }
        None => text,
    };
    let Some((b'e' | b'E', rest)) = text.split_first() else { return text.is_empty() };
    let rest = rest.strip_prefix(b"+").or_else(|| rest.strip_prefix(b"-")).unwrap_or(rest);
    !rest.is_empty() && split(rest).1.is_empty()
}

/// The digits a text begins with, and the rest.
fn split(text: &[u8]) -> (&[u8], &[u8]) {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.split_at(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn fields_are_found_where_they_stand() {
        let json = br#" {"a": [1, {"stop": 2}], "st\u006fp" : "x\"}", "n":1} "#;
        let found = object(json, 0, &keys(&["stop", "n", "none"]), true).unwrap();
        assert_eq!(found.count, 3);
        assert_eq!(found.fields[0].key, 0);
        assert_eq!(&json[found.fields[0].value.clone()], br#""x\"}""#);
        assert_eq!(&json[found.fields[0].start..][..5], br#""st\u"#);
        assert_eq!(&json[found.fields[1].value.clone()], b"1");
        assert_eq!(found.fields.len(), 2);
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for bad in [
            "",
            "1",
            "[]",
            "{",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":[}]}"#,
            r#"{"a":"x}"#,
            r#"{"a":NaN}"#,
            r#"{"a":01}"#,
            r#"{"a":1.}"#,
            r#"{"a":1e}"#,
            r#"{"a":-}"#,
            r#"{"a":+1}"#,
            r#"{"a":1}x"#,
            r#"{"a":1 2}"#,
            r#"{"a":Infinity}"#,
            r#"{"a":[1}"#,
            r#"{"a":["x]}"#,
        ] {
            assert!(object(bad.as_bytes(), 0, &[], true).is_err(), "{bad}");
        }
        for good in ["{}", r#"{"a":-0.5e+9}"#, r#"{"a":1e999,"b":[[],{}],"c":null}"#] {
            assert!(object(good.as_bytes(), 0, &[], true).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_wanted_key_stands_once() {
        let json = br#"{"a":1,"b":2,"a":3,"b":4}"#;
        assert!(object(json, 0, &keys(&["c"]), true).is_ok());
        assert_eq!(object(json, 0, &keys(&["b"]), true), Err(("this key stands here twice", 19)));
    }

    #[test]
    fn nesting_has_a_limit() {
        let deep = |depth| format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(object(deep(MAX_DEPTH).as_bytes(), 0, &[], true).is_ok());
        assert!(object(deep(MAX_DEPTH + 1).as_bytes(), 0, &[], true).is_err());
        assert!(object(deep(10_000_000).as_bytes(), 0, &[], true).is_err());
    }

    #[test]
    fn elements_are_counted() {
        assert_eq!(elements(b"[1, 2,-3]", 0, 9), Ok((3, true)));
        assert_eq!(elements(b"[]", 0, 9), Ok((0, true)));
        assert_eq!(elements(br#"[1,"a",[2]]"#, 0, 9), Ok((3, false)));
        assert_eq!(elements(b"[1,2,3,4", 0, 2), Ok((3, true)));
        assert!(elements(b"[1,2", 0, 9).is_err());
        assert!(elements(b"{}", 0, 9).is_err());
    }
}
