//! The text that a machine holds, where no state stands for it.
#![forbid(unsafe_code)]

use super::Advance;
use crate::automaton::{CodeUnit, UnitKind};

/// What is held, and what the last chunk released of it, as (UTF-8) bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HeldText {
    held: Vec<u8>,
    /// In units.
    len: usize,
    released: Vec<u8>,
}

impl HeldText {
    /// `None` for bytes that are not text where text is meant.
    pub(super) fn new(held: Vec<u8>, kind: UnitKind) -> Option<Self> {
        if kind == UnitKind::Characters && std::str::from_utf8(&held).is_err() {
            return None;
        }
        let len = kind.units(&held).count();
        Some(Self { held, len, released: Vec::new() })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.held
    }

    pub(super) fn released(&self) -> &[u8] {
        &self.released
    }

    /// Emits `emitted` units of what is held and of `chunk`, and holds the rest of both.
    pub(super) fn emit<U: CodeUnit>(
        &mut self,
        kind: UnitKind,
        chunk: &[U],
        emitted: usize,
    ) -> Advance {
        let advance = Advance::of(emitted, self.len);
        self.released.clear();
        if advance.released > 0 {
            let bytes = kind.prefix_len(&self.held, advance.released);
            self.released.extend(self.held.drain(..bytes));
        }
        for unit in &chunk[advance.passed..] {
            push_unit(&mut self.held, kind, unit.code());
        }
        self.len = self.len + chunk.len() - emitted;
        advance
    }

    /// Drops what is held.
    pub(super) fn drop_held(&mut self) {
        self.held.clear();
        self.len = 0;
    }

    /// Moves all that is held to what was released.
    pub(super) fn flush(&mut self) {
        self.released = std::mem::take(&mut self.held);
        self.len = 0;
    }
}

fn push_unit(text: &mut Vec<u8>, kind: UnitKind, code: u32) {
    match kind {
        // Units of a byte stream are below 256.
        UnitKind::Bytes => text.push(u8::try_from(code).unwrap_or(u8::MAX)),
        UnitKind::Characters => {
            let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}
