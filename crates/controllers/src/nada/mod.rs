//! NADA, Network-Assisted Dynamic Adaptation (RFC 8698): queueing delay, losses and marks become one congestion signal, and
//! the rate follows its value and its change.
//!
//! ```text
//! packets -> window (baseline) | ns3_rmcat -> congestion: x_curr, rmode, r_recv     at the sender, or
//!                                                  |                                at the receiver (wire)
//! sender:                                          +--> rate: r_ref -> shaping: r_vin, r_send
//! ```
//!
//! Each part is a file.

pub mod baseline;
pub mod congestion;
pub mod ns3_rmcat;
pub mod rate;
pub mod receiver;
pub mod sender;
pub mod settings;
pub mod shaping;
pub mod signals;
pub mod window;
pub mod wire;

use crate::Entry;
use receiver::Receiver;
use sender::Sender;
use settings::{NAME, PRESETS, Settings, TABLE};

/// Registry entry for NADA.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "NADA: rate from one congestion signal of queueing delay, losses and marks, and from the signal's change",
    presets: PRESETS,
    settings: |_| TABLE,
    in_call: Entry::NO_CALL_SETTINGS,
    defaults: Settings::defaults,
    build: |preset, overrides| Ok(Box::new(Sender::new(Settings::with(preset, overrides)?))),
    receiver: Some(|preset, overrides| Ok(Box::new(Receiver::new(Settings::with(preset, overrides)?)))),
};
