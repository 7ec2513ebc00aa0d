//! Routes over the links of a scenario.

use super::LinkSpec;
use std::collections::{BTreeMap, VecDeque};

/// The points that links join, by number, and the links that leave each.
///
/// The route between two points is the one with the fewest links; of equal routes the first that a search in the order
/// of the links finds.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    numbers: BTreeMap<String, usize>,
    /// Number of the link, and of the point that it leads to.
    out: Vec<Vec<(usize, usize)>>,
}

impl Routes {
    /// Routes over links between these pairs of points, in this order.
    pub fn new<'a>(ends: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut routes = Self::default();
        for (link, (from, to)) in ends.into_iter().enumerate() {
            let (from, to) = (routes.add(from), routes.add(to));
            routes.out[from].push((link, to));
        }
        routes
    }

    /// Routes over the links of a scenario.
    pub(crate) fn of(links: &[LinkSpec]) -> Self {
        Self::new(links.iter().map(|link| (link.from.as_str(), link.to.as_str())))
    }

    fn add(&mut self, point: &str) -> usize {
        if let Some(number) = self.number(point) {
            return number;
        }
        let number = self.out.len();
        self.numbers.insert(point.to_owned(), number);
        self.out.push(Vec::new());
        number
    }

    /// The number of a point, if a link begins or ends there.
    #[must_use]
    pub fn number(&self, point: &str) -> Option<usize> {
        self.numbers.get(point).copied()
    }

    /// The number of points.
    pub(crate) fn points(&self) -> usize {
        self.out.len()
    }

    /// The links from one point to another; none between a point and itself, and `None` where no route leads there.
    #[must_use]
    pub fn between(&self, from: &str, to: &str) -> Option<Vec<usize>> {
        if from == to {
            return Some(Vec::new());
        }
        let (begin, end) = (self.number(from)?, self.number(to)?);
        let before = self.search(begin, Some(end));
        let (mut links, mut point) = (Vec::new(), end);
        while point != begin {
            let (previous, link) = before[point]?;
            links.push(link);
            point = previous;
        }
        links.reverse();
        Some(links)
    }

    /// For each point the last step of the route from `from`: the point and the link before it.
    pub(crate) fn tree(&self, from: usize) -> Vec<Option<(usize, usize)>> {
        self.search(from, None)
    }

    fn search(&self, from: usize, until: Option<usize>) -> Vec<Option<(usize, usize)>> {
        let mut before = vec![None; self.points()];
        let mut queue = VecDeque::from([from]);
        while let Some(point) = queue.pop_front() {
            for &(link, to) in &self.out[point] {
                if to != from && before[to].is_none() {
                    before[to] = Some((point, link));
                    if until == Some(to) {
                        return before;
                    }
                    queue.push_back(to);
                }
            }
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_links_and_among_equal_ones_the_first() {
        let routes = Routes::new([("a", "b"), ("b", "d"), ("a", "c"), ("c", "d"), ("a", "d"), ("d", "e")]);
        assert_eq!(routes.between("a", "d"), Some(vec![4]));
        assert_eq!(routes.between("a", "e"), Some(vec![4, 5]));
        let diamond = Routes::new([("a", "c"), ("a", "b"), ("b", "d"), ("c", "d")]);
        assert_eq!(diamond.between("a", "d"), Some(vec![0, 3]), "by way of what a reaches first");
    }

    #[test]
    fn links_lead_one_way_and_not_every_point_is_reached() {
        let routes = Routes::new([("a", "b"), ("c", "a")]);
        assert_eq!(routes.between("b", "a"), None);
        assert_eq!(routes.between("a", "c"), None);
        assert_eq!(routes.between("a", "nowhere"), None);
        assert_eq!(routes.between("a", "a"), Some(vec![]));
        assert_eq!(routes.tree(0), [None, Some((0, 0)), None]);
    }
}
