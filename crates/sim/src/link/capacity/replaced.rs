//! Service at the rate that a driver has set in place of a schedule, a trace or a random process.

use super::variable::Variable;
use super::{Served, Server, WORK_PER_BYTE};
use tidegate_core::{Rate, Time};

/// The transmitter that a link had until its driver set a rate, and the one with that rate since then.
#[derive(Clone, Debug)]
pub struct Replaced {
    before: Server,
    since: Time,
    pub(super) after: Variable,
}

impl Replaced {
    /// A transmitter with `rate` from `now` on in place of `before`. `serving` is the packet in service, if there is
    /// one: its service times and its bytes. Returns the new end of its service, too: after a schedule, the remaining
    /// bits go at the new rate; after opportunities, which carry parts of packets, the packet is sent again from
    /// its first bit.
    pub(super) fn new(
        before: Server,
        now: Time,
        rate: Rate,
        serving: Option<(Served, u32)>,
    ) -> (Self, Option<Time>) {
        let mut after = Variable::since(now, rate);
        let finish = serving.map(|(served, size)| {
            let packet_work = u128::from(size) * WORK_PER_BYTE;
            after.resume(match &before {
                Server::Schedule(service) => {
                    packet_work.saturating_sub(service.steps().work_between(served.start, now))
                }
                _ => packet_work,
            })
        });
        (Self { before, since: now, after }, finish)
    }

    /// The mean rate over `[from, to)`, as it was, or as it will be if the driver does not change it.
    pub(super) fn mean_rate(&mut self, from: Time, to: Time) -> Rate {
        let boundary = self.since.max(from).min(to);
        let (mean_before, mean_after) =
            (self.before.mean_rate(from, boundary), self.after.mean_rate(boundary, to));
        if mean_after == Rate::MAX {
            return Rate::MAX;
        }
        let work = |rate: Rate, from: Time, to: Time| {
            u128::from(rate.as_bps()) * (to - from).as_nanos().max(0) as u128
        };
        let mean = (work(mean_before, from, boundary) + work(mean_after, boundary, to))
            / (to - from).as_nanos().max(1) as u128;
        Rate::from_bps(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The schedule, trace or random process before the set rate.
    pub(super) const fn before(&self) -> &Server {
        &self.before
    }
}
