//! Timestamps (RFC 7323): each segment carries the clock of its sender, and acknowledgements return it.

use tidegate_core::wire::tcp::Timestamps;
use tidegate_core::{Span, Time};

/// The clock of both ends, in milliseconds as Linux's (`TCP_TS_HZ`).
pub(super) fn clock(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// The round trip that an echo measures, at least a millisecond (Linux's `tcp_rtt_tsopt_us`).
pub(super) fn round_trip(now: Time, echo: u32) -> Option<Span> {
    let elapsed = clock(now).wrapping_sub(echo) as i32;
    (elapsed >= 0).then(|| Span::from_millis(i64::from(elapsed.max(1))))
}

/// The values that a receiver returns (RFC 7323 section 4.3).
#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// TS.Recent: the value to return.
    recent: u32,
    /// Last.ACK.sent.
    last_ack: u64,
}

impl Stamps {
    /// Takes in the value of a segment that begins at `start`. Behind a hole the value stays that of the segment before
    /// it, so that the time until the hole is filled counts.
    pub(super) fn arrived(&mut self, start: u64, value: u32) {
        let is_newer = value.wrapping_sub(self.recent) as i32 >= 0;
        if is_newer && start <= self.last_ack {
            self.recent = value;
        }
    }

    /// The timestamps of an acknowledgement of all data up to `ack`.
    pub(super) fn acknowledged(&mut self, now: Time, ack: u64) -> Timestamps {
        self.last_ack = ack;
        Timestamps { value: clock(now), echo: self.recent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_in_whole_milliseconds_and_never_none() {
        let rtt = |micros, echo| round_trip(Time::from_micros(micros), echo);
        assert_eq!([rtt(40_900, 40), rtt(41_900, 40)], [Some(Span::from_millis(1)); 2]);
        assert_eq!([rtt(80_000, 40), rtt(39_900, 40)], [Some(Span::from_millis(40)), None]);
        // the clock wraps after 49.7 days
        assert_eq!(rtt(5_000, u32::MAX), Some(Span::from_millis(6)));
    }
}
