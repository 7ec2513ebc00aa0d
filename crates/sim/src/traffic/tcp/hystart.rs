//! HyStart: leaves slow start before the queue overflows (Ha and Rhee, "Taming the Elephants: New TCP Slow Start",
//! 2008), as Linux's CUBIC has it since 5.5 (`net/ipv4/tcp_cubic.c`: `hystart_update` and what it calls).
//!
//! It lacks `hystart_ack_delay`, a margin of at most 1 ms for senders that put several segments into one packet (TSO),
//! because this sender does not.

use tidegate_core::{Span, Time};

/// Smallest window, in segments, at which HyStart is active (`hystart_low_window` in `net/ipv4/tcp_cubic.c`).
const HYSTART_LOW_WINDOW: f64 = 16.0;
/// Largest distance of acknowledgements in a train (`hystart_ack_delta_us`).
const HYSTART_ACK_DELTA: Span = Span::from_millis(2);
/// Round trips that must be measured in a round before the smallest of them counts.
const HYSTART_MIN_SAMPLES: u32 = 8;
/// Bounds of the allowed growth of the round trip, which is an eighth of the smallest one.
const HYSTART_DELAY_MIN: Span = Span::from_millis(4);
const HYSTART_DELAY_MAX: Span = Span::from_millis(16);

/// The state of HyStart, with Linux' names.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    /// The smallest round trip since the beginning or the last timeout.
    delay_min: Option<Span>,
    /// Whether the end of slow start was found (`found`); it is not searched again before a timeout.
    is_found: bool,
    /// Beginning of this round, and the highest byte sent by then.
    round_start: Time,
    end_seq: u64,
    /// The last acknowledgement of the train at the beginning of the round.
    last_ack: Time,
    /// The smallest round trip of this round, and the number of its samples.
    curr_rtt: Option<Span>,
    sample_cnt: u32,
}

impl HyStart {
    /// Takes in the round trip that an acknowledgement measured, with a window of `cwnd` segments, bytes up to `una`
    /// acknowledged and bytes up to `max` sent. Returns whether slow start, if it is under way, should end now.
    pub(super) fn measured(
        &mut self,
        now: Time,
        rtt: Span,
        cwnd: f64,
        una: u64,
        max: u64,
        slow_start: bool,
    ) -> bool {
        let delay_min = self.delay_min.map_or(rtt, |delay_min| delay_min.min(rtt));
        self.delay_min = Some(delay_min);
        if self.is_found || !slow_start {
            return false;
        }
        if una > self.end_seq {
            self.begin_round(now, max);
        }
        if cwnd < HYSTART_LOW_WINDOW {
            return false;
        }
        // the acknowledgements of a window come in a train as long as its transmission at the bottleneck; as slow start
        // doubles the window, a train of half the round trip means that the next window fills the path
        if now - self.last_ack <= HYSTART_ACK_DELTA {
            self.last_ack = now;
            self.is_found = now - self.round_start > delay_min / 2;
        }
        let curr_rtt = self.curr_rtt.map_or(rtt, |curr_rtt| curr_rtt.min(rtt));
        self.curr_rtt = Some(curr_rtt);
        if self.sample_cnt < HYSTART_MIN_SAMPLES {
            self.sample_cnt += 1;
        } else if curr_rtt > delay_min + (delay_min / 8).clamp(HYSTART_DELAY_MIN, HYSTART_DELAY_MAX) {
            self.is_found = true;
        }
        self.is_found
    }

    fn begin_round(&mut self, now: Time, max: u64) {
        (self.round_start, self.last_ack, self.end_seq) = (now, now, max);
        (self.curr_rtt, self.sample_cnt) = (None, 0);
    }

    /// Resets the state after a timeout: the path may have changed.
    pub(super) fn timeout(&mut self, now: Time, max: u64) {
        *self = Self::default();
        self.begin_round(now, max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates rounds of `acks` acknowledgements at a distance of `spacing`; the first one comes a round trip `rtt`
    /// after the round began, and each round trip is longer by `slower`. Returns the round and the acknowledgement
    /// that ended slow start.
    fn ends(rtt: Span, acks: u64, spacing: Span, slower: impl Fn(u64) -> Span) -> Option<(u64, u64)> {
        let mut hystart = HyStart::default();
        for round in 0..6 {
            let begin = Time::ZERO + rtt * (round as i64 + 1);
            for ack in 0..acks {
                let una = 1 + round * acks + ack;
                let now = begin + spacing * ack as i64;
                if hystart.measured(now, rtt + slower(round), 40.0, una, (round + 1) * acks + ack, true) {
                    return Some((round, ack));
                }
            }
        }
        None
    }

    /// The threshold is an eighth of the round trip, within 4 and 16 ms, for the ninth sample of a round at the earliest.
    #[test]
    fn a_longer_round_trip_ends_slow_start_with_the_ninth_sample() {
        let ms = Span::from_millis;
        for (rtt, threshold) in [(8, 4), (80, 10), (400, 16)] {
            let slower = |extra: Span| move |round| if round == 2 { extra } else { Span::ZERO };
            let end_of_slow_start = |by| ends(ms(rtt), 10, Span::from_micros(10), slower(by));
            assert_eq!(end_of_slow_start(ms(threshold)), None, "{rtt} ms: no more than the threshold");
            assert_eq!(end_of_slow_start(ms(threshold) + Span::from_nanos(1)), Some((2, 8)), "{rtt} ms");
            let eight_samples = ends(ms(rtt), 8, Span::from_micros(10), slower(ms(100)));
            assert_eq!(eight_samples, None, "eight samples are too few");
        }
    }

    /// Acknowledgements at most 2 ms apart for more than half the smallest round trip.
    #[test]
    fn a_long_train_of_acknowledgements_ends_slow_start() {
        let ms = Span::from_millis;
        let end_of_slow_start = |acks, apart| ends(ms(40), acks, apart, |_| Span::ZERO);
        // 11 of them take 20 ms, 12 take 22
        assert_eq!(end_of_slow_start(11, ms(2)), None);
        assert_eq!(end_of_slow_start(12, ms(2)), Some((0, 11)));
        assert_eq!(
            end_of_slow_start(18, ms(2) + Span::from_nanos(1)),
            None,
            "further apart they are no train"
        );
    }

    #[test]
    fn small_windows_and_an_end_already_found_are_ignored_until_a_timeout() {
        let long = |hystart: &mut HyStart, from: Time, cwnd: f64, slow_start| {
            (0..30).any(|ack| {
                let now = from + Span::from_millis(ack);
                hystart.measured(now, Span::from_millis(40), cwnd, 101 + ack as u64, 200, slow_start)
            })
        };
        let mut hystart = HyStart::default();
        hystart.timeout(Time::ZERO, 100);
        assert!(!long(&mut hystart, Time::from_secs(1), 15.9, true));
        hystart.timeout(Time::ZERO, 100);
        assert!(!long(&mut hystart, Time::from_secs(2), 16.0, false), "there is no slow start to end");
        assert!(long(&mut hystart, Time::from_secs(3), 16.0, true));
        assert!(!long(&mut hystart, Time::from_secs(4), 16.0, true));
        hystart.timeout(Time::from_secs(5), 100);
        assert!(long(&mut hystart, Time::from_secs(6), 16.0, true));
    }
}
