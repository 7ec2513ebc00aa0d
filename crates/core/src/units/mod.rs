//! Time, spans, rates and sizes as integers, with the unit in the constructor's name.
//!
//! 1 kb is 1000 bit and 1 kB is 1000 bytes everywhere. A `-` below zero on an unsigned unit panics in every build; use the
//! `saturating_` form for zero instead.

mod amount;
mod time;

pub use amount::{Rate, Size};
pub use time::{RemoteTime, Span, Time};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_its_bits_over_the_rate() {
        let rate = Rate::from_mbps(10);
        assert_eq!(rate.time_for(Size::from_bytes(1500)), Span::from_micros(1200));
        assert_eq!(Rate::from_bps(3).time_for(Size::from_bytes(1)).as_nanos(), 2_666_666_667);
        assert_eq!(Rate::ZERO.time_for(Size::from_bytes(1)), Span::MAX);
        let huge = Size::from_bytes(u64::MAX / 16);
        assert_eq!(Rate::from_bps(1).time_for(huge), Span::MAX);
    }

    #[test]
    fn rate_and_size_are_inverse() {
        let size = Size::from_bytes(125_000);
        assert_eq!(size.per(Span::from_secs(1)), Rate::from_mbps(1));
        assert_eq!(Rate::from_mbps(1).bytes_in(Span::from_secs(1)), size);
        assert_eq!(Rate::from_mbps(1).bytes_in(Span::from_millis(-1)), Size::ZERO);
    }

    #[test]
    fn sums_and_signs_of_spans_saturate() {
        let longest_ago = Span::from_nanos(i64::MIN);
        assert_eq!([longest_ago.abs(), -longest_ago, longest_ago * -2], [Span::MAX; 3]);
        assert_eq!(Span::MAX + Span::MAX, Span::MAX);
        assert_eq!(longest_ago - Span::MAX, longest_ago);
        assert_eq!(Span::from_secs(1).scaled(-1e30).abs(), Span::MAX);
    }

    /// Products that fit into 64 bits are divided directly, others with 128 bits; both give the same results.
    #[test]
    fn what_is_too_large_for_64_bits_comes_out_as_the_rest_does() {
        let border = u64::MAX / 8_000_000_000;
        for bytes in [border - 1, border, border + 1, border + 2, border * 1000] {
            let wide = u128::from(bytes) * 8_000_000_000 / 7_000_000_001;
            assert_eq!(
                u128::from(Size::from_bytes(bytes).per(Span::from_nanos(7_000_000_001)).as_bps()),
                wide
            );
            let wide = u128::from(bytes) * 7_999_999_999 / 8_000_000_000;
            let carried = Rate::from_bps(bytes).bytes_in(Span::from_nanos(7_999_999_999));
            assert_eq!(u128::from(carried.as_bytes()), wide);
        }
        assert_eq!(Size::from_bytes(u64::MAX).per(Span::from_nanos(1)), Rate::MAX);
    }

    #[test]
    #[should_panic(expected = "below zero")]
    fn a_rate_does_not_wrap() {
        let _ = Rate::from_bps(1) - Rate::from_bps(2);
    }
}
