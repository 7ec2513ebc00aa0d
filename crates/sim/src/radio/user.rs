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
    pub(crate) fn minus(self, point: Self) -> Self {
        Self { x: self.x - point.x, y: self.y - point.y }
    }

    pub(crate) fn plus(self, point: Self) -> Self {
        Self { x: self.x + point.x, y: self.y + point.y }
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
    /// Its graph node; its random substreams have this name, too.
    pub name: String,
    /// Time from which it is present.
    #[serde(default)]
    pub start: Time,
    /// Time at which it leaves; packets under way to it or from it are lost then. Never by default.
    #[serde(default)]
    pub stop: Option<Time>,
    /// Its position at time 0; drawn by default.
    #[serde(default)]
    pub place: Option<Point>,
    /// Whether its downlink always has data to send, beside packets: a full buffer.
    #[serde(default)]
    pub full: bool,
}

impl User {
    /// A user that is always present.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), start: Time::ZERO, stop: None, place: None, full: false }
    }
}
