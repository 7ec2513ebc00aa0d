//! SCReAM, self-clocked rate adaptation for multimedia: version 2 (draft-ietf-ccwg-rfc8298bis-screamv2), and version 1
//! (RFC 8298) in `v1`.
//!
//! ```text
//! feedback -> flight, losses -> alpha (marks, delay) -> window --> in flight at most
//!                 |                                       |
//!                 +-> round trip -------------------------+-> rate --> encoder, pacer
//!                                        frames in the pacer ---^
//! ```
//!
//! The window limits the bytes in flight; window over round trip is the encoder's rate. Each part is a file.

pub mod alpha;
pub mod competing;
pub mod coupled;
pub mod delay;
pub mod ericsson;
pub mod flight;
pub mod loss;
pub mod rate;
pub mod sender;
pub mod settings;
pub mod v1;
pub mod window;

use crate::Entry;
use crate::settings::to_value;
use sender::Sender;
use serde_json::Value;
use settings::{SCREAM, Settings, TABLE};

/// Names of the presets of version 2.
const PRESETS: &[&str] = &["draft", ERICSSON, "libwebrtc"];

/// Name of the preset that follows the authors' program.
const ERICSSON: &str = "ericsson-2026-07";

/// Registry entry for version 2.
pub const ENTRY: Entry = Entry {
    name: SCREAM,
    summary: "SCReAM version 2: a window from delay, losses and marks, with or without L4S",
    presets: PRESETS,
    settings: |preset| if preset == ERICSSON { ericsson::settings::TABLE } else { TABLE },
    in_call: Entry::NO_CALL_SETTINGS,
    defaults: |preset| match preset {
        ERICSSON => to_value(SCREAM, &ericsson::settings::ERICSSON),
        _ => to_value(SCREAM, &Settings::with(preset, PRESETS, &Value::Null)?),
    },
    build: |preset, overrides| match preset {
        ERICSSON => Ok(Box::new(ericsson::Sender::new(ericsson::settings::with(overrides)?))),
        _ => Ok(Box::new(Sender::new(Settings::with(preset, PRESETS, overrides)?))),
    },
    receiver: None,
};

/// Registry entry for version 1.
pub const V1: Entry = Entry {
    name: v1::settings::SCREAM_V1,
    summary: "SCReAM version 1: a window from the queueing delay, and a target that follows the sending rate",
    presets: v1::settings::PRESETS,
    settings: |_| v1::settings::TABLE,
    in_call: Entry::NO_CALL_SETTINGS,
    defaults: |preset| {
        to_value(v1::settings::SCREAM_V1, &v1::settings::Settings::with(preset, &Value::Null)?)
    },
    build: |preset, overrides| {
        Ok(Box::new(v1::Sender::new(v1::settings::Settings::with(preset, overrides)?)))
    },
    receiver: None,
};
