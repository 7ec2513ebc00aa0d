//! When a participant may send RTCP: RFC 3550 section 6.3 and appendix A.7, RFC 4585 section 3.
//!
//! Pure: it reads no clock and draws no number. Time comes in with each event, and so do the pseudo-random
//! numbers, so that a sequence of decisions can be replayed against another reading of the RFCs.

use serde::{Deserialize, Serialize};
use tidegate_core::{Rate, Span, Time};

/// The part of the session bandwidth that is RTCP's (RFC 3550 section 6.2).
pub const BANDWIDTH_PART: f64 = 0.05;
/// The part of RTCP's bandwidth that senders share while they are few (section 6.2; named as in appendix A.7).
const RTCP_SENDER_BW_FRACTION: f64 = 0.25;
/// Divisor that undoes the effect of timer reconsideration on the mean interval: e - 3/2 (section 6.3.1; the code of
/// appendix A.7 has 2.71828 for e).
const COMPENSATION: f64 = core::f64::consts::E - 1.5;
/// Largest number of members with which a BYE needs no back-off (section 6.3.7).
const BYE_MEMBERS_AT_ONCE: u32 = 50;
/// Number of RTCP intervals without any packet after which a member is removed (RFC 3550 section 6.3.5).
const MEMBER_TIMEOUT: i64 = 5;
/// Number of RTCP intervals without RTP after which a member is no longer a sender (RFC 3550 section 6.3.5).
const SENDER_TIMEOUT: i64 = 2;
/// AVPF's Tmin before the first regular packet, with more than two participants (RFC 4585 section 3.4).
const FIRST_MULTIPARTY: Span = Span::from_secs(1);
/// Tmin for time-outs, whatever the profile. RFC 3550 section 6.2 requires the fixed minimum for that purpose even where
/// a reduced one is in use. RFC 4585 section 3.5.4 used T_rr_interval instead; members under AVP, which report only
/// every 5 s, would then time out between any two reports. So RFC 8108 section 7.1.4 requires the fixed minimum there, too.
const TIMEOUT_MINIMUM: Span = Span::from_secs(5);

/// RTP profile under which a participant sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Profile {
    /// RFC 3551: feedback waits for the next regular packet.
    Avp,
    /// RFC 4585: feedback may go early.
    Avpf(Avpf),
}

/// Parameters that RFC 4585 leaves to a session.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Avpf {
    /// l: in sessions of more than two, feedback is delayed by up to `l * T_rr` (section 3.5.2: 0.5).
    pub l: f64,
    /// k: a participant that knows the round-trip time delays by up to `k * RTT / 2 * members` instead
    /// (draft-ietf-avt-rtcp-feedback-00: 1). RFC 4585 has no such rule: `None`.
    pub k: Option<f64>,
    /// Whether T_rr in `l * T_rr` is drawn anew for each feedback, instead of taken from the current interval.
    pub redraw: bool,
    /// Time after which feedback is not worth sending any more (T_max_fb_delay, section 3.5.2).
    pub max_feedback_delay: Span,
    /// Minimum time between full regular packets, before its randomisation (T_rr_interval, section 3.5.3); zero: none.
    pub rr_interval: Span,
}

impl Default for Avpf {
    /// RFC 4585's l and interval, no k, feedback worth sending for 1 s, no T_rr_interval.
    fn default() -> Self {
        Self {
            l: 0.5,
            k: None,
            redraw: false,
            max_feedback_delay: Span::from_secs(1),
            rr_interval: Span::ZERO,
        }
    }
}

/// Parameters of a schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The profile.
    pub profile: Profile,
    /// The session bandwidth, of which RTCP may use 5 %.
    pub session: Rate,
    /// AVP's minimum interval before randomisation; half of it for the first one.
    pub minimum: Span,
    /// The probable size of the first packet in bytes, IP and UDP headers included (section 6.3.2).
    pub first_size: u32,
}

/// Action to take when the timer has gone off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// Nothing: the timer was set anew.
    Nothing,
    /// Send a regular packet, pending feedback included; then call [`Schedule::sent`].
    Regular,
    /// T_rr_interval forbids a full packet: send a minimal one with the pending feedback; then call
    /// [`Schedule::sent`].
    Minimal,
    /// Send the pending feedback as an early packet; then call [`Schedule::sent_early`].
    Early,
    /// Send the goodbye; after that the timer does not go off any more.
    Goodbye,
}

/// Way in which feedback is sent, if it is (RFC 4585 section 3.5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chance {
    /// It goes with an early packet at this time, unless another member's feedback makes it needless.
    Early(Time),
    /// It goes with the next regular packet.
    Regular,
    /// It is not sent: it could not be sent in time.
    No,
}

/// The transmission state of one participant, for any number of members.
#[derive(Clone, Debug)]
pub struct Schedule {
    profile: Profile,
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
    leaving: bool,
    /// tp, tn and T_rr, the last interval computed.
    previous: Time,
    next: Time,
    interval: Span,
    allow_early: bool,
    /// te.
    early: Option<Time>,
    /// Whether feedback waits for the next regular packet.
    stored: bool,
    /// t_rr_last.
    last_regular: Option<Time>,
}

impl Schedule {
    /// The schedule of a participant that has not joined.
    #[must_use]
    pub fn new(timing: &Timing) -> Self {
        Self {
            profile: timing.profile,
            members: 1,
            members_before: 1,
            senders: 0,
            we_sent: false,
            bandwidth: timing.session.as_bps_f64() / 8.0 * BANDWIDTH_PART,
            minimum: timing.minimum,
            average_size: f64::from(timing.first_size),
            initial: true,
            leaving: false,
            previous: Time::ZERO,
            next: Time::MAX,
            interval: Span::ZERO,
            allow_early: true,
            early: None,
            stored: false,
            last_regular: None,
        }
    }

    /// Joins the session (section 6.3.2); does nothing after the first time.
    pub fn join(&mut self, now: Time, members: u32, uniform: impl FnMut() -> f64) {
        if self.next == Time::MAX && self.initial {
            (self.members, self.members_before) = (members.max(1), members.max(1));
            self.previous = now;
            self.set_next(now, uniform);
        }
    }

    /// Leaves the session: the timer does not go off any more.
    pub fn leave(&mut self) {
        (self.next, self.early, self.stored, self.initial) = (Time::MAX, None, false, false);
    }

    /// Whether a goodbye of `size` bytes may be sent at once. If not, [`Schedule::expire`] tells when it is due
    /// (section 6.3.7).
    pub fn goodbye(&mut self, now: Time, size: u32, uniform: impl FnMut() -> f64) -> bool {
        self.cancel_early();
        if self.members <= BYE_MEMBERS_AT_ONCE {
            return true;
        }
        (self.members, self.members_before, self.senders) = (1, 1, 0);
        (self.initial, self.we_sent, self.leaving) = (true, false, true);
        self.average_size = f64::from(size);
        self.previous = now;
        self.set_next(now, uniform);
        false
    }

    /// When the timer goes off; [`Time::MAX`]: never.
    #[must_use]
    pub fn due(&self) -> Time {
        self.early.map_or(self.next, |early| early.min(self.next))
    }

    /// tp, tn and T_rr of the RFCs.
    #[must_use]
    pub fn state(&self) -> (Time, Time, Span) {
        (self.previous, self.next, self.interval)
    }

    /// Whether the next feedback may go early.
    #[must_use]
    pub fn allows_early(&self) -> bool {
        self.allow_early
    }

    /// The average size of RTCP packets in bytes (section 6.3.3).
    #[must_use]
    pub fn average_size(&self) -> f64 {
        self.average_size
    }

    /// Sets the number of senders, and whether this participant is one of them. While its goodbye waits, it counts no
    /// senders.
    pub fn set_senders(&mut self, senders: u32, we_sent: bool) {
        if !self.leaving {
            (self.senders, self.we_sent) = (senders, we_sent);
        }
    }

    /// Returns the action that is due after the timer has gone off. `waiting`: whether feedback is pending.
    pub fn expire(&mut self, now: Time, waiting: bool, mut uniform: impl FnMut() -> f64) -> Due {
        if let Some(early) = self.early
            && early < self.next
        {
            return if early <= now { Due::Early } else { Due::Nothing };
        }
        if now < self.next {
            return Due::Nothing;
        }
        // section 6.3.6: with a new interval, the packet may not be due yet
        let scheduled = self.next;
        self.interval = self.draw(&mut uniform);
        self.next = self.previous + self.interval;
        self.members_before = self.members;
        if self.next > now {
            return Due::Nothing;
        }
        if self.leaving {
            self.leave();
            return Due::Goodbye;
        }
        if let Profile::Avpf(Avpf { rr_interval, .. }) = self.profile
            && rr_interval > Span::ZERO
            && let Some(last) = self.last_regular
            && last + rr_interval.scaled(0.5 + uniform()) > scheduled
        {
            if waiting {
                return Due::Minimal;
            }
            self.restart(now, uniform);
            return Due::Nothing;
        }
        self.last_regular = Some(scheduled);
        Due::Regular
    }

    /// Notes that a packet of `size` bytes, not an early one, was sent as [`Schedule::expire`] demanded.
    pub fn sent(&mut self, now: Time, size: u32, uniform: impl FnMut() -> f64) {
        self.update_average_size(size);
        self.restart(now, uniform);
    }

    /// Begins an interval (section 6.3.6; RFC 4585 section 3.5.3).
    fn restart(&mut self, now: Time, uniform: impl FnMut() -> f64) {
        self.previous = now;
        self.initial = false;
        self.allow_early = true;
        self.cancel_early();
        // the interval is drawn anew, as section 6.3.6 has it
        self.set_next(now, uniform);
    }

    /// Notes that an early packet of `size` bytes was sent; skips the next regular one (RFC 4585 section 3.5.2).
    pub fn sent_early(&mut self, size: u32) {
        self.update_average_size(size);
        self.allow_early = false;
        self.cancel_early();
        let skipped = self.next;
        self.next = self.previous + self.interval * 2;
        self.previous = skipped;
    }

    /// Schedules feedback on an event at `now`. `rtt`: the round-trip time to the sender that the feedback is about, if
    /// known.
    pub fn feedback(&mut self, now: Time, rtt: Option<Span>, mut uniform: impl FnMut() -> f64) -> Chance {
        let Profile::Avpf(avpf) = self.profile else { return Chance::Regular };
        if self.next == Time::MAX || self.leaving {
            return Chance::No;
        }
        // it joins the feedback that is scheduled already (step 2a)
        if let Some(early) = self.early {
            return Chance::Early(early);
        }
        if self.stored {
            return Chance::Regular;
        }
        let dither_max = self.dither(&avpf, rtt, &mut uniform);
        if now + dither_max > self.next {
            self.stored = true;
            return Chance::Regular;
        }
        if !self.allow_early {
            self.stored = self.next - now < avpf.max_feedback_delay;
            return if self.stored { Chance::Regular } else { Chance::No };
        }
        let early = now + dither_max.scaled(uniform());
        self.early = Some(early);
        Chance::Early(early)
    }

    /// T_dither_max (RFC 4585 section 3.5.2).
    fn dither(&self, avpf: &Avpf, rtt: Option<Span>, uniform: impl FnMut() -> f64) -> Span {
        if self.is_pair() {
            return Span::ZERO;
        }
        match (avpf.k, rtt) {
            (Some(k), Some(rtt)) => rtt.scaled(k * 0.5 * f64::from(self.members)),
            _ if avpf.redraw => self.draw(uniform).scaled(avpf.l),
            _ => self.interval.scaled(avpf.l),
        }
    }

    /// Whether the session is point to point (RFC 4585 section 3.4). A participant that has heard no other cannot tell
    /// yet.
    fn is_pair(&self) -> bool {
        self.members == 2 && !self.leaving
    }

    /// Drops the pending feedback, since other members have sent all of it: it needs no early packet any more, and the
    /// next feedback is scheduled afresh (RFC 4585 section 3.5.2, step 5a).
    pub fn cancel_early(&mut self) {
        (self.early, self.stored) = (None, false);
    }

    /// Notes a received packet of `size` bytes (section 6.3.3). While this participant's goodbye waits, only other
    /// goodbyes count: [`Schedule::heard_goodbye`].
    pub fn received(&mut self, size: u32) {
        if !self.leaving {
            self.update_average_size(size);
        }
    }

    /// Notes a goodbye in a packet of `size` bytes, received while this participant's own waits (section 6.3.7).
    pub fn heard_goodbye(&mut self, size: u32) {
        if self.leaving {
            self.members += 1;
            self.update_average_size(size);
        }
    }

    /// Sets the number of members; with fewer, the timer is brought forward (section 6.3.4).
    pub fn set_members(&mut self, now: Time, members: u32) {
        if self.leaving {
            return;
        }
        self.members = members.max(1);
        if self.members < self.members_before && self.next != Time::MAX {
            let ratio = f64::from(self.members) / f64::from(self.members_before);
            self.next = now + self.next.saturating_since(now).scaled(ratio);
            // after an early packet, tp is still in the future
            self.previous = now - (now - self.previous).scaled(ratio);
            self.members_before = self.members;
        }
    }

    fn update_average_size(&mut self, size: u32) {
        // section 6.3.3: a gain of 1/16
        self.average_size += (f64::from(size) - self.average_size) / 16.0;
        debug_assert!(self.average_size >= 0.0, "packets of {} bytes on average", self.average_size);
    }

    /// Td of section 6.3.1: the interval without randomisation.
    #[must_use]
    pub fn deterministic(&self) -> Span {
        self.deterministic_interval(self.we_sent, self.minimum_interval())
    }

    /// Tmin of section 6.3.1.
    fn minimum_interval(&self) -> Span {
        match self.profile {
            Profile::Avp if self.initial => self.minimum / 2,
            Profile::Avp => self.minimum,
            Profile::Avpf(_) if self.initial && !self.is_pair() => FIRST_MULTIPARTY,
            Profile::Avpf(_) => Span::ZERO,
        }
    }

    /// Td for a sender or a receiver, with `minimum` as Tmin.
    fn deterministic_interval(&self, we_sent: bool, minimum: Span) -> Span {
        let (members, senders) = (f64::from(self.members), f64::from(self.senders));
        let (count, bandwidth) = if senders <= RTCP_SENDER_BW_FRACTION * members {
            if we_sent {
                (senders, self.bandwidth * RTCP_SENDER_BW_FRACTION)
            } else {
                (members - senders, self.bandwidth * (1.0 - RTCP_SENDER_BW_FRACTION))
            }
        } else {
            (members, self.bandwidth)
        };
        Span::from_secs_f64(count * self.average_size / bandwidth).max(minimum)
    }

    /// Silence after which a member is removed: five times the interval of a receiver, without randomisation (section
    /// 6.3.5).
    #[must_use]
    pub fn member_timeout(&self) -> Span {
        self.timeout_interval() * MEMBER_TIMEOUT
    }

    /// Td of a receiver with the fixed minimum that time-outs use.
    #[must_use]
    pub fn timeout_interval(&self) -> Span {
        self.deterministic_interval(false, TIMEOUT_MINIMUM)
    }

    /// Mean time between full packets of the peer in a session of two. Its Td is the same: under AVPF no less than
    /// T_rr_interval.
    #[must_use]
    pub fn peer_interval(&self) -> Span {
        match self.profile {
            Profile::Avp => self.deterministic(),
            Profile::Avpf(avpf) => self.deterministic().max(avpf.rr_interval),
        }
    }

    /// Time without RTP after which a member is no longer a sender (section 6.3.5).
    #[must_use]
    pub fn sender_timeout(&self) -> Span {
        self.timeout_interval() * SENDER_TIMEOUT
    }

    fn set_next(&mut self, now: Time, uniform: impl FnMut() -> f64) {
        self.interval = self.draw(uniform);
        debug_assert!(!self.interval.is_negative(), "an interval of {}", self.interval);
        self.next = now + self.interval;
        self.members_before = self.members;
    }

    /// T of section 6.3.1: between half and one and a half times Td, and compensated.
    fn draw(&self, mut uniform: impl FnMut() -> f64) -> Span {
        let factor = (0.5 + uniform()) / COMPENSATION;
        self.deterministic().scaled(factor)
    }
}

#[cfg(test)]
mod tests;
