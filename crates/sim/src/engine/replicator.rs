//! Multicast: a node that copies packets where a tree branches.

use std::collections::BTreeMap;
use tidegate_core::RouteId;
use tidegate_core::{Node, Outbox, Packet, Port, Time};

/// For each route that ends at a replicator, the routes on which its packets go on.
pub type Branches = BTreeMap<RouteId, Box<[RouteId]>>;

/// A node that sends one copy of each packet that comes in on each branch of the packet's route.
#[derive(Clone, Debug)]
pub struct Replicator {
    name: String,
    branches: Branches,
}

impl Replicator {
    /// A replicator called `name` with these branches.
    #[must_use]
    pub fn new(name: impl Into<String>, branches: Branches) -> Self {
        Self { name: name.into(), branches }
    }
}

impl Node for Replicator {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    fn advance(&mut self, _now: Time, _out: &mut Outbox) {}

    fn receive(&mut self, now: Time, _port: Port, mut packet: Box<Packet>, out: &mut Outbox) {
        let Some((&last, others)) = self.branches.get(&packet.route).and_then(|routes| routes.split_last())
        else {
            out.fail(format!("there are no branches for packets on route {}", packet.route.0));
            return;
        };
        for &route in others {
            let copy = Packet { route, hop: 0, ..(*packet).clone() };
            out.copy(now, Port::ZERO, copy);
        }
        (packet.route, packet.hop) = (last, 0);
        out.forward(Port::ZERO, packet);
    }
}
