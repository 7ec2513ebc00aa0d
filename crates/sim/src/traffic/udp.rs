//! UDP traffic that does not react to congestion.

use crate::link::capacity::{Constant, Schedule, Steps, WORK_PER_BYTE};
use crate::refusal::{Refusal, ensure};
use crate::traffic::sending_jitter::SendingJitter;
use serde::Deserialize;
use tidegate_core::address::{Direction, Service};
use tidegate_core::rng::Draws;
use tidegate_core::{Datagram, FlowId, Kind, Node, Outbox, Packet, Port, Rate, RouteId, Span, Stream, Time};

/// The settings of a UDP source.
#[derive(Clone, Debug)]
pub struct UdpSettings {
    /// The flow of its packets.
    pub flow: FlowId,
    /// The route of its packets.
    pub route: RouteId,
    /// Bytes of each packet on the wire, IP and UDP headers included.
    pub size: u32,
    /// Time of its beginning.
    pub start: Time,
    /// Time from which no packet is sent.
    pub stop: Time,
    /// Pattern of the departures.
    pub pattern: Pattern,
    /// The rate while on, in the bytes that [`UdpSettings::size`] counts.
    pub rate: Rate,
    /// With [`Pattern::Cbr`], a changing rate instead, by the time since the start. A packet leaves whenever its bytes
    /// have accumulated, the first one as soon as the rate is not zero.
    pub schedule: Option<Steps>,
    /// Largest sending jitter; packets stay in order.
    pub jitter: Span,
}

/// A pattern of departures.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// At equal intervals, the first one at the start.
    Cbr,
    /// As a Poisson process.
    Poisson,
    /// At the rate during exponential on-times, and not at all during exponential off-times. The state at the
    /// start is drawn with the probability of the long run. A packet leaves whenever the on-time of a packet
    /// has passed, so that the mean rate is exactly `rate * on / (on + off)`.
    OnOff {
        /// Mean length of an on-time.
        on: Span,
        /// Mean length of an off-time.
        off: Span,
    },
}

/// A source of UDP datagrams.
#[derive(Clone, Debug)]
pub struct UdpSource {
    name: String,
    packet: Packet,
    /// Departure of the next packet.
    next: Time,
    stop: Time,
    clock: Clock,
    jitter: Option<SendingJitter>,
}

/// The state of a pattern, from which the next departure follows.
#[derive(Clone, Debug)]
enum Clock {
    /// A transmitter that is never idle: it finishes packets at the exact pace.
    Constant(Constant),
    Poisson {
        ideal: Time,
        mean: f64,
        luck: Stream,
    },
    OnOff(Box<OnOff>),
    Schedule {
        start: Time,
        pace: Box<Schedule>,
    },
}

impl Clock {
    fn new(settings: &UdpSettings, seed: u64, name: &str) -> Result<Self, Refusal> {
        let UdpSettings { size, start, rate, .. } = *settings;
        let luck = || Stream::new(seed, name, "departures");
        Ok(match (settings.pattern, &settings.schedule) {
            (Pattern::Cbr, Some(steps)) => {
                Self::Schedule { start, pace: Box::new(Schedule::new(steps.clone())) }
            }
            (Pattern::Cbr, None) => Self::Constant(Constant::idle_until(rate, start)),
            (Pattern::Poisson, _) => {
                let mean = f64::from(size) * WORK_PER_BYTE as f64 / rate.as_bps_f64();
                Self::Poisson { ideal: start, mean, luck: luck() }
            }
            (Pattern::OnOff { on, off }, _) => {
                Self::OnOff(Box::new(OnOff::new(start, size, rate, (on, off), luck())?))
            }
        })
    }

    /// The time at which the first packet is to be sent.
    fn first(&mut self, start: Time, size: u32) -> Time {
        match self {
            Self::Constant(pace) if pace.rate() == Rate::ZERO => Time::MAX,
            Self::Constant(_) => start,
            Self::Schedule { pace, .. } => start + (pace.serve(Time::ZERO, 0).start - Time::ZERO),
            Self::Poisson { .. } | Self::OnOff(_) => self.following(size),
        }
    }

    /// The time at which the next packet is to be sent.
    #[inline]
    fn following(&mut self, size: u32) -> Time {
        match self {
            Self::Constant(pace) => pace.serve(Time::from_nanos(i64::MIN), size).finish,
            Self::Poisson { ideal, mean, luck } => {
                // a rate of zero has an infinite mean, and that saturates
                *ideal += Span::from_secs_f64(luck.exponential(*mean) * 1e-9);
                *ideal
            }
            Self::OnOff(state) => state.following(),
            Self::Schedule { start, pace } => {
                *start + (pace.serve(Time::from_nanos(i64::MIN), size).finish - Time::ZERO)
            }
        }
    }
}

/// An exponential on/off source between two packets.
#[derive(Clone, Debug)]
struct OnOff {
    /// The time up to which on-times and off-times are used.
    position: Time,
    /// Rest of the present on-time.
    remaining: Span,
    /// The on-time between two packets: whole nanoseconds, and a fraction in units of 1/peak.
    gap: (i64, u64),
    part: u64,
    peak: u64,
    on: f64,
    off: f64,
    luck: Stream,
}

impl OnOff {
    fn new(
        start: Time,
        size: u32,
        peak: Rate,
        (on, off): (Span, Span),
        mut luck: Stream,
    ) -> Result<Self, Refusal> {
        ensure(peak > Rate::ZERO, || Refusal::new("rate", peak, "more than zero"))?;
        ensure(on > Span::ZERO, || Refusal::new("on", on, "more than zero"))?;
        ensure(!off.is_negative(), || Refusal::new("off", off, "zero or more"))?;
        let work = u128::from(size) * WORK_PER_BYTE;
        let peak = peak.as_bps();
        let nanos = i64::try_from(work / u128::from(peak)).unwrap_or(i64::MAX);
        // bounds the on-times that one packet can take
        ensure(nanos / 1_000_000 <= on.as_nanos(), || {
            Refusal::new(
                "on",
                on,
                format!(
                    "at least one millionth of the time that sending a packet takes ({})",
                    Span::from_nanos(nanos)
                ),
            )
        })?;
        let (on, off) = (on.as_secs_f64(), off.as_secs_f64());
        let begins_on = luck.chance(on / (on + off));
        let position = if begins_on { start } else { start + Span::from_secs_f64(luck.exponential(off)) };
        let remaining = Span::from_secs_f64(luck.exponential(on));
        let rest = (work % u128::from(peak)) as u64;
        Ok(Self { position, remaining, gap: (nanos, rest), part: 0, peak, on, off, luck })
    }

    fn following(&mut self) -> Time {
        let (nanos, rest) = self.gap;
        let (part, overflow) = self.part.overflowing_add(rest);
        let carry = overflow || part >= self.peak;
        self.part = if carry { part.wrapping_sub(self.peak) } else { part };
        let mut need = Span::from_nanos(nanos.saturating_add(i64::from(carry)));
        while need > self.remaining {
            need -= self.remaining;
            self.position += self.remaining + Span::from_secs_f64(self.luck.exponential(self.off));
            self.remaining = Span::from_secs_f64(self.luck.exponential(self.on));
        }
        self.remaining -= need;
        self.position += need;
        self.position
    }
}

impl UdpSource {
    /// A source called `name` in the run with `seed`.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn new(name: impl Into<String>, seed: u64, settings: UdpSettings) -> Result<Self, Refusal> {
        let name = name.into();
        let UdpSettings { flow, route, size, start, stop, jitter, .. } = settings;
        let mut clock = Clock::new(&settings, seed, &name)
            .and_then(|clock| {
                ensure(size > 0, || Refusal::new("packet_size", size, "at least 1 byte")).map(|()| clock)
            })
            .and_then(|clock| {
                ensure(!jitter.is_negative(), || Refusal::new("sending_jitter", jitter, "zero or more"))
                    .map(|()| clock)
            })?;
        let mut jitter = (jitter > Span::ZERO)
            .then(|| SendingJitter::new(jitter, Stream::new(seed, &name, "sending jitter")));
        let first = clock.first(start, size);
        let next = jitter.as_mut().map_or(first, |jitter| jitter.depart(first));
        let packet = Packet::new(
            start,
            flow,
            route,
            0,
            Kind::Datagram,
            Datagram { size, ..Datagram::default() }.between(flow, Direction::Forward, Service::Discard),
        );
        Ok(Self { name, packet, next, stop, clock, jitter })
    }
}

impl Node for UdpSource {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Time> {
        (self.next < self.stop).then_some(self.next)
    }

    #[inline]
    fn advance(&mut self, now: Time, out: &mut Outbox) {
        if self.next > now || self.next >= self.stop {
            return;
        }
        let mut packet = self.packet.clone();
        packet.sent = now;
        self.packet.sequence = self.packet.sequence.wrapping_add(1);
        out.originate(now, Port::ZERO, packet);
        self.next = self.clock.following(self.packet.size);
        if let Some(jitter) = &mut self.jitter {
            self.next = jitter.depart(self.next);
        }
    }

    fn receive(&mut self, now: Time, _port: Port, packet: Box<Packet>, out: &mut Outbox) {
        // no node answers a datagram; a packet that is routed to this node has arrived
        out.deliver(now, &packet);
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        match &self.clock {
            Clock::Poisson { luck, .. } => visit(luck.draws()),
            Clock::OnOff(state) => visit(state.luck.draws()),
            Clock::Constant(_) | Clock::Schedule { .. } => {}
        }
        if let Some(jitter) = &self.jitter {
            visit(jitter.draws());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::record::NullRecorder;

    /// Pattern, rate, and the schedule in its place.
    type Sending = (Pattern, Rate, Option<Steps>);

    const fn cbr(rate: Rate) -> Sending {
        (Pattern::Cbr, rate, None)
    }

    fn source(sending: Sending, size: u32, jitter: Span, stop: Time) -> Result<UdpSource, Refusal> {
        let (pattern, rate, schedule) = sending;
        let settings = UdpSettings {
            flow: FlowId(3),
            route: RouteId(0),
            size,
            start: Time::from_secs(1),
            stop,
            pattern,
            rate,
            schedule,
            jitter,
        };
        UdpSource::new("udp", 1, settings)
    }

    fn departures(sending: Sending, size: u32, jitter: Span, stop: Time) -> Vec<Time> {
        let mut source = source(sending, size, jitter, stop).unwrap();
        let mut out = Outbox::new(1, Box::new(NullRecorder));
        while let Some(time) = source.next_wakeup() {
            source.advance(time, &mut out);
        }
        for (count, (_, packet)) in out.packets.iter().enumerate() {
            assert_eq!((packet.sequence as usize, packet.size, packet.flow), (count, size, FlowId(3)));
        }
        out.packets.iter().map(|(_, packet)| packet.sent).collect()
    }

    #[test]
    fn a_constant_rate_is_exact_and_ends_at_its_stop() {
        let sent = departures(cbr(Rate::from_mbps(7)), 1500, Span::ZERO, Time::from_secs(61));
        // 60 s * 7 Mbit/s / 12 kbit, the first at the start and none at the stop
        assert_eq!(sent.len(), 35_000);
        assert_eq!(sent[0], Time::from_secs(1));
        assert_eq!(sent[7].as_nanos(), 1_000_000_000 + 12_000_000);
        assert_eq!(sent[34_993].as_nanos(), 1_000_000_000 + 4999 * 12_000_000);
        assert_eq!(departures(cbr(Rate::ZERO), 1500, Span::ZERO, Time::MAX), []);
    }

    #[test]
    fn poisson_has_its_rate_and_dispersion() {
        let sent =
            departures((Pattern::Poisson, Rate::from_mbps(12), None), 1500, Span::ZERO, Time::from_secs(201));
        // 200 000 expected, with a deviation of 447
        assert!(sent.len().abs_diff(200_000) < 1600, "{}", sent.len());
        let mut seconds = [0.0_f64; 200];
        sent.iter().for_each(|time| seconds[time.as_secs_f64() as usize - 1] += 1.0);
        let mean = seconds.iter().sum::<f64>() / 200.0;
        let variance = seconds.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / 199.0;
        // the index of dispersion is 1, with a deviation of sqrt(2/199) = 0.1
        assert!((variance / mean - 1.0).abs() < 0.35, "{}", variance / mean);
        assert_eq!(departures((Pattern::Poisson, Rate::ZERO, None), 1500, Span::ZERO, Time::MAX), []);
    }

    #[test]
    fn on_off_has_its_mean_rate_and_keeps_quiet_between() {
        let (on, off) = (Span::from_millis(500), Span::from_millis(1500));
        let pattern = (Pattern::OnOff { on, off }, Rate::from_mbps(2), None);
        let sent = departures(pattern, 1000, Span::ZERO, Time::from_secs(40_001));
        // 0.5 Mbit/s are 62.5 packets/s; 20 000 cycles make a standard error near 1 %
        let rate = sent.len() as f64 / 40_000.0;
        assert!((rate / 62.5 - 1.0).abs() < 0.03, "{rate} packets/s");
        // 4 ms apart within an on-time: a longer gap holds an off-time
        let gaps: Vec<_> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| *gap >= Span::from_millis(4)));
        let quiet: Vec<_> = gaps.iter().filter(|gap| **gap > Span::from_millis(4)).collect();
        assert!(quiet.len().abs_diff(20_000) < 600, "{} off-times", quiet.len());
        let tiny = (Pattern::OnOff { on: Span::from_nanos(1), off }, Rate::from_bps(1), None);
        assert!(source(tiny, 1500, Span::ZERO, Time::MAX).is_err());
    }

    #[test]
    fn a_schedule_is_followed_by_the_byte() {
        let millis = Time::from_millis;
        let rates = [
            (millis(0), Rate::ZERO),
            (millis(100), Rate::from_kbps(80)),
            (millis(300), Rate::from_kbps(8000)),
        ];
        let scheduled = (Pattern::Cbr, Rate::ZERO, Some(Steps::new(&rates, None).unwrap()));
        // 1000 B: at 1.1 s, one every 100 ms until 1.3 s, then one every 1 ms
        let sent = departures(scheduled, 1000, Span::ZERO, millis(1303));
        assert_eq!(sent, [1100, 1200, 1300, 1301, 1302].map(millis));
    }

    #[test]
    fn jitter_delays_and_keeps_order() {
        let (rate, stop) = (cbr(Rate::from_mbps(12)), Time::from_secs(11));
        let ideal = departures(rate.clone(), 1500, Span::ZERO, stop);
        let max = Span::from_millis(5);
        let sent = departures(rate, 1500, max, stop);
        assert!(sent.windows(2).all(|pair| pair[0] <= pair[1]));
        let late: Vec<_> = ideal.iter().zip(&sent).map(|(ideal, sent)| *sent - *ideal).collect();
        assert!(late.iter().all(|late| !late.is_negative() && *late < max));
        assert!(late.iter().any(|late| *late < Span::from_millis(2)));
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let rate = cbr(Rate::from_mbps(1));
        assert!(source(rate.clone(), 0, Span::ZERO, Time::MAX).is_err());
        assert!(source(rate, 1, Span::from_nanos(-1), Time::MAX).is_err());
    }
}
