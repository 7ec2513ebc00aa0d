//! libwebrtc's rounding: its units are whole bit/s, bytes and microseconds, and its older clocks whole milliseconds.
//!
//! Each function rounds as `api/units` and `rtc_base/units/unit_base.h` do: a rate times a factor to the nearest bit/s
//! (`Rate::scaled`), a rate from a floating-point number down.

use tidegate_core::math;
use tidegate_core::units::{Rate, Size, Span, Time};

/// Rounds a number of bit/s down (`DataRate::BitsPerSec`); negative numbers give zero.
pub(super) fn bps(rate: f64) -> Rate {
    Rate::from_bps(rate as u64)
}

/// Rounds to the nearest kbit/s (`DataRate::kbps`).
pub(super) fn kbps(rate: Rate) -> f64 {
    (rate.as_bps().saturating_add(500) / 1000) as f64
}

/// Rounds to the nearest millisecond (`Timestamp::ms`).
pub(super) fn ms(nanos: i64) -> i64 {
    nanos.saturating_add(500_000).div_euclid(1_000_000)
}

/// Rounds down to whole microseconds.
fn us(span: Span) -> u64 {
    (span.as_nanos().max(0) / 1000) as u64
}

/// Converts to seconds by multiplying microseconds (`TimeDelta::seconds<double>`). A division could differ in the last
/// bit, which decides on which side of a whole bit/s an increase ends.
pub(super) fn seconds(span: Span) -> f64 {
    us(span) as f64 * (1.0 / 1e6)
}

/// Bytes that `rate` carries in `span`, to the nearest byte (`DataRate * TimeDelta`).
pub(super) fn bytes_in(rate: Rate, span: Span) -> Size {
    let bits = rate.as_bps().checked_mul(us(span)).and_then(|bits| bits.checked_add(4_000_000));
    // usual values fit into 64 bits, which saves a 128-bit division
    Size::from_bytes(bits.map_or_else(
        || {
            let bits = u128::from(rate.as_bps()) * u128::from(us(span)) + 4_000_000;
            u64::try_from(bits / 8_000_000).unwrap_or(u64::MAX)
        },
        |bits| bits / 8_000_000,
    ))
}

/// Rate that carries `size` in `span`, rounded down (`DataSize / TimeDelta`); [`Rate::MAX`] for less than a microsecond.
pub(super) fn per(size: Size, span: Span) -> Rate {
    match us(span) {
        0 => Rate::MAX,
        us => Rate::from_bps(size.as_bytes().checked_mul(8_000_000).map_or_else(
            || u64::try_from(u128::from(size.as_bytes()) * 8_000_000 / u128::from(us)).unwrap_or(u64::MAX),
            |bits| bits / us,
        )),
    }
}

/// Multiplies a size by a factor, to the nearest byte.
pub(super) fn part(size: Size, factor: f64) -> Size {
    Size::from_bytes(math::round(size.as_bytes() as f64 * factor) as u64)
}

/// Rounds a pacing rate to whole bytes per second (`PacerConfig` holds the bytes of one second).
pub(super) fn whole_bytes(rate: Rate) -> Rate {
    Rate::from_bps((rate.as_bps().saturating_add(4) / 8).saturating_mul(8))
}

/// Time from `earlier` to `later`, saturating.
pub(super) fn between(earlier: Time, later: Time) -> Span {
    Span::from_nanos(later.as_nanos().saturating_sub(earlier.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_halfway_goes_where_libwebrtc_lets_it_go() {
        assert_eq!(bps(1999.9), Rate::from_bps(1999));
        assert_eq!((kbps(Rate::from_bps(1499)), kbps(Rate::from_bps(1500))), (1.0, 2.0));
        assert_eq!((ms(1_499_999), ms(1_500_000), ms(-1_500_001)), (1, 2, -2));
        // 301 kbit/s and 2.5 times that, as the recordings have it: 94062.5 bytes in a second
        assert_eq!(whole_bytes(Rate::from_kbps(301).scaled(2.5)), Rate::from_bps(752_504));
        assert_eq!(bytes_in(Rate::from_kbps(900), Span::from_millis(15)), Size::from_bytes(1688));
        assert_eq!(per(Size::from_bytes(1200), Span::from_micros(7)), Rate::from_bps(1_371_428_571));
        assert_eq!(per(Size::from_bytes(1), Span::ZERO), Rate::MAX);
        // beyond 64 bits on the way
        assert_eq!(per(Size::from_bytes(1 << 42), Span::from_secs(8)), Rate::from_bps(1 << 42));
        assert_eq!(bytes_in(Rate::from_bps(1 << 42), Span::from_secs(8)), Size::from_bytes(1 << 42));
        assert_eq!(part(Size::from_bytes(5), 0.5), Size::from_bytes(3));
    }
}
