//! CoDel (RFC 8289): drops or marks at the head while waits have exceeded the target for an interval.

use super::discipline::{Moment, QueueDiscipline, Waiting};
use super::drop_tail::{DropTail, Room, Tail};
use super::fifo::Fifo;
use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use tidegate_core::record::Backlog;
use tidegate_core::{Size, Span, Time, math};

/// The parameters of CoDel, by the names of RFC 8289.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodelSettings {
    /// TARGET: the acceptable wait of packets (section 4.4; 5 ms in section 5.3).
    pub target: Span,
    /// INTERVAL: the time for which the shortest wait must be above the target before a packet is dropped (section 4.3;
    /// 100 ms in section 5.3).
    pub interval: Span,
    /// No packet is dropped if at most this many bytes remain in the queue (section 5.3: it should be the MTU).
    pub maxpacket: Size,
    /// Whether packets of ECN-capable transports are marked instead of dropped (RFC 8290 section 5.2.6).
    pub ecn: bool,
    /// Wait beyond which a packet of an ECN-capable transport is marked in any case (RFC 8290 section 5.2.7).
    #[serde(default)]
    pub ce_threshold: Option<Span>,
}

impl CodelSettings {
    /// The values of RFC 8289 section 5.3, for packets of up to 1500 bytes, with ECN.
    pub const RFC_8289: Self = Self {
        target: Span::from_millis(5),
        interval: Span::from_millis(100),
        maxpacket: Size::from_bytes(1500),
        ecn: true,
        ce_threshold: None,
    };

    pub(super) fn check(&self) -> Result<(), Refusal> {
        let times = [
            ("target", Some(self.target)),
            ("interval", Some(self.interval)),
            ("ce_threshold", self.ce_threshold),
        ];
        for (key, time) in times {
            let time = time.unwrap_or(self.target);
            ensure(time > Span::ZERO, || Refusal::new(key, time, "more than zero"))?;
        }
        Ok(())
    }
}

/// The state of CoDel for one queue, with the names of section 5.2.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    /// Time at which the wait will have been above the target for an interval; `None` while it is below.
    first_above_time: Option<Time>,
    /// Time at which the next packet is to be dropped.
    drop_next: Time,
    /// Packets dropped or marked in the present drop state, or in the last one.
    count: u32,
    /// Value of `count` at the beginning of the drop state.
    lastcount: u32,
    /// Whether it is in the drop state.
    dropping: bool,
}

impl Control {
    /// Takes the next packet of `queue`, after dropping those before it that have to be dropped (section 5.5).
    ///
    /// A packet that is marked instead of dropped goes, and the state is as after a drop: RFC
    /// 8289 does not define it, and Linux does this (`codel_dequeue` in `include/net/codel_impl.h`).
    pub(crate) fn dequeue(
        &mut self,
        settings: &CodelSettings,
        queue: &mut Fifo,
        moment: &mut Moment<'_>,
    ) -> Option<Waiting> {
        let mut going = self.controlled(settings, queue, moment)?;
        if settings.ce_threshold.is_some_and(|threshold| moment.now - going.since > threshold) {
            let _ = moment.mark(&mut going.packet);
        }
        Some(going)
    }

    fn controlled(
        &mut self,
        settings: &CodelSettings,
        queue: &mut Fifo,
        moment: &mut Moment<'_>,
    ) -> Option<Waiting> {
        let now = moment.now;
        let (mut going, ok_to_drop) = self.next(settings, queue, now)?;
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if settings.ecn && moment.mark(&mut going.packet) {
                    self.drop_next = control_law(self.drop_next, settings.interval, self.count);
                    break;
                }
                moment.drop(going.packet);
                let next = self.next(settings, queue, now);
                self.dropping = next.as_ref().is_some_and(|(_, ok_to_drop)| *ok_to_drop);
                if self.dropping {
                    self.drop_next = control_law(self.drop_next, settings.interval, self.count);
                }
                going = next?.0;
            }
            return Some(going);
        }
        if ok_to_drop {
            self.dropping = true;
            // soon after the last drop state, begin with the rate of drops that controlled the queue then
            let delta = self.count - self.lastcount;
            let is_recent = now - self.drop_next < settings.interval.scaled(16.0);
            self.count = if delta > 1 && is_recent { delta } else { 1 };
            self.drop_next = control_law(now, settings.interval, self.count);
            self.lastcount = self.count;
            if !(settings.ecn && moment.mark(&mut going.packet)) {
                moment.drop(going.packet);
                going = self.next(settings, queue, now)?.0;
            }
        }
        Some(going)
    }

    /// Takes a packet off the queue, and returns whether it may be dropped, because the wait has been above the target
    /// for an interval (`dodequeue` of section 5.6).
    fn next(&mut self, settings: &CodelSettings, queue: &mut Fifo, now: Time) -> Option<(Waiting, bool)> {
        let Some(going) = queue.pop() else {
            // an empty queue is not above the target, and ends the drop state
            self.first_above_time = None;
            self.dropping = false;
            return None;
        };
        let is_below = now - going.since < settings.target || queue.bytes() <= settings.maxpacket.as_bytes();
        let ok_to_drop = match self.first_above_time {
            _ if is_below => {
                self.first_above_time = None;
                false
            }
            None => {
                self.first_above_time = Some(now + settings.interval);
                false
            }
            Some(time) => now >= time,
        };
        Some((going, ok_to_drop))
    }
}

/// Time of the drop after the `count`-th (`control_law` of section 5.6).
fn control_law(last: Time, interval: Span, count: u32) -> Time {
    last + interval.scaled(1.0 / math::sqrt(f64::from(count)))
}

/// A queue managed by CoDel.
#[derive(Clone, Debug)]
pub(crate) struct Codel {
    settings: CodelSettings,
    /// The buffer; packets that come while it is full are dropped, and do not count (section 5.4).
    waiting: Tail,
    control: Control,
}

impl Codel {
    pub(crate) fn new(settings: CodelSettings, room: Room) -> Result<Self, Refusal> {
        settings.check()?;
        Ok(Self { settings, waiting: Tail::new(room), control: Control::default() })
    }
}

impl QueueDiscipline for Codel {
    fn enqueue(&mut self, moment: &mut Moment<'_>, waiting: Waiting) {
        self.waiting.enqueue(moment, waiting);
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Waiting> {
        self.control.dequeue(&self.settings, &mut self.waiting.queue, moment)
    }

    fn limit(&mut self, moment: &mut Moment<'_>, limits: &DropTail) {
        self.waiting.limit(moment, limits);
    }

    fn into_waiting(self: Box<Self>) -> Vec<Waiting> {
        self.waiting.queue.into_waiting()
    }

    fn backlog(&self) -> Backlog {
        self.waiting.backlog()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&Waiting)) {
        self.waiting.for_each(visit);
    }

    fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        self.waiting.warnings(tell);
    }
}

#[cfg(test)]
mod tests {
    use super::super::desk::{Desk, QueueEvents};
    use super::*;
    use tidegate_core::{Ecn, Rate};

    const STEP: Span = Span::from_micros(50);

    fn codel(settings: CodelSettings) -> Desk<Codel> {
        let room = DropTail::UNLIMITED.resolve(Rate::from_mbps(10));
        Desk::new(Codel::new(settings, room).unwrap())
    }

    /// Takes a packet at every step from `from` on, for `length`, while there are four packets that have waited for
    /// `waited`; returns the drops and marks.
    fn serve(desk: &mut Desk<Codel>, from: Time, length: Span, waited: Span, ecn: Ecn) -> QueueEvents {
        let mut now = from;
        while now < from + length {
            desk.queue.waiting.queue = Fifo::default();
            (0..4).for_each(|_| desk.put(now, waited, 0, 1000, ecn));
            assert!(desk.take(now).is_some());
            now += STEP;
        }
        desk.take_events()
    }

    /// The times of drops of a drop state that began with `count` at `first` and lasts until `end`: they are
    /// interval / sqrt(count) apart.
    fn spaced(first: Time, mut count: u32, interval: Span, end: Time) -> Vec<Time> {
        let mut times = vec![first];
        let mut next = first;
        loop {
            next += interval.scaled(1.0 / math::sqrt(f64::from(count)));
            if next >= end {
                return times;
            }
            times.push(next);
            count += 1;
        }
    }

    fn assert_at(events: &QueueEvents, expected: &[Time], dropped: bool) {
        assert_eq!(events.len(), expected.len());
        for (&(time, _, died), &expected) in events.iter().zip(expected) {
            assert!(
                time >= expected && time < expected + STEP && died == dropped,
                "{time} instead of {expected}"
            );
        }
    }

    const LONG: Span = Span::from_millis(50);
    const SHORT: Span = Span::from_millis(1);

    #[test]
    fn drops_are_an_interval_by_the_root_of_their_number_apart() {
        for interval in [100, 37].map(Span::from_millis) {
            let settings = CodelSettings { interval, ..CodelSettings::RFC_8289 };
            let end = Time::from_secs(2);
            for (ecn, dropped) in [(Ecn::NotEct, true), (Ecn::Ect0, false), (Ecn::Ect1, false)] {
                let mut desk = codel(settings);
                let events = serve(&mut desk, Time::ZERO, end - Time::ZERO, LONG, ecn);
                assert_at(&events, &spaced(Time::ZERO + interval, 1, interval, end), dropped);
                assert!(events.len() > 30, "{}", events.len());
            }
            let mut desk = codel(CodelSettings { ecn: false, ..settings });
            let events = serve(&mut desk, Time::ZERO, end - Time::ZERO, LONG, Ecn::Ect0);
            assert_at(&events, &spaced(Time::ZERO + interval, 1, interval, end), true);
        }
    }

    #[test]
    fn a_drop_state_begins_with_the_rate_at_which_the_last_one_ended_if_that_is_not_long_ago() {
        let interval = CodelSettings::RFC_8289.interval;
        let until = Time::from_secs(1);
        for (pause, recent) in [(150, true), (1590, true), (1610, false)] {
            let mut desk = codel(CodelSettings::RFC_8289);
            let first = serve(&mut desk, Time::ZERO, until - Time::ZERO, LONG, Ecn::NotEct).len() as u32;
            // `drop_next` is the time of the drop that was due next when the wait fell
            let due = *spaced(Time::ZERO + interval, 1, interval, until + interval)
                .iter()
                .find(|&&drop| drop >= until)
                .unwrap();
            let resumed = due + Span::from_millis(pause) - interval;
            assert!(serve(&mut desk, until, resumed - until, SHORT, Ecn::NotEct).is_empty());
            let events = serve(&mut desk, resumed, Span::from_secs(1), LONG, Ecn::NotEct);
            // the count of the first drop state began with 1 and ended with `first`: delta is one less
            let count = if recent { first - 1 } else { 1 };
            assert_at(
                &events,
                &spaced(resumed + interval, count, interval, resumed + Span::from_secs(1)),
                true,
            );
        }
    }

    #[test]
    fn nothing_is_dropped_while_packets_wait_less_than_the_target_or_few_bytes_wait() {
        let target = CodelSettings::RFC_8289.target;
        let second = Span::from_secs(1);
        let mut desk = codel(CodelSettings::RFC_8289);
        let short = target - Span::from_nanos(1);
        assert!(serve(&mut desk, Time::ZERO, second, short, Ecn::NotEct).is_empty());
        // a wait of exactly the target counts as above (section 5.6)
        assert!(!serve(&mut desk, Time::ZERO + second, second, target, Ecn::NotEct).is_empty());
        // an interval with one shorter wait in it does not count
        let mut desk = codel(CodelSettings::RFC_8289);
        let mut now = Time::ZERO;
        for _ in 0..20 {
            let interval = CodelSettings::RFC_8289.interval;
            assert!(serve(&mut desk, now, interval, LONG, Ecn::NotEct).is_empty());
            assert!(serve(&mut desk, now + interval, STEP, SHORT, Ecn::NotEct).is_empty());
            now += interval + STEP;
        }
        // at most one packet remains in the queue
        let room = DropTail::UNLIMITED.resolve(Rate::from_mbps(10));
        for (size, drops) in [(1500, false), (1501, true)] {
            let mut desk = Desk::new(Codel::new(CodelSettings::RFC_8289, room).unwrap());
            desk.put(Time::ZERO, LONG, 0, size, Ecn::NotEct);
            for turn in 0..1000 {
                let now = Time::from_millis(turn);
                desk.put(now, LONG, 0, size, Ecn::NotEct);
                if desk.queue.backlog().packets > 1 {
                    desk.take(now);
                }
            }
            assert_eq!(!desk.take_events().is_empty(), drops, "{size} bytes");
        }
    }

    #[test]
    fn packets_that_wait_longer_than_the_threshold_are_marked_and_no_others() {
        let settings = CodelSettings { ce_threshold: Some(SHORT), ..CodelSettings::RFC_8289 };
        let mut desk = codel(settings);
        let over = SHORT + Span::from_nanos(1);
        for (waited, ecn, marks) in
            [(SHORT, Ecn::Ect1, 0), (over, Ecn::Ect1, 20), (over, Ecn::Ect0, 20), (over, Ecn::NotEct, 0)]
        {
            assert_eq!(serve(&mut desk, Time::ZERO, STEP.scaled(20.0), waited, ecn).len(), marks);
        }
    }
}
