//! How far a stream has read: what every machine counts in the same way.
#![forbid(unsafe_code)]

use super::Match;
use super::chunk_index::ChunkIndex;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Units read.
    pub(super) seen: u64,
    /// Chunks read.
    pub(super) chunks: u64,
    pub(super) index: ChunkIndex,
}

impl Progress {
    /// A chunk of which `read` units were read without a match. A match can begin in the last
    /// `window` of all units from now on, and not before.
    #[inline]
    pub(super) fn pass(&mut self, read: usize, window: u64) {
        let (offset, chunk) = (self.seen, self.chunks);
        self.seen += read as u64;
        self.chunks += 1;
        if read > 0 {
            // An empty chunk brings no unit, so no match can begin in it.
            self.index.note(self.seen - window, offset, chunk);
        }
    }

    /// A chunk in which stop `index`, `len` units long, ended after `read` units.
    pub(super) fn end(&mut self, index: usize, len: u64, read: usize) -> Match {
        let (offset, chunk) = (self.seen, self.chunks);
        self.seen += read as u64;
        self.chunks += 1;
        let start = self.seen - len;
        let start_chunk = if start >= offset { chunk } else { self.index.chunk_of(start) };
        Match { index, start, end: self.seen, start_chunk, end_chunk: chunk, read, cut: start }
    }
}
