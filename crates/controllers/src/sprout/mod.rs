//! Sprout (Winstein, Sivaraman, Balakrishnan, NSDI 2013), both halves, and its sibling with a moving average.
//!
//! ```text
//! sender: stamp (sequence, throwaway, time to next) --> data --> receiver: ticks -> model -> forecast
//!   ^                                                              arrivals -> received or lost   |
//!   |                                                                                             |
//!   +-- window <- forecast, bytes in the network <-- forecast, bytes received or lost, each 20 ms +
//! ```
//!
//! The receiver says what the link will surely deliver in the next 160 ms; the sender lets as much into the network
//! as is gone after 100 ms. One file a part; numbers from keithw/sprout.

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

/// The registry's entry for Sprout.
pub const ENTRY: Entry = Entry {
    name: SPROUT,
    summary: "Sprout: stochastic forecasts of what a cellular link will deliver",
    presets: PRESETS,
    settings: |_| TABLE,
    in_call: Entry::AS_IT_IS,
    defaults: |preset| Settings::defaults(SPROUT, preset),
    build: |preset, overrides| Ok(Box::new(Sender::new(Settings::with(SPROUT, preset, overrides)?))),
    receiver: Some(|preset, overrides| {
        Ok(Box::new(Receiver::new(Settings::with(SPROUT, preset, overrides)?)))
    }),
};

/// The registry's entry for Sprout-EWMA.
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
