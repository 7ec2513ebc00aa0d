//! Google congestion control: five presets over shared parts, in both placements of draft-ietf-rmcat-gcc-02 section 3.
//!
//! `gcc`, (a): all at the sender, with per-packet feedback. `gcc-remb`, (b): the delay-based part at the receiver; its
//! rate comes back as REMB, and losses in receiver reports. A preset is a file in [`presets`] that combines parts and has
//! their numbers. [`libwebrtc`] is a complete controller in a folder with its own parts. Each part is a file:
//!
//! ```text
//!                        delay: groups | singles -> kalman | trendline -> detector (threshold) -> rate (capacity)
//!                          ^      +-> received: robust | window | bayes ----------------------------^    |
//! (a) report -> sender: seen -----+                                                                      v
//!        +-> loss (fraction): loss-based rate --------------------------------------------> min -> target
//!                                                                                            ^
//! (b) packet -> receiver -> delay -> REMB ---------------------------------------------------+
//! ```

pub mod capacity;
pub mod delay;
pub mod detector;
pub mod fraction;
pub mod groups;
pub mod kalman;
pub mod libwebrtc;
pub mod loss;
pub mod presets;
pub mod rate;
pub mod received;
pub mod receiver;
pub mod report_history;
pub mod sender;
pub mod silence;
pub mod singles;
pub mod threshold;
pub mod trendline;

use crate::Entry;
use presets::Placement;

/// Registry entry for the first placement.
pub const ENTRY: Entry = Entry {
    name: Placement::Sender.name(),
    summary: "Google congestion control: delay gradient, received rate and loss, at the sender",
    presets: &[libwebrtc::NAME, "libwebrtc-v1", "draft-02", "aiortc", "hoang2017"],
    settings: |preset| Placement::Sender.settings(preset),
    in_call: |preset, content| Placement::Sender.in_call(preset, content),
    defaults: |preset| Placement::Sender.defaults(preset),
    build: |preset, overrides| Placement::Sender.sender(preset, overrides),
    receiver: None,
};

/// Registry entry for the second placement.
pub const REMB: Entry = Entry {
    name: Placement::Receiver.name(),
    summary: "Google congestion control: delay gradient and received rate at the receiver, loss at the sender",
    presets: &["draft-02", "aiortc", "hoang2017"],
    settings: |preset| Placement::Receiver.settings(preset),
    in_call: |preset, content| Placement::Receiver.in_call(preset, content),
    defaults: |preset| Placement::Receiver.defaults(preset),
    build: |preset, overrides| Placement::Receiver.sender(preset, overrides),
    receiver: Some(Placement::receiver),
};
