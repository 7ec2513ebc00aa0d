//! Where a user is: it walks straight on; in a layout without wrap-around it turns at the border.

use super::layout::Layout;
use super::propagation::NEAREST;
use crate::radio::Point;
use tidegate_core::math;
use tidegate_core::rng::Stream;

/// So often, in seconds, a walk is looked at.
const TICK: f64 = 0.1;

/// One user's way.
#[derive(Clone, Debug)]
pub struct Walk {
    luck: Stream,
    place: Point,
    /// Metres a second, and direction.
    speed: f64,
    heading: Point,
    ticks: i64,
}

fn heading(luck: &mut Stream) -> Point {
    let angle = 2.0 * std::f64::consts::PI * luck.uniform();
    Point { x: math::cos(angle), y: math::sin(angle) }
}

impl Walk {
    /// Begins somewhere in the layout, or at a given place, at `speed` metres a second.
    #[must_use]
    pub fn new(mut luck: Stream, layout: &Layout, place: Option<Point>, speed: f64) -> Self {
        let drawn = layout.somewhere(&mut luck, NEAREST);
        let heading = heading(&mut luck);
        Self { luck, place: place.unwrap_or(drawn), speed, heading, ticks: 0 }
    }

    /// The place after `ticks` tenths of a second, which must not fall from call to call.
    pub fn at(&mut self, layout: &Layout, ticks: i64) -> Point {
        let step = self.speed * TICK;
        if layout.wraps() {
            let far = step * (ticks - self.ticks) as f64;
            let moved = Point { x: self.heading.x * far, y: self.heading.y * far };
            self.place = layout.home(self.place.plus(moved));
        } else if step > 0.0 {
            for _ in self.ticks..ticks {
                let ahead = self.place.plus(Point { x: self.heading.x * step, y: self.heading.y * step });
                if layout.covers(ahead) {
                    self.place = ahead;
                } else {
                    self.heading = heading(&mut self.luck);
                }
            }
        }
        self.ticks = ticks;
        self.place
    }

    /// Metres walked after `ticks` tenths of a second.
    #[must_use]
    pub fn metres(&self, ticks: i64) -> f64 {
        self.speed * TICK * ticks as f64
    }

    /// What was drawn.
    #[must_use]
    pub fn luck(&self) -> &Stream {
        &self.luck
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::Rings;
    use super::*;

    #[test]
    fn a_walk_is_the_same_however_often_it_is_looked_at() {
        for wrap in [true, false] {
            let layout = Layout::new(Rings::One, 500.0, wrap);
            for user in 0..20 {
                let start = Walk::new(Stream::new(user, "lte", "walk"), &layout, None, 30.0 / 3.6);
                let (mut often, mut once) = (start.clone(), start);
                for tick in 0..6000 {
                    let place = often.at(&layout, tick);
                    assert!(layout.covers(place) || layout.wraps());
                    assert_eq!(layout.home(place), place);
                }
                let (one, other) = (often.at(&layout, 6000), once.at(&layout, 6000));
                // 5 km; what is left is rounding
                assert!(one.minus(other).squared() < 1e-12, "{one:?} {other:?}");
            }
        }
    }
}
