//! A scenario as data: as the Python side hands it over, already checked and in base units. Beside it: the assembly of
//! its world ([`assemble`]), and its run ([`Run`]).
//!
//! Times and spans are in nanoseconds, rates in bit/s, sizes in bytes; probabilities are fractions. People write
//! TOML with units (`"20ms"`, `"2.5Mbps"`), which `python/tidegate/scenario` converts.

pub mod assemble;
mod calls;
mod driven;
mod episode;
mod external;
mod links;
mod media;
mod moves;
mod radio;
mod routes;
mod run;
mod sessions;
mod tightest_link;
mod traffic;
mod waiting;

pub use episode::{Episode, Stepped, Truth};
pub use external::{External, ExternalFlow};
pub use links::*;
pub use media::*;
pub use moves::{CallMove, MoveSpec};
pub use radio::*;
pub use routes::Routes;
pub use run::{Outcome, Run};
use serde::Deserialize;
pub use sessions::*;
use std::collections::BTreeMap;
use tidegate_core::{Level, Span, Time};
use tidegate_endpoint::ClockSettings;
pub use traffic::*;
pub use waiting::Queued;

/// A scenario: all that a run depends on, except traces and controllers, which are handed over beside it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Duration of the run.
    pub duration: Span,
    /// Time at the beginning that the metrics leave out.
    #[serde(default)]
    pub warmup: Span,
    /// The run's seed.
    pub seed: u64,
    /// Seeds that replace `seed` for single components, by name: for the same run with other draws of one flow, say.
    #[serde(default)]
    pub seeds: Vec<(String, u64)>,
    /// The amount of data that is recorded.
    #[serde(default)]
    pub record: Record,
    /// Largest sending jitter of TCP and CBR senders, `None`: off.
    #[serde(default)]
    pub sending_jitter: SendingJitter,
    /// The radio networks.
    #[serde(default)]
    pub radios: Vec<RadioSpec>,
    /// The links, each in one direction.
    pub links: Vec<LinkSpec>,
    /// The flows.
    pub flows: Vec<FlowSpec>,
    /// Media flows of one sender whose congestion controls are coupled.
    #[serde(default)]
    pub couplings: Vec<CouplingSpec>,
    /// Changes while it runs.
    #[serde(default)]
    pub moves: Vec<MoveSpec>,
    /// The sessions of many members.
    #[serde(default)]
    pub sessions: Vec<SessionSpec>,
    /// Clocks of the ends at graph nodes, by the name of the node; others run true.
    #[serde(default)]
    pub clocks: BTreeMap<String, ClockSettings>,
    /// Whether every datagram is encoded to bytes and decoded again before its receiver sees it: slower, and it must
    /// change nothing.
    #[serde(default)]
    pub bytes: bool,
}

/// The amount of data that is recorded of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// `summary`, `series` or `packets`.
    pub level: Level,
    /// Width of a bin of the series.
    pub bin: Span,
    /// Whether the bytes of every packet are kept for a capture file.
    #[serde(default)]
    pub capture: bool,
}

impl Default for Record {
    fn default() -> Self {
        // RFC 8868 section 3 logs rates every 200 ms
        Self { level: Level::Series, bin: Span::from_millis(200), capture: false }
    }
}

/// Sending jitter against drop-tail phase effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SendingJitter {
    /// None.
    Off,
    /// U(0, J) with J the service time of 1500 B at the slowest link's mean rate, at most 12 ms.
    #[default]
    Auto,
    /// U(0, J) with the given J.
    #[serde(untagged)]
    Fixed(Span),
}

/// One flow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Its name; unique.
    pub name: String,
    /// Graph node of the sender.
    pub from: String,
    /// Graph node of the receiver.
    pub to: String,
    /// Time of its beginning.
    #[serde(default)]
    pub start: Time,
    /// Time of its end; the run's end by default.
    #[serde(default)]
    pub stop: Option<Time>,
    /// The kind of its traffic.
    pub kind: FlowKind,
}

/// The kind of a flow's traffic.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowKind {
    /// RTP media under a congestion controller.
    Media(Box<MediaSpec>),
    /// UDP cross traffic.
    Udp(UdpSpec),
    /// TCP.
    Tcp(TcpSpec),
    /// Datagrams that the driver of the run feeds and receives.
    External,
    /// Datagrams of a real program that is a call; such a flow counts as media where the links are shared.
    Program,
}

const fn yes() -> bool {
    true
}
