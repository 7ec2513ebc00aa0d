//! The settings of an LTE network.

use super::fading::{Profile, WIDTH};
use super::layout::Rings;
use super::propagation::Case;
use super::rlc::QueueLimit;
use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use tidegate_core::Span;

/// Carrier bandwidths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub enum Bandwidth {
    /// 5 MHz: 25 resource blocks, 43 dBm a cell.
    #[serde(rename = "5MHz")]
    Five,
    /// 10 MHz: 50 resource blocks, 46 dBm a cell.
    #[serde(rename = "10MHz")]
    Ten,
}

/// Resource blocks of a subband, the unit of scheduling and of CQI: 25 and 50 blocks make 5 and 10 of them.
pub const BLOCKS: usize = 5;

impl Bandwidth {
    /// Number of subbands of [`BLOCKS`] resource blocks (TS 36.101 table 5.6-1).
    #[must_use]
    pub const fn subbands(self) -> usize {
        match self {
            Self::Five => 5,
            Self::Ten => 10,
        }
    }

    /// Power of a cell in dBm (TR 25.814 table A.2.1.1-2): the same for each resource block at both bandwidths.
    #[must_use]
    pub const fn power(self) -> f64 {
        match self {
            Self::Five => 43.0,
            Self::Ten => 46.0,
        }
    }

    /// The bandwidth in hertz.
    #[must_use]
    pub const fn hertz(self) -> f64 {
        match self {
            Self::Five => 5e6,
            Self::Ten => 10e6,
        }
    }
}

/// Antennas of a cell and of a user.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub enum Antennas {
    /// One and one.
    #[serde(rename = "1x1")]
    Siso,
    /// One and two, with maximum-ratio combining.
    #[serde(rename = "1x2")]
    Simo,
    /// Two and two with one stream: transmit diversity (SFBC).
    #[serde(rename = "2x2")]
    Diversity,
}

impl Antennas {
    /// Antenna pairs downlink.
    #[must_use]
    pub const fn branches(self) -> usize {
        match self {
            Self::Siso => 1,
            Self::Simo => 2,
            Self::Diversity => 4,
        }
    }

    /// Share of a cell's power that each of its antennas sends.
    #[must_use]
    pub const fn share(self) -> f32 {
        match self {
            Self::Siso | Self::Simo => 1.0,
            Self::Diversity => 0.5,
        }
    }

    /// Resource elements of a resource block pair for downlink data: 168 without three control symbols and the
    /// reference symbols of one or two antenna ports outside of them (TS 36.211 sections 6.7 and 6.10.1).
    #[must_use]
    pub const fn elements(self) -> f64 {
        match self {
            Self::Siso | Self::Simo => 126.0,
            Self::Diversity => 120.0,
        }
    }
}

/// The downlink scheduler of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub enum Scheduler {
    /// Proportional fair over subbands.
    #[serde(rename = "pf")]
    ProportionalFair,
    /// The whole carrier for one user after the other, with one CQI for the whole carrier (the calibration of TR
    /// 36.814 table A.2.2-1).
    #[serde(rename = "rr")]
    RoundRobin,
}

/// An LTE network.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Number of sites.
    pub sites: Rings,
    /// Whether the layout is surrounded by copies of itself.
    pub wrap: bool,
    /// Simulation case, which sets the distance of the sites.
    pub case: Case,
    /// Whether the antennas have a vertical pattern and are tilted down.
    pub tilt: bool,
    /// The carrier.
    pub bandwidth: Bandwidth,
    /// Antennas.
    pub antennas: Antennas,
    /// Multipath.
    pub fading: Profile,
    /// Speed of users in metres a second.
    pub speed: f64,
    /// Number of a user's strongest interferers that fade; the others have their mean power.
    pub interferers: usize,
    /// The downlink scheduler.
    pub scheduler: Scheduler,
    /// Whether an outer loop corrects the SINR of CQI until one in ten first transmissions fails.
    pub outer_loop: bool,
    /// Window of the proportional-fair average in TTIs.
    pub window: u32,
    /// Limits of each user's queue, downlink and uplink.
    pub queue: QueueLimit,
    /// Conditions and duration of handovers.
    pub handover: Handover,
}

/// Conditions and duration of a handover (event A3 of TS 36.331).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handover {
    /// Excess in dB that a neighbour must have (A3 offset and hysteresis, TS 36.331 section 5.5.4.4).
    pub hysteresis: f64,
    /// Time for which it must have it.
    pub trigger: Span,
    /// Interruption of transmission by the handover.
    pub interruption: Span,
}

/// Largest number of interferers that may fade.
pub const INTERFERERS: usize = 6;

impl Default for Settings {
    fn default() -> Self {
        Self {
            sites: Rings::One,
            wrap: true,
            case: Case::One,
            tilt: false,
            bandwidth: Bandwidth::Ten,
            antennas: Antennas::Simo,
            fading: Profile::Tu6,
            speed: 3.0 / 3.6,
            interferers: 2,
            scheduler: Scheduler::ProportionalFair,
            outer_loop: true,
            window: 300,
            queue: QueueLimit { packets: Some(1000), bytes: None, age: None },
            handover: Handover {
                hysteresis: 3.0,
                trigger: Span::from_millis(200),
                interruption: Span::from_millis(30),
            },
        }
    }
}

impl Settings {
    /// Checks that every setting is in its range.
    ///
    /// # Errors
    /// With the setting and its range.
    pub fn check(&self) -> Result<(), Refusal> {
        let within = |value: f64, max: f64| value.is_finite() && (0.0..=max).contains(&value);
        ensure(within(self.speed, 140.0), || {
            Refusal::new("speed", format!("{} m/s", self.speed), "0 to 140 m/s (500 km/h)")
        })?;
        ensure(within(self.handover.hysteresis, 30.0), || {
            Refusal::new("handover.hysteresis", self.handover.hysteresis, "0 to 30 dB")
        })?;
        ensure(self.interferers <= INTERFERERS, || {
            Refusal::new("interferers", self.interferers, format!("at most {INTERFERERS}"))
        })?;
        ensure((1..=1_000_000).contains(&self.window), || {
            Refusal::new("window", self.window, "1 to 1000000 TTIs")
        })?;
        let longest = Span::from_secs(60);
        for (name, span) in [
            ("handover.trigger", self.handover.trigger),
            ("handover.interruption", self.handover.interruption),
        ] {
            ensure(!span.is_negative() && span <= longest, || {
                Refusal::new(name, span, format!("zero to {longest}"))
            })?;
        }
        ensure(self.queue.age.is_none_or(|age| age > Span::ZERO), || {
            Refusal::new("queue.age", Span::ZERO, "more than zero")
        })?;
        ensure(self.queue.packets != Some(0), || Refusal::new("queue.packets", 0, "at least 1"))
    }
}

/// CQI of each subband.
pub type Report = [u8; WIDTH];
