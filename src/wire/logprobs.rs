//! Log-probabilities: one entry a token, which leaves with the first character of its token's text
//! and is dropped with it.
//!
//! An array of entries stands beside the text in the same frame, sometimes several in parallel
//! (`tokens`, `token_logprobs`, ...), here called columns. The first column says how much text an
//! entry covers: by its `bytes`, else by its token's own text. Counting starts afresh at each
//! frame's text, so a token whose text cannot be told exactly shifts nothing behind its frame.
//! Entries that cover less than their frame's text are laid to its end: an entry may be held too
//! long, but never tells what is held.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use super::json::{Cursor, JsonResult, Kind, Malformed, Span};
use super::text;

/// At most this many arrays run in parallel.
pub(super) const COLUMNS: usize = 4;

/// The arrays of one frame; the first one that is present leads.
pub(super) type Columns = [Option<Span>; COLUMNS];

#[derive(Clone, Debug)]
struct Entry {
    /// Where its text begins, in UTF-8 bytes of the message text.
    start: u64,
    columns: [Vec<u8>; COLUMNS],
}

impl Entry {
    fn len(&self) -> usize {
        self.columns.iter().map(Vec::len).sum::<usize>() + size_of::<Self>()
    }
}

/// Entries held back.
#[derive(Clone, Debug)]
pub(super) struct Logprobs {
    queue: VecDeque<Entry>,
    bytes: usize,
    /// Reading stops beyond this many bytes: an entry of one byte costs a hundred.
    limit: usize,
    full: bool,
}

/// How far the text has left when a frame's entries are sorted into those that go and those that
/// stay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Where the frame's own text begins.
    pub(super) start: u64,
    /// Where it ends.
    pub(super) end: u64,
    /// Up to where the text has left.
    pub(super) decoded_out: u64,
    /// Some text is still held.
    pub(super) holds: bool,
    /// The text is over: what has not left is dropped.
    pub(super) over: bool,
}

impl Logprobs {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn new(limit: usize) -> Self {
        Self { queue: VecDeque::new(), bytes: 0, limit, full: false }
    }

    /// Memory held, in bytes; the largest number there is once the limit was passed.
    pub(super) fn bytes(&self) -> usize {
        if self.full { usize::MAX } else { self.bytes }
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.bytes = 0;
    }

    /// Sorts the entries held and those of a frame. The inside of each array that the frame should
    /// have is appended to `out`; false if the frame's own arrays can stay as they are. So can
    /// arrays that cannot be read.
    pub(super) fn sort(
        &mut self,
        json: &[u8],
        columns: &Columns,
        progress: Progress,
        out: &mut [Vec<u8>; COLUMNS],
    ) -> bool {
        if self.queue.is_empty() && !progress.holds && !progress.over {
            return false;
        }
        let held = self.queue.len();
        if self.read(json, columns, progress).is_err() {
            for entry in self.queue.drain(held..) {
                self.bytes -= entry.len();
            }
            return false;
        }
        let goes = |entry: &Entry| {
            if progress.over {
                entry.start < progress.decoded_out
            } else {
                !progress.holds || entry.start < progress.decoded_out
            }
        };
        let count = self.queue.iter().take_while(|entry| goes(entry)).count();
        if held == 0 && count == self.queue.len() {
            self.clear();
            return false;
        }
        for entry in self.queue.drain(..count) {
            self.bytes -= entry.len();
            append(&entry, out);
        }
        if progress.over {
            self.clear();
        }
        true
    }

    /// Everything held leaves.
    pub(super) fn flush(&mut self, out: &mut [Vec<u8>; COLUMNS]) {
        for entry in &self.queue {
            append(entry, out);
        }
        self.clear();
    }

    fn read(&mut self, json: &[u8], columns: &Columns, progress: Progress) -> JsonResult<()> {
        let first = self.queue.len();
        let mut at = progress.start;
        for (column, array) in columns.iter().enumerate() {
            let Some(array) = array else { continue };
            let leads = columns.iter().take(column).all(Option::is_none);
            let queue = &mut self.queue;
            let (bytes, full, limit) = (&mut self.bytes, &mut self.full, self.limit);
            Cursor::at(json, *array).array(|cursor, index| {
                let begin = cursor.position();
                if *bytes > limit {
                    *full = true;
                    return Err(Malformed {
                        what: "more log-probabilities than can be held",
                        at: begin,
                    });
                }
                let length =
                    if leads { covered(cursor, json)? } else { cursor.skip().map(|_| 0)? };
                let raw = Span { start: begin, end: cursor.position() }.of(json);
                if leads {
                    let entry = Entry { start: at, columns: [const { Vec::new() }; COLUMNS] };
                    *bytes += entry.len();
                    queue.push_back(entry);
                    at += length;
                }
                if let Some(entry) = queue.get_mut(first + index) {
                    if let Some(slot) = entry.columns.get_mut(column) {
                        *bytes += raw.len();
                        *slot = raw.to_vec();
                    }
                }
                Ok(())
            })?;
        }
        let short = progress.end.saturating_sub(at);
        for entry in self.queue.range_mut(first..) {
            entry.start += short;
        }
        Ok(())
    }
}

fn append(entry: &Entry, out: &mut [Vec<u8>; COLUMNS]) {
    for (column, out) in entry.columns.iter().zip(out) {
        if !column.is_empty() {
            if !out.is_empty() {
                out.push(b',');
            }
            out.extend_from_slice(column);
        }
    }
}

/// UTF-8 bytes of text that the entry at the cursor covers.
fn covered(cursor: &mut Cursor<'_>, json: &[u8]) -> JsonResult<u64> {
    match cursor.kind() {
        Kind::String => cursor.string().map(|token| text::decoded_len(token.of(json)) as u64),
        Kind::Object => {
            let (mut token, mut bytes) = (0, None);
            cursor.object(|cursor, key| {
                match (key, cursor.kind()) {
                    (b"token" | b"content", Kind::String) => {
                        token = text::decoded_len(cursor.string()?.of(json)) as u64;
                    }
                    (b"bytes", Kind::Array) => {
                        let mut count = 0;
                        cursor.array(|cursor, _| {
                            count += 1;
                            cursor.skip().map(|_| ())
                        })?;
                        bytes = Some(count);
                    }
                    _ => {
                        cursor.skip()?;
                    }
                }
                Ok(())
            })?;
            Ok(bytes.unwrap_or(token))
        }
        _ => cursor.skip().map(|_| 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_leaves_with_the_first_character_of_its_text() {
        let json =
            br#"[{"token":"ab","bytes":[97,98]},{"token":"\u00e9"},{"token":"c","bytes":null}]"#;
        let columns = [Some(Span { start: 0, end: json.len() }), None, None, None];
        let mut entries = Logprobs::new(1 << 20);
        let mut out = Default::default();
        let progress = Progress { start: 10, end: 15, decoded_out: 11, holds: true, over: false };
        assert!(entries.sort(json, &columns, progress, &mut out));
        assert_eq!(out[0], br#"{"token":"ab","bytes":[97,98]}"#);
        let mut out = Default::default();
        let progress = Progress { start: 15, end: 15, decoded_out: 14, holds: false, over: true };
        assert!(entries.sort(b"", &[None; COLUMNS], progress, &mut out));
        assert_eq!(out[0], br#"{"token":"\u00e9"}"#, "`c` begins at 14 and was cut");
        assert_eq!(entries.bytes(), 0);
    }

    #[test]
    fn entries_that_cover_too_little_are_laid_to_the_end_of_their_text() {
        let json = br#"["\ude00","a","b"]"#;
        let columns = [Some(Span { start: 0, end: json.len() }), None, None, None];
        let mut out = Default::default();
        let progress = Progress { start: 0, end: 6, decoded_out: 5, holds: true, over: false };
        assert!(Logprobs::new(1 << 20).sort(json, &columns, progress, &mut out));
        assert_eq!(out[0], br#""\ude00","a""#, "`b` is held");
    }

    #[test]
    fn parallel_columns_stay_in_step() {
        let json = br#"{"t":["a","b"],"p":[-1,null]}"#;
        let columns =
            [Some(Span { start: 5, end: 14 }), Some(Span { start: 19, end: 28 }), None, None];
        let mut out = Default::default();
        let progress = Progress { start: 0, end: 2, decoded_out: 1, holds: true, over: false };
        let mut entries = Logprobs::new(1 << 20);
        assert!(entries.sort(json, &columns, progress, &mut out));
        assert_eq!((out[0].as_slice(), out[1].as_slice()), (&b"\"a\""[..], &b"-1"[..]));
        let mut out = Default::default();
        entries.flush(&mut out);
        assert_eq!((out[0].as_slice(), out[1].as_slice()), (&b"\"b\""[..], &b"null"[..]));
    }
}
