//! The validated, ordered stop list: what the caller gave, in one arena, with its limits checked
//! while it grows.
//!
//! A list is only ever appended to, and every `push` checks the limits *before* it copies anything,
//! so an endless iterator of stops costs at most `max_bytes` of memory before it is refused.
#![forbid(unsafe_code)]

use crate::error::Error;

/// Limits on a stop list; exceeding one is an [`Error`] that says both numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest number of stops.
    pub max_stops: usize,
    /// The largest sum of all stops' lengths, in (UTF-8) bytes.
    pub max_bytes: usize,
}

impl Limits {
    /// No automaton can be built beyond this: states are numbered in 31 bits, one state per byte at
    /// the most.
    const CEILING: usize = 1 << 30;
}

impl Default for Limits {
    /// A million stops, 4 MiB: far beyond any real list. Compiling takes about 20 bytes of memory
    /// for each byte of a list, so the worst list under the default costs some 80 MiB and a second;
    /// a server that compiles its clients' lists sets far less.
    fn default() -> Self {
        Self { max_stops: 1_000_000, max_bytes: 4 << 20 }
    }
}

/// Which stop wins when several end at the same position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tie {
    /// The longest of them, so that no part of any stop that ends there gets out.
    #[default]
    Longest,
    /// The one listed first.
    First,
}

/// Stops in the order given, concatenated in one arena.
#[derive(Clone, Debug)]
pub struct StopList {
    arena: Vec<u8>,
    /// `ends[i]` is where stop `i` ends in `arena`; it begins where the one before it ends.
    ends: Vec<u32>,
    limits: Limits,
    ascii: bool,
    /// The first stop that was given as bytes, if any: such a list serves byte streams only.
    first_bytes: Option<usize>,
}

impl StopList {
    /// An empty list under `limits`.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { arena: Vec::new(), ends: Vec::new(), limits, ascii: true, first_bytes: None }
    }

    /// Makes room for `stops` more stops, bounded by the limits whatever the caller claims.
    pub fn reserve(&mut self, stops: usize) {
        let stops = stops.min(self.limits.max_stops).min(1 << 16);
        self.ends.reserve(stops);
        self.arena.reserve(stops * 12);
    }

    /// Appends a stop of text.
    ///
    /// # Errors
    /// When it is empty or a limit is exceeded; the list is unchanged then.
    pub fn push(&mut self, stop: &str) -> Result<(), Error> {
        self.append(stop.as_bytes())
    }

    /// Appends a stop of raw bytes; the list then serves byte streams only.
    ///
    /// # Errors
    /// When it is empty or a limit is exceeded; the list is unchanged then.
    pub fn push_bytes(&mut self, stop: &[u8]) -> Result<(), Error> {
        self.append(stop)?;
        self.first_bytes.get_or_insert(self.ends.len() - 1);
        Ok(())
    }

    /// Appends a stop that is no literal and stands here with the text that it was given.
    pub(crate) fn push_other(&mut self, text: &[u8], is_text: bool) -> Result<(), Error> {
        self.append(text)?;
        if !is_text {
            self.first_bytes.get_or_insert(self.ends.len() - 1);
        }
        self.ascii = false;
        Ok(())
    }

    fn append(&mut self, stop: &[u8]) -> Result<(), Error> {
        let index = self.ends.len();
        if stop.is_empty() {
            return Err(Error::empty_stop(index));
        }
        let limit = self.limits.max_stops.min(Limits::CEILING);
        if index >= limit {
            return Err(Error::too_many_stops(index + 1, limit));
        }
        let (total, limit) =
            (self.arena.len() + stop.len(), self.limits.max_bytes.min(Limits::CEILING));
        let Some(end) = u32::try_from(total).ok().filter(|_| total <= limit) else {
            return Err(Error::too_many_bytes(total, limit));
        };
        self.ascii &= stop.is_ascii();
        self.arena.extend_from_slice(stop);
        self.ends.push(end);
        Ok(())
    }

    /// Number of stops, duplicates included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True for a list that never stops anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Stop `index` as (UTF-8) bytes.
    ///
    /// # Panics
    /// When `index` is not below [`StopList::len`].
    #[must_use]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.arena[start..self.ends[index] as usize]
    }

    /// All stops in order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|i| self.get(i))
    }

    /// True when every stop is ASCII: then characters, bytes and classes of a text and a byte
    /// stream coincide.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.ascii
    }

    /// Refuses a list that is known to be too long before any of it is copied.
    ///
    /// # Errors
    /// When `stops` more would exceed the limit.
    pub fn check_count(&self, stops: usize) -> Result<(), Error> {
        let total = self.len().saturating_add(stops);
        if total <= self.limits.max_stops {
            Ok(())
        } else {
            Err(Error::too_many_stops(total, self.limits.max_stops))
        }
    }

    /// Bytes of all stops together.
    #[must_use]
    pub fn total_bytes(&self) -> usize {
        self.arena.len()
    }

    /// All stops one after the other.
    pub(crate) fn arena(&self) -> &[u8] {
        &self.arena
    }

    /// Where each stop ends in the arena.
    pub(crate) fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// An error naming the first stop given as bytes, if there is one.
    ///
    /// # Errors
    /// When the list cannot serve a text stream.
    pub fn check_text(&self) -> Result<(), Error> {
        self.first_bytes.map_or(Ok(()), |index| Err(Error::not_text(index)))
    }

    /// Gives back what a long list reserved too much.
    pub(crate) fn trim(&mut self) {
        if self.arena.capacity() > 1 << 12 {
            self.arena.shrink_to_fit();
            self.ends.shrink_to_fit();
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.arena.capacity() + self.ends.capacity() * 4
    }

    /// True when the list was built from text only.
    #[must_use]
    pub fn is_text(&self) -> bool {
        self.first_bytes.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_checked_before_copying() {
        let mut list = StopList::new(Limits { max_stops: 2, max_bytes: 5 });
        list.push("abc").unwrap();
        assert_eq!(
            list.push("def").unwrap_err().to_string(),
            "stops too long: 6 bytes or more in all, the limit max_bytes is 5"
        );
        assert_eq!(list.len(), 1);
        list.push("de").unwrap();
        assert_eq!(
            list.push("f").unwrap_err().to_string(),
            "too many stops: 3 or more given, the limit max_stops is 2"
        );
        assert!(list.push("").unwrap_err().to_string().contains("stop 2 is empty"));
        assert_eq!(list.iter().collect::<Vec<_>>(), [b"abc".as_slice(), b"de"]);
    }

    #[test]
    fn a_bytes_stop_is_named() {
        let mut list = StopList::new(Limits::default());
        list.push("a").unwrap();
        list.push_bytes(b"\xff").unwrap();
        list.push_bytes(b"b").unwrap();
        let error = list.check_text().unwrap_err();
        assert!(error.is_bytes_stop() && error.to_string().starts_with("stop 1 is bytes"));
        assert!(!list.is_ascii());
    }
}
