//! The layout of sites: hexagons with three sectors each.
//!
//! A site's three cells form a clover-leaf: each cell is a hexagon with the site at a corner and its antenna
//! pointing at the opposite corner. So the sites are three cell radii apart and each antenna points at a
//! neighbouring site (TR 36.814 annex A.2.1.1, figure 5.3 of TR 25.996).

use crate::radio::Point;
use crate::refusal::Refusal;
use serde::Deserialize;
use tidegate_core::math;
use tidegate_core::rng::Stream;

/// Sectors of a site.
pub const SECTORS: usize = 3;

/// Directions of a site's antennas, in degrees from east.
pub const BORESIGHTS: [f64; SECTORS] = [30.0, 150.0, 270.0];

/// Number of rings of sites around the one in the middle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "u32")]
pub enum Rings {
    /// 7 sites, 21 cells.
    One,
    /// 19 sites, 57 cells.
    Two,
}

impl TryFrom<u32> for Rings {
    type Error = Refusal;

    fn try_from(sites: u32) -> Result<Self, Refusal> {
        match sites {
            7 => Ok(Self::One),
            19 => Ok(Self::Two),
            sites => Err(Refusal::new("sites", sites, "7 or 19")),
        }
    }
}

/// Sites on a hexagonal grid.
#[derive(Clone, Debug)]
pub struct Layout {
    distance: f64,
    sites: Vec<Point>,
    /// Displacements of the layout and of its surrounding copies; the first one is zero, and the only one without
    /// wrap-around.
    copies: Vec<Point>,
}

/// The position of a site of the hexagonal grid, `i` and `j` steps along its two axes.
fn grid(distance: f64, i: i32, j: i32) -> Point {
    // axes at 30 and 90 degrees: the antennas point at neighbours
    let (i, j) = (f64::from(i), f64::from(j));
    let half = math::sqrt(3.0) / 2.0;
    Point { x: distance * half * i, y: distance * (0.5 * i + j) }
}

/// Rotates a point by a sixth of a turn.
fn rotated(point: Point) -> Point {
    let half = math::sqrt(3.0) / 2.0;
    Point { x: 0.5 * point.x - half * point.y, y: half * point.x + 0.5 * point.y }
}

impl Layout {
    /// Sites `distance` metres apart; with `wrap` the layout is surrounded by copies of itself.
    #[must_use]
    pub fn new(rings: Rings, distance: f64, wrap: bool) -> Self {
        let ring_count = match rings {
            Rings::One => 1,
            Rings::Two => 2,
        };
        let mut sites = vec![Point::default()];
        for ring in 1..=ring_count {
            // six sides of the ring, from one corner to the next
            let mut corner = grid(distance, ring, 0);
            for _ in 0..6 {
                let next = rotated(corner);
                for step in 0..ring {
                    let share = f64::from(step) / f64::from(ring);
                    let along = next.minus(corner);
                    sites.push(corner.plus(Point { x: along.x * share, y: along.y * share }));
                }
                corner = next;
            }
        }
        let mut copies = vec![Point::default()];
        if wrap {
            // a cluster of n^2 + n m + m^2 sites repeats after n and m steps: 7 = (2, 1), 19 = (3, 2)
            let mut shift = grid(distance, ring_count + 1, ring_count);
            for _ in 0..6 {
                copies.push(shift);
                shift = rotated(shift);
            }
        }
        Self { distance, sites, copies }
    }

    /// The positions of the sites.
    #[must_use]
    pub fn sites(&self) -> &[Point] {
        &self.sites
    }

    /// Number of cells: three a site, in the order of the sites.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.sites.len() * SECTORS
    }

    /// Whether the layout is surrounded by copies of itself.
    #[must_use]
    pub fn wraps(&self) -> bool {
        self.copies.len() > 1
    }

    /// The displacement to a user at `position` from the nearest copy of `site`.
    #[must_use]
    pub fn from_site(&self, site: usize, position: Point) -> Point {
        let direct = position.minus(self.sites[site]);
        let mut nearest = direct;
        for copy in &self.copies[1..] {
            let displacement = direct.minus(*copy);
            if displacement.squared() < nearest.squared() {
                nearest = displacement;
            }
        }
        nearest
    }

    /// The equivalent position in the middle copy of the layout.
    #[must_use]
    pub fn home(&self, mut position: Point) -> Point {
        loop {
            let mut best = position;
            for copy in &self.copies[1..] {
                let equivalent = position.minus(*copy);
                // the margin prevents positions on the border from alternating
                if equivalent.squared() < best.squared() - 1e-6 {
                    best = equivalent;
                }
            }
            if best == position {
                return position;
            }
            position = best;
        }
    }

    /// Whether `position` is nearer to a site of the layout than to any other site of the infinite grid.
    #[must_use]
    pub fn covers(&self, position: Point) -> bool {
        // a site's hexagon: the projection on the direction to each neighbour is at most half the distance
        let mut direction = grid(1.0, 1, 0);
        let mut directions = [Point::default(); 6];
        for side in &mut directions {
            *side = direction;
            direction = rotated(direction);
        }
        self.sites.iter().any(|site| {
            let to = position.minus(*site);
            directions.iter().all(|side| to.x * side.x + to.y * side.y <= self.distance / 2.0)
        })
    }

    /// Draws a position, uniform over the layout except nearer than `min_distance` metres to a site.
    pub fn random_position(&self, luck: &mut Stream, min_distance: f64) -> Point {
        let reach = self.sites.iter().map(|site| site.squared()).fold(0.0, f64::max);
        let side = math::sqrt(reach) + self.distance;
        loop {
            let position =
                Point { x: side * (2.0 * luck.uniform() - 1.0), y: side * (2.0 * luck.uniform() - 1.0) };
            let is_far_enough =
                self.sites.iter().all(|site| position.minus(*site).squared() >= min_distance * min_distance);
            if is_far_enough && self.covers(position) {
                return self.home(position);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_stand_on_a_hexagonal_grid() {
        for (rings, count) in [(Rings::One, 7), (Rings::Two, 19)] {
            let layout = Layout::new(rings, 500.0, true);
            assert_eq!((layout.sites().len(), layout.cells()), (count, 3 * count));
            // every site, copies included, has six neighbours at exactly the distance
            for (index, site) in layout.sites().iter().enumerate() {
                let neighbours = (0..count)
                    .filter(|&neighbour| {
                        let distance = math::sqrt(layout.from_site(neighbour, *site).squared());
                        assert!(
                            neighbour == index || distance > 499.999,
                            "{neighbour} is {distance} m from {index}"
                        );
                        (distance - 500.0).abs() < 1e-6
                    })
                    .count();
                assert_eq!(neighbours, 6, "site {index}");
            }
        }
    }

    #[test]
    fn with_wrap_around_no_site_is_special() {
        let layout = Layout::new(Rings::One, 1732.0, true);
        let mut luck = Stream::new(1, "layout", "test");
        for _ in 0..2000 {
            let position = layout.random_position(&mut luck, 35.0);
            assert_eq!(layout.home(position), position);
            // a displacement to a copy gives the same position
            for copy in &layout.copies[1..] {
                let back = layout.home(position.plus(*copy)).minus(position);
                assert!(back.squared() < 1e-12);
            }
            // the nearest site is at most a cell's corner away: the distance over the square root of 3
            let nearest =
                (0..7).map(|site| layout.from_site(site, position).squared()).fold(f64::MAX, f64::min);
            assert!(math::sqrt(nearest) <= 1732.0 / math::sqrt(3.0) + 1e-6);
        }
    }

    #[test]
    fn places_are_spread_evenly_over_the_sites() {
        let layout = Layout::new(Rings::One, 500.0, false);
        let mut luck = Stream::new(2, "layout", "test");
        let mut counts = [0_u32; 7];
        for _ in 0..14_000 {
            let position = layout.random_position(&mut luck, 35.0);
            let nearest = (0..7)
                .min_by(|&a, &b| {
                    let distance = |site| layout.from_site(site, position).squared();
                    distance(a).total_cmp(&distance(b))
                })
                .unwrap();
            counts[nearest] += 1;
        }
        // 2000 each, with a deviation of 41
        assert!(counts.iter().all(|count| count.abs_diff(2000) < 165), "{counts:?}");
    }
}
