//! Sequence numbers: 32 bits that wrap on the wire, and 64-bit positions in the stream.

/// Converter between the stream position of a byte and its number on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    initial: u32,
}

impl Numbering {
    pub(super) const fn new(initial: u32) -> Self {
        Self { initial }
    }

    /// The number on the wire of the byte at `position`.
    #[inline]
    pub(super) const fn wire(self, position: u64) -> u32 {
        self.initial.wrapping_add(position as u32)
    }

    /// The position nearest to `near` that has this number on the wire; `None` if it is before the first byte.
    #[inline]
    pub(super) fn position(self, number: u32, near: u64) -> Option<u64> {
        let ahead = number.wrapping_sub(self.wire(near)) as i32;
        near.checked_add_signed(i64::from(ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_and_positions_do_not() {
        for initial in [0, 1, u32::MAX - 5, u32::MAX, 1 << 31] {
            let numbering = Numbering::new(initial);
            for position in [0u64, 3, 10, 1 << 31, (1 << 32) - 1, 1 << 32, (5 << 32) + 17] {
                for near in [position, position + 1_000_000, position.saturating_sub(1_000_000)] {
                    assert_eq!(numbering.position(numbering.wire(position), near), Some(position));
                }
            }
            assert_eq!(numbering.position(initial.wrapping_sub(1), 0), None);
        }
        assert_eq!(Numbering::new(u32::MAX).wire(2), 1);
    }
}
