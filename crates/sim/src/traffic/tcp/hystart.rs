//! HyStart: leaves slow start before the queue overflows (Ha and Rhee, "Taming the Elephants: New TCP Slow Start",
//! 2008), as Linux's CUBIC has it since 5.5 (`net/ipv4/tcp_cubic.c`: `hystart_update` and what it calls).
//!
//! Left out: `hystart_ack_delay`, a cushion of at most 1 ms for senders that put several segments into one packet (TSO),
//! which ours does not.

use tidegate_core::{Span, Time};

/// Below this window, in segments, nothing is looked at (`hystart_low_window`).
const LOW_WINDOW: f64 = 16.0;
/// Acknowledgements no further apart than this are one train (`hystart_ack_delta_us`).
const ACK_DELTA: Span = Span::from_millis(2);
/// So many round trips must have been measured in a round before the least of them counts (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u32 = 8;
/// By how much the round trip may grow: an eighth of the least one, within these (`HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`).
const DELAY_MIN: Span = Span::from_millis(4);
const DELAY_MAX: Span = Span::from_millis(16);

/// What is known of the rounds of slow start.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    /// The least round trip since the beginning or the last timeout (`delay_min`).
    least: Option<Span>,
    /// The end of slow start was found: it is not looked for again before a timeout (`found`).
    found: bool,
    /// When this round began, and the highest byte that had been sent then (`round_start`, `end_seq`).
    round: Time,
    end: u64,
    /// The last acknowledgement of the train that began the round (`last_ack`).
    train: Time,
    /// The least round trip of this round, and of how many (`curr_rtt`, `sample_cnt`).
    current: Option<Span>,
    samples: u32,
}

impl HyStart {
    /// The round trip that an acknowledgement measured, while the window was `cwnd` segments, those up to `una` were
    /// acknowledged and those up to `max` sent. Says whether slow start, if it is under way, should end now.
    pub(super) fn measured(
        &mut self,
        now: Time,
        rtt: Span,
        cwnd: f64,
        una: u64,
        max: u64,
        slow_start: bool,
    ) -> bool {
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        if self.found || !slow_start {
            return false;
        }
        if una > self.end {
            self.begin_round(now, max);
        }
        if cwnd < LOW_WINDOW {
            return false;
        }
        // a window's acknowledgements come in a train as long as the window takes at the bottleneck: half the round trip in
        // one train, with slow start doubling the window, means that the next one fills the path
        if now - self.train <= ACK_DELTA {
            self.train = now;
            self.found = now - self.round > least / 2;
        }
        let current = self.current.map_or(rtt, |current| current.min(rtt));
        self.current = Some(current);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else if current > least + (least / 8).clamp(DELAY_MIN, DELAY_MAX) {
            self.found = true;
        }
        self.found
    }

    fn begin_round(&mut self, now: Time, max: u64) {
        (self.round, self.train, self.end) = (now, now, max);
        (self.current, self.samples) = (None, 0);
    }

    /// After a timeout everything is new: the path may be another one.
    pub(super) fn timeout(&mut self, now: Time, max: u64) {
        *self = Self::default();
        self.begin_round(now, max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of `acks` acknowledgements `apart`, the first a round trip `rtt` after the round began and each later one by
    /// `slower`; the number of the round and the acknowledgement that ended slow start.
    fn ends(rtt: Span, acks: u64, apart: Span, slower: impl Fn(u64) -> Span) -> Option<(u64, u64)> {
        let mut hystart = HyStart::default();
        for round in 0..6 {
            let begin = Time::ZERO + rtt * (round as i64 + 1);
            for ack in 0..acks {
                let una = 1 + round * acks + ack;
                let now = begin + apart * ack as i64;
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
            let slower = |by: Span| move |round| if round == 2 { by } else { Span::ZERO };
            let seen = |by| ends(ms(rtt), 10, Span::from_micros(10), slower(by));
            assert_eq!(seen(ms(threshold)), None, "{rtt} ms: no more than the threshold");
            assert_eq!(seen(ms(threshold) + Span::from_nanos(1)), Some((2, 8)), "{rtt} ms");
            let few = ends(ms(rtt), 8, Span::from_micros(10), slower(ms(100)));
            assert_eq!(few, None, "eight samples are too few");
        }
    }

    /// Acknowledgements at most 2 ms apart for more than half the least round trip.
    #[test]
    fn a_long_train_of_acknowledgements_ends_slow_start() {
        let ms = Span::from_millis;
        let seen = |acks, apart| ends(ms(40), acks, apart, |_| Span::ZERO);
        // 11 of them take 20 ms, 12 take 22
        assert_eq!(seen(11, ms(2)), None);
        assert_eq!(seen(12, ms(2)), Some((0, 11)));
        assert_eq!(seen(18, ms(2) + Span::from_nanos(1)), None, "further apart they are no train");
    }

    #[test]
    fn small_windows_and_ends_that_were_found_are_left_alone_until_a_timeout() {
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
