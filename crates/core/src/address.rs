//! Addresses and ports of each flow.
//!
//! Flow `n` has its own network, 10.x.y.0/24 with `x.y` the number `n` modulo 16384. Host 1 of the network sends the flow's
//! media or data, host 2 receives them and sends feedback; members of a session send to the group 239.255.0.1 (local
//! scope, RFC 2365). The receiver's port is that of the [`Service`]; the sender's grows by 2 every 16384 flows. So
//! addresses, protocol and ports together identify one of up to 2^29 flows, and its direction.

use crate::ids::FlowId;

/// Direction of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From the sender of the flow to its receiver.
    Forward,
    /// From the receiver to the sender.
    Reverse,
    /// From a member of the session of this number to all others.
    Group(u16),
}

/// Purpose of a datagram, which determines the ports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Service {
    /// RTP (RFC 3551 section 8).
    Rtp,
    /// RTCP, one port higher.
    Rtcp,
    /// TCP, or UDP without content (RFC 863).
    Discard,
    /// UDP with a number for its receiver: a dynamic port (RFC 6335 section 6).
    Tagged,
}

impl Service {
    /// Ports of sender and receiver.
    const fn ports(self) -> (u16, u16) {
        match self {
            Self::Rtp => (5004, 5004),
            Self::Rtcp => (5005, 5005),
            Self::Discard => (49_152, 9),
            Self::Tagged => (49_152, 49_153),
        }
    }

    /// Service at a port of a receiver. RTP and RTCP are distinguished by their content (RFC 5761 section 4).
    #[must_use]
    pub const fn from_receiver_port(port: u16) -> Self {
        match port {
            9 => Self::Discard,
            49_153 => Self::Tagged,
            _ => Self::Rtp,
        }
    }
}

/// Source and destination of an IP packet: 14 bits of a network's number, and the direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Hosts(u16);

impl Hosts {
    const NETWORKS: u32 = 1 << 14;
    const BACK: u16 = 1 << 14;
    const GROUP: u16 = 1 << 15;
    const GROUP_ADDRESS: [u8; 4] = [239, 255, 0, 1];

    /// Hosts of a datagram of `flow`.
    #[must_use]
    pub const fn of_flow(flow: FlowId, direction: Direction) -> Self {
        let direction = match direction {
            Direction::Forward => 0,
            Direction::Reverse => Self::BACK,
            Direction::Group(_) => Self::GROUP,
        };
        Self((flow.0 % Self::NETWORKS) as u16 | direction)
    }

    /// IPv4 addresses of source and destination.
    #[must_use]
    pub const fn addresses(self) -> ([u8; 4], [u8; 4]) {
        let [high, low] = self.0.to_be_bytes();
        let (sender, receiver) = ([10, high & 0x3f, low, 1], [10, high & 0x3f, low, 2]);
        match self.0 & (Self::BACK | Self::GROUP) {
            0 => (sender, receiver),
            Self::BACK => (receiver, sender),
            _ => (sender, Self::GROUP_ADDRESS),
        }
    }

    /// Hosts with these addresses, if they are those of a flow.
    #[must_use]
    pub fn from_addresses(from: [u8; 4], to: [u8; 4]) -> Option<Self> {
        let network = u16::from_be_bytes([from[1] & 0x3f, from[2]]);
        let candidates = [0, Self::BACK, Self::GROUP].map(|direction| Self(network | direction));
        candidates.into_iter().find(|hosts| hosts.addresses() == (from, to))
    }

    /// Whether a datagram goes to all members of a session.
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0 & Self::GROUP != 0
    }

    /// Whether a datagram goes from the receiver of a flow to its sender.
    #[must_use]
    pub const fn is_reverse(self) -> bool {
        self.0 & Self::BACK != 0
    }
}

/// Hosts and ports of a datagram of `flow`.
#[must_use]
pub const fn between(flow: FlowId, direction: Direction, service: Service) -> (Hosts, (u16, u16)) {
    let (sender, receiver) = service.ports();
    let sender = sender.wrapping_add(2 * (flow.0 / Hosts::NETWORKS) as u16);
    let ports = match direction {
        Direction::Forward => (sender, receiver),
        Direction::Reverse => (receiver, sender),
        Direction::Group(session) => (sender, receiver.wrapping_add(2 * session)),
    };
    (Hosts::of_flow(flow, direction), ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_flows_or_directions_have_the_same_addresses_and_ports() {
        let mut identities = BTreeSet::new();
        let flows = (0..40_000).chain((1 << 29) - 5..1 << 29).map(FlowId);
        let mut count = 0;
        for flow in flows {
            for direction in [Direction::Forward, Direction::Reverse, Direction::Group(3)] {
                let (hosts, ports) = between(flow, direction, Service::Rtp);
                let (from, to) = hosts.addresses();
                assert_eq!(Hosts::from_addresses(from, to), Some(hosts));
                assert_eq!(hosts.is_reverse(), direction == Direction::Reverse);
                identities.insert((from, to, ports));
                count += 1;
            }
        }
        assert_eq!(identities.len(), count);
    }

    #[test]
    fn the_rule_by_example() {
        let (hosts, ports) = between(FlowId(258), Direction::Forward, Service::Discard);
        assert_eq!((hosts.addresses(), ports), (([10, 1, 2, 1], [10, 1, 2, 2]), (49_152, 9)));
        let (hosts, ports) = between(FlowId(16_384 * 3 + 1), Direction::Reverse, Service::Rtcp);
        assert_eq!((hosts.addresses(), ports), (([10, 0, 1, 2], [10, 0, 1, 1]), (5005, 5011)));
        let (hosts, ports) = between(FlowId(7), Direction::Group(2), Service::Rtp);
        assert_eq!((hosts.addresses(), ports), (([10, 0, 7, 1], [239, 255, 0, 1]), (5004, 5008)));
        for strange in [[10, 0, 1, 3], [10, 64, 1, 1], [192, 168, 0, 1], [10, 0, 2, 2]] {
            assert_eq!(Hosts::from_addresses(strange, [10, 0, 1, 2]), None);
            assert_eq!(Hosts::from_addresses([10, 0, 1, 1], strange), None);
        }
    }
}
