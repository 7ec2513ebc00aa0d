//! The interface of models of the path, which set the window and the pacing rate.

use super::delivery::{RateSample, Snapshot};
use super::sack::Loss;
use super::sender::Phase;
use tidegate_core::{Span, Stream, Time};

/// The content of an acknowledgement; sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckEvent {
    pub(super) now: Time,
    /// Bytes acknowledged or SACKed for the first time by it, and since the connection began.
    pub(super) acked: u64,
    pub(super) delivered: u64,
    /// Bytes counted as lost since the connection began.
    pub(super) lost: u64,
    /// Bytes under way before and after it.
    pub(super) prior_in_flight: u64,
    pub(super) in_flight: u64,
    /// The delivery state stored with the segment that left last among those delivered, and the delivery rate if its
    /// interval is long enough for one.
    pub(super) latest: Option<Snapshot>,
    pub(super) sample: Option<RateSample>,
    pub(super) rtt: Option<Span>,
    pub(super) phase: Phase,
}

/// A loss, and the state of the connection when it is noticed; sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossEvent {
    pub(super) now: Time,
    pub(super) loss: Loss,
    /// Bytes delivered since the connection began.
    pub(super) delivered: u64,
    pub(super) in_flight: u64,
    pub(super) cwnd: f64,
    pub(super) phase: Phase,
}

/// A model of the path.
pub(super) trait Model {
    /// The shortest interval of a delivery rate that counts: the smallest round trip.
    fn shortest_interval(&self) -> Option<Span>;

    /// Whether it deliberately sends less than it could, so that delivery rates do not show the capacity of the path.
    fn is_probing_rtt(&self) -> bool;

    /// Takes in the round trip of the handshake.
    fn opened(&mut self, now: Time, rtt: Span, cwnd: f64);

    /// Takes in an acknowledgement, and sets the window.
    fn acked(&mut self, ack: &AckEvent, cwnd: &mut f64, luck: &mut Stream);

    /// Takes in a segment that was counted as lost; to be called before the acknowledgement that showed it.
    fn lost(&mut self, event: &LossEvent, luck: &mut Stream) {
        let _ = (event, luck);
    }

    /// Handles a timeout, with so many bytes delivered and lost since the connection began.
    fn timeout(&mut self, now: Time, delivered: u64, lost: u64, luck: &mut Stream);

    /// Handles a restart after idle time of the application.
    fn restart(&mut self, now: Time, cwnd: &mut f64, luck: &mut Stream);
}
