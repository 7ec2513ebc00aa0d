//! Mean capacities of links over a stretch of time, and the smallest one on a flow's path.

use crate::record::FlowInfo;
use crate::record::path::Path;
use std::collections::BTreeMap;
use tidegate_core::{Node, NodeId, Rate, Time};

/// Mean capacity of a link between two instants; `None`: no limit, or an unknown one (a radio network's depends on
/// its users' positions, an external link's on its driver).
pub(super) fn capacity(nodes: &mut [Box<dyn Node>], link: NodeId, begin: Time, end: Time) -> Option<Rate> {
    nodes[link.0 as usize].capacity(begin, end).filter(|&rate| rate != Rate::MAX)
}

/// Mean capacity of the tightest link of each part of a path, over `[from, to)`; `capacity_of` is that of one link over a
/// part. `None` where a part has no limit, or an unknown one.
pub(super) fn tightest(
    path: &Path,
    (from, to): (Time, Time),
    mut capacity_of: impl FnMut(NodeId, Time, Time) -> Option<Rate>,
) -> Option<Rate> {
    let mut parts = Vec::new();
    for (begin, end, links) in path.parts(from, to) {
        let rate = links.iter().filter_map(|&link| capacity_of(link, begin, end)).min()?;
        parts.push((rate, (end - begin).as_secs_f64()));
    }
    match parts[..] {
        [] => None,
        [(rate, _)] => Some(rate),
        _ => {
            let (bits, seconds) = parts.iter().fold((0.0, 0.0), |(bits, seconds), (rate, lasted)| {
                (bits + rate.as_bps_f64() * lasted, seconds + lasted)
            });
            Some(Rate::from_bps((bits / seconds).round() as u64))
        }
    }
}

/// Sets each flow's `tightest`: the mean capacity of the tightest link on its path while the flow was active, from
/// `begin` on.
pub(super) fn set_tightest(flows: &mut [FlowInfo], nodes: &mut [Box<dyn Node>], begin: Time) {
    // many flows are active over the same stretch of time, and a generated link is costly to average
    let mut capacities_of = BTreeMap::new();
    for flow in flows {
        let (from, to) = (begin.max(flow.start), flow.stop);
        flow.tightest = tightest(&flow.path, (from, to), |link, from, to| {
            *capacities_of.entry((link, from, to)).or_insert_with(|| capacity(nodes, link, from, to))
        });
    }
}
