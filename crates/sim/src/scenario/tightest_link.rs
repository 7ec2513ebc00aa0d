//! Mean capacities of links over a stretch of time, and the smallest one on a flow's path.

use crate::record::FlowInfo;
use std::collections::BTreeMap;
use tidegate_core::{Node, NodeId, Rate, Time};

/// Mean capacity of a link between two instants; `None`: no limit, or an unknown one (a radio network's depends on
/// its users' positions, an external link's on its driver).
pub(super) fn capacity(nodes: &mut [Box<dyn Node>], link: NodeId, begin: Time, end: Time) -> Option<Rate> {
    nodes[link.0 as usize].capacity(begin, end).filter(|&rate| rate != Rate::MAX)
}

/// Sets each flow's `tightest`: the mean capacity of the tightest link on its path while the flow was active, from
/// `begin` on.
pub(super) fn set_tightest(flows: &mut [FlowInfo], nodes: &mut [Box<dyn Node>], begin: Time) {
    // many flows are active over the same stretch of time, and a generated link is costly to average
    let mut capacities_of = BTreeMap::new();
    for flow in flows {
        let (from, to) = (begin.max(flow.start), flow.stop);
        let capacities = flow.links.iter().filter_map(|&link| {
            *capacities_of.entry((link, from, to)).or_insert_with(|| capacity(nodes, link, from, to))
        });
        flow.tightest = capacities.min();
    }
}
