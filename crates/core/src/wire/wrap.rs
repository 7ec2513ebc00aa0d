//! Unwrapping of counters.

/// Number nearest to `near` that is congruent to `value` modulo 2^`bits`.
///
/// Of two equally near numbers the larger one is taken, so that a jump by exactly half the range goes forward. Higher bits
/// of `value` are ignored; `bits` is at most 32.
#[must_use]
pub const fn nearest(value: u32, bits: u32, near: i64) -> i64 {
    debug_assert!(0 < bits && bits <= 32);
    let range = 1i64 << bits;
    let ahead = (value as i64).wrapping_sub(near).rem_euclid(range);
    if ahead <= range / 2 { near.wrapping_add(ahead) } else { near.wrapping_add(ahead - range) }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_of_all_that_look_alike() {
        assert_eq!(nearest(3, 16, 65_534), 65_539);
        assert_eq!(nearest(65_534, 16, 65_539), 65_534);
        assert_eq!(nearest(5, 16, 5), 5);
        // the number before zero is negative
        assert_eq!(nearest(0xffff, 16, 0), -1);
        // half the range goes forward, one more goes back
        assert_eq!(nearest(0x8000, 16, 0), 0x8000);
        assert_eq!(nearest(0x8001, 16, 0), -0x7fff);
        assert_eq!(nearest(0, 24, (1 << 24) - 1), 1 << 24);
        assert_eq!(nearest(u32::MAX, 32, 7 << 32), (7 << 32) - 1);
        assert_eq!(nearest(1, 32, i64::from(u32::MAX)), (1 << 32) + 1);
    }

    #[test]
    fn it_is_always_congruent_and_within_half_the_range() {
        let mut rng = crate::rng::Stream::new(1, "wrap", "test");
        for bits in [8u32, 16, 24, 32] {
            let half = 1i64 << (bits - 1);
            for _ in 0..2000 {
                let value = (rng.next_u64() as u32) & (((1u64 << bits) - 1) as u32);
                let near = (rng.next_u64() >> 20) as i64 - (1 << 42);
                let got = nearest(value, bits, near);
                assert_eq!(got.rem_euclid(1 << bits), i64::from(value));
                assert!(got - near > -half && got - near <= half, "{bits} {value} {near} {got}");
            }
        }
    }
}
