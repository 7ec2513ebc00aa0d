//! The path of a flow, which moves may replace.

use tidegate_core::{NodeId, Time};

/// The nodes of the links that a flow's packets cross, in order, from each of some times on.
#[derive(Clone, Debug, Default)]
pub struct Path(Vec<(Time, Vec<NodeId>)>);

impl From<Vec<NodeId>> for Path {
    fn from(links: Vec<NodeId>) -> Self {
        Self(vec![(Time::ZERO, links)])
    }
}

impl Path {
    /// Replaces the links from `time` on, until the next change.
    pub fn change(&mut self, time: Time, links: Vec<NodeId>) {
        let index = self.0.partition_point(|&(begin, _)| begin <= time);
        self.0.insert(index, (time, links));
    }

    /// The links at a time.
    #[must_use]
    pub fn at(&self, time: Time) -> &[NodeId] {
        let index = self.0.partition_point(|&(begin, _)| begin <= time);
        self.0.get(index.saturating_sub(1)).map_or(&[], |(_, links)| links)
    }

    /// Whether the link is on it at some time.
    #[must_use]
    pub fn crosses(&self, link: NodeId) -> bool {
        self.0.iter().any(|(_, links)| links.contains(&link))
    }

    /// The parts of `[from, to)` with one path each, and its links.
    pub fn parts(&self, from: Time, to: Time) -> impl Iterator<Item = (Time, Time, &[NodeId])> {
        let ends = self.0.iter().skip(1).map(|&(begin, _)| begin).chain([Time::MAX]);
        let parts = self.0.iter().zip(ends);
        let parts = parts.map(move |((begin, links), end)| (from.max(*begin), to.min(end), &links[..]));
        // the path that never changes has one part, however short
        let fixed = self.0.len() == 1;
        parts.filter(move |&(begin, end, _)| fixed || begin < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_has_the_links_of_the_last_change_before_it() {
        let [wifi, lte, vpn] = [1, 2, 3].map(|node| vec![NodeId(node)]);
        let at = Time::from_secs;
        let mut path = Path::from(wifi.clone());
        path.change(at(20), wifi.clone());
        path.change(at(10), lte.clone());
        path.change(at(20), vpn.clone());
        assert_eq!([0, 9, 10, 19, 20, 99].map(|time| path.at(at(time))[0].0), [1, 1, 2, 2, 3, 3]);
        let parts: Vec<_> = path.parts(at(5), at(25)).collect();
        assert_eq!(parts, [(at(5), at(10), &wifi[..]), (at(10), at(20), &lte), (at(20), at(25), &vpn)]);
        assert_eq!(path.parts(at(12), at(15)).collect::<Vec<_>>(), [(at(12), at(15), &lte[..])]);
        assert!(path.crosses(NodeId(2)) && !path.crosses(NodeId(4)));
        assert_eq!((Path::default().at(at(1)).len(), Path::default().parts(at(0), at(1)).count()), (0, 0));
    }
}
