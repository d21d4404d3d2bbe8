//! Frames of a byte stream: server-sent events, and JSON lines.
//!
//! [`Framer::next`] looks at the bytes from the end of the last frame on and says how long the next
//! one is and where its data stands. It remembers how far it has looked, so a frame that arrives
//! byte by byte is read once. Frames are found by their content only: the same bytes give the same
//! frames however they are cut.
//!
//! Server-sent events: a frame is a block of lines with the blank line that ends it. A comment that
//! no field precedes in its block is a frame of its own, and so is a byte order mark at the very
//! beginning. Lines end with LF, CRLF or CR; since a CR at the end of the input may be half of a
//! CRLF, it waits for the next byte, unless the stream's first line ended with a CR alone: in such
//! a stream a CR always ends a line.
#![forbid(unsafe_code)]

use super::json::{Span, equal, find};

/// How a provider cuts its stream into events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// `data: {...}` and a blank line.
    Events,
    /// One object a line.
    Lines,
}

impl Framing {
    /// True if these bytes, which follow a frame's data, end the frame.
    pub(super) fn complete(self, after: &[u8]) -> bool {
        match self {
            Self::Events => matches!(
                after,
                [.., b'\n', b'\n' | b'\r'] | [.., b'\n', b'\r', b'\n'] | [.., b'\r', b'\r']
            ),
            Self::Lines => after.ends_with(b"\n"),
        }
    }
}

/// One frame, by offsets from its first byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    /// Bytes of the frame, line ends included.
    pub(super) len: usize,
    /// What the frame says; `None` for a comment, a blank line, an event without data.
    pub(super) data: Option<Span>,
    /// Further `data:` lines of the same event, whose texts join with a line feed.
    pub(super) more: Vec<Span>,
    /// A line that is no field of server-sent events: what came is something else.
    pub(super) strange: bool,
    /// An `error:` field stands here (older llama.cpp servers put mid-stream errors there).
    pub(super) error: bool,
}

/// A reader of frames.
#[derive(Clone, Debug)]
pub(super) struct Framer {
    framing: Framing,
    /// False until the first byte that is no byte order mark.
    begun: bool,
    /// What ended the first line; decides nothing but what a lone CR at the end of the input means.
    bare_cr: Option<bool>,
    /// Where the line being read begins, and up to where it was searched for its end.
    line: usize,
    searched: usize,
    /// Some line of this block was not a comment.
    fields: bool,
    frame: Frame,
}

const BOM: &[u8] = b"\xEF\xBB\xBF";

impl Framer {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            begun: false,
            bare_cr: None,
            line: 0,
            searched: 0,
            fields: false,
            frame: Frame::default(),
        }
    }

    /// The next frame of `bytes`, which begin where the last frame ended and only ever grow until
    /// one is found. `None`: more bytes are needed. With `last`, what is left is a frame too.
    pub(super) fn next(&mut self, bytes: &[u8], last: bool) -> Option<Frame> {
        if bytes.is_empty() {
            return None;
        }
        if !self.begun {
            if bytes.len() < BOM.len() && BOM.starts_with(bytes) && !last {
                return None;
            }
            self.begun = true;
            if bytes.starts_with(BOM) {
                return Some(Frame { len: BOM.len(), ..Frame::default() });
            }
        }
        loop {
            let Some((end, next)) = self.line_end(bytes, last) else {
                if !last {
                    return None;
                }
                // An unfinished last line counts as a line: some servers leave out the last blank
                // line.
                if self.line < bytes.len() {
                    let line = Span { start: self.line, end: bytes.len() };
                    self.read_line(bytes, line);
                }
                return Some(self.complete(bytes.len()));
            };
            let line = Span { start: self.line, end };
            self.line = next;
            self.searched = next;
            let ends = self.read_line(bytes, line);
            if ends {
                return Some(self.complete(next));
            }
        }
    }

    fn complete(&mut self, len: usize) -> Frame {
        (self.line, self.searched, self.fields) = (0, 0, false);
        Frame { len, ..std::mem::take(&mut self.frame) }
    }

    /// Where the line being read ends, and where the next one begins.
    fn line_end(&mut self, bytes: &[u8], last: bool) -> Option<(usize, usize)> {
        let carriage_returns = self.framing == Framing::Events;
        let at = find_line_end(bytes, self.searched, carriage_returns);
        self.searched = at;
        match bytes.get(at)? {
            b'\n' => {
                self.bare_cr.get_or_insert(false);
                Some((at, at + 1))
            }
            _ if self.bare_cr == Some(true) => Some((at, at + 1)),
            _ if last && at + 1 == bytes.len() => Some((at, at + 1)),
            _ => {
                let next = *bytes.get(at + 1)?;
                self.bare_cr.get_or_insert(next != b'\n');
                Some((at, if next == b'\n' { at + 2 } else { at + 1 }))
            }
        }
    }

    /// Takes note of a line; true if it ends a frame.
    fn read_line(&mut self, bytes: &[u8], line: Span) -> bool {
        let text = line.of(bytes);
        if self.framing == Framing::Lines {
            let before = text.len() - text.trim_ascii_start().len();
            let inner = text.trim_ascii();
            if !inner.is_empty() {
                self.frame.data = Some(Span {
                    start: line.start + before,
                    end: line.start + before + inner.len(),
                });
            }
            return true;
        }
        match text {
            [] => return true,
            [b':', ..] => return !self.fields,
            [b'd', b'a', b't', b'a', rest @ ..] => {
                let value = match rest {
                    [] => Some(0),
                    [b':', b' ', ..] => Some(2),
                    [b':', ..] => Some(1),
                    _ => {
                        self.frame.strange |= !is_field(text);
                        None
                    }
                };
                if let Some(skip) = value {
                    let data = Span { start: line.start + 4 + skip, end: line.end };
                    match self.frame.data {
                        Some(first) if !first.is_empty() => self.frame.more.push(data),
                        // An empty line adds nothing to JSON, and one without its colon could not be
                        // written again with a value.
                        _ => self.frame.data = Some(data),
                    }
                }
            }
            [b'e', b'r', b'r', b'o', b'r', b':', ..] => self.frame.error = true,
            _ => self.frame.strange |= !is_field(text),
        }
        self.fields = true;
        false
    }
}

/// A field's name is a word, which readers who do not know it leave alone. `Data` is none of them:
/// some reader may take it for `data`.
fn is_field(line: &[u8]) -> bool {
    let name = line.split(|&byte| byte == b':').next().unwrap_or(&[]);
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    name.iter().all(word) && !name.eq_ignore_ascii_case(b"data")
}

/// The position of the first line end from `at` on, or the length.
#[inline]
fn find_line_end(bytes: &[u8], at: usize, carriage_returns: bool) -> usize {
    if carriage_returns {
        find_either(bytes, at, b'\n', b'\r')
    } else {
        find_either(bytes, at, b'\n', b'\n')
    }
}

#[inline]
fn find_either(bytes: &[u8], at: usize, one: u8, other: u8) -> usize {
    const STEP: usize = 32;
    let rest = bytes.get(at..).unwrap_or(&[]);
    // A fold over a block of fixed size, without a way out, becomes a few vector instructions.
    let holds = |block: &&[u8]| {
        block.iter().fold(0, |found, &byte| found | u8::from(byte == one) | u8::from(byte == other))
            != 0
    };
    let blocks = rest.chunks_exact(STEP).take_while(|block| !holds(block)).count();
    find(
        bytes,
        at + blocks * STEP,
        |word| equal(word, one) | equal(word, other),
        |byte| byte == one || byte == other,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All frames as (bytes, data, error), with the input arriving in pieces.
    fn frames(framing: Framing, pieces: &[&[u8]]) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let (mut framer, mut pending, mut found) = (Framer::new(framing), Vec::new(), Vec::new());
        for (index, piece) in pieces.iter().enumerate() {
            pending.extend_from_slice(piece);
            let last = index + 1 == pieces.len();
            while let Some(frame) = framer.next(&pending, last) {
                let data = frame.data.map(|data| {
                    let mut text = data.of(&pending).to_vec();
                    for more in &frame.more {
                        text.push(b'\n');
                        text.extend_from_slice(more.of(&pending));
                    }
                    text
                });
                found.push((pending.drain(..frame.len).collect(), data));
            }
        }
        assert!(pending.is_empty());
        found
    }

    #[test]
    fn events_of_every_line_end_and_shape() {
        for end in ["\n", "\r\n", "\r"] {
            let text = [
                "\u{feff}: hello",
                "data: 1",
                "",
                "",
                "event: x",
                "data:2",
                ": inside",
                "data",
                "data:  3",
                "datax: 4",
                "",
                "data",
                "data: 6",
                "",
                ":",
                "data: 5",
            ]
            .join(end);
            let found = frames(Framing::Events, &[text.as_bytes()]);
            let data: Vec<Option<&str>> = found
                .iter()
                .map(|(_, data)| data.as_deref().map(|data| std::str::from_utf8(data).unwrap()))
                .collect();
            assert_eq!(
                data,
                [None, None, Some("1"), None, Some("2\n\n 3"), Some("6"), None, Some("5")],
                "{end:?}"
            );
            assert_eq!(
                found.iter().flat_map(|(bytes, _)| bytes.clone()).collect::<Vec<_>>(),
                text.as_bytes()
            );
            for cut in 0..=text.len() {
                let (left, right) = text.as_bytes().split_at(cut);
                assert_eq!(frames(Framing::Events, &[left, right]), found, "{end:?} cut at {cut}");
            }
            let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(frames(Framing::Events, &single), found, "{end:?} byte by byte");
        }
    }

    #[test]
    fn lines_keep_their_blanks() {
        let text = b"{\"a\":1}\n\r\n  {\"b\":2} \r\n{\"c\":3}";
        let found = frames(Framing::Lines, &[text]);
        let data: Vec<Option<&[u8]>> = found.iter().map(|(_, data)| data.as_deref()).collect();
        assert_eq!(data, [Some(&b"{\"a\":1}"[..]), None, Some(b"{\"b\":2}"), Some(b"{\"c\":3}")]);
    }

    #[test]
    fn a_carriage_return_waits_unless_it_is_the_streams_own_line_end() {
        let mut framer = Framer::new(Framing::Events);
        assert_eq!(framer.next(b"data: 1\r\n\r", false), None);
        assert_eq!(framer.next(b"data: 1\r\n\r\n", false).unwrap().len, 11);
        let mut framer = Framer::new(Framing::Events);
        assert_eq!(framer.next(b"data: 1\r", false), None);
        assert_eq!(framer.next(b"data: 1\r\r", false).unwrap().len, 9);
    }

    #[test]
    fn finds_line_ends_in_and_behind_blocks() {
        let mut bytes = vec![b'x'; 100];
        assert_eq!(find_line_end(&bytes, 0, true), 100);
        for at in [0, 31, 32, 63, 95, 96, 99] {
            bytes[at] = b'\r';
            assert_eq!(
                (find_line_end(&bytes, 0, true), find_line_end(&bytes, 0, false)),
                (at, 100)
            );
            bytes[at] = b'x';
        }
    }
}
