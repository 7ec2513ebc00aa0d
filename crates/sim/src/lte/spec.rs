//! A radio network as plain data: a part of [`crate::scenario::Scenario`].

use super::fading::Profile;
use super::layout::{Point, Rings};
use super::propagation::Case;
use super::rlc::QueueLimit;
use super::settings::{Antennas, Bandwidth, Scheduler, Settings, User};
use crate::refusal::Refusal;
use serde::Deserialize;
use tidegate_core::{Span, Time};

/// A radio network between a point of the graph and its users, each of whom is a point of the graph as well.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LteSpec {
    /// Its name; unique among links.
    pub name: String,
    /// The graph node behind its base stations.
    pub core: String,
    /// 7 or 19 sites.
    pub sites: u32,
    /// Whether copies of the layout surround it.
    pub wrap: bool,
    /// 3GPP case 1 or 3.
    pub case: u32,
    /// Whether the antennas have a vertical pattern.
    pub tilt: bool,
    /// 5 000 000 or 10 000 000 hertz.
    pub bandwidth_hz: u64,
    /// `1x1`, `1x2` or `2x2`.
    pub antennas: String,
    /// `tu6`, `epa`, `eva`, `flat` or `none`.
    pub fading: String,
    /// Metres a second.
    pub speed_mps: f64,
    /// Interferers that fade.
    pub interferers: u32,
    /// `pf` or `rr`.
    pub scheduler: String,
    /// Whether an outer loop corrects CQI.
    pub outer_loop: bool,
    /// Window of the proportional-fair average.
    pub window: Span,
    /// Each user's queue in packets.
    #[serde(default)]
    pub queue_packets: Option<u32>,
    /// Each user's queue in bytes.
    #[serde(default)]
    pub queue_bytes: Option<u64>,
    /// How long a packet may wait.
    #[serde(default)]
    pub queue_age: Option<Span>,
    /// Handover: how much better in dB ...
    pub hysteresis_db: f64,
    /// ... for how long ...
    pub trigger: Span,
    /// ... and how long nothing is sent.
    pub interruption: Span,
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
    /// The network's settings.
    ///
    /// # Errors
    /// When a word or a number is not one of those there are.
    pub fn settings(&self) -> Result<Settings, Refusal> {
        let rings = match self.sites {
            7 => Rings::One,
            19 => Rings::Two,
            other => return Err(Refusal::new("sites", other, "7 or 19")),
        };
        let case = match self.case {
            1 => Case::One,
            3 => Case::Three,
            other => return Err(Refusal::new("case", other, "1 or 3")),
        };
        let bandwidth = match self.bandwidth_hz {
            5_000_000 => Bandwidth::Five,
            10_000_000 => Bandwidth::Ten,
            other => return Err(Refusal::new("bandwidth", format!("{other} Hz"), "5 or 10 MHz")),
        };
        let antennas = match self.antennas.as_str() {
            "1x1" => Antennas::Siso,
            "1x2" => Antennas::Simo,
            "2x2" => Antennas::Diversity,
            other => return Err(Refusal::new("antennas", other, "1x1, 1x2 or 2x2")),
        };
        let profile = match self.fading.as_str() {
            "tu6" => Profile::Tu6,
            "epa" => Profile::Epa,
            "eva" => Profile::Eva,
            "flat" => Profile::Flat,
            "none" => Profile::None,
            other => return Err(Refusal::new("fading", other, "tu6, epa, eva, flat or none")),
        };
        let scheduler = match self.scheduler.as_str() {
            "pf" => Scheduler::ProportionalFair,
            "rr" => Scheduler::RoundRobin,
            other => return Err(Refusal::new("scheduler", other, "pf or rr")),
        };
        Ok(Settings {
            rings,
            wrap: self.wrap,
            case,
            tilt: self.tilt,
            bandwidth,
            antennas,
            profile,
            speed: self.speed_mps,
            interferers: self.interferers as usize,
            scheduler,
            outer_loop: self.outer_loop,
            window: u32::try_from(self.window.as_nanos() / 1_000_000).unwrap_or(0),
            queue: QueueLimit { packets: self.queue_packets, bytes: self.queue_bytes, age: self.queue_age },
            hysteresis: self.hysteresis_db,
            trigger: self.trigger,
            interruption: self.interruption,
        })
    }

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
