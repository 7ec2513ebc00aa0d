//! CoDel (RFC 8289): drops or marks at the head while packets have waited too long for too long.

use super::discipline::{Moment, QueueDiscipline, Waiting};
use super::drop_tail::{Room, Tail};
use super::fifo::Fifo;
use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use tidegate_core::record::Backlog;
use tidegate_core::{Size, Span, Time, math};

/// The parameters of CoDel, by the names of RFC 8289.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodelSettings {
    /// TARGET: how long packets may wait (section 4.4; 5 ms in section 5.3).
    pub target: Span,
    /// INTERVAL: for how long the shortest wait must be above the target before anything is dropped (section 4.3;
    /// 100 ms in section 5.3).
    pub interval: Span,
    /// With at most so many bytes behind the packet that goes nothing is dropped (section 5.3: it should be the MTU).
    pub maxpacket: Size,
    /// Whether packets of ECN-capable transports are marked instead of dropped (RFC 8290 section 5.2.6).
    pub ecn: bool,
    /// Whoever has waited longer is marked in any case, if its transport is ECN-capable (RFC 8290 section 5.2.7).
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

/// The state of CoDel for one queue (section 5.2), under the names that it has there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    /// When the wait will have been above the target for an interval; `None` while it is below.
    first_above_time: Option<Time>,
    /// When the next packet is to be dropped.
    drop_next: Time,
    /// Packets dropped or marked since the drop state began, or what the last one ended with.
    count: u32,
    /// What `count` began with.
    lastcount: u32,
    /// Whether it is in the drop state.
    dropping: bool,
}

impl Control {
    /// The packet of `queue` that goes now, after those that were dropped before it (section 5.5).
    ///
    /// Where a packet is marked instead of dropped, it goes, with the state that a drop would have left behind: RFC
    /// 8289 says nothing of it, and this is what Linux does (`codel_dequeue` in `include/net/codel_impl.h`).
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
            // close to the last drop state the rate of drops that controlled the queue then is a good one to begin with
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

    /// Takes a packet off the queue, and says whether it may be dropped: whether the wait has been above the target for
    /// an interval (`dodequeue` of section 5.6).
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
            Some(at) => now >= at,
        };
        Some((going, ok_to_drop))
    }
}

/// When the drop after the `count`-th is due (`control_law` of section 5.6).
fn control_law(last: Time, interval: Span, count: u32) -> Time {
    last + interval.scaled(1.0 / math::sqrt(f64::from(count)))
}

/// One queue that CoDel manages.
#[derive(Clone, Debug)]
pub(crate) struct Codel {
    settings: CodelSettings,
    /// Section 5.4: what comes to a full buffer is dropped, and does not count.
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

    fn backlog(&self) -> Backlog {
        self.waiting.backlog()
    }

    fn each(&self, visit: &mut dyn FnMut(&Waiting)) {
        self.waiting.each(visit);
    }

    fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        self.waiting.warnings(tell);
    }
}

#[cfg(test)]
mod tests {
    use super::super::DropTail;
    use super::super::desk::{Desk, Told};
    use super::*;
    use tidegate_core::{Ecn, Rate};

    const STEP: Span = Span::from_micros(50);

    fn codel(settings: CodelSettings) -> Desk<Codel> {
        let room = DropTail::UNLIMITED.resolve(Rate::from_mbps(10));
        Desk::new(Codel::new(settings, room).unwrap())
    }

    /// From `from` on, for `length`, a packet is asked for at every step, when four wait that have waited for `waited`.
    fn serve(desk: &mut Desk<Codel>, from: Time, length: Span, waited: Span, ecn: Ecn) -> Told {
        let mut now = from;
        while now < from + length {
            desk.queue.waiting.queue = Fifo::default();
            (0..4).for_each(|_| desk.put(now, waited, 0, 1000, ecn));
            assert!(desk.take(now).is_some());
            now += STEP;
        }
        desk.told()
    }

    /// The drops of a drop state that began with `count` at `first` and goes on until `end`: interval / sqrt(count) after
    /// one another.
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

    fn assert_at(told: &Told, expected: &[Time], dropped: bool) {
        assert_eq!(told.len(), expected.len());
        for (&(at, _, died), &expected) in told.iter().zip(expected) {
            assert!(at >= expected && at < expected + STEP && died == dropped, "{at} instead of {expected}");
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
                let told = serve(&mut desk, Time::ZERO, end - Time::ZERO, LONG, ecn);
                assert_at(&told, &spaced(Time::ZERO + interval, 1, interval, end), dropped);
                assert!(told.len() > 30, "{}", told.len());
            }
            let mut desk = codel(CodelSettings { ecn: false, ..settings });
            let told = serve(&mut desk, Time::ZERO, end - Time::ZERO, LONG, Ecn::Ect0);
            assert_at(&told, &spaced(Time::ZERO + interval, 1, interval, end), true);
        }
    }

    #[test]
    fn a_drop_state_begins_with_the_rate_at_which_the_last_one_ended_if_that_is_not_long_ago() {
        let interval = CodelSettings::RFC_8289.interval;
        let until = Time::from_secs(1);
        for (pause, recent) in [(150, true), (1590, true), (1610, false)] {
            let mut desk = codel(CodelSettings::RFC_8289);
            let first = serve(&mut desk, Time::ZERO, until - Time::ZERO, LONG, Ecn::NotEct).len() as u32;
            // `drop_next` is that of the drop that was due next when the wait fell
            let due = *spaced(Time::ZERO + interval, 1, interval, until + interval)
                .iter()
                .find(|&&at| at >= until)
                .unwrap();
            let again = due + Span::from_millis(pause) - interval;
            assert!(serve(&mut desk, until, again - until, SHORT, Ecn::NotEct).is_empty());
            let told = serve(&mut desk, again, Span::from_secs(1), LONG, Ecn::NotEct);
            // of `first` drops the state's count began with 1: delta is their number less one
            let count = if recent { first - 1 } else { 1 };
            assert_at(&told, &spaced(again + interval, count, interval, again + Span::from_secs(1)), true);
        }
    }

    #[test]
    fn nothing_is_dropped_while_packets_wait_less_than_the_target_or_few_bytes_wait() {
        let target = CodelSettings::RFC_8289.target;
        let second = Span::from_secs(1);
        let mut desk = codel(CodelSettings::RFC_8289);
        let short = target - Span::from_nanos(1);
        assert!(serve(&mut desk, Time::ZERO, second, short, Ecn::NotEct).is_empty());
        // the target itself is too much (section 5.6: below it is below)
        assert!(!serve(&mut desk, Time::ZERO + second, second, target, Ecn::NotEct).is_empty());
        // an interval with one shorter wait in it does not count
        let mut desk = codel(CodelSettings::RFC_8289);
        let mut now = Time::ZERO;
        for _ in 0..20 {
            let most = CodelSettings::RFC_8289.interval;
            assert!(serve(&mut desk, now, most, LONG, Ecn::NotEct).is_empty());
            assert!(serve(&mut desk, now + most, STEP, SHORT, Ecn::NotEct).is_empty());
            now += most + STEP;
        }
        // at most one packet behind the one that goes
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
            assert_eq!(!desk.told().is_empty(), drops, "{size} bytes");
        }
    }

    #[test]
    fn what_waits_longer_than_a_threshold_is_marked_and_nothing_else() {
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
