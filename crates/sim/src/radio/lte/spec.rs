//! A radio network as plain data: a part of [`crate::scenario::Scenario`].

use super::layout::Point;
use super::settings::{Settings, User};
use serde::Deserialize;
use tidegate_core::Time;

/// A radio network between a point of the graph and its users, each of whom is a point of the graph as well.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LteSpec {
    /// Its name; unique among links.
    pub name: String,
    /// The graph node behind its base stations.
    pub core: String,
    /// How it works.
    pub settings: Settings,
    /// The users.
    pub users: Vec<UserSpec>,
}

/// A user.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserSpec {
    /// Its graph node.
    pub name: String,
    /// It is there from then on.
    #[serde(default)]
    pub start: Time,
    /// Then it leaves; never by default.
    #[serde(default)]
    pub stop: Option<Time>,
    /// Metres east and north of the middle at time 0; drawn by default.
    #[serde(default)]
    pub place: Option<(f64, f64)>,
    /// Whether its downlink always has something to send.
    #[serde(default)]
    pub full: bool,
}

impl LteSpec {
    /// Its users.
    #[must_use]
    pub fn users(&self) -> Vec<User> {
        let user = |spec: &UserSpec| User {
            name: spec.name.clone(),
            start: spec.start,
            stop: spec.stop.unwrap_or(Time::MAX),
            place: spec.place.map(|(x, y)| Point { x, y }),
            full: spec.full,
        };
        self.users.iter().map(user).collect()
    }
}
