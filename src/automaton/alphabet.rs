//! Classes: the distinct units of a stop list, numbered in ascending order from 1; every other unit
//! is class 0.
//!
//! A unit is a character of a text stream or a byte of a byte stream, as a `u32`. Classes make a
//! dense row as short as the list's own alphabet (a row over raw characters would have 1,114,112
//! entries), and keep their order, so that sorting stops by class strings and by their UTF-8 is the
//! same thing.
#![forbid(unsafe_code)]

use super::unit::CodeUnit;

/// Class 0: a unit that stands in no stop.
pub(crate) const OTHER: u32 = 0;

const PAGE: usize = 256;
const PAGES: usize = 0x11_0000 / PAGE;

/// Maps units to classes.
#[derive(Debug)]
pub(crate) struct Alphabet {
    /// Classes of units below 256. At most 256 of them, so 16 bits are enough.
    narrow: [u16; PAGE],
    /// Classes of the rest; absent when no stop has such a unit, which is the usual list.
    wide: Option<Box<Wide>>,
    len: u32,
}

/// Two levels: a page number for every 256 units, and the pages that hold anything. Page 0 is all
/// [`OTHER`].
#[derive(Debug)]
struct Wide {
    index: Box<[u16]>,
    pages: Vec<[u32; PAGE]>,
}

impl Alphabet {
    /// The alphabet of all units in `units`.
    pub(crate) fn new(units: impl Iterator<Item = u32> + Clone) -> Self {
        let mut narrow = [0u16; PAGE];
        let mut wide: Option<Box<Wide>> = None;
        for unit in units {
            if let Some(seen) = narrow.get_mut(unit as usize) {
                *seen = 1;
            } else {
                wide.get_or_insert_with(|| Box::new(Wide::new())).mark(unit);
            }
        }
        let mut len = 1;
        for class in narrow.iter_mut().filter(|seen| **seen != 0) {
            *class = len;
            len += 1;
        }
        let mut len = u32::from(len);
        if let Some(wide) = &mut wide {
            len = wide.number(len);
        }
        Self { narrow, wide, len }
    }

    /// Number of classes, [`OTHER`] included.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The class of `unit`, or [`OTHER`].
    #[inline]
    pub(crate) fn class<U: CodeUnit>(&self, unit: U) -> u32 {
        let code = unit.code();
        match self.narrow.get(code as usize) {
            Some(&class) => u32::from(class),
            None => self.wide.as_ref().map_or(OTHER, |wide| wide.class(code)),
        }
    }

    /// Heap bytes of this alphabet.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.wide.as_ref().map_or(0, |w| {
            size_of::<Wide>() + w.index.len() * 2 + w.pages.len() * size_of::<[u32; PAGE]>()
        })
    }
}

impl Wide {
    fn new() -> Self {
        Self { index: vec![0; PAGES].into_boxed_slice(), pages: vec![[OTHER; PAGE]] }
    }

    fn mark(&mut self, unit: u32) {
        let slot = &mut self.index[unit as usize / PAGE];
        if *slot == 0 {
            // At most PAGES pages, so the number fits 16 bits.
            *slot = u16::try_from(self.pages.len()).unwrap_or(0);
            self.pages.push([OTHER; PAGE]);
        }
        self.pages[*slot as usize][unit as usize % PAGE] = 1;
    }

    /// Numbers the marked units in ascending order from `next`; gives the first unused number.
    fn number(&mut self, mut next: u32) -> u32 {
        for &page in self.index.iter().filter(|page| **page != 0) {
            for class in self.pages[page as usize].iter_mut().filter(|seen| **seen != 0) {
                *class = next;
                next += 1;
            }
        }
        next
    }

    #[inline]
    fn class(&self, code: u32) -> u32 {
        // Out of range only for a `u32` that is no character; such a unit stands in no stop.
        self.index
            .get(code as usize / PAGE)
            .map_or(OTHER, |&page| self.pages[page as usize][code as usize % PAGE])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_ascend_and_cover_exactly_the_list() {
        let text = "zaé語😀a\u{0}\u{10ffff}";
        let alphabet = Alphabet::new(text.chars().map(u32::from));
        let mut distinct: Vec<char> = text.chars().collect();
        distinct.sort_unstable();
        distinct.dedup();
        for (k, c) in distinct.iter().enumerate() {
            assert_eq!(alphabet.class(u32::from(*c)) as usize, k + 1, "{c:?}");
        }
        assert_eq!(alphabet.len() as usize, distinct.len() + 1);
        for other in ['b', 'ÿ', '話', '😁'] {
            assert_eq!(alphabet.class(u32::from(other)), OTHER);
        }
        assert_eq!(alphabet.class(u32::MAX), OTHER);
    }
}
