//! Users of a radio network, and points in the plane.

use serde::Deserialize;
use tidegate_core::Time;

/// A point or a displacement, in metres.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(from = "(f64, f64)")]
pub struct Point {
    /// East.
    pub x: f64,
    /// North.
    pub y: f64,
}

impl Point {
    pub(crate) fn minus(self, other: Self) -> Self {
        Self { x: self.x - other.x, y: self.y - other.y }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { x: self.x + other.x, y: self.y + other.y }
    }

    pub(crate) fn squared(self) -> f64 {
        self.x * self.x + self.y * self.y
    }
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y }
    }
}

/// A user of a radio network.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The graph node that it is; its random substreams are called after it, too.
    pub name: String,
    /// It is there from this time on.
    #[serde(default)]
    pub start: Time,
    /// At this time it leaves, and what is under way to it or from it is lost; never by default.
    #[serde(default)]
    pub stop: Option<Time>,
    /// Where it is at time 0; drawn by default.
    #[serde(default)]
    pub place: Option<Point>,
    /// Whether its downlink always has something to send, beside packets: a full buffer.
    #[serde(default)]
    pub full: bool,
}

impl User {
    /// One that is always there.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), start: Time::ZERO, stop: None, place: None, full: false }
    }
}
