//! Service at the rate that a driver has set in place of a schedule, a trace or a random process.

use super::variable::Variable;
use super::{Served, Server, WORK_PER_BYTE};
use tidegate_core::{Rate, Time};

/// What a link had until its driver said otherwise, and the rate that it has had since.
#[derive(Clone, Debug)]
pub struct Replaced {
    before: Server,
    at: Time,
    pub(super) after: Variable,
}

impl Replaced {
    /// A transmitter with `rate` from `now` on in place of `before`. `serving` is the packet in service, if there is
    /// one: when it is served, and its bytes. Gives the new end of its service, too: after a schedule, the bits that
    /// are left go at the new rate; after opportunities, which carry shares of packets, the packet goes again from
    /// its first bit.
    pub(super) fn new(
        before: Server,
        now: Time,
        rate: Rate,
        serving: Option<(Served, u32)>,
    ) -> (Self, Option<Time>) {
        let mut after = Variable::since(now, rate);
        let finish = serving.map(|(served, size)| {
            let whole = u128::from(size) * WORK_PER_BYTE;
            after.resume(match &before {
                Server::Schedule(service) => {
                    whole.saturating_sub(service.steps().work_between(served.start, now))
                }
                _ => whole,
            })
        });
        (Self { before, at: now, after }, finish)
    }

    /// The mean rate over `[from, to)`, as it was and, as long as nobody changes it, will be.
    pub(super) fn mean_rate(&mut self, from: Time, to: Time) -> Rate {
        let at = self.at.max(from).min(to);
        let (old, new) = (self.before.mean_rate(from, at), self.after.mean_rate(at, to));
        if new == Rate::MAX {
            return Rate::MAX;
        }
        let part = |rate: Rate, from: Time, to: Time| {
            u128::from(rate.as_bps()) * (to - from).as_nanos().max(0) as u128
        };
        let mean = (part(old, from, at) + part(new, at, to)) / (to - from).as_nanos().max(1) as u128;
        Rate::from_bps(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The schedule, trace or random process that was there before.
    pub(super) const fn before(&self) -> &Server {
        &self.before
    }
}
