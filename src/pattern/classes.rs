//! Classes of units: units that no set of a list of sets tells apart are one class.
//!
//! Class numbers are small, so a row of a table is as short as the patterns allow; a unit is mapped
//! by one load below 256 and by two above.
#![forbid(unsafe_code)]

use crate::automaton::CodeUnit;

/// Ranges of units, ascending and apart from each other, both ends included.
pub(super) type Ranges = Box<[(u32, u32)]>;

const PAGE: usize = 256;
const PAGES: usize = 0x11_0000 / PAGE;
/// Set in the index of pages when all units of one have the same class.
const UNIFORM: u16 = 1 << 15;

/// Which class a unit is of.
#[derive(Debug)]
pub(crate) struct Classes {
    narrow: [u16; PAGE],
    /// Absent when all units above 255 are of one class, which is `beyond`.
    wide: Option<Box<Wide>>,
    beyond: u16,
    len: usize,
}

/// For every 256 units their class, or the number of a page with a class for each.
#[derive(Debug)]
struct Wide {
    index: Box<[u16]>,
    pages: Vec<[u16; PAGE]>,
}

/// More classes than this do not fit the index.
pub(super) const MOST: usize = UNIFORM as usize - 1;

impl Classes {
    /// The coarsest classes that every one of `sets` is a union of, and for each set its classes,
    /// ascending. `None` for more than [`MOST`], or when `work` (units of work, a few nanoseconds
    /// each) runs out.
    pub(super) fn new(
        sets: &[Ranges],
        bytes: bool,
        work: &mut usize,
    ) -> Option<(Self, Vec<Vec<u16>>)> {
        let end = if bytes { 0x100 } else { 0x11_0000 };
        // Where something begins, or has ended.
        let mut borders: Vec<u32> = Vec::with_capacity(2 + sets.len() * 2);
        borders.extend([0, end]);
        for &(from, to) in sets.iter().flatten() {
            borders.extend([from, to + 1]);
        }
        spend(work, borders.len())?;
        borders.sort_unstable();
        borders.dedup();
        // Each set splits every class that it has only a part of.
        let mut of = vec![0u16; borders.len() - 1];
        let mut size = vec![of.len()];
        let mut inside: Vec<usize> = vec![0];
        let mut split: Vec<u16> = vec![0];
        for set in sets {
            let mut touched: Vec<u16> = Vec::new();
            let spans = |visit: &mut dyn FnMut(usize)| {
                for &(from, to) in set {
                    let first = borders.partition_point(|&border| border < from);
                    for at in (first..).take_while(|&at| borders[at] <= to) {
                        visit(at);
                    }
                }
            };
            let mut count = 0;
            spans(&mut |at| {
                count += 1;
                let class = of[at] as usize;
                if inside[class] == 0 {
                    touched.push(of[at]);
                }
                inside[class] += 1;
            });
            spend(work, count)?;
            for &class in &touched {
                let class = class as usize;
                split[class] = u16::MAX;
                if inside[class] < size[class] {
                    if size.len() > MOST {
                        return None;
                    }
                    split[class] = u16::try_from(size.len()).ok()?;
                    size[class] -= inside[class];
                    size.push(inside[class]);
                    inside.push(0);
                    split.push(0);
                }
                inside[class] = 0;
            }
            spans(&mut |at| {
                if split[of[at] as usize] != u16::MAX {
                    of[at] = split[of[at] as usize];
                }
            });
        }
        let members = sets
            .iter()
            .map(|set| {
                let mut members: Vec<u16> = Vec::new();
                for &(from, to) in set {
                    let first = borders.partition_point(|&border| border < from);
                    let at = (first..).take_while(|&at| borders[at] <= to);
                    members.extend(at.map(|at| of[at]));
                }
                members.sort_unstable();
                members.dedup();
                members
            })
            .collect();
        Some((Self::of_intervals(&borders, &of, size.len()), members))
    }

    fn of_intervals(borders: &[u32], of: &[u16], len: usize) -> Self {
        let mut narrow = [0; PAGE];
        let mut wide: Option<Box<Wide>> = None;
        let beyond = of.last().copied().unwrap_or(0);
        for (at, &class) in of.iter().enumerate() {
            let (from, to) = (borders[at] as usize, borders[at + 1] as usize);
            if from < PAGE {
                narrow[from..to.min(PAGE)].fill(class);
            }
            if to > PAGE && (wide.is_some() || class != beyond) {
                let wide = wide.get_or_insert_with(|| Box::new(Wide::new(beyond)));
                wide.fill(from.max(PAGE), to, class);
            }
        }
        Self { narrow, wide, beyond, len }
    }

    /// Number of classes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn class<U: CodeUnit>(&self, unit: U) -> usize {
        let code = unit.code() as usize;
        match self.narrow.get(code) {
            Some(&class) => class.into(),
            None => self.wide.as_ref().map_or(self.beyond, |wide| wide.class(code)).into(),
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.wide.as_ref().map_or(0, |wide| {
            size_of::<Wide>() + wide.index.len() * 2 + wide.pages.len() * size_of::<[u16; PAGE]>()
        })
    }
}

impl Wide {
    fn new(class: u16) -> Self {
        Self { index: vec![class | UNIFORM; PAGES].into_boxed_slice(), pages: Vec::new() }
    }

    fn fill(&mut self, from: usize, to: usize, class: u16) {
        let mut at = from;
        while at < to {
            let page = at / PAGE;
            let end = to.min((page + 1) * PAGE);
            if end - at == PAGE {
                self.index[page] = class | UNIFORM;
            } else {
                let known = self.index[page];
                if known & UNIFORM != 0 {
                    // At most as many pages as there are, 4,352, so the number fits.
                    self.index[page] = u16::try_from(self.pages.len()).unwrap_or(0);
                    self.pages.push([known & !UNIFORM; PAGE]);
                }
                self.pages[self.index[page] as usize][at % PAGE..][..end - at].fill(class);
            }
            at = end;
        }
    }

    #[inline]
    fn class(&self, code: usize) -> u16 {
        // Out of range only for a `u32` that is no character, which never comes.
        let entry = self.index.get(code / PAGE).copied().unwrap_or(UNIFORM);
        if entry & UNIFORM != 0 {
            entry & !UNIFORM
        } else {
            self.pages[entry as usize][code % PAGE]
        }
    }
}

/// Takes `cost` from `work`; `None` when there is not so much left.
pub(super) fn spend(work: &mut usize, cost: usize) -> Option<()> {
    *work = work.checked_sub(cost)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_the_coarsest_that_tell_all_sets_apart() {
        let sets: Vec<Ranges> = [
            vec![(0x61, 0x7a)],
            vec![(0x61, 0x61)],
            vec![(0, 9), (0x20, 0x10_ffff)],
            vec![(0x400, 0x4ff), (0x4e00, 0x9fff), (0x1_f600, 0x1_f601)],
            vec![(0x410, 0x4e10)],
            vec![],
            vec![(0x61, 0x7a)],
        ]
        .map(Vec::into_boxed_slice)
        .to_vec();
        let (classes, members) = Classes::new(&sets, false, &mut 100_000).unwrap();
        let holds = |set: &Ranges, unit: u32| set.iter().any(|&(a, b)| a <= unit && unit <= b);
        let mut by_class = std::collections::HashMap::new();
        for unit in (0..0xa100).chain(0x1_f5f0..0x1_f610).chain([0x10_ffff]) {
            let class = classes.class(unit);
            assert!(class < classes.len());
            let signature: Vec<bool> = sets.iter().map(|set| holds(set, unit)).collect();
            for (set, &inside) in signature.iter().enumerate() {
                let member = members[set].contains(&u16::try_from(class).unwrap());
                assert_eq!(member, inside, "{unit:x} in set {set}");
            }
            assert_eq!(by_class.entry(class).or_insert_with(|| signature.clone()), &signature);
        }
        let distinct: std::collections::HashSet<_> = by_class.values().collect();
        assert_eq!(distinct.len(), classes.len());
        assert!(Classes::new(&sets, false, &mut 3).is_none());
        let (classes, _) = Classes::new(&sets[..2], true, &mut 1_000).unwrap();
        assert_eq!([b'a', b'b', b'0'].map(|b| classes.class(b)).len(), 3);
        assert_eq!(classes.len(), 3);
    }
}
