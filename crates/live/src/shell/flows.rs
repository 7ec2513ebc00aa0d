//! Which flow of the scenario stands for which of the programs' flows.

use super::frame::Tuple;
use std::collections::BTreeMap;

/// The programs' flows in the order in which they were first seen.
#[derive(Debug)]
pub struct Flows {
    most: usize,
    known: BTreeMap<Tuple, usize>,
    seen: Vec<Tuple>,
}

impl Flows {
    /// None yet, of which `most` are told apart.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, known: BTreeMap::new(), seen: Vec::new() }
    }

    /// The number of a flow, from 0 on; those that find no number of their own share the last one.
    pub fn number(&mut self, tuple: Tuple) -> usize {
        if let Some(&number) = self.known.get(&tuple) {
            return number;
        }
        let number = self.seen.len().min(self.most - 1);
        // those that share the last number are not kept: a port scan must not fill the memory
        if self.seen.len() < self.most {
            self.seen.push(tuple);
            self.known.insert(tuple, number);
        }
        number
    }

    /// The flows by number; the last of them stands for others, too.
    #[must_use]
    pub fn seen(&self) -> &[Tuple] {
        &self.seen
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
        for port in 0..100 {
            assert_eq!(flows.number(tuple(port)), usize::from(port).min(FLOWS - 1));
        }
        assert_eq!(flows.number(tuple(3)), 3);
        let elsewhere = Tuple { address_a: Ipv4Addr::new(10, 77, 0, 3), ..tuple(3) };
        assert_eq!(flows.number(elsewhere), FLOWS - 1, "the same ports at another address");
        assert_eq!(flows.seen().len(), FLOWS);
    }
}
