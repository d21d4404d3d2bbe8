//! The start filter: skips text in which no stop begins, at several bytes a cycle.
//!
//! A stop begins with a fingerprint, its first four units (all of them, if it is shorter).
//! Fingerprints are spread over eight buckets, and for each of the four places two tables of
//! sixteen bytes say which buckets allow a low and a high half-byte there: two shuffles and an
//! `and` test 32 positions at once (the scheme is known as Teddy). What passes is looked up in a
//! bitmap of fingerprint hashes, which makes long lists as quiet as short ones. What passes that is
//! a *candidate*, and the automaton decides.
//!
//! Units above 255 count as 255. The filter may say "perhaps" too often, never "no" wrongly.
//!
//! The vector code needs AVX2, or NEON (16 positions at once), and is chosen at run time.
//! [`Filter::find_scalar`] is the twin of both: the same tables, one position at a time.

use super::UnitKind;

/// Units of a fingerprint.
pub(super) const WIDTH: usize = 4;
/// More different fingerprints than this fill the bitmap, and half of all positions would be
/// candidates.
const MOST: usize = 8192;
/// Bits of a fingerprint's hash.
const HASH_BITS: u32 = 17;
/// The bucket of stops shorter than a fingerprint; its candidates are not looked up.
const SHORT: u8 = 1;

/// Which positions of a text cannot begin a stop.
#[derive(Debug)]
pub(super) struct Filter {
    /// Buckets that allow a low half-byte, for each place.
    low: [[u8; 16]; WIDTH],
    /// Buckets that allow a high half-byte.
    high: [[u8; 16]; WIDTH],
    hashes: Box<[u64]>,
    vector: bool,
}

impl Filter {
    /// The filter of a list; `None` where it would not pay.
    pub(super) fn new<'a>(
        stops: impl ExactSizeIterator<Item = &'a [u8]>,
        kind: UnitKind,
    ) -> Option<Self> {
        if stops.len() == 0 {
            return None;
        }
        let mut short: Vec<Vec<u8>> = Vec::new();
        let mut whole: Vec<[u8; WIDTH]> = Vec::new();
        for stop in stops {
            let units: Vec<u8> = kind.units(stop).take(WIDTH).map(narrow).collect();
            match <[u8; WIDTH]>::try_from(units) {
                Ok(units) => whole.push(units),
                Err(units) => short.push(units),
            }
        }
        whole.sort_unstable();
        whole.dedup();
        if whole.len() > MOST {
            return None;
        }
        let mut filter = Self {
            low: [[0; 16]; WIDTH],
            high: [[0; 16]; WIDTH],
            hashes: vec![0; 1 << (HASH_BITS - 6)].into_boxed_slice(),
            vector: vector_available(),
        };
        for units in &short {
            filter.allow(units, SHORT);
        }
        // Sorted fingerprints in runs of equal length: neighbours look alike, so a bucket allows
        // little that no stop of it has.
        let run = whole.len().div_ceil(7).max(1);
        for (bucket, run) in whole.chunks(run).enumerate() {
            for units in run {
                filter.allow(units, SHORT << 1 << bucket);
                let hash = hash(*units);
                filter.hashes[hash / 64] |= 1 << (hash % 64);
            }
        }
        Some(filter)
    }

    fn allow(&mut self, units: &[u8], bucket: u8) {
        for place in 0..WIDTH {
            let (low, high) = (&mut self.low[place], &mut self.high[place]);
            if let Some(&unit) = units.get(place) {
                low[usize::from(unit & 15)] |= bucket;
                high[usize::from(unit >> 4)] |= bucket;
            } else {
                // After a short stop anything may follow.
                for allowed in low.iter_mut().chain(high) {
                    *allowed |= bucket;
                }
            }
        }
    }

    /// Positions whose fingerprint is not wholly in `text` are not looked at: the last `WIDTH - 1`.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<usize> {
        #[cfg(target_arch = "x86_64")]
        if self.vector {
            // SAFETY: `vector` is only set when the processor has AVX2.
            return unsafe { self.find_avx2(text, from) };
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        if self.vector {
            // SAFETY: `vector` is only set when the processor has NEON.
            return unsafe { self.find_neon(text, from) };
        }
        self.find_scalar(text, from)
    }

    /// The first candidate at or after `from`.
    pub(super) fn find_scalar(&self, text: &[u8], from: usize) -> Option<usize> {
        let windows = text.get(from..).unwrap_or(&[]).windows(WIDTH);
        windows
            .enumerate()
            .find(|(_, units)| {
                let buckets = (0..WIDTH).fold(u8::MAX, |buckets, place| {
                    let unit = units[place];
                    buckets
                        & self.low[place][usize::from(unit & 15)]
                        & self.high[place][usize::from(unit >> 4)]
                });
                buckets != 0 && self.confirm(buckets, units)
            })
            .map(|(at, _)| from + at)
    }

    /// Whether a position that the buckets allow has the fingerprint of a stop.
    #[inline]
    fn confirm(&self, buckets: u8, units: &[u8]) -> bool {
        let Ok(units) = <[u8; WIDTH]>::try_from(units) else { return true };
        let hash = hash(units);
        buckets & SHORT != 0 || self.hashes[hash / 64] >> (hash % 64) & 1 != 0
    }

    /// # Safety
    /// The processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn find_avx2(&self, text: &[u8], from: usize) -> Option<usize> {
        use std::arch::x86_64::{
            __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256,
            _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8,
            _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16,
        };
        const STEP: usize = 32;
        let mut at = from;
        // SAFETY: AVX2 is there, says the caller. The 16 bytes of a table are loaded unaligned. In
        // the loop, `at + place + STEP <= text.len()` by its condition, since `place < WIDTH`, so
        // every unaligned load is inside `text`. A vector and 32 bytes have the same size, and
        // every pattern of bits is an array of bytes.
        unsafe {
            let table = |table: &[u8; 16]| {
                _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()))
            };
            let (low, high) = (self.low.each_ref().map(table), self.high.each_ref().map(table));
            let nibble = _mm256_set1_epi8(15);
            while at + STEP + WIDTH - 1 <= text.len() {
                let mut buckets = _mm256_set1_epi8(-1);
                for place in 0..WIDTH {
                    let units = _mm256_loadu_si256(text.as_ptr().add(at + place).cast());
                    let by_low = _mm256_shuffle_epi8(low[place], _mm256_and_si256(units, nibble));
                    let by_high = _mm256_shuffle_epi8(
                        high[place],
                        _mm256_and_si256(_mm256_srli_epi16::<4>(units), nibble),
                    );
                    buckets = _mm256_and_si256(buckets, _mm256_and_si256(by_low, by_high));
                }
                let none = _mm256_cmpeq_epi8(buckets, _mm256_setzero_si256());
                // A bit for each of the 32 bytes; the sign says nothing.
                let mut hits = !u32::from_ne_bytes(_mm256_movemask_epi8(none).to_ne_bytes());
                if hits != 0 {
                    let each = std::mem::transmute::<__m256i, [u8; STEP]>(buckets);
                    while hits != 0 {
                        let hit = hits.trailing_zeros() as usize;
                        if self.confirm(each[hit], &text[at + hit..at + hit + WIDTH]) {
                            return Some(at + hit);
                        }
                        hits &= hits - 1;
                    }
                }
                at += STEP;
            }
        }
        self.find_scalar(text, at)
    }

    /// # Safety
    /// The processor must have NEON.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    #[target_feature(enable = "neon")]
    unsafe fn find_neon(&self, text: &[u8], from: usize) -> Option<usize> {
        use std::arch::aarch64::{
            uint8x16_t, vandq_u8, vdupq_n_u8, vget_lane_u64, vld1q_u8, vqtbl1q_u8,
            vreinterpret_u64_u8, vreinterpretq_u16_u8, vshrn_n_u16, vshrq_n_u8, vtstq_u8,
        };
        const STEP: usize = 16;
        let mut at = from;
        // SAFETY: NEON is there, says the caller. A table is 16 bytes, and loads need no alignment.
        // In the loop, `at + place + STEP <= text.len()` by its condition, since `place < WIDTH`, so
        // every load is inside `text`. A vector and 16 bytes have the same size, and every pattern
        // of bits is an array of bytes.
        unsafe {
            let table = |table: &[u8; 16]| vld1q_u8(table.as_ptr());
            let (low, high) = (self.low.each_ref().map(table), self.high.each_ref().map(table));
            let nibble = vdupq_n_u8(15);
            while at + STEP + WIDTH - 1 <= text.len() {
                let mut buckets = vdupq_n_u8(u8::MAX);
                for place in 0..WIDTH {
                    let units = vld1q_u8(text.as_ptr().add(at + place));
                    let by_low = vqtbl1q_u8(low[place], vandq_u8(units, nibble));
                    let by_high = vqtbl1q_u8(high[place], vshrq_n_u8::<4>(units));
                    buckets = vandq_u8(buckets, vandq_u8(by_low, by_high));
                }
                // NEON has no mask of signs: a shift that narrows leaves four bits of each byte.
                let some = vreinterpretq_u16_u8(vtstq_u8(buckets, buckets));
                let mut hits = vget_lane_u64::<0>(vreinterpret_u64_u8(vshrn_n_u16::<4>(some)));
                if hits != 0 {
                    let each = std::mem::transmute::<uint8x16_t, [u8; STEP]>(buckets);
                    while hits != 0 {
                        let hit = hits.trailing_zeros() as usize / 4;
                        if self.confirm(each[hit], &text[at + hit..at + hit + WIDTH]) {
                            return Some(at + hit);
                        }
                        hits &= !(15 << (hit * 4));
                    }
                }
                at += STEP;
            }
        }
        self.find_scalar(text, at)
    }

    /// The same filter without vector instructions.
    #[cfg(test)]
    fn scalar(mut self) -> Self {
        self.vector = false;
        self
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.hashes.len() * 8
    }
}

fn vector_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2")
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    {
        std::arch::is_aarch64_feature_detected!("neon")
    }
    #[cfg(not(any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    )))]
    {
        false
    }
}

/// A unit as the filter sees it.
#[inline]
pub(super) fn narrow(unit: u32) -> u8 {
    u8::try_from(unit).unwrap_or(u8::MAX)
}

#[inline]
fn hash(units: [u8; WIDTH]) -> usize {
    (u32::from_le_bytes(units).wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stops::{Limits, StopList};

    /// xorshift, so that the texts are the same every time.
    fn noise(seed: &mut u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed
    }

    #[test]
    fn vector_scalar_and_the_obvious_search_agree() {
        let mut seed = 0x1234_5678_9abc_def1;
        let mut candidates = 0;
        for round in 0..2000u32 {
            let letters = 2 + noise(&mut seed) % 60;
            let mut word = |longest: u64| -> Vec<u8> {
                (0..=noise(&mut seed) % longest)
                    .map(|_| u8::try_from(noise(&mut seed) % letters * 4).unwrap())
                    .collect()
            };
            let stops: Vec<Vec<u8>> = (0..=round % 40).map(|_| word(7)).collect();
            let text = (0..40).flat_map(|_| word(9)).collect::<Vec<u8>>();
            let mut list = StopList::new(Limits::default());
            for stop in &stops {
                list.push_bytes(stop).unwrap();
            }
            let vector = Filter::new(list.iter(), UnitKind::Bytes).unwrap();
            let scalar = Filter::new(list.iter(), UnitKind::Bytes).unwrap().scalar();
            let mut from = 0;
            while let Some(at) = vector.find(&text, from) {
                assert_eq!(Some(at), scalar.find(&text, from));
                candidates += 1;
                from = at + 1;
            }
            assert_eq!(scalar.find(&text, from), None);
            // What matters: no place where a stop begins is passed over, but for the last few.
            let mut from = 0;
            for at in 0..text.len().saturating_sub(WIDTH - 1) {
                if stops.iter().any(|stop| text[at..].starts_with(stop)) {
                    let found = vector.find(&text, from);
                    assert!(found.is_some_and(|found| found <= at), "{stops:?} {text:?} at {at}");
                    from = at + 1;
                }
            }
        }
        assert!(candidates > 10_000, "{candidates}");
    }

    #[test]
    fn a_list_too_long_to_filter_has_no_filter() {
        let mut list = StopList::new(Limits::default());
        (0..=MOST).for_each(|i| list.push(&format!("{i:05}")).unwrap());
        assert!(Filter::new(list.iter(), UnitKind::Characters).is_some());
        (0..=MOST).for_each(|i| list.push(&format!("{:04x}", i + 0x4000)).unwrap());
        assert!(Filter::new(list.iter(), UnitKind::Characters).is_none());
        assert!(Filter::new([].into_iter(), UnitKind::Characters).is_none());
    }
}
