//! Where the sites are, and what lies outside: hexagons of sites, with three sectors each.
//!
//! A site's three cells form a clover-leaf: each cell is a hexagon whose corner is the site and whose antenna
//! looks at the opposite corner, so that the sites are three cell radii apart and each antenna points at a
//! neighbouring site (TR 36.814 annex A.2.1.1, figure 5.3 of TR 25.996).

use crate::radio::Point;
use crate::refusal::Refusal;
use serde::Deserialize;
use tidegate_core::math;
use tidegate_core::rng::Stream;

/// Sectors of a site.
pub const SECTORS: usize = 3;

/// Where a site's antennas look, in degrees from east.
pub const BORESIGHTS: [f64; SECTORS] = [30.0, 150.0, 270.0];

/// How many rings of sites lie around the one in the middle.
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
            other => Err(Refusal::new("sites", other, "7 or 19")),
        }
    }
}

/// Sites on a hexagonal grid.
#[derive(Clone, Debug)]
pub struct Layout {
    distance: f64,
    sites: Vec<Point>,
    /// Displacements of the copies of the whole layout around it, the first of them none; alone without
    /// wrap-around.
    copies: Vec<Point>,
}

/// The two directions in which the sites of a hexagonal grid follow each other.
fn grid(distance: f64, i: i32, j: i32) -> Point {
    // 30 and 90 degrees: where the antennas look, neighbours stand
    let (i, j) = (f64::from(i), f64::from(j));
    let half = math::sqrt(3.0) / 2.0;
    Point { x: distance * half * i, y: distance * (0.5 * i + j) }
}

/// A sixth of a turn.
fn turned(point: Point) -> Point {
    let half = math::sqrt(3.0) / 2.0;
    Point { x: 0.5 * point.x - half * point.y, y: half * point.x + 0.5 * point.y }
}

impl Layout {
    /// Sites `distance` metres apart; with `wrap` the layout is surrounded by copies of itself.
    #[must_use]
    pub fn new(rings: Rings, distance: f64, wrap: bool) -> Self {
        let far = match rings {
            Rings::One => 1,
            Rings::Two => 2,
        };
        let mut sites = vec![Point::default()];
        for ring in 1..=far {
            // six sides of the ring, from one corner to the next
            let mut corner = grid(distance, ring, 0);
            for _ in 0..6 {
                let next = turned(corner);
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
            let mut shift = grid(distance, far + 1, far);
            for _ in 0..6 {
                copies.push(shift);
                shift = turned(shift);
            }
        }
        Self { distance, sites, copies }
    }

    /// The sites' places.
    #[must_use]
    pub fn sites(&self) -> &[Point] {
        &self.sites
    }

    /// How many cells there are: three a site, in the order of the sites.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.sites.len() * SECTORS
    }

    /// Whether the layout is surrounded by copies of itself.
    #[must_use]
    pub fn wraps(&self) -> bool {
        self.copies.len() > 1
    }

    /// The displacement from `site` to a user at `place`: from the nearest of the site's copies.
    #[must_use]
    pub fn from_site(&self, site: usize, place: Point) -> Point {
        let direct = place.minus(self.sites[site]);
        let mut nearest = direct;
        for copy in &self.copies[1..] {
            let other = direct.minus(*copy);
            if other.squared() < nearest.squared() {
                nearest = other;
            }
        }
        nearest
    }

    /// The same place in the middle copy of the layout.
    #[must_use]
    pub fn home(&self, mut place: Point) -> Point {
        loop {
            let mut best = place;
            for copy in &self.copies[1..] {
                let other = place.minus(*copy);
                // the margin keeps a place on the border from going back and forth
                if other.squared() < best.squared() - 1e-6 {
                    best = other;
                }
            }
            if best == place {
                return place;
            }
            place = best;
        }
    }

    /// Whether `place` is nearer to one of the layout's sites than to any other of the endless grid.
    #[must_use]
    pub fn covers(&self, place: Point) -> bool {
        // a site's hexagon: the projection on the way to each neighbour is at most half of it
        let mut direction = grid(1.0, 1, 0);
        let mut ways = [Point::default(); 6];
        for way in &mut ways {
            *way = direction;
            direction = turned(direction);
        }
        self.sites.iter().any(|site| {
            let to = place.minus(*site);
            ways.iter().all(|way| to.x * way.x + to.y * way.y <= self.distance / 2.0)
        })
    }

    /// A place somewhere in the layout, with equal chances everywhere but nearer than `least` metres to a site.
    pub fn somewhere(&self, luck: &mut Stream, least: f64) -> Point {
        let reach = self.sites.iter().map(|site| site.squared()).fold(0.0, f64::max);
        let side = math::sqrt(reach) + self.distance;
        loop {
            let place =
                Point { x: side * (2.0 * luck.uniform() - 1.0), y: side * (2.0 * luck.uniform() - 1.0) };
            let far = self.sites.iter().all(|site| place.minus(*site).squared() >= least * least);
            if far && self.covers(place) {
                return self.home(place);
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
            for (at, site) in layout.sites().iter().enumerate() {
                let near = (0..count)
                    .filter(|&other| {
                        let away = math::sqrt(layout.from_site(other, *site).squared());
                        assert!(other == at || away > 499.999, "{other} is {away} m from {at}");
                        (away - 500.0).abs() < 1e-6
                    })
                    .count();
                assert_eq!(near, 6, "site {at}");
            }
        }
    }

    #[test]
    fn with_wrap_around_no_site_is_special() {
        let layout = Layout::new(Rings::One, 1732.0, true);
        let mut luck = Stream::new(1, "layout", "test");
        for _ in 0..2000 {
            let place = layout.somewhere(&mut luck, 35.0);
            assert_eq!(layout.home(place), place);
            // a full copy away is the same place
            for copy in &layout.copies[1..] {
                let back = layout.home(place.plus(*copy)).minus(place);
                assert!(back.squared() < 1e-12);
            }
            // the nearest site is at most a cell's corner away: the distance over the square root of 3
            let nearest = (0..7).map(|site| layout.from_site(site, place).squared()).fold(f64::MAX, f64::min);
            assert!(math::sqrt(nearest) <= 1732.0 / math::sqrt(3.0) + 1e-6);
        }
    }

    #[test]
    fn places_are_spread_evenly_over_the_sites() {
        let layout = Layout::new(Rings::One, 500.0, false);
        let mut luck = Stream::new(2, "layout", "test");
        let mut counts = [0_u32; 7];
        for _ in 0..14_000 {
            let place = layout.somewhere(&mut luck, 35.0);
            let nearest = (0..7)
                .min_by(|&a, &b| {
                    let far = |site| layout.from_site(site, place).squared();
                    far(a).total_cmp(&far(b))
                })
                .unwrap();
            counts[nearest] += 1;
        }
        // 2000 each, with a deviation of 41
        assert!(counts.iter().all(|count| count.abs_diff(2000) < 165), "{counts:?}");
    }
}
