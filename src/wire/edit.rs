//! Changes to one frame's JSON, collected while it is read and applied in one copy.
#![forbid(unsafe_code)]

use super::json::Span;

/// Replacements by span. The new bytes live in one arena, so that a frame costs no allocation once
/// it is warm.
#[derive(Clone, Debug, Default)]
pub(super) struct Edits {
    list: Vec<(Span, Span)>,
    arena: Vec<u8>,
}

impl Edits {
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.arena.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Replaces `span` by what `write` appends. An empty span is an insertion; insertions at one
    /// place keep their order.
    pub(super) fn replace_with(&mut self, span: Span, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.arena.len();
        write(&mut self.arena);
        self.list.push((span, Span { start, end: self.arena.len() }));
    }

    pub(super) fn replace(&mut self, span: Span, bytes: &[u8]) {
        self.replace_with(span, |arena| arena.extend_from_slice(bytes));
    }

    pub(super) fn insert(&mut self, at: usize, bytes: &[u8]) {
        self.replace(Span { start: at, end: at }, bytes);
    }

    pub(super) fn delete(&mut self, span: Span) {
        self.replace(span, &[]);
    }

    /// Appends `json` with all changes to `out`. A change inside an earlier one (text in a choice
    /// that is dropped) is void.
    pub(super) fn apply(&mut self, json: &[u8], out: &mut Vec<u8>) {
        // At one place: insertions, then the widest replacement.
        self.list
            .sort_by_key(|(span, _)| (span.start, !span.is_empty(), std::cmp::Reverse(span.end)));
        let mut at = 0;
        for (span, arena) in &self.list {
            if span.start < at {
                continue;
            }
            out.extend_from_slice(json.get(at..span.start).unwrap_or(&[]));
            out.extend_from_slice(arena.of(&self.arena));
            at = span.end;
        }
        out.extend_from_slice(json.get(at..).unwrap_or(&[]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applies_in_place_whatever_the_order() {
        let mut edits = Edits::default();
        edits.replace(Span { start: 6, end: 7 }, b"G");
        edits.delete(Span { start: 1, end: 4 });
        edits.replace(Span { start: 2, end: 3 }, b"void");
        edits.insert(5, b"1");
        edits.insert(5, b"2");
        edits.insert(6, b"f");
        let mut out = Vec::new();
        edits.apply(b"abcdefgh", &mut out);
        assert_eq!(out, b"ae12ffGh");
    }
}
