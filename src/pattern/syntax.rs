//! From the text of a pattern to a syntax tree, and what is refused on the way.
//!
//! The parser is `regex-syntax`; what a pattern may say is less than what it can read. Refused here,
//! with the place: what is no pattern, look-around other than `\b`, `^` and `$` (of lines), repeats
//! above [`REPEAT`], and a pattern that matches the empty text.
#![forbid(unsafe_code)]

use std::fmt::Write;

use regex_syntax::ast::{self, AssertionKind, Ast, Flag, FlagsItemKind, Span};
use regex_syntax::hir::{self, Hir, Look, translate::TranslatorBuilder};

/// Repeats above this are refused.
const REPEAT: u32 = 1_000;
/// Groups inside groups.
const NESTED: u32 = 120;
/// Bytes of a pattern's text. A class of Unicode is two bytes of text and thousands in a tree.
pub(super) const LONGEST: usize = 4_096;

/// Why a pattern was refused: the reason, and the place in its text at which it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: String,
    pub(super) at: Option<usize>,
}

impl Refusal {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), at: None }
    }

    fn at(reason: impl Into<String>, span: &Span) -> Self {
        Self { reason: reason.into(), at: Some(span.start.offset) }
    }
}

/// Reads a pattern of text: Unicode, `^` and `$` at every line, `.` without `\n`. Places are
/// counted in characters.
pub(super) fn parse_text(text: &str, ignore_case: bool) -> Result<Hir, Refusal> {
    parse(text, ignore_case, true).map_err(|refusal| Refusal {
        at: refusal.at.map(|at| text.get(..at).map_or(at, |front| front.chars().count())),
        ..refusal
    })
}

/// Reads a pattern of bytes: the same over bytes, each of which stands for itself.
pub(super) fn parse_bytes(text: &[u8], ignore_case: bool) -> Result<Hir, Refusal> {
    // As text: a byte above 127 is written as its escape, and `places` has where each byte went.
    let mut escaped = String::with_capacity(text.len());
    let mut places = Vec::with_capacity(text.len());
    let mut after_backslash = false;
    for (at, &byte) in text.iter().enumerate() {
        places.push(escaped.len());
        if byte.is_ascii() {
            escaped.push(byte.into());
            after_backslash = byte == b'\\' && !after_backslash;
        } else if after_backslash {
            let reason = "a backslash in front of a byte above 127 means nothing";
            return Err(Refusal { reason: reason.to_owned(), at: Some(at - 1) });
        } else {
            let _ = write!(escaped, "\\x{byte:02X}");
        }
    }
    parse(&escaped, ignore_case, false).map_err(|refusal| Refusal {
        at: refusal.at.map(|at| places.partition_point(|&place| place < at)),
        ..refusal
    })
}

fn parse(text: &str, ignore_case: bool, unicode: bool) -> Result<Hir, Refusal> {
    if text.len() > LONGEST {
        let len = text.len();
        return Err(Refusal::new(format!("it is {len} bytes long, the limit is {LONGEST}")));
    }
    let ast = ast::parse::ParserBuilder::new()
        .nest_limit(NESTED)
        .build()
        .parse(text)
        .map_err(|error| explain(&error))?;
    ast::visit(&ast, Limits)?;
    let hir = TranslatorBuilder::new()
        .utf8(unicode)
        .unicode(unicode)
        .multi_line(true)
        .case_insensitive(ignore_case)
        .build()
        .translate(text, &ast)
        .map_err(|error: hir::Error| Refusal::at(error.kind().to_string(), error.span()))?;
    let word = if unicode { Look::WordUnicode } else { Look::WordAscii };
    let allowed = [Look::StartLF, Look::EndLF, word];
    let looks = hir.properties().look_set();
    if looks.iter().any(|look| !allowed.contains(&look)) {
        return Err(Refusal::new(
            "^ and $ stand for the start and the end of a line, and \\b goes by all characters: \
             leave out the flag that changes them",
        ));
    }
    if hir.properties().minimum_len() == Some(0) {
        return Err(Refusal::new(
            "it matches the empty text, which is everywhere; say at least one character",
        ));
    }
    Ok(hir)
}

fn explain(error: &ast::Error) -> Refusal {
    let reason = match error.kind() {
        ast::ErrorKind::UnsupportedBackreference => {
            "back-references are no regular language; spell the cases out".to_owned()
        }
        ast::ErrorKind::UnsupportedLookAround => {
            "look-around other than \\b, ^ and $ is not supported; put what stands around it into \
             the pattern"
                .to_owned()
        }
        ast::ErrorKind::NestLimitExceeded(limit) => {
            format!("groups are nested more than {limit} deep")
        }
        kind => kind.to_string(),
    };
    Refusal::at(reason, error.span())
}

/// Walks the tree for what the parser reads and a stop cannot be.
struct Limits;

impl ast::Visitor for Limits {
    type Output = ();
    type Err = Refusal;

    fn finish(self) -> Result<(), Refusal> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Refusal> {
        match ast {
            Ast::Assertion(assertion) => match assertion.kind {
                AssertionKind::StartLine | AssertionKind::EndLine | AssertionKind::WordBoundary => {
                    Ok(())
                }
                _ => Err(Refusal::at(
                    "look-around other than \\b, ^ and $ is not supported; put what stands around \
                     it into the pattern",
                    &assertion.span,
                )),
            },
            Ast::Repetition(repetition) => {
                let most = match &repetition.op.kind {
                    ast::RepetitionKind::Range(ast::RepetitionRange::Bounded(from, to)) => {
                        *from.max(to)
                    }
                    ast::RepetitionKind::Range(
                        ast::RepetitionRange::Exactly(from) | ast::RepetitionRange::AtLeast(from),
                    ) => *from,
                    _ => 0,
                };
                if most > REPEAT {
                    let reason = format!("a repeat of {most}, the limit is {REPEAT}");
                    return Err(Refusal::at(reason, &repetition.op.span));
                }
                Ok(())
            }
            Ast::Flags(flags) => check_flags(&flags.flags),
            Ast::Group(group) => group.flags().map_or(Ok(()), check_flags),
            _ => Ok(()),
        }
    }
}

fn check_flags(flags: &ast::Flags) -> Result<(), Refusal> {
    let crlf = |item: &&ast::FlagsItem| matches!(item.kind, FlagsItemKind::Flag(Flag::CRLF));
    match flags.items.iter().find(crlf) {
        Some(item) => Err(Refusal::at("the flag R is not supported; write \\r?\\n", &item.span)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_where() {
        let refused = |text: &str| {
            let refusal = parse_text(text, false).unwrap_err();
            (refusal.at, refusal.reason)
        };
        for (text, at, reason) in [
            ("ab(", Some(2), "unclosed group"),
            (r"(a)\1", Some(3), "back-references"),
            ("(?=a)b", Some(0), "look-around"),
            (r"a\Bb", Some(1), "look-around"),
            ("a{1001}", Some(1), "the limit is 1000"),
            ("(?R)a$", Some(2), "flag R"),
            (r"\Aa", Some(0), "look-around"),
            (r"é\Aa", Some(1), "look-around"),
            ("(?-m)^a", None, "flag"),
            (r"(?-u)\ba", None, "flag"),
            ("a*", None, "empty text"),
            (r"\b", None, "empty text"),
            (r"\p{Nonsense}", Some(0), "Unicode property not found"),
            (r"(?-u:\xff)", Some(5), "UTF-8"),
        ] {
            let (place, message) = refused(text);
            assert_eq!(place, at, "{text}: {message}");
            assert!(message.contains(reason), "{text}: {message}");
        }
        assert!(
            refused(&["(".repeat(200), "a".into(), ")".repeat(200)].concat()).1.contains("nested")
        );
        assert!(refused(&"a".repeat(5_000)).1.contains("5000 bytes"));
        for text in ["a", r"^a$", r"\ba\b", "(?i)x", "(?s).{0,1000}y"] {
            assert!(parse_text(text, false).is_ok(), "{text}");
        }
        assert!(parse_text(&["(".repeat(50), "a".into(), ")".repeat(50)].concat(), false).is_ok());
    }

    #[test]
    fn bytes_stand_for_themselves() {
        let hir = parse_bytes(b"\xff\xe9", false).unwrap();
        assert_eq!(hir.properties().minimum_len(), Some(2));
        assert!(parse_bytes(b"[\x80-\xff]", true).is_ok());
        let refused = |text: &[u8]| parse_bytes(text, false).unwrap_err().at;
        assert_eq!(refused(b"\xff\xff("), Some(2));
        assert_eq!(refused(b"a\\\xff"), Some(1));
        assert!(parse_bytes(b"\\\\\xff", false).is_ok());
    }
}
