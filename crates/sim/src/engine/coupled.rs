//! A sender of several flows whose congestion controls are coupled (RFC 8699): a node that holds their endpoints and the
//! exchange between them.

use super::host::Host;
use tidegate_core::rng::Draws;
use tidegate_core::{Node, Outbox, Packet, Port, Rate, Time};
use tidegate_endpoint::Endpoint;
use tidegate_endpoint::coupling::{Algorithm, Fse, Told};

/// One flow: packets for it come to the port of its number.
struct Member {
    host: Host<Endpoint>,
    /// What it last said, or went on with; none while it is not registered.
    told: Option<Told>,
}

/// The node.
pub struct Coupled {
    name: String,
    members: Vec<Member>,
    fse: Fse,
}

impl Coupled {
    /// The endpoints of `members`, with a priority each.
    #[must_use]
    pub fn new(members: Vec<(Host<Endpoint>, f64)>, algorithm: Algorithm) -> Self {
        let (hosts, priorities): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        let names: Vec<&str> = hosts.iter().map(Host::name).collect();
        Self {
            name: names.join(" + "),
            fse: Fse::new(algorithm, &priorities),
            members: hosts.into_iter().map(|host| Member { host, told: None }).collect(),
        }
    }

    /// Tells the exchange what is new, and the flows what it makes of that.
    fn couple(&mut self, now: Time, out: &mut Outbox) {
        let mut changed = false;
        for (flow, member) in self.members.iter_mut().enumerate() {
            let told = member.host.endpoint().coupled();
            match (member.told, told) {
                (None, None) => {}
                (Some(_), None) => self.fse.deregister(flow),
                (None, Some(new)) => {
                    // after a pause, too: the others have its share by now
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
            member.told = told;
        }
        if !changed {
            return;
        }
        for (flow, member) in self.members.iter_mut().enumerate() {
            let (Some(told), Some(rate)) = (&mut member.told, self.fse.rate(flow)) else { continue };
            if told.rate == rate {
                continue;
            }
            member.host.assign(now, rate, out);
            // what the session's limits make of it
            let taken: Option<Rate> = member.host.endpoint().coupled().map(|told| told.rate);
            if let Some(taken) = taken.filter(|&taken| taken != rate) {
                self.fse.took(flow, taken);
            }
            told.rate = taken.unwrap_or(rate);
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
            if member.host.next_wakeup().is_some_and(|at| at <= now) {
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
