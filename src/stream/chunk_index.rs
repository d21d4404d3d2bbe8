//! Which chunk brought which character, for as long as a match could still begin there.
//!
//! One number serves while all that is held came in one chunk, which is nearly always; only a hold
//! that spans chunks needs a list, bounded by the longest stop.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkIndex {
    /// The chunk of the first unit of the window.
    first: u64,
    /// Later chunks in the window as (offset of their first unit, chunk), ascending. Chunks without
    /// text have no entry.
    // Boxed, so that a stream that holds nothing across chunks has a pointer here and no more.
    #[allow(clippy::box_collection, reason = "eight bytes in place of thirty-two")]
    later: Option<Box<VecDeque<(u64, u64)>>>,
}

impl ChunkIndex {
    /// Chunk `chunk`, whose text begins at `offset`, was read; from now on only positions from
    /// `window` on will be asked for.
    #[inline]
    pub(super) fn note(&mut self, window: u64, offset: u64, chunk: u64) {
        if window >= offset {
            self.first = chunk;
            if let Some(later) = &mut self.later {
                later.clear();
            }
        } else {
            self.append(window, offset, chunk);
        }
    }

    #[cold]
    fn append(&mut self, window: u64, offset: u64, chunk: u64) {
        let later = self.later.get_or_insert_default();
        // The U+FFFD of a flush is one more unit of the last chunk, which is known already.
        if later.back().map_or(self.first, |&(_, chunk)| chunk) != chunk {
            later.push_back((offset, chunk));
        }
        while let Some(&(_, chunk)) = later.front().filter(|(start, _)| *start <= window) {
            self.first = chunk;
            later.pop_front();
        }
    }

    /// The chunk of the unit at `position`, which is in the window and before the chunk being read.
    pub(super) fn chunk_of(&self, position: u64) -> u64 {
        let later = self.later.iter().flat_map(|later| later.iter().rev());
        later.clone().find(|(start, _)| *start <= position).map_or(self.first, |(_, chunk)| *chunk)
    }

    /// First chunk and later ones, for pickling.
    pub(super) fn export(&self) -> (u64, Vec<(u64, u64)>) {
        (self.first, self.later.iter().flat_map(|later| later.iter().copied()).collect())
    }

    /// The reverse of [`ChunkIndex::export`].
    pub(super) fn import(first: u64, later: Vec<(u64, u64)>) -> Self {
        Self { first, later: (!later.is_empty()).then(|| Box::new(later.into())) }
    }
}

#[cfg(test)]
mod tests {
    use super::ChunkIndex;

    #[test]
    fn finds_the_chunk_of_every_position_in_the_window() {
        let mut index = ChunkIndex::default();
        index.note(3, 0, 7); // chunk 7 brought 0..5, the window begins at 3
        index.note(3, 5, 8); // chunk 8 brought 5..6
        index.note(4, 6, 10); // chunk 9 was empty, chunk 10 brought 6..9
        assert_eq!([4, 5, 6, 8].map(|p| index.chunk_of(p)), [7, 8, 10, 10]);
        index.note(6, 9, 11);
        assert_eq!([6, 8, 9].map(|p| index.chunk_of(p)), [10, 10, 11]);
        let (first, later) = index.export();
        assert_eq!((first, later.as_slice()), (10, [(9, 11)].as_slice()));
        assert_eq!(ChunkIndex::import(first, later), index);
        index.note(12, 12, 12);
        assert_eq!(index.chunk_of(13), 12);
    }
}
