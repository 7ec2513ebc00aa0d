//! A sender of several flows whose congestion controls are coupled (RFC 8699): a node that holds their endpoints and
//! the flow state exchange (FSE) between them.

use super::host::Host;
use tidegate_core::rng::Draws;
use tidegate_core::{Node, Outbox, Packet, Port, Rate, Time};
use tidegate_endpoint::Endpoint;
use tidegate_endpoint::coupling::{Algorithm, FlowUpdate, Fse};

/// One coupled flow; its packets come in at the port of its index.
struct Member {
    host: Host<Endpoint>,
    /// Its last report to the FSE, with the rate it was assigned since; none while it is not registered.
    report: Option<FlowUpdate>,
}

/// A node of several coupled flows.
pub struct Coupled {
    name: String,
    members: Vec<Member>,
    fse: Fse,
}

impl Coupled {
    /// A node of the endpoints of `members`, each with its priority.
    #[must_use]
    pub fn new(members: Vec<(Host<Endpoint>, f64)>, algorithm: Algorithm) -> Self {
        let (hosts, priorities): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        let names: Vec<&str> = hosts.iter().map(Host::name).collect();
        Self {
            name: names.join(" + "),
            fse: Fse::new(algorithm, &priorities),
            members: hosts.into_iter().map(|host| Member { host, report: None }).collect(),
        }
    }

    /// Calls `tell` with the host at a port at the present time.
    pub(crate) fn tell(
        &mut self,
        now: Time,
        Port(port): Port,
        out: &mut Outbox,
        tell: impl FnOnce(&mut Host<Endpoint>, &mut Outbox),
    ) {
        tell(&mut self.members[usize::from(port)].host, out);
        self.couple(now, out);
    }

    /// Updates the FSE with changed reports, and assigns the resulting rates to the flows.
    fn couple(&mut self, now: Time, out: &mut Outbox) {
        let mut changed = false;
        for (flow, member) in self.members.iter_mut().enumerate() {
            let report = member.host.endpoint().coupled();
            match (member.report, report) {
                (None, None) => {}
                (Some(_), None) => self.fse.deregister(flow),
                (None, Some(new)) => {
                    // after a pause, too: the other flows have its share by now
                    self.fse.register(flow, new.initial, Some(new.desired));
                    changed = true;
                }
                (Some(old), Some(new)) => {
                    if (old.rate, old.desired) != (new.rate, new.desired) {
                        self.fse.update(now, flow, new.rate, Some(new.desired), new.rtt);
                        changed = true;
                    }
                }
            }
            member.report = report;
        }
        if !changed {
            return;
        }
        for (flow, member) in self.members.iter_mut().enumerate() {
            let (Some(report), Some(rate)) = (&mut member.report, self.fse.rate(flow)) else { continue };
            if report.rate == rate {
                continue;
            }
            member.host.assign(now, rate, out);
            // the session's limits may clamp it
            let clamped: Option<Rate> = member.host.endpoint().coupled().map(|report| report.rate);
            if let Some(clamped) = clamped.filter(|&clamped| clamped != rate) {
                self.fse.took(flow, clamped);
            }
            report.rate = clamped.unwrap_or(rate);
        }
    }
}

impl Node for Coupled {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.members.iter().filter_map(|member| member.host.next_wakeup()).min()
    }

    fn advance(&mut self, now: Time, out: &mut Outbox) {
        for member in &mut self.members {
            if member.host.next_wakeup().is_some_and(|time| time <= now) {
                member.host.advance(now, out);
            }
        }
        self.couple(now, out);
    }

    fn receive(&mut self, now: Time, port: Port, packet: Box<Packet>, out: &mut Outbox) {
        self.members[usize::from(port.0)].host.receive(now, port, packet, out);
        self.couple(now, out);
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.members.iter().for_each(|member| member.host.draws(visit));
    }

    fn finish(&mut self, now: Time, out: &mut Outbox) {
        self.members.iter_mut().for_each(|member| member.host.finish(now, out));
    }
}
