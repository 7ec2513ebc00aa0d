//! Sprout (Winstein, Sivaraman, Balakrishnan, NSDI 2013), both halves, and its sibling with a moving average.
//!
//! ```text
//! sender: stamp (sequence, throwaway, time to next) --> data --> receiver: ticks -> model -> forecast
//!   ^                                                              arrivals -> received or lost   |
//!   |                                                                                             |
//!   +-- window <- forecast, bytes in the network <-- forecast, bytes received or lost, each 20 ms +
//! ```
//!
//! The receiver forecasts the packets that the link will almost certainly deliver in the next 160 ms; the sender keeps in
//! the network what will be delivered within 100 ms. Each part is a file; numbers are from keithw/sprout.

pub mod ewma;
pub mod forecast;
pub mod model;
pub mod received_or_lost;
pub mod receiver;
pub mod sender;
pub mod settings;
pub mod ticks;
pub mod wire;

use crate::Entry;
use receiver::Receiver;
use sender::Sender;
use settings::{PRESETS, SPROUT, SPROUT_EWMA, Settings, TABLE};

/// Registry entry for Sprout.
pub const ENTRY: Entry = Entry {
    name: SPROUT,
    summary: "Sprout: stochastic forecasts of the bytes that a cellular link will deliver",
    presets: PRESETS,
    settings: |_| TABLE,
    in_call: Entry::NO_CALL_SETTINGS,
    defaults: |preset| Settings::defaults(SPROUT, preset),
    build: |preset, overrides| Ok(Box::new(Sender::new(Settings::with(SPROUT, preset, overrides)?))),
    receiver: Some(|preset, overrides| {
        Ok(Box::new(Receiver::new(Settings::with(SPROUT, preset, overrides)?)))
    }),
};

/// Registry entry for Sprout-EWMA.
pub const EWMA: Entry = Entry {
    name: SPROUT_EWMA,
    summary: "Sprout with a moving average in place of its forecasts",
    defaults: |preset| Settings::defaults(SPROUT_EWMA, preset),
    build: |preset, overrides| Ok(Box::new(Sender::new(Settings::with(SPROUT_EWMA, preset, overrides)?))),
    receiver: Some(|preset, overrides| {
        Ok(Box::new(Receiver::new(Settings::with(SPROUT_EWMA, preset, overrides)?)))
    }),
    ..ENTRY
};
