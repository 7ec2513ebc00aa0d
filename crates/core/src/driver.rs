//! Contract between an endpoint and its driver: datagrams go in and come out, and facts are recorded. The endpoint sees
//! nothing of the driver's additional knowledge about a datagram.
//!
//! A driver (virtual time, or a socket and a clock) asks for the next wakeup, calls [`Peer::advance`] at that time, and
//! passes datagrams to [`Peer::receive`]. It puts sent datagrams into its own envelopes, and joins these to the facts
//! that it gets.

use crate::datagram::Datagram;
use crate::frame::Frame;
use crate::ids::FlowId;
use crate::packet::Kind;
use crate::record::Recorder;
use crate::rng::Draws;
use crate::units::{Span, Time};
use std::any::Any;

/// Facts about a datagram that its sender gives its driver for the record; the receiver does not get them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramInfo {
    /// Flow of the datagram.
    pub flow: FlowId,
    /// Kind of packet.
    pub kind: Kind,
    /// Frame to which it belongs.
    pub frame: Frame,
}

/// Driver of an endpoint, as the endpoint sees it.
pub trait Driver {
    /// Record of the run.
    fn record(&mut self) -> &mut dyn Recorder;

    /// Puts a datagram on the wire.
    fn send(&mut self, now: Time, datagram: Datagram, info: DatagramInfo);

    /// Records that the received media packet, or the one that it restored, is too late for playout.
    fn late(&mut self, now: Time, flow: FlowId);

    /// One-way delay of the received datagram. No receiver can measure it; it is for documents whose receiver reads its
    /// sender's clock.
    fn true_delay(&self, now: Time) -> Span;

    /// Frame of the received datagram, if the datagram has no marks of it. That is the case for video without marks (for
    /// documents that state the sizes of packets) and for audio (whose frames RTP distinguishes, but does not number as
    /// the record does).
    fn true_frame(&self) -> Frame;

    /// Ends the run with a reason; the first one counts.
    fn fail(&mut self, reason: String);

    /// Whether the run has failed and has to end.
    fn has_failed(&self) -> bool;
}

/// Endpoint with one socket.
pub trait Peer: Send + Any {
    /// Name in tables, and component name of the endpoint's random substreams.
    fn name(&self) -> &str;

    /// Time at which [`Peer::advance`] must be called next, if no datagram is received before.
    fn next_wakeup(&self) -> Option<Time>;

    /// Does all that is due at `now`. Earlier calls are harmless.
    fn advance(&mut self, now: Time, out: &mut dyn Driver);

    /// Takes a received datagram.
    fn receive(&mut self, now: Time, datagram: &Datagram, out: &mut dyn Driver);

    /// Passes the draws of each random substream to `visit`.
    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        let _ = visit;
    }

    /// Writes open facts (frames, counters) to the record; called once at the end of the run.
    fn finish(&mut self, now: Time, out: &mut dyn Driver) {
        let _ = (now, out);
    }
}
