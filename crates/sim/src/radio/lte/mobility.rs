//! Positions of users: a user walks straight on; in a layout without wrap-around it turns at the border.

use super::layout::Layout;
use super::propagation::NEAREST;
use crate::radio::Point;
use tidegate_core::math;
use tidegate_core::rng::Stream;

/// Interval between updates of a walk, in seconds.
const TICK: f64 = 0.1;

/// The walk of one user.
#[derive(Clone, Debug)]
pub struct Walk {
    luck: Stream,
    position: Point,
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
    /// A walk that begins at `position`, or at a random one in the layout, at `speed` metres a second.
    #[must_use]
    pub fn new(mut luck: Stream, layout: &Layout, position: Option<Point>, speed: f64) -> Self {
        let drawn = layout.random_position(&mut luck, NEAREST);
        let heading = heading(&mut luck);
        Self { luck, position: position.unwrap_or(drawn), speed, heading, ticks: 0 }
    }

    /// The position after `ticks` tenths of a second, which must not decrease from call to call.
    pub fn at(&mut self, layout: &Layout, ticks: i64) -> Point {
        let step = self.speed * TICK;
        if layout.wraps() {
            let distance = step * (ticks - self.ticks) as f64;
            let moved = Point { x: self.heading.x * distance, y: self.heading.y * distance };
            self.position = layout.home(self.position.plus(moved));
        } else if step > 0.0 {
            for _ in self.ticks..ticks {
                let ahead = self.position.plus(Point { x: self.heading.x * step, y: self.heading.y * step });
                if layout.covers(ahead) {
                    self.position = ahead;
                } else {
                    self.heading = heading(&mut self.luck);
                }
            }
        }
        self.ticks = ticks;
        self.position
    }

    /// Metres walked after `ticks` tenths of a second.
    #[must_use]
    pub fn metres(&self, ticks: i64) -> f64 {
        self.speed * TICK * ticks as f64
    }

    /// The stream of random numbers.
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
    fn a_walk_is_the_same_however_often_it_is_updated() {
        for wrap in [true, false] {
            let layout = Layout::new(Rings::One, 500.0, wrap);
            for user in 0..20 {
                let start = Walk::new(Stream::new(user, "lte", "walk"), &layout, None, 30.0 / 3.6);
                let (mut often, mut once) = (start.clone(), start);
                for tick in 0..6000 {
                    let position = often.at(&layout, tick);
                    assert!(layout.covers(position) || layout.wraps());
                    assert_eq!(layout.home(position), position);
                }
                let (often_position, once_position) = (often.at(&layout, 6000), once.at(&layout, 6000));
                // 5 km; the rest is rounding
                assert!(
                    often_position.minus(once_position).squared() < 1e-12,
                    "{often_position:?} {once_position:?}"
                );
            }
        }
    }
}
