//! The pre-filter: packets into groups, and the differences between two groups.
//!
//! Draft 5.1 and 5.2; libwebrtc `inter_arrival_delta.cc`; aiortc `InterArrival`. Packets that the sender
//! put out in one burst, or that the network delivered in one, say nothing about the queue between them,
//! so the filter sees one sample for each group.

use super::settings::{Grouping, SendClock, Settings};
use tidegate_core::units::{RemoteTime, Size, Span, Time};

/// The difference between two consecutive groups.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Delta {
    /// Between the last packets' arrivals, ms.
    pub arrival: f64,
    /// Between the last packets' departures, ms.
    pub send: f64,
    /// Between the sizes, bytes.
    pub size: f64,
    /// When the later group's last packet arrived.
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

/// Collects packets into groups.
#[derive(Clone, Default)]
pub struct Groups {
    current: Option<Group>,
    previous: Option<Group>,
    reordered: u64,
}

impl SendClock {
    /// A send time in this clock's ticks.
    fn ticks(self, time: Time) -> i64 {
        let nanos = time.as_nanos();
        match self {
            Self::Exact => nanos,
            // to the nearest 2^-18 s: what a sender would have written into abs-send-time
            Self::AbsSendTime => {
                let wide = (i128::from(nanos) << 18) + 500_000_000;
                wide.div_euclid(1_000_000_000) as i64
            }
        }
    }

    /// The time between two of its readings, ms.
    fn between(self, settings: &Settings, earlier: i64, later: i64) -> f64 {
        let ticks = later.saturating_sub(earlier);
        let unsigned = settings.send_unsigned && self == Self::AbsSendTime;
        self.millis(if unsigned { ticks.rem_euclid(1 << 24) } else { ticks })
    }

    fn millis(self, ticks: i64) -> f64 {
        match self {
            Self::Exact => ticks as f64 / 1e6,
            Self::AbsSendTime => ticks as f64 * (1000.0 / (1 << 18) as f64),
        }
    }
}

fn millis(nanos: i64) -> f64 {
    nanos as f64 / 1e6
}

impl Groups {
    /// Takes the next packet in order of arrival, at `now` by our clock. Answers with the difference of
    /// the two groups before it, when it is the first of a new one.
    pub fn packet(
        &mut self,
        settings: &Settings,
        sent: Time,
        arrived: RemoteTime,
        size: Size,
        now: Time,
    ) -> Option<Delta> {
        let clock = settings.send_clock;
        let send = clock.ticks(sent);
        let arrival = arrived.as_nanos();
        if settings.grouping == Grouping::Packets {
            return self.alone(settings, Group { size: size.as_bytes(), ..Group::at(send, arrival, now) });
        }
        let mut delta = None;
        match &mut self.current {
            None => self.current = Some(Group::at(send, arrival, now)),
            // sent before the present group: it can neither join it nor open a new one
            Some(current) if send < current.first_send => return None,
            Some(current) if current.ends_before(settings, send, arrival) => {
                let finished = *current;
                if let Some(previous) = self.previous {
                    delta = Some(self.difference(settings, &previous, &finished)?);
                }
                self.previous = Some(finished);
                self.current = Some(Group::at(send, arrival, now));
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

    /// A packet that is a group by itself: it is complete at once.
    fn alone(&mut self, settings: &Settings, packet: Group) -> Option<Delta> {
        let mut delta = None;
        if let Some(previous) = self.previous {
            if packet.last_send < previous.last_send {
                return None;
            }
            delta = Some(self.difference(settings, &previous, &packet)?);
        }
        self.previous = Some(packet);
        delta
    }

    /// From one group to the next. None where their arrivals are no measure of the path.
    fn difference(&mut self, settings: &Settings, previous: &Group, finished: &Group) -> Option<Delta> {
        let step = finished.last_arrival.saturating_sub(previous.last_arrival);
        let system = finished.last_system.saturating_sub(previous.last_system);
        let jump = Span::from_millis_f64(settings.clock_jump_reset).as_nanos();
        if jump > 0 && step.saturating_sub(system).saturating_abs() >= jump {
            *self = Self::default();
            return None;
        }
        if step < 0 && settings.reordered_reset > 0 {
            self.reordered += 1;
            if self.reordered >= settings.reordered_reset {
                *self = Self::default();
            }
            return None;
        }
        self.reordered = 0;
        Some(Delta {
            arrival: millis(step),
            send: settings.send_clock.between(settings, previous.last_send, finished.last_send),
            size: finished.size as f64 - previous.size as f64,
            arrived: RemoteTime::from_nanos(finished.last_arrival),
        })
    }
}

impl Group {
    fn at(send: i64, arrival: i64, now: Time) -> Self {
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
    fn ends_before(&self, settings: &Settings, send: i64, arrival: i64) -> bool {
        let clock = settings.send_clock;
        let apart = clock.millis(send.saturating_sub(self.first_send)) > settings.group_length;
        apart && !self.bursts_with(settings, send, arrival)
    }

    /// Whether a packet caught up with this group on its way (draft 5.2, second rule).
    fn bursts_with(&self, settings: &Settings, send: i64, arrival: i64) -> bool {
        let exact = settings.send_clock.between(settings, self.last_send, send);
        let send_gap = if settings.send_unsigned { exact.round_ties_even() } else { exact };
        let arrival_gap = millis(arrival.saturating_sub(self.last_arrival));
        let length = millis(arrival.saturating_sub(self.first_arrival));
        send_gap == 0.0
            || (arrival_gap < send_gap
                && arrival_gap <= settings.burst_interval
                && (settings.max_burst == 0.0 || length < settings.max_burst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcc::presets::Placement;
    use serde_json::json;

    struct Feed {
        settings: Settings,
        groups: Groups,
    }

    impl Feed {
        fn new(preset: &str) -> Self {
            Self { settings: Settings::preset(preset).expect("known"), groups: Groups::default() }
        }
        /// A packet sent and arrived at these milliseconds; our clock runs with the arrivals.
        fn packet(&mut self, send: f64, arrival: f64, size: u64) -> Option<Delta> {
            self.packet_at(send, arrival, size, arrival)
        }
        fn packet_at(&mut self, send: f64, arrival: f64, size: u64, now: f64) -> Option<Delta> {
            let nanos = |ms: f64| (ms * 1e6) as i64;
            self.groups.packet(
                &self.settings,
                Time::from_nanos(nanos(send)),
                RemoteTime::from_nanos(nanos(arrival)),
                Size::from_bytes(size),
                Time::from_nanos(nanos(now)),
            )
        }
    }

    #[test]
    fn a_group_spans_five_milliseconds_and_is_compared_by_its_last_packet() {
        let mut feed = Feed::new("libwebrtc-v1");
        assert_eq!(feed.packet(0.0, 100.0, 1000), None);
        assert_eq!(feed.packet(5.0, 105.0, 200), None, "5 ms still belongs");
        assert_eq!(feed.packet(33.0, 133.0, 700), None, "one group is no difference yet");
        let delta = feed.packet(66.0, 170.0, 1).expect("two groups are complete");
        assert_eq!((delta.send, delta.arrival, delta.size), (28.0, 28.0, -500.0));
        assert_eq!(delta.arrived, RemoteTime::from_nanos(133_000_000));
        let delta = feed.packet(99.0, 203.0, 1).expect("complete");
        assert_eq!((delta.variation(), delta.size), (4.0, -699.0));
    }

    #[test]
    fn each_packet_may_be_a_group_by_itself() {
        let mut feed = Feed::new("hoang2017");
        assert_eq!(feed.packet(0.0, 100.0, 1000), None);
        // sent at one instant, arrived in one burst: a difference nevertheless, and at once
        let delta = feed.packet(0.0, 100.5, 700).expect("a difference");
        assert_eq!((delta.send, delta.arrival, delta.size), (0.0, 0.5, -300.0));
        assert_eq!(delta.arrived, RemoteTime::from_nanos(100_500_000));
        // 3 s and more between two reports are no jump of the clock, and an overtaken packet is used as it is
        assert_eq!(feed.packet_at(33.0, 5000.0, 700, 9000.0).map(|delta| delta.variation()), Some(4866.5));
        assert_eq!(feed.packet(66.0, 4990.0, 700).map(|delta| delta.arrival), Some(-10.0));
        assert_eq!(feed.packet(50.0, 5010.0, 700), None, "sent before: left out");
        assert_eq!(feed.packet(99.0, 5023.0, 700).map(|delta| delta.variation()), Some(0.0));
    }

    #[test]
    fn a_burst_of_arrivals_is_one_group_for_at_most_its_longest() {
        let mut feed = Feed::new("libwebrtc-v1");
        // sent every 10 ms, held back, and delivered 1 ms apart: all one group
        for i in 0..99 {
            assert_eq!(feed.packet(f64::from(i) * 10.0, 1000.0 + f64::from(i), 1), None);
        }
        assert!(feed.groups.previous.is_none());
        // the 100 ms are over: the next one opens a group
        assert_eq!(feed.packet(990.0, 1100.0, 1), None);
        assert_eq!(feed.groups.previous.expect("closed").size, 99);
        // one that arrives as late as it was spaced is no burst
        let mut feed = Feed::new("draft-02");
        feed.packet(0.0, 0.0, 1);
        feed.packet(6.0, 6.0, 1);
        assert!(feed.groups.previous.is_some());
    }

    #[test]
    fn a_reordered_packet_is_left_out_and_three_reordered_groups_start_anew() {
        let mut feed = Feed::new("libwebrtc-v1");
        feed.packet(0.0, 0.0, 1);
        feed.packet(20.0, 20.0, 1);
        assert_eq!(feed.packet(10.0, 21.0, 1), None);
        assert_eq!(feed.groups.current.expect("open").size, 1);
        // a packet from before joins the second group, which so ends before the first
        let backwards = |preset| {
            let mut feed = Feed::new(preset);
            feed.packet(0.0, 1000.0, 1);
            feed.packet(20.0, 1020.0, 1);
            feed.packet(40.0, 500.0, 1);
            feed
        };
        let mut feed = backwards("libwebrtc-v1");
        assert_eq!(feed.packet(60.0, 520.0, 1), None);
        assert_eq!(feed.packet(80.0, 540.0, 1), None);
        assert!(feed.groups.current.is_some());
        assert_eq!(feed.packet(100.0, 560.0, 1), None);
        assert!(feed.groups.current.is_none(), "started anew");
        // aiortc uses it as it is
        let delta = backwards("aiortc").packet(60.0, 520.0, 1).expect("difference");
        assert_eq!((delta.arrival, delta.send), (-500.0, 40.0));
    }

    #[test]
    fn a_jump_of_the_far_clock_starts_anew_and_a_real_gap_does_not() {
        let mut jump = Feed::new("libwebrtc-v1");
        jump.packet_at(0.0, 0.0, 1, 0.0);
        jump.packet_at(20.0, 3020.0, 1, 20.0);
        assert_eq!(jump.packet_at(40.0, 3040.0, 1, 40.0), None);
        assert!(jump.groups.current.is_none());
        let mut back = Feed::new("aiortc");
        back.packet_at(0.0, 0.0, 1, 0.0);
        back.packet_at(20.0, -2980.0, 1, 20.0);
        back.packet_at(40.0, -2960.0, 1, 40.0);
        assert_eq!(back.packet_at(60.0, -2940.0, 1, 60.0).map(|delta| delta.arrival), Some(20.0));
        let mut gap = Feed::new("libwebrtc-v1");
        gap.packet_at(0.0, 0.0, 1, 0.0);
        gap.packet_at(20.0, 3020.0, 1, 3020.0);
        assert_eq!(gap.packet_at(3040.0, 3040.0, 1, 3040.0).expect("difference").variation(), 3000.0);
    }

    #[test]
    fn abs_send_time_is_quantized_and_nothing_overflows() {
        let mut feed = Feed::new("aiortc");
        feed.settings =
            Placement::Sender.with("aiortc", &json!({"send_clock": "abs-send-time"})).expect("fine");
        // 1677 and 3355 ticks of 2^-18 s, given in the nearest nanoseconds
        let at = |ticks: f64| Time::from_nanos((ticks * 1e9 / 262_144.0).round() as i64);
        for (ticks, arrival) in [(0.0, 0), (1677.0, 10), (3355.0, 20)] {
            let arrived = RemoteTime::from_nanos(arrival * 1_000_000);
            let delta = feed.groups.packet(&feed.settings, at(ticks), arrived, Size::ZERO, Time::ZERO);
            assert_eq!(delta.map(|d| d.send), (arrival == 20).then_some(1677.0 * 1000.0 / 262_144.0));
        }
        for (send, arrival) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MIN), (0, 0), (i64::MAX, i64::MAX)] {
            for preset in Placement::Sender.presets() {
                let mut feed = Feed::new(preset);
                let huge = Size::from_bytes(u64::MAX);
                for (send, arrival) in [(send, arrival), (0, 0), (i64::MAX, arrival), (i64::MAX, 1)] {
                    let (send, arrival) = (Time::from_nanos(send), RemoteTime::from_nanos(arrival));
                    let _ = feed.groups.packet(&feed.settings, send, arrival, huge, Time::MAX);
                }
            }
        }
    }
}
