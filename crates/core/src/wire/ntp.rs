//! NTP timestamps (RFC 3550 section 4): seconds in fixed point, 32.32 in full and 16.16 in the middle form.
//!
//! The time of an endpoint's clock is a [`RemoteTime`], as for the receiver of the timestamp. Only differences count, so the
//! clock's origin takes the place of the year 1900.

use crate::units::{RemoteTime, Span};

const NANOS: i128 = 1_000_000_000;

/// Full timestamp in 2^-32 s, rounded down, modulo 2^64.
#[must_use]
pub const fn timestamp(time: RemoteTime) -> u64 {
    // the cast keeps the low 64 bits, which is the modulo
    ((time.as_nanos() as i128) << 32).div_euclid(NANOS) as u64
}

/// Middle 32 bits of a full timestamp, in 2^-16 s; wraps after 18.2 hours.
#[must_use]
pub const fn middle(timestamp: u64) -> u32 {
    (timestamp >> 16) as u32
}

/// Middle form of a time: [`middle`] of [`timestamp`].
#[must_use]
pub const fn short(time: RemoteTime) -> u32 {
    middle(timestamp(time))
}

/// Converts a duration to 2^-16 s, to the nearest, as in DLSR. Negative durations give zero, and those of 18.2 hours or
/// more saturate.
#[must_use]
pub const fn short_span(span: Span) -> u32 {
    if span.is_negative() {
        return 0;
    }
    let units = (((span.as_nanos() as i128) << 16) + NANOS / 2) / NANOS;
    if units > u32::MAX as i128 { u32::MAX } else { units as u32 }
}

/// Converts `units` of 2^-16 s to a duration, to the nearest nanosecond. A timestamp has to be unwrapped with
/// [`wrap::nearest`](super::wrap::nearest) before.
#[must_use]
pub const fn span(units: i64) -> Span {
    Span::from_nanos(((units as i128 * NANOS + (1 << 15)) >> 16) as i64)
}

/// Time of the sender's clock `units` of 2^-16 s (unwrapped) after its origin, to the nearest nanosecond.
#[must_use]
pub const fn instant(units: i64) -> RemoteTime {
    RemoteTime::from_nanos(span(units).as_nanos())
}

/// Round-trip time from LSR and DLSR (RFC 3550 section 6.4.1): `now - last_sr - delay`, all in 2^-16 s and modulo 2^32.
/// `None` if no sender report had been received (`last_sr` is zero), or if the difference is negative, because a clock
/// was set back or because of rounding on a short path.
#[must_use]
pub fn round_trip(now: u32, last_sr: u32, delay: u32) -> Option<Span> {
    let units = now.wrapping_sub(last_sr).wrapping_sub(delay) as i32;
    (last_sr != 0 && units >= 0).then(|| span(i64::from(units)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_exact_and_rounded_down() {
        let time = |nanos| RemoteTime::from_nanos(nanos);
        assert_eq!(timestamp(time(1_500_000_000)), 0x1_8000_0000);
        assert_eq!(timestamp(time(1)), 4); // 4.29
        assert_eq!(timestamp(time(-1)), u64::MAX - 4); // -4.29 is rounded down to -5
        assert_eq!(middle(0x1234_5678_9abc_def0), 0x5678_9abc);
        assert_eq!(short(time(1_500_000_000)), 0x1_8000);
        // 2^16 seconds later the short form looks the same
        assert_eq!(short(time(1_500_000_000 + 65_536 * 1_000_000_000)), 0x1_8000);
        assert_eq!(short_span(Span::from_millis(500)), 0x8000);
        assert_eq!(short_span(Span::from_nanos(7_629)), 0); // a unit is 15 259 ns
        assert_eq!(short_span(Span::from_nanos(7_630)), 1);
        assert_eq!(short_span(Span::from_secs(-1)), 0);
        assert_eq!(short_span(Span::from_secs(65_536)), u32::MAX);
        assert_eq!(span(0x8000), Span::from_millis(500));
        assert_eq!(span(-0x8000), Span::from_millis(-500));
        assert_eq!(instant(1).as_nanos(), 15_259);
    }

    #[test]
    fn the_example_of_rfc_3550_figure_2() {
        // A at 46864.500 s, LSR 46853.125 s, DLSR 5.250 s: 6.125 s
        let rtt = round_trip(0xb710_8000, 0xb705_2000, 0x0005_4000);
        assert_eq!(rtt, Some(Span::from_millis(6_125)));
        assert_eq!(round_trip(0xb710_8000, 0, 0), None);
        assert_eq!(round_trip(100, 100, 1), None);
        // across the wrap
        assert_eq!(round_trip(0x8000, 0xffff_8000, 0x8000), Some(Span::from_millis(500)));
    }
}
