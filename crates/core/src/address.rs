//! Who talks to whom: the rule by which each flow has addresses and ports of its own.
//!
//! Flow `n` has a network of its own, 10.x.y.0/24 with `x.y` the number `n` modulo 16384. Host 1 in it sends the flow's
//! media or data, host 2 receives them and sends feedback; members of a session send to the group 239.255.0.1 (local
//! scope, RFC 2365). The receiver's port is that of the [`Service`]; the sender's goes up by 2 with every 16384 flows, so
//! that addresses, protocol and ports together name one flow of up to 2^29, and one direction of it.

use crate::ids::FlowId;

/// Which way a datagram goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Way {
    /// From the sender of the flow to its receiver.
    There,
    /// From the receiver to the sender.
    Back,
    /// From a member of the session of this number to all others.
    Group(u16),
}

/// What a datagram is for, which says the ports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Service {
    /// RTP (RFC 3551 section 8).
    Rtp,
    /// RTCP, one port higher.
    Rtcp,
    /// TCP, or UDP whose content nobody reads (RFC 863).
    Discard,
    /// UDP with a number that its receiver reads: a dynamic port (RFC 6335 section 6).
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

    /// The service at a port of a receiver; RTP and RTCP are told apart by their content (RFC 5761 section 4).
    #[must_use]
    pub const fn at(port: u16) -> Self {
        match port {
            9 => Self::Discard,
            49_153 => Self::Tagged,
            _ => Self::Rtp,
        }
    }
}

/// Two hosts, as the addresses of an IP packet: 14 bits of a network's number, and which way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Hosts(u16);

impl Hosts {
    const NETWORKS: u32 = 1 << 14;
    const BACK: u16 = 1 << 14;
    const GROUP: u16 = 1 << 15;
    const GROUP_ADDRESS: [u8; 4] = [239, 255, 0, 1];

    /// Those of `flow`.
    #[must_use]
    pub const fn of(flow: FlowId, way: Way) -> Self {
        let way = match way {
            Way::There => 0,
            Way::Back => Self::BACK,
            Way::Group(_) => Self::GROUP,
        };
        Self((flow.0 % Self::NETWORKS) as u16 | way)
    }

    /// IPv4 addresses, from where and to where.
    #[must_use]
    pub const fn addresses(self) -> ([u8; 4], [u8; 4]) {
        let [high, low] = self.0.to_be_bytes();
        let (one, two) = ([10, high & 0x3f, low, 1], [10, high & 0x3f, low, 2]);
        match self.0 & (Self::BACK | Self::GROUP) {
            0 => (one, two),
            Self::BACK => (two, one),
            _ => (one, Self::GROUP_ADDRESS),
        }
    }

    /// The hosts at these addresses, if they are those of a flow.
    #[must_use]
    pub fn at(from: [u8; 4], to: [u8; 4]) -> Option<Self> {
        let network = u16::from_be_bytes([from[1] & 0x3f, from[2]]);
        let ways = [0, Self::BACK, Self::GROUP].map(|way| Self(network | way));
        ways.into_iter().find(|hosts| hosts.addresses() == (from, to))
    }

    /// Whether a datagram goes to all members of a session.
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0 & Self::GROUP != 0
    }

    /// Whether a datagram goes from the receiver of a flow to its sender.
    #[must_use]
    pub const fn is_back(self) -> bool {
        self.0 & Self::BACK != 0
    }
}

/// Hosts and ports of a datagram of `flow`.
#[must_use]
pub const fn between(flow: FlowId, way: Way, service: Service) -> (Hosts, (u16, u16)) {
    let (sender, receiver) = service.ports();
    let sender = sender.wrapping_add(2 * (flow.0 / Hosts::NETWORKS) as u16);
    let ports = match way {
        Way::There => (sender, receiver),
        Way::Back => (receiver, sender),
        Way::Group(session) => (sender, receiver.wrapping_add(2 * session)),
    };
    (Hosts::of(flow, way), ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_flows_or_directions_have_the_same_addresses_and_ports() {
        let mut seen = BTreeSet::new();
        let flows = (0..40_000).chain((1 << 29) - 5..1 << 29).map(FlowId);
        let mut count = 0;
        for flow in flows {
            for way in [Way::There, Way::Back, Way::Group(3)] {
                let (hosts, ports) = between(flow, way, Service::Rtp);
                let (from, to) = hosts.addresses();
                assert_eq!(Hosts::at(from, to), Some(hosts));
                assert_eq!(hosts.is_back(), way == Way::Back);
                seen.insert((from, to, ports));
                count += 1;
            }
        }
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn the_rule_by_example() {
        let (hosts, ports) = between(FlowId(258), Way::There, Service::Discard);
        assert_eq!((hosts.addresses(), ports), (([10, 1, 2, 1], [10, 1, 2, 2]), (49_152, 9)));
        let (hosts, ports) = between(FlowId(16_384 * 3 + 1), Way::Back, Service::Rtcp);
        assert_eq!((hosts.addresses(), ports), (([10, 0, 1, 2], [10, 0, 1, 1]), (5005, 5011)));
        let (hosts, ports) = between(FlowId(7), Way::Group(2), Service::Rtp);
        assert_eq!((hosts.addresses(), ports), (([10, 0, 7, 1], [239, 255, 0, 1]), (5004, 5008)));
        for strange in [[10, 0, 1, 3], [10, 64, 1, 1], [192, 168, 0, 1], [10, 0, 2, 2]] {
            assert_eq!(Hosts::at(strange, [10, 0, 1, 2]), None);
            assert_eq!(Hosts::at([10, 0, 1, 1], strange), None);
        }
    }
}
