//! Static routes over the links of a scenario.

use crate::scenario::LinkSpec;
use std::collections::VecDeque;

/// The links as a directed graph.
pub(super) struct Graph<'a> {
    pub(super) links: &'a [LinkSpec],
}

impl Graph<'_> {
    /// The links of the path with the fewest hops; among equals the one found first in the order of the
    /// scenario. Empty between a node and itself; `None` where there is no way.
    pub(super) fn path(&self, from: &str, to: &str) -> Option<Vec<usize>> {
        if from == to {
            return Some(Vec::new());
        }
        let mut reached: Vec<(&str, Option<(usize, usize)>)> = vec![(from, None)];
        let mut queue = VecDeque::from([0]);
        while let Some(place) = queue.pop_front() {
            let here = reached[place].0;
            for (index, link) in self.links.iter().enumerate().filter(|(_, link)| link.from == here) {
                if reached.iter().any(|&(name, _)| name == link.to) {
                    continue;
                }
                reached.push((&link.to, Some((place, index))));
                if link.to == to {
                    let mut path = Vec::new();
                    let mut step = reached.last()?.1;
                    while let Some((before, link)) = step {
                        path.push(link);
                        step = reached[before].1;
                    }
                    path.reverse();
                    return Some(path);
                }
                queue.push_back(reached.len() - 1);
            }
        }
        None
    }
}
