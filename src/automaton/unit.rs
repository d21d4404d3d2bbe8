//! What a stream is made of: bytes, or characters in one of the widths in which they may be stored.
#![forbid(unsafe_code)]

/// One element of a chunk: a byte, or a character stored in 8 (Latin-1), 16 or 32
/// bits.
pub trait CodeUnit: Copy + Send + Sync + 'static {
    /// The byte, or the character's code point.
    fn code(self) -> u32;

    /// The units as bytes, if they are bytes.
    fn bytes(units: &[Self]) -> Option<&[u8]> {
        let _ = units;
        None
    }

    /// Whether any of the units is a surrogate.
    fn has_surrogate(units: &[Self]) -> bool {
        any(units, |unit| unit.code() & 0xffff_f800 == 0xd800)
    }
}

/// Whether any unit is `wanted`, by blocks without an early exit: the compiler can use vector
/// instructions, and even four units are read faster without a branch for each.
#[inline]
fn any<U: Copy>(units: &[U], wanted: impl Fn(U) -> bool) -> bool {
    const BLOCK: usize = 64;
    let in_block = |block: &[U]| block.iter().fold(false, |seen, &unit| seen | wanted(unit));
    if units.len() < BLOCK { in_block(units) } else { units.chunks(BLOCK).any(in_block) }
}

impl CodeUnit for u8 {
    #[inline]
    fn code(self) -> u32 {
        u32::from(self)
    }

    #[inline]
    fn bytes(units: &[Self]) -> Option<&[u8]> {
        Some(units)
    }

    #[inline]
    fn has_surrogate(_: &[Self]) -> bool {
        false
    }
}

impl CodeUnit for u16 {
    #[inline]
    fn code(self) -> u32 {
        u32::from(self)
    }

    #[inline]
    fn has_surrogate(units: &[Self]) -> bool {
        any(units, |unit| unit & 0xf800 == 0xd800)
    }
}

impl CodeUnit for u32 {
    #[inline]
    fn code(self) -> u32 {
        self
    }
}
