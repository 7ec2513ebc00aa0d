//! Delivery rates as measured by the sender (draft-cheng-iccrg-delivery-rate-estimation-00, Linux's
//! `net/ipv4/tcp_rate.c`).

use super::flight::Segment;
use tidegate_core::{Span, Time};

/// The state of the connection that is stored with each segment that leaves (draft section 3.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Snapshot {
    /// Bytes delivered by then, and the time of their last acknowledgement (P.delivered, P.delivered_time).
    pub(super) delivered: u64,
    pub(super) delivered_at: Time,
    /// Departure of the first segment of its flight (P.first_sent_time).
    pub(super) first_sent: Time,
    /// Whether the application had less to send than the window allowed then (P.is_app_limited).
    pub(super) app_limited: bool,
    /// Bytes counted as lost by then, and bytes under way including the segment (P.lost, P.tx_in_flight of
    /// draft-ietf-ccwg-bbr section 4.1.2.1.2).
    pub(super) lost: u64,
    pub(super) tx_in_flight: u64,
}

/// The delivery state of one connection (draft section 3.1).
#[derive(Debug, Default)]
pub(super) struct Delivery {
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// Delivered bytes up to which samples are limited by the application; zero if they are not.
    app_limited: u64,
    /// Of this acknowledgement: bytes that it delivered, and the snapshot and departure of the delivered segment that
    /// left last.
    acked: u64,
    latest: Option<(Snapshot, Time)>,
}

/// Bytes delivered over an interval, and bytes delivered before it (draft section 2).
#[derive(Clone, Copy, Debug)]
pub(super) struct RateSample {
    pub(super) delivered: u64,
    pub(super) interval: Span,
    pub(super) prior_delivered: u64,
    pub(super) app_limited: bool,
}

impl RateSample {
    /// The rate in bytes a second.
    pub(super) fn rate(&self) -> f64 {
        self.delivered as f64 / self.interval.as_secs_f64()
    }
}

impl Delivery {
    /// Bytes delivered since the connection began.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// Takes the snapshot for a segment that leaves at `sent`; `idle` if no other segment is under way. With it
    /// `in_flight` bytes are under way, and `lost` bytes counted as lost before.
    pub(super) fn sent(&mut self, sent: Time, idle: bool, lost: u64, in_flight: u64) -> Snapshot {
        if idle {
            (self.first_sent, self.delivered_at) = (sent, sent);
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited > 0,
            lost,
            tx_in_flight: in_flight,
        }
    }

    /// The state stored with the segment that left last among those of this acknowledgement.
    pub(super) fn latest(&self) -> Option<Snapshot> {
        self.latest.map(|(snapshot, _)| snapshot)
    }

    /// Counts a segment that was acknowledged or SACKed for the first time.
    pub(super) fn arrived(&mut self, now: Time, segment: &Segment) {
        let length = u64::from(segment.length);
        self.delivered += length;
        self.acked += length;
        self.delivered_at = now;
        if self.latest.is_none_or(|(_, sent)| segment.sent >= sent) {
            self.latest = Some((segment.snapshot, segment.sent));
            self.first_sent = segment.sent;
        }
    }

    /// Returns the bytes that the acknowledgement delivered, and a rate, after all of its segments are counted.
    /// Intervals shorter than the smallest round trip come from bunched acknowledgements, and give no rate (draft
    /// section 3.3).
    pub(super) fn take_rate_sample(&mut self, min_rtt: Option<Span>) -> (u64, Option<RateSample>) {
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let sample = self.latest.take().and_then(|(snapshot, sent)| {
            let interval = (sent - snapshot.first_sent).max(self.delivered_at - snapshot.delivered_at);
            let (prior_delivered, app_limited) = (snapshot.delivered, snapshot.app_limited);
            let valid = interval > Span::ZERO && min_rtt.is_none_or(|min_rtt| interval >= min_rtt);
            valid.then_some(RateSample {
                delivered: self.delivered - prior_delivered,
                interval,
                prior_delivered,
                app_limited,
            })
        });
        (std::mem::take(&mut self.acked), sample)
    }

    /// Marks the next samples as limited: with `in_flight` bytes under way there is less to send than the window
    /// allows, or less is sent on purpose.
    pub(super) fn limited(&mut self, in_flight: u64) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::flight::Flight;
    use super::*;

    const SIZE: u64 = 100;
    const SERVICE: Span = Span::from_millis(3);

    /// Time of the n-th acknowledgement: ten segments leave at once, one more with each acknowledgement.
    fn due(n: u64) -> Time {
        Time::from_millis(120) + SERVICE * n as i64
    }

    /// Sends ten segments at once and one for each acknowledgement; the ten acknowledgements from `first_delayed` on
    /// come together. Returns the rates, without those of the first two windows, when the path was empty.
    fn rates(first_delayed: u64) -> Vec<f64> {
        let (mut delivery, mut flight) = (Delivery::default(), Flight::new());
        let send = |delivery: &mut Delivery, flight: &mut Flight, now| {
            let snapshot = delivery.sent(now, flight.is_empty(), 0, 0);
            flight.push(now, 0, SIZE as u32, snapshot);
        };
        (0..10).for_each(|_| send(&mut delivery, &mut flight, Time::from_millis(100)));
        let rates = (0..100).map(|n| {
            let now = if (first_delayed..first_delayed + 10).contains(&n) {
                due(first_delayed + 9)
            } else {
                due(n)
            };
            flight.acknowledge(SIZE * (n + 1), |segment| delivery.arrived(now, segment));
            let (acked, sample) = delivery.take_rate_sample(None);
            assert_eq!((acked, delivery.delivered()), (SIZE, SIZE * (n + 1)));
            send(&mut delivery, &mut flight, now);
            sample.unwrap().rate()
        });
        rates.skip(20).collect()
    }

    #[test]
    fn the_rate_is_the_bottlenecks_and_bunched_acknowledgements_do_not_raise_it() {
        let link = SIZE as f64 / SERVICE.as_secs_f64();
        assert!(rates(1000).iter().all(|rate| (rate / link - 1.0).abs() < 1e-9));
        let bunched = rates(40);
        assert!(bunched.iter().all(|rate| *rate < link * (1.0 + 1e-9)), "{bunched:?}");
        assert!(bunched.iter().any(|rate| *rate < 0.8 * link), "and some are lower: {bunched:?}");
    }

    #[test]
    fn short_intervals_give_no_rate_and_limited_ones_say_so() {
        let (mut delivery, mut flight) = (Delivery::default(), Flight::new());
        delivery.limited(0);
        let ms = Time::from_millis;
        for n in 0..3 {
            let snapshot = delivery.sent(ms(n), flight.is_empty(), 0, 0);
            flight.push(ms(n), 0, SIZE as u32, snapshot);
        }
        flight.acknowledge(SIZE, |segment| delivery.arrived(ms(10), segment));
        assert!(delivery.take_rate_sample(Some(Span::from_millis(11))).1.is_none());
        flight.acknowledge(2 * SIZE, |segment| delivery.arrived(ms(12), segment));
        let sample = delivery.take_rate_sample(Some(Span::from_millis(11))).1.unwrap();
        assert_eq!(
            (sample.delivered, sample.interval, sample.prior_delivered),
            (2 * SIZE, Span::from_millis(12), 0)
        );
        assert!(sample.app_limited, "the segment left while there was less to send");
        assert!(
            !delivery.sent(ms(12), false, 0, 0).app_limited,
            "and this segment left after that was delivered"
        );
    }
}
