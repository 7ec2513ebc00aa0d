//! TCP-friendly rate control, both halves: RFC 5348, RFC 3448 as a preset, and the small-packet variant of RFC 4828 as a
//! separate controller.
//!
//! ```text
//! sender: stamp (R, time) --> data --> receiver: history -> intervals --> p
//!   ^                                            arrivals --------------> X_recv
//!   |                                                                        |
//!   +-- rate <- limited, received, equation <--- feedback once a round trip -+
//! ```
//!
//! The receiver reports losses and the receive rate, the sender calculates its rate. Each part is a file.

pub mod equation;
pub mod history;
pub mod intervals;
pub mod limited;
pub mod rate;
pub mod received;
pub mod receiver;
pub mod sender;
pub mod settings;
pub mod wire;

use crate::Entry;
use receiver::Receiver;
use sender::Sender;
use settings::{PRESETS, Settings, TABLE, TFRC, TFRC_SP};

/// Registry entry for TFRC.
pub const ENTRY: Entry = Entry {
    name: TFRC,
    summary: "TCP-friendly rate control: a smooth rate from TCP's throughput equation",
    presets: PRESETS,
    settings: |_| TABLE,
    in_call: Entry::NO_CALL_SETTINGS,
    defaults: |preset| Settings::defaults(TFRC, preset),
    build: |preset, overrides| Ok(Box::new(Sender::new(Settings::with(TFRC, preset, overrides)?))),
    receiver: Some(|preset, overrides| Ok(Box::new(Receiver::new(Settings::with(TFRC, preset, overrides)?)))),
};

/// Registry entry for TFRC for small packets.
pub const ENTRY_SP: Entry = Entry {
    name: TFRC_SP,
    summary: "TFRC for small packets: the bandwidth of a TCP with large packets",
    defaults: |preset| Settings::defaults(TFRC_SP, preset),
    build: |preset, overrides| Ok(Box::new(Sender::new(Settings::with(TFRC_SP, preset, overrides)?))),
    receiver: Some(|preset, overrides| {
        Ok(Box::new(Receiver::new(Settings::with(TFRC_SP, preset, overrides)?)))
    }),
    ..ENTRY
};
