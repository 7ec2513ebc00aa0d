//! The transmitters of links, which put packets on the medium.
//!
//! Every service is first come, first served and lazily evaluated: when a transmitter is handed a packet (at arrival by
//! `fifo`, at the beginning of service by `managed`), it computes the end of the packet's service at once, from the end
//! of the previous service.

mod brownian;
mod constant;
mod opportunities;
mod replaced;
mod replays;
mod schedule;
mod statuses;
mod variable;

pub(crate) use brownian::Brownian;
pub use brownian::BrownianSettings;
pub use constant::Constant;
pub(crate) use opportunities::Instants;
pub use opportunities::{MAHIMAHI_BYTES, OpportunityTrace};
pub use schedule::{Schedule, Steps};
pub(crate) use statuses::StatusProcess;
pub use statuses::{Status, Statuses};

use crate::refusal::{Refusal, ensure};
use opportunities::{Opportunities, Playback};
use replaced::Replaced;
use replays::Replays;
use tidegate_core::rng::Draws;
use tidegate_core::{Rate, Size, Span, Stream, Time};
use variable::Variable;

/// Work of sending a byte. The unit of work is bit times nanosecond per second: a rate in bit/s does `rate` of it in
/// each nanosecond, and all values are integers.
pub(crate) const WORK_PER_BYTE: u128 = 8_000_000_000;

/// Beginning and end of the service of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served {
    /// Beginning of the service of its first byte, in whole nanoseconds rounded up: the end of its waiting.
    pub start: Time,
    /// End of the service of its last byte, in whole nanoseconds rounded up; [`Time::MAX`] for never.
    pub finish: Time,
}

/// The transmitter of a link.
#[derive(Clone, Debug, Default)]
pub enum Server {
    /// No packet takes any time.
    #[default]
    Infinite,
    /// One rate; [`Rate::ZERO`] never serves a packet.
    Constant(Constant),
    /// One rate, until the driver changes it.
    Variable(Box<Variable>),
    /// A rate that the driver has set, and the schedule, trace or random process before it.
    Replaced(Box<Replaced>),
    /// A rate that changes at given times.
    Schedule(Box<Schedule>),
    /// Recorded opportunities.
    Opportunities(Box<Opportunities<Playback>>),
    /// The rate process of the Sprout paper, in copies: for the capacity in the record, and one for the packets.
    Brownian {
        /// Copies for the record.
        replays: Box<Replays<Replay>>,
        /// Copy for the packets.
        now: Box<Opportunities<Brownian>>,
    },
    /// One of several capacities at a time. Packets take no time and never wait: those beyond the capacity are lost.
    Statuses(Box<StatusReplays>),
}

impl Server {
    /// Service at `rate`; at [`Rate::MAX`] it takes no time.
    #[must_use]
    pub const fn constant(rate: Rate) -> Self {
        if rate.as_bps() == Rate::MAX.as_bps() { Self::Infinite } else { Self::Constant(Constant::new(rate)) }
    }

    /// Service at the rates of `steps`.
    #[must_use]
    pub fn schedule(steps: Steps) -> Self {
        Self::Schedule(Box::new(Schedule::new(steps)))
    }

    /// Service at the opportunities of `list`.
    #[must_use]
    pub fn opportunities(list: OpportunityTrace) -> Self {
        let bytes = list.bytes();
        Self::Opportunities(Box::new(Opportunities::new(Playback::new(list), bytes)))
    }

    /// Service by the rate process of the Sprout paper, on the link called `name` in the run with `seed`.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn brownian(settings: BrownianSettings, seed: u64, name: &str) -> Result<Self, Refusal> {
        settings.check()?;
        let process = Brownian::new(settings, Stream::new(seed, name, "service"));
        Ok(Self::Brownian {
            replays: Box::new(Replays::new(Replay::new(process.clone()))),
            now: Box::new(Opportunities::new(process, settings.bytes)),
        })
    }

    /// The statuses of the link called `name` in the run with `seed`.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn statuses(settings: Statuses, seed: u64, name: &str) -> Result<Self, Refusal> {
        settings.check()?;
        let process = StatusProcess::new(settings, Stream::new(seed, name, "status"));
        Ok(Self::Statuses(Box::new(StatusReplays(Replays::new(process)))))
    }

    /// The rate from which a queue limit in time is computed: the constant rate, the mean over the period of a
    /// repeating schedule or trace, the first rate above zero of a schedule that does not repeat, or the mean of a
    /// random process ([`BrownianSettings::mean_rate`], [`Statuses::mean_rate`]).
    #[must_use]
    pub fn nominal_rate(&self) -> Rate {
        match self {
            Self::Infinite => Rate::MAX,
            Self::Constant(service) => service.rate(),
            Self::Variable(service) => service.rate(),
            Self::Replaced(service) => service.before().nominal_rate(),
            Self::Schedule(service) => service.steps().nominal_rate(),
            Self::Opportunities(service) => service.instants.list.mean_rate(),
            Self::Brownian { now, .. } => now.instants.settings().mean_rate(),
            Self::Statuses(replays) => replays.0.start().settings().mean_rate(),
        }
    }

    /// Serves a packet of `size` bytes that came at `now`, after all earlier packets.
    #[inline]
    pub(crate) fn serve(&mut self, now: Time, size: u32) -> Served {
        match self {
            Self::Constant(service) => service.serve(now, size),
            Self::Infinite | Self::Statuses(_) => Served { start: now, finish: now },
            changing => changing.serve_changing(now, size),
        }
    }

    /// Serves as [`Server::serve`], for changing capacities. It is a separate function, so that the common case is
    /// small enough to be inlined.
    fn serve_changing(&mut self, now: Time, size: u32) -> Served {
        match self {
            Self::Constant(service) => service.serve(now, size),
            Self::Infinite | Self::Statuses(_) => Served { start: now, finish: now },
            Self::Variable(service) => service.serve(now, size),
            Self::Replaced(service) => service.after.serve(now, size),
            Self::Schedule(service) => service.serve(now, size),
            Self::Opportunities(service) => service.serve(now, size),
            Self::Brownian { now: service, .. } => service.serve(now, size),
        }
    }

    /// The same transmitter, with a rate that can be changed where it was constant.
    pub(crate) fn variable(self) -> Self {
        match self {
            Self::Infinite => Self::Variable(Box::new(Variable::new(Rate::MAX))),
            Self::Constant(service) => Self::Variable(Box::new(Variable::new(service.rate()))),
            unchanged => unchanged,
        }
    }

    /// Sets the rate from `now` on. `serving` is the packet in service, if its service does not end before `now`: its
    /// service times and its bytes. Returns the new end of that service.
    pub(crate) fn set_rate(
        &mut self,
        now: Time,
        rate: Rate,
        serving: Option<(Served, u32)>,
    ) -> Result<Option<Time>, Refusal> {
        self.changeable()?;
        Ok(match self {
            Self::Variable(service) => service.set_rate(now, rate, serving.is_some()),
            Self::Replaced(service) => service.after.set_rate(now, rate, serving.is_some()),
            _ => {
                let before = std::mem::replace(self, Self::Infinite);
                let (replaced, finish) = Replaced::new(before, now, rate, serving);
                *self = Self::Replaced(Box::new(replaced));
                finish
            }
        })
    }

    /// Checks that [`Server::set_rate`] can set a rate.
    pub(crate) fn changeable(&self) -> Result<(), Refusal> {
        ensure(!matches!(self, Self::Statuses(_)), || super::beside_statuses("capacity"))
    }

    /// The time at which the service of a packet that has waited since `from` would begin, after all earlier packets.
    /// [`Server::serve`] with the same `from` begins then.
    pub(crate) fn begins(&mut self, from: Time) -> Time {
        match self {
            Self::Infinite | Self::Statuses(_) => from,
            Self::Constant(service) => service.begins(from),
            Self::Variable(service) => service.begins(from),
            Self::Replaced(service) => service.after.begins(from),
            Self::Schedule(service) => service.begins(from),
            Self::Opportunities(service) => service.begins(from),
            Self::Brownian { now: service, .. } => service.begins(from),
        }
    }

    /// The mean capacity over `[from, to)`, as it was, or as it will be if the driver does not change it: the exact
    /// mean of a rate, or the bytes of the opportunities in the interval over its length. Cheapest in order of time.
    pub(crate) fn mean_rate(&mut self, from: Time, to: Time) -> Rate {
        if to <= from {
            return Rate::ZERO;
        }
        match self {
            Self::Infinite => Rate::MAX,
            Self::Constant(service) => service.rate(),
            Self::Variable(service) => service.mean_rate(from, to),
            Self::Replaced(service) => service.mean_rate(from, to),
            Self::Schedule(service) => service.steps().mean_rate(from, to),
            Self::Opportunities(service) => {
                let list = &service.instants.list;
                let count = list.count_before(to) - list.count_before(from);
                Size::from_bytes(count * u64::from(list.bytes())).per(to - from)
            }
            Self::Brownian { replays, .. } => replays.at(from, to).bytes_between(from, to).per(to - from),
            Self::Statuses(replays) => replays.0.at(from, to).mean_rate(from, to),
        }
    }

    /// The mean capacity in each `bin` from `from` until `to`; the last bin may be shorter.
    pub(crate) fn capacity_series(&mut self, from: Time, to: Time, bin: Span) -> Vec<(Time, Rate)> {
        let mut series = Vec::new();
        let mut begin = from;
        while begin < to && bin > Span::ZERO {
            let end = if to - begin < bin { to } else { begin + bin };
            series.push((begin, self.mean_rate(begin, end)));
            begin = end;
        }
        series
    }

    /// The process of a link with statuses, from its beginning; `None` for other links, where packets wait.
    pub(crate) fn status_process(&self) -> Option<StatusProcess> {
        match self {
            Self::Statuses(replays) => Some(replays.0.start().clone()),
            _ => None,
        }
    }

    /// Visits the draws of the random substream, if there is one.
    pub(crate) fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        match self {
            Self::Brownian { now, .. } => visit(now.instants.luck().draws()),
            Self::Replaced(service) => service.before().draws(visit),
            _ => {}
        }
    }
}

/// Copies of the statuses for the capacity in the record; the medium has the copy for packets.
#[derive(Clone, Debug)]
pub struct StatusReplays(Replays<StatusProcess>);

/// A copy of a Brownian process, which runs from the beginning for the capacity in the record.
#[derive(Clone, Debug)]
pub struct Replay {
    process: Brownian,
    /// The next opportunity.
    pending: i64,
}

impl Replay {
    fn new(mut process: Brownian) -> Self {
        let pending = process.next();
        Self { process, pending }
    }

    fn bytes_between(&mut self, begin: Time, end: Time) -> Size {
        let mut bytes = 0;
        while self.pending < end.as_nanos() {
            if self.pending >= begin.as_nanos() {
                bytes += u64::from(self.process.settings().bytes);
            }
            self.pending = self.process.next();
        }
        Size::from_bytes(bytes)
    }
}
