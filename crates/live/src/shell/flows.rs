//! Maps the programs' flows to external flows of the scenario.

use super::frame::Tuple;
use std::collections::BTreeMap;

/// The programs' flows in the order of their first packets.
#[derive(Debug)]
pub struct Flows {
    max_flows: usize,
    numbers: BTreeMap<Tuple, usize>,
    tuples: Vec<Tuple>,
    shared: u64,
}

impl Flows {
    /// An empty map that distinguishes `max_flows` flows.
    #[must_use]
    pub fn new(max_flows: usize) -> Self {
        Self { max_flows, numbers: BTreeMap::new(), tuples: Vec::new(), shared: 0 }
    }

    /// The number of a flow, from 0 on; when all numbers are used, further flows share the last one.
    pub fn number(&mut self, tuple: Tuple) -> usize {
        if let Some(&number) = self.numbers.get(&tuple) {
            return number;
        }
        let number = self.tuples.len().min(self.max_flows - 1);
        // flows that share the last number are not stored: a port scan must not fill the memory
        if self.tuples.len() < self.max_flows {
            self.tuples.push(tuple);
            self.numbers.insert(tuple, number);
        } else {
            self.shared += 1;
        }
        number
    }

    /// Packets of flows that are not listed: they have the last number.
    #[must_use]
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// The flows by number; the last number may be shared by flows that are not listed.
    #[must_use]
    pub fn tuples(&self) -> &[Tuple] {
        &self.tuples
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::FLOWS;
    use std::net::Ipv4Addr;

    #[test]
    fn numbers_are_given_in_order_and_the_last_is_shared() {
        let mut flows = Flows::new(FLOWS);
        let [address_a, address_b] = [1, 2].map(|last| Ipv4Addr::new(10, 77, 0, last));
        let tuple = |port_a| Tuple { protocol: 17, address_a, port_a, address_b, port_b: 1 };
        for port in 0..FLOWS as u16 + 68 {
            assert_eq!(flows.number(tuple(port)), usize::from(port).min(FLOWS - 1));
        }
        assert_eq!(flows.number(tuple(3)), 3);
        let elsewhere = Tuple { address_a: Ipv4Addr::new(10, 77, 0, 3), ..tuple(3) };
        assert_eq!(flows.number(elsewhere), FLOWS - 1, "the same ports at another address");
        assert_eq!((flows.tuples().len(), flows.shared()), (FLOWS, 69));
    }
}
