//! What a stream's frames have in common, so that the next one need not be read.
//!
//! Consecutive frames differ in their text and in a few values that the cutter does not look at: a
//! counter, a time stamp, padding. A template is one frame that was read, with holes where others
//! may differ. A frame that equals it outside the holes, where a string stands in the hole of a
//! string and a number in that of a number, has the same structure, so what was found in the one
//! holds for the other; only where its texts stand is to be found. Comparing costs a fraction of
//! reading.
//!
//! Holes are the texts at first. When a frame differs somewhere else, the value at that place
//! becomes a hole too, if it is one that was skipped when the template was read. A frame that
//! differs in anything that was looked at, a key or a flag, is no match and is read in full.
#![forbid(unsafe_code)]

use super::json::{Notes, Span, end_of_string};

/// A frame with more varying values than this is quicker to read.
const MOST_HOLES: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Hole {
    span: Span,
    string: bool,
    /// It is a text, to be found in other frames.
    text: bool,
}

/// One frame, with holes.
#[derive(Clone, Debug, Default)]
pub(super) struct Template {
    json: Vec<u8>,
    holes: Vec<Hole>,
    notes: Notes,
}

impl Template {
    /// Takes a frame that was read, whose texts stand at `texts`, as the template.
    pub(super) fn learn(
        &mut self,
        json: &[u8],
        texts: impl Iterator<Item = Span>,
        notes: &mut Notes,
    ) {
        self.forget();
        if json.len() > Notes::LONGEST_FRAME {
            return;
        }
        self.json.extend_from_slice(json);
        self.holes.extend(texts.map(|span| Hole { span, string: true, text: true }));
        self.holes.sort_by_key(|hole| hole.span.start);
        std::mem::swap(&mut self.notes, notes);
    }

    /// Nothing matches any more.
    pub(super) fn forget(&mut self) {
        self.json.clear();
        self.holes.clear();
    }

    /// True if the frame has the template's structure; `texts` are where its texts stand then, in
    /// the order of the frame.
    #[inline]
    pub(super) fn matches(&mut self, json: &[u8], texts: &mut Vec<Span>) -> bool {
        if self.json.is_empty() {
            return false;
        }
        loop {
            match self.compare(json, texts) {
                Ok(()) => return true,
                Err(at) if self.add_hole(at) => {}
                Err(_) => return false,
            }
        }
    }

    /// Compares outside the holes; else gives where in the template the first difference is.
    #[inline]
    fn compare(&self, json: &[u8], texts: &mut Vec<Span>) -> Result<(), usize> {
        texts.clear();
        let (mut at, mut own) = (0, 0);
        for hole in &self.holes {
            let fixed = self.json.get(own..hole.span.start).unwrap_or(&[]);
            let rest = json.get(at..).unwrap_or(&[]);
            if !rest.starts_with(fixed) {
                return Err(own + common(fixed, rest));
            }
            at += fixed.len();
            let end = if hole.string { end_of_string(json, at) } else { end_of_number(json, at) };
            if end == at && !hole.string {
                return Err(own + fixed.len());
            }
            if hole.text {
                texts.push(Span { start: at, end });
            }
            (at, own) = (end, hole.span.end);
        }
        let (fixed, rest) = (self.json.get(own..).unwrap_or(&[]), json.get(at..).unwrap_or(&[]));
        if rest == fixed { Ok(()) } else { Err(own + common(fixed, rest)) }
    }

    /// Makes a hole of the skipped value at `at`, if there is one.
    #[cold]
    fn add_hole(&mut self, at: usize) -> bool {
        if self.holes.len() >= MOST_HOLES {
            return false;
        }
        let holds = |span: &Span| span.start <= at && at <= span.end;
        let string = self.notes.skipped.iter().find(|span| holds(span)).copied();
        let Some(span) = string.or_else(|| self.number_at(at)) else { return false };
        if self.holes.iter().any(|hole| hole.span == span) {
            return false;
        }
        let place = self.holes.partition_point(|hole| hole.span.start < span.start);
        self.holes.insert(place, Hole { span, string: string.is_some(), text: false });
        true
    }

    /// The number that `at` is in, or right behind, unless it was looked at.
    fn number_at(&self, at: usize) -> Option<Span> {
        let before = self.json.get(..at)?.iter().rev().take_while(|byte| is_number(**byte)).count();
        let span = Span { start: at - before, end: end_of_number(&self.json, at) };
        let begins = self
            .json
            .get(..span.start)?
            .last()
            .is_some_and(|byte| matches!(byte, b':' | b',' | b'[' | b' ' | b'\t'));
        let inside = |other: &Span| span.start < other.end && other.start < span.end;
        // `at` may be inside a string that was looked at, a key for instance: a text that looks
        // like a number there is none.
        let looked_at = self.notes.read.iter().any(inside);
        (!span.is_empty() && begins && !looked_at).then_some(span)
    }
}

fn is_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
}

fn end_of_number(json: &[u8], at: usize) -> usize {
    at + json.get(at..).unwrap_or(&[]).iter().take_while(|byte| is_number(**byte)).count()
}

/// How many bytes two texts have in common at their beginning.
#[cold]
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::{Cursor, Kind};

    /// Reads `text`, and looks at `index` and at all keys; the rest is skipped.
    fn read(json: &[u8]) -> (Span, Notes) {
        let mut text = Span::default();
        let mut cursor = Cursor::with_notes(json, Notes::default());
        cursor
            .object(|cursor, key| match (key, cursor.kind()) {
                (b"text", Kind::String) => {
                    text = cursor.string()?;
                    Ok(())
                }
                (b"index", _) => cursor.number().map(|_| ()),
                _ => cursor.skip().map(|_| ()),
            })
            .unwrap();
        (text, cursor.into_notes())
    }

    fn template(json: &str) -> Template {
        let (text, mut notes) = read(json.as_bytes());
        let mut template = Template::default();
        template.learn(json.as_bytes(), std::iter::once(text), &mut notes);
        template
    }

    #[test]
    fn a_frame_that_differs_in_text_and_skipped_values_matches() {
        let mut template = template(
            r#"{"id":"x1","n":[1,{"k":"v"}],"index":3,"text":"abc","t":10,"pad":"x","no":null}"#,
        );
        let mut texts = Vec::new();
        for other in [
            r#"{"id":"x1","n":[1,{"k":"v"}],"index":3,"text":"","t":10,"pad":"x","no":null}"#,
            r#"{"id":"x22","n":[1,{"k":"v"}],"index":3,"text":"say \"hi\"","t":11,"pad":"","no":null}"#,
            r#"{"id":"","n":[-1.5e3,{"k":"longer \\"}],"index":3,"text":"a","t":9,"pad":"xyz","no":null}"#,
        ] {
            assert!(template.matches(other.as_bytes(), &mut texts), "{other}");
            assert_eq!(texts, [read(other.as_bytes()).0], "{other}");
        }
    }

    #[test]
    fn a_frame_that_differs_in_anything_that_was_looked_at_does_not() {
        let base = r#"{"id":"x1","n":[1],"index":3,"text":"abc","t":10,"no":null}"#;
        let mut template = template(base);
        for other in [
            r#"{"ib":"x1","n":[1],"index":3,"text":"abc","t":10,"no":null}"#,
            r#"{"id":"x1","n":[1],"index":4,"text":"abc","t":10,"no":null}"#,
            r#"{"id":"x1","n":[1],"index":33,"text":"abc","t":10,"no":null}"#,
            r#"{"id":"x1","n":[1],"index":3,"text":"abc","t":10,"no":true}"#,
            r#"{"id":"x1","n":[1],"index":3,"text":"abc","t":"10","no":null}"#,
            r#"{"id":"x1","n":[1],"index":3,"text":"abc","t":10,"no":null,"text":"d"}"#,
            r#"{"id":"x1","n":[1],"index":3,"text":"abc","t":10,"no":null"#,
            r#"{"id":"x1","n":[1],"index":3,"text":"abc"#,
            r#"{"id":"x1","n":[1,2],"index":3,"text":"abc","t":10,"no":null}"#,
            r#"{"id":"x1","n":[],"index":3,"text":"abc","t":10,"no":null}"#,
        ] {
            assert!(!template.matches(other.as_bytes(), &mut Vec::new()), "{other}");
        }
        assert!(
            template.matches(base.as_bytes(), &mut Vec::new()),
            "what was learned on the way is still right"
        );
    }
}
