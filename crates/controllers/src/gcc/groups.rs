//! Pre-filter: groups of packets, and the differences between two groups.
//!
//! Draft 5.1 and 5.2; libwebrtc `inter_arrival_delta.cc`; aiortc `InterArrival`. Packets that were sent or delivered in
//! one burst say nothing about the queue between them, so the filter gets one sample per group.

use crate::settings::words;
use tidegate_core::units::{RemoteTime, Size, Span, Time};

words! {
    /// Resolution of send times.
    SendClock:
    /// Exact times.
    Exact = "exact",
    /// Rounded to the 2^-18 s of the abs-send-time header extension.
    AbsSendTime = "abs-send-time",
}
words! {
    /// Arrival time that stands for a group in trend and threshold.
    AdaptClock:
    /// Arrival of the packet that completed the group by opening the next one.
    Packet = "packet",
    /// Arrival of the group's last packet.
    Group = "group",
}

/// Longest arrival gap within a burst, ms (draft 5.2; libwebrtc kBurstDeltaThreshold; aiortc). A packet that follows the
/// group's last one within this, and closer than it was sent, belongs to the group.
const BURST_DELTA_THRESHOLD_MS: f64 = 5.0;

/// Parameters in which the sources differ on groups.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Send time that a group spans, ms.
    pub length: f64,
    /// Limit of the arrival time over which a group grows by bursts, ms.
    pub longest: f64,
    /// Number of groups in a row that arrive before their predecessors, after which to start anew; such groups are
    /// skipped. None: they are used as they are.
    pub reordered: Option<u64>,
    /// Difference between the advances of the far clock and ours from which to start anew.
    pub jump: Option<Span>,
    /// Resolution of send times.
    pub send_clock: SendClock,
    /// Whether differences of abs-send-time are unsigned, modulo 64 s, and rounded to milliseconds within a burst.
    pub unsigned: bool,
    /// Arrival time that stands for a group.
    pub adapt_clock: AdaptClock,
}

impl Config {
    /// libwebrtc's parameters: kSendTimeGroupLength, kMaxBurstDuration, kReorderedResetThreshold and
    /// kArrivalTimeOffsetThreshold (there only for a clock that advances more). Its trendline gets the arrival of the
    /// packet that opens the next group.
    pub const LIBWEBRTC: Self = Self {
        length: 5.0,
        longest: 100.0,
        reordered: Some(3),
        jump: Some(Span::from_secs(3)),
        send_clock: SendClock::Exact,
        unsigned: false,
        adapt_clock: AdaptClock::Packet,
    };
}

/// Difference between two consecutive groups.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Delta {
    /// Difference of the last packets' arrivals, ms.
    pub arrival: f64,
    /// Difference of the last packets' departures, ms.
    pub send: f64,
    /// Difference of the sizes, bytes.
    pub size: f64,
    /// Arrival time that stands for the later group.
    pub arrived: RemoteTime,
}

impl Delta {
    /// Inter-group delay variation d(i), ms.
    #[must_use]
    pub fn variation(&self) -> f64 {
        self.arrival - self.send
    }
}

#[derive(Clone, Copy)]
struct Group {
    first_send: i64,
    last_send: i64,
    first_arrival: i64,
    last_arrival: i64,
    last_system: i64,
    size: u64,
}

/// Grouping of packets (libwebrtc `InterArrivalDelta`).
#[derive(Clone)]
pub struct Groups {
    config: Config,
    current: Option<Group>,
    previous: Option<Group>,
    reordered: u64,
}

impl SendClock {
    /// Converts a send time to ticks of this clock.
    pub(super) fn ticks(self, time: Time) -> i64 {
        let nanos = time.as_nanos();
        match self {
            Self::Exact => nanos,
            // to the nearest 2^-18 s, as a sender would write it into abs-send-time
            Self::AbsSendTime => {
                let wide = (i128::from(nanos) << 18) + 500_000_000;
                wide.div_euclid(1_000_000_000) as i64
            }
        }
    }

    /// Converts ticks to ms.
    pub(super) fn millis(self, ticks: i64) -> f64 {
        match self {
            Self::Exact => ticks as f64 / 1e6,
            Self::AbsSendTime => ticks as f64 * (1000.0 / (1 << 18) as f64),
        }
    }
}

/// Converts nanoseconds to ms.
pub(super) fn millis(nanos: i64) -> f64 {
    nanos as f64 / 1e6
}

impl Config {
    /// Time between two readings of the send clock, ms.
    fn between(&self, earlier: i64, later: i64) -> f64 {
        let ticks = later.saturating_sub(earlier);
        self.send_clock.millis(if self.unsigned { ticks.rem_euclid(1 << 24) } else { ticks })
    }
}

impl Groups {
    /// Creates a grouping without packets.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, current: None, previous: None, reordered: 0 }
    }

    /// Takes the next packet in order of arrival, at `now` by our clock. If it opens a new group, returns the difference of
    /// the two groups before.
    pub fn packet(&mut self, sent: Time, arrived: RemoteTime, size: Size, now: Time) -> Option<Delta> {
        let send = self.config.send_clock.ticks(sent);
        let arrival = arrived.as_nanos();
        let mut delta = None;
        match &mut self.current {
            None => self.current = Some(Group::new(send, arrival, now)),
            // sent before the present group: it neither joins it nor opens a new one
            Some(current) if send < current.first_send => return None,
            Some(current) if current.ends_before(&self.config, send, arrival) => {
                let finished = *current;
                if let Some(previous) = self.previous {
                    delta = Some(self.difference(&previous, &finished, arrived)?);
                }
                self.previous = Some(finished);
                self.current = Some(Group::new(send, arrival, now));
            }
            Some(current) => current.last_send = current.last_send.max(send),
        }
        if let Some(current) = &mut self.current {
            current.size = current.size.saturating_add(size.as_bytes());
            current.last_arrival = arrival;
            current.last_system = now.as_nanos();
            debug_assert!(current.first_send <= current.last_send, "a group in the order of sending");
        }
        delta
    }

    /// Difference of two groups; none if their arrivals do not measure the path. `opening` is the arrival that opens the
    /// next group.
    fn difference(&mut self, previous: &Group, finished: &Group, opening: RemoteTime) -> Option<Delta> {
        let config = self.config;
        let step = finished.last_arrival.saturating_sub(previous.last_arrival);
        let system = finished.last_system.saturating_sub(previous.last_system);
        let offset = step.saturating_sub(system).saturating_abs();
        if config.jump.is_some_and(|jump| offset >= jump.as_nanos()) {
            *self = Self::new(config);
            return None;
        }
        if let (true, Some(threshold)) = (step < 0, config.reordered) {
            self.reordered += 1;
            if self.reordered >= threshold {
                *self = Self::new(config);
            }
            return None;
        }
        self.reordered = 0;
        Some(Delta {
            arrival: millis(step),
            send: config.between(previous.last_send, finished.last_send),
            size: finished.size as f64 - previous.size as f64,
            arrived: match config.adapt_clock {
                AdaptClock::Packet => opening,
                AdaptClock::Group => RemoteTime::from_nanos(finished.last_arrival),
            },
        })
    }
}

impl Group {
    fn new(send: i64, arrival: i64, now: Time) -> Self {
        Self {
            first_send: send,
            last_send: send,
            first_arrival: arrival,
            last_arrival: arrival,
            last_system: now.as_nanos(),
            size: 0,
        }
    }

    /// Whether a packet opens a new group.
    fn ends_before(&self, config: &Config, send: i64, arrival: i64) -> bool {
        let is_apart = config.send_clock.millis(send.saturating_sub(self.first_send)) > config.length;
        is_apart && !self.bursts_with(config, send, arrival)
    }

    /// Whether a packet caught up with this group on its way (draft 5.2, second rule).
    fn bursts_with(&self, config: &Config, send: i64, arrival: i64) -> bool {
        let exact = config.between(self.last_send, send);
        let send_gap = if config.unsigned { exact.round_ties_even() } else { exact };
        let arrival_gap = millis(arrival.saturating_sub(self.last_arrival));
        let length = millis(arrival.saturating_sub(self.first_arrival));
        send_gap == 0.0
            || (arrival_gap < send_gap && arrival_gap <= BURST_DELTA_THRESHOLD_MS && length < config.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcc::presets::{aiortc, draft_02};

    const DRAFT: Config = draft_02::GROUPS;
    const AIORTC: Config = aiortc::GROUPS;

    struct Feed {
        groups: Groups,
    }

    impl Feed {
        fn new(config: Config) -> Self {
            Self { groups: Groups::new(config) }
        }
        /// Takes a packet with departure and arrival in ms; our clock runs with the arrivals.
        fn packet(&mut self, send: f64, arrival: f64, size: u64) -> Option<Delta> {
            self.packet_at(send, arrival, size, arrival)
        }
        fn packet_at(&mut self, send: f64, arrival: f64, size: u64, now: f64) -> Option<Delta> {
            let nanos = |ms: f64| (ms * 1e6) as i64;
            self.groups.packet(
                Time::from_nanos(nanos(send)),
                RemoteTime::from_nanos(nanos(arrival)),
                Size::from_bytes(size),
                Time::from_nanos(nanos(now)),
            )
        }
    }

    #[test]
    fn a_group_spans_five_milliseconds_and_is_compared_by_its_last_packet() {
        let mut feed = Feed::new(Config::LIBWEBRTC);
        assert_eq!(feed.packet(0.0, 100.0, 1000), None);
        assert_eq!(feed.packet(5.0, 105.0, 200), None, "5 ms still belongs");
        assert_eq!(feed.packet(33.0, 133.0, 700), None, "one group is no difference yet");
        let delta = feed.packet(66.0, 170.0, 1).expect("two groups are complete");
        assert_eq!((delta.send, delta.arrival, delta.size), (28.0, 28.0, -500.0));
        assert_eq!(
            delta.arrived,
            RemoteTime::from_nanos(170_000_000),
            "the packet that opens the next group"
        );
        let delta = feed.packet(99.0, 203.0, 1).expect("complete");
        assert_eq!((delta.variation(), delta.size), (4.0, -699.0));
    }

    #[test]
    fn a_burst_of_arrivals_is_one_group_for_at_most_its_longest() {
        let mut feed = Feed::new(Config::LIBWEBRTC);
        // sent every 10 ms, held back, and delivered 1 ms apart: all one group
        for i in 0..99 {
            assert_eq!(feed.packet(f64::from(i) * 10.0, 1000.0 + f64::from(i), 1), None);
        }
        assert!(feed.groups.previous.is_none());
        // the 100 ms are over: the next one opens a group
        assert_eq!(feed.packet(990.0, 1100.0, 1), None);
        assert_eq!(feed.groups.previous.expect("closed").size, 99);
        // one that arrives as late as it was spaced is no burst
        let mut feed = Feed::new(DRAFT);
        feed.packet(0.0, 0.0, 1);
        feed.packet(6.0, 6.0, 1);
        assert!(feed.groups.previous.is_some());
        let delta = feed.packet(12.0, 13.0, 1).expect("two groups");
        assert_eq!(delta.arrived, RemoteTime::from_nanos(6_000_000), "the group's last packet");
    }

    #[test]
    fn a_reordered_packet_is_left_out_and_three_reordered_groups_start_anew() {
        let mut feed = Feed::new(Config::LIBWEBRTC);
        feed.packet(0.0, 0.0, 1);
        feed.packet(20.0, 20.0, 1);
        assert_eq!(feed.packet(10.0, 21.0, 1), None);
        assert_eq!(feed.groups.current.expect("open").size, 1);
        // a packet from before joins the second group, which so ends before the first
        let backwards = |config| {
            let mut feed = Feed::new(config);
            feed.packet(0.0, 1000.0, 1);
            feed.packet(20.0, 1020.0, 1);
            feed.packet(40.0, 500.0, 1);
            feed
        };
        let mut feed = backwards(Config::LIBWEBRTC);
        assert_eq!(feed.packet(60.0, 520.0, 1), None);
        assert_eq!(feed.packet(80.0, 540.0, 1), None);
        assert!(feed.groups.current.is_some());
        assert_eq!(feed.packet(100.0, 560.0, 1), None);
        assert!(feed.groups.current.is_none(), "started anew");
        // aiortc uses it as it is
        let delta = backwards(AIORTC).packet(60.0, 520.0, 1).expect("difference");
        assert_eq!((delta.arrival, delta.send), (-500.0, 40.0));
    }

    #[test]
    fn a_jump_of_the_far_clock_starts_anew_and_a_real_gap_does_not() {
        let mut jump = Feed::new(Config::LIBWEBRTC);
        jump.packet_at(0.0, 0.0, 1, 0.0);
        jump.packet_at(20.0, 3020.0, 1, 20.0);
        assert_eq!(jump.packet_at(40.0, 3040.0, 1, 40.0), None);
        assert!(jump.groups.current.is_none());
        let mut back = Feed::new(AIORTC);
        back.packet_at(0.0, 0.0, 1, 0.0);
        back.packet_at(20.0, -2980.0, 1, 20.0);
        back.packet_at(40.0, -2960.0, 1, 40.0);
        assert_eq!(back.packet_at(60.0, -2940.0, 1, 60.0).map(|delta| delta.arrival), Some(20.0));
        let mut gap = Feed::new(Config::LIBWEBRTC);
        gap.packet_at(0.0, 0.0, 1, 0.0);
        gap.packet_at(20.0, 3020.0, 1, 3020.0);
        assert_eq!(gap.packet_at(3040.0, 3040.0, 1, 3040.0).expect("difference").variation(), 3000.0);
    }

    #[test]
    fn abs_send_time_is_quantized_and_nothing_overflows() {
        let abs_send_time = Config { send_clock: SendClock::AbsSendTime, ..AIORTC };
        let mut feed = Feed::new(abs_send_time);
        // 1677 and 3355 ticks of 2^-18 s, to the nearest nanosecond
        let from_ticks = |ticks: f64| Time::from_nanos((ticks * 1e9 / 262_144.0).round() as i64);
        for (ticks, arrival) in [(0.0, 0), (1677.0, 10), (3355.0, 20)] {
            let arrived = RemoteTime::from_nanos(arrival * 1_000_000);
            let delta = feed.groups.packet(from_ticks(ticks), arrived, Size::ZERO, Time::ZERO);
            assert_eq!(delta.map(|d| d.send), (arrival == 20).then_some(1677.0 * 1000.0 / 262_144.0));
        }
        for (send, arrival) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MIN), (0, 0), (i64::MAX, i64::MAX)] {
            for config in [Config::LIBWEBRTC, DRAFT, AIORTC, Config { unsigned: true, ..abs_send_time }] {
                let mut feed = Feed::new(config);
                let huge = Size::from_bytes(u64::MAX);
                for (send, arrival) in [(send, arrival), (0, 0), (i64::MAX, arrival), (i64::MAX, 1)] {
                    let (send, arrival) = (Time::from_nanos(send), RemoteTime::from_nanos(arrival));
                    let _ = feed.groups.packet(send, arrival, huge, Time::MAX);
                }
            }
        }
    }
}
