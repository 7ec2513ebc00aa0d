//! When a participant may send RTCP: RFC 3550 section 6.3 and appendix A.7.

use tidegate_core::rng::Draws;
use tidegate_core::{Rate, Span, Stream, Time};

/// The part of the session bandwidth that is RTCP's (RFC 3550 section 6.2).
const BANDWIDTH_PART: f64 = 0.05;
/// The part of RTCP's bandwidth that senders share while they are few (section 6.2).
const SENDER_PART: f64 = 0.25;
/// What timer reconsideration makes of the mean interval is undone by this: e - 3/2 (section 6.3.1; the
/// code of appendix A.7 has 2.71828 for e).
const COMPENSATION: f64 = core::f64::consts::E - 1.5;

/// The transmission state of section 6.3, for any number of members.
#[derive(Debug)]
pub struct Schedule {
    /// Members, and members when `next` was last computed; this participant is one of them.
    members: u32,
    members_before: u32,
    senders: u32,
    we_sent: bool,
    /// Bytes a second.
    bandwidth: f64,
    minimum: Span,
    average_size: f64,
    initial: bool,
    /// tp and tn of section 6.3.
    previous: Time,
    next: Time,
    rng: Stream,
}

impl Schedule {
    /// Of a participant that has not joined. `minimum` is the least interval before randomisation,
    /// `size` the probable size of the first packet in bytes, IP and UDP headers included.
    #[must_use]
    pub fn new(session: Rate, minimum: Span, size: u32, rng: Stream) -> Self {
        Self {
            members: 1,
            members_before: 1,
            senders: 0,
            we_sent: false,
            bandwidth: session.as_bps_f64() / 8.0 * BANDWIDTH_PART,
            minimum,
            average_size: f64::from(size),
            initial: true,
            previous: Time::ZERO,
            next: Time::MAX,
            rng,
        }
    }

    /// Joins the session (section 6.3.2); for one that has joined already, nothing.
    pub fn join(&mut self, now: Time, members: u32) {
        if self.next == Time::MAX && self.initial {
            (self.members, self.members_before) = (members, members);
            self.previous = now;
            self.next = now + self.interval();
        }
    }

    /// Is silent from now on.
    pub fn leave(&mut self) {
        (self.next, self.initial) = (Time::MAX, false);
    }

    /// When the timer goes off; [`Time::MAX`] for never.
    #[must_use]
    pub fn due(&self) -> Time {
        self.next
    }

    /// Sets how many senders there are, and whether this participant is one.
    pub fn set_senders(&mut self, senders: u32, we_sent: bool) {
        (self.senders, self.we_sent) = (senders, we_sent);
    }

    /// The timer has gone off: whether to send now. If not, it is set anew (section 6.3.6).
    pub fn expire(&mut self, now: Time) -> bool {
        if now < self.next {
            return false;
        }
        let interval = self.interval();
        self.next = self.previous + interval;
        self.members_before = self.members;
        self.next <= now
    }

    /// A regular packet of `size` bytes was sent after [`Schedule::expire`] had allowed it.
    pub fn sent(&mut self, now: Time, size: u32) {
        self.average(size);
        self.previous = now;
        self.initial = false;
        // drawn anew, as section 6.3.6 has it
        self.next = now + self.interval();
    }

    /// A regular packet of `size` bytes was received (section 6.3.3).
    pub fn received(&mut self, size: u32) {
        self.average(size);
    }

    /// The number of members has changed; with fewer, the timer is brought forward (section 6.3.4).
    pub fn set_members(&mut self, now: Time, members: u32) {
        self.members = members.max(1);
        if self.members < self.members_before && self.next != Time::MAX {
            let ratio = f64::from(self.members) / f64::from(self.members_before);
            self.next = now + (self.next.saturating_since(now)).scaled(ratio);
            self.previous = now - now.saturating_since(self.previous).scaled(ratio);
            self.members_before = self.members;
        }
    }

    /// Shows what its random substream gave out.
    pub fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.rng.draws());
    }

    fn average(&mut self, size: u32) {
        // section 6.3.3: a gain of 1/16
        self.average_size += (f64::from(size) - self.average_size) / 16.0;
    }

    /// Td of section 6.3.1: the interval without randomisation.
    #[must_use]
    pub fn deterministic(&self) -> Span {
        let (members, senders) = (f64::from(self.members), f64::from(self.senders));
        let (count, bandwidth) = if senders <= SENDER_PART * members {
            if self.we_sent {
                (senders, self.bandwidth * SENDER_PART)
            } else {
                (members - senders, self.bandwidth * (1.0 - SENDER_PART))
            }
        } else {
            (members, self.bandwidth)
        };
        let minimum = if self.initial { self.minimum / 2 } else { self.minimum };
        Span::from_secs_f64(count * self.average_size / bandwidth).max(minimum)
    }

    /// T of section 6.3.1: between half and one and a half times Td, and compensated.
    fn interval(&mut self) -> Span {
        let factor = (0.5 + self.rng.uniform()) / COMPENSATION;
        self.deterministic().scaled(factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(minimum: Span) -> Schedule {
        Schedule::new(Rate::from_mbps(1), minimum, 128, Stream::new(1, "endpoint", "rtcp"))
    }

    /// Runs `count` intervals and gives the times of sending.
    fn run(schedule: &mut Schedule, count: usize) -> Vec<Time> {
        let mut times = Vec::new();
        while times.len() < count {
            let now = schedule.due();
            if schedule.expire(now) {
                times.push(now);
                schedule.sent(now, 128);
            }
        }
        times
    }

    #[test]
    fn intervals_have_the_mean_of_section_6_3() {
        let mut schedule = schedule(Span::from_secs(5));
        schedule.join(Time::ZERO, 2);
        schedule.set_senders(1, false);
        let times = run(&mut schedule, 20_001);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // reconsideration and compensation cancel: the mean is Td
        assert!((mean - 5.0).abs() < 0.05, "{mean}");
        let (least, most) = gaps.iter().fold((f64::MAX, 0.0f64), |(l, m), &g| (l.min(g), m.max(g)));
        assert!((2.5 / 1.218_29..2.3).contains(&least), "{least}");
        assert!((6.0..=7.5 / 1.218_28).contains(&most), "{most}");
        // the first one comes after half the minimum in the mean
        assert!((1.02..=3.08).contains(&times[0].as_secs_f64()), "{}", times[0]);
    }

    #[test]
    fn the_deterministic_interval_is_as_by_hand() {
        // 1 Mb/s: 6250 bytes a second for RTCP
        let mut schedule = schedule(Span::from_millis(100));
        schedule.join(Time::ZERO, 100);
        schedule.initial = false;
        schedule.set_senders(10, true);
        // 10 of 100 are senders and share a quarter: 10 * 128 / 1562.5
        assert_eq!(schedule.deterministic(), Span::from_micros(819_200));
        schedule.set_senders(10, false);
        assert_eq!(schedule.deterministic(), Span::from_micros(2_457_600), "90 * 128 / 4687.5");
        schedule.set_senders(50, true);
        assert_eq!(schedule.deterministic(), Span::from_micros(2_048_000), "100 * 128 / 6250");
        schedule.set_senders(0, false);
        assert_eq!(schedule.deterministic(), Span::from_nanos(2_730_666_667), "75 % without any sender, too");
        schedule.received(144);
        assert!((schedule.average_size - 129.0).abs() < 1e-12);
        schedule.set_members(Time::ZERO, 2);
        schedule.set_senders(1, true);
        assert_eq!(schedule.deterministic(), Span::from_millis(100), "the minimum");
    }

    #[test]
    fn fewer_members_bring_the_timer_forward() {
        let mut schedule = schedule(Span::from_secs(5));
        schedule.join(Time::ZERO, 4);
        (schedule.previous, schedule.next) = (Time::from_secs(2), Time::from_secs(10));
        schedule.set_members(Time::from_secs(6), 2);
        assert_eq!((schedule.previous, schedule.next), (Time::from_secs(4), Time::from_secs(8)));
        schedule.leave();
        schedule.join(Time::from_secs(7), 2);
        assert_eq!(schedule.due(), Time::MAX, "who has left does not come back");
    }
}
