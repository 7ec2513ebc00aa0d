//! The contract between an endpoint and whoever drives it: datagrams go in and come out, facts are told, and nothing of
//! what the driver knows beside a datagram is seen.
//!
//! A driver (virtual time, a socket and a clock) asks for the next wakeup, calls [`Peer::advance`] at that time, and
//! hands over datagrams with [`Peer::receive`]. It puts what is sent into envelopes of its own, and joins these to the
//! facts that it hears.

use crate::datagram::Datagram;
use crate::frame::Frame;
use crate::ids::FlowId;
use crate::packet::Kind;
use crate::record::Recorder;
use crate::rng::Draws;
use crate::units::{Span, Time};
use std::any::Any;

/// What a sender tells its driver of a datagram, for the record: its receiver does not get to see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Whose it is.
    pub flow: FlowId,
    /// What it is.
    pub kind: Kind,
    /// Which frame it belongs to.
    pub frame: Frame,
}

/// Whoever drives an endpoint, as the endpoint sees it.
pub trait Driver {
    /// The record of the run.
    fn record(&mut self) -> &mut dyn Recorder;

    /// Puts a datagram on the wire.
    fn send(&mut self, now: Time, datagram: Datagram, about: About);

    /// The media packet that has come in, or what it has restored, is too late for playout.
    fn late(&mut self, now: Time, flow: FlowId);

    /// How long the datagram that has come in was on its way. No receiver can measure that: only for documents whose
    /// receiver reads its sender's clock.
    fn true_delay(&self, now: Time) -> Span;

    /// Which frame the datagram that has come in belongs to, where the datagram does not say so itself. Those are video
    /// without marks (for documents that state how large packets are) and audio (RTP tells its frames apart, but does
    /// not number them as the record does).
    fn true_frame(&self) -> Frame;

    /// Ends the run with a reason; the first one counts.
    fn fail(&mut self, reason: String);

    /// Whether the run is to end.
    fn has_failed(&self) -> bool;
}

/// An endpoint with one socket.
pub trait Peer: Send + Any {
    /// The name in tables, and the component name of its random substreams.
    fn name(&self) -> &str;

    /// When [`Peer::advance`] must be called next, if nothing is received before.
    fn next_wakeup(&self) -> Option<Time>;

    /// Does whatever is due at `now`. Calling earlier is harmless.
    fn advance(&mut self, now: Time, out: &mut dyn Driver);

    /// Takes `datagram` in.
    fn receive(&mut self, now: Time, datagram: &Datagram, out: &mut dyn Driver);

    /// Shows what each of its random substreams gave out.
    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        let _ = visit;
    }

    /// Called once when the run ends, to write what is still open (frames, counters) to the record.
    fn finish(&mut self, now: Time, out: &mut dyn Driver) {
        let _ = (now, out);
    }
}
