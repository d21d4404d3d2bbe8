//! What a stream is made of: bytes, or characters in one of the widths in which they may be stored.
#![forbid(unsafe_code)]

/// One element of a chunk: a byte, or a character stored in 8 (Latin-1), 16 (no surrogates) or 32
/// bits.
pub trait Unit: Copy + Send + Sync + 'static {
    /// The byte, or the character's code point.
    fn code(self) -> u32;

    /// The units as bytes, if they are bytes.
    fn bytes(units: &[Self]) -> Option<&[u8]> {
        let _ = units;
        None
    }
}

impl Unit for u8 {
    #[inline]
    fn code(self) -> u32 {
        u32::from(self)
    }

    #[inline]
    fn bytes(units: &[Self]) -> Option<&[u8]> {
        Some(units)
    }
}

impl Unit for u16 {
    #[inline]
    fn code(self) -> u32 {
        u32::from(self)
    }
}

impl Unit for u32 {
    #[inline]
    fn code(self) -> u32 {
        self
    }
}
