//! The sender's circuit breakers: their input, and the effect of one that trips.

use super::{OutStream, Path, Sender};
use crate::breaker::CircuitBreaker;
use crate::settings::{CircuitBreakerUse, SendSettings};
use tidegate_core::record::Breaker;
use tidegate_core::{Driver, Span, Time};

/// The circuit breakers for `settings`, if these want them.
pub(super) fn circuit_breaker(settings: &SendSettings) -> Option<CircuitBreaker> {
    let unrepaired = settings.repair.nack.is_none() && settings.repair.fec.is_none();
    (settings.circuit_breaker != CircuitBreakerUse::Off)
        .then(|| CircuitBreaker::new(settings.streams.len(), unrepaired))
}

impl Sender {
    /// The streams of media: they come first.
    fn media_streams(&self) -> impl Iterator<Item = &OutStream> {
        self.streams.iter().take_while(|stream| stream.is_media())
    }

    /// Checks for the RTCP timeout.
    pub(super) fn expire(&mut self, now: Time, out: &mut dyn Driver) {
        let sent = || self.media_streams().map(|stream| stream.traffic().packets).fold(0, u32::wrapping_add);
        let Some(breaker) = self.breaker.as_ref().filter(|breaker| breaker.deadline() <= now) else { return };
        let (deadline, sent) = (breaker.deadline(), sent());
        if let Some(tripped) = self.breaker.as_mut().and_then(|breaker| breaker.expire(sent)) {
            self.tripped(deadline, tripped, out);
        }
    }

    /// Checks the breakers after RTCP has come in and its report blocks have been passed to them.
    pub(super) fn watch(
        &mut self,
        now: Time,
        reports: bool,
        round_trip: Option<Span>,
        path: &Path,
        out: &mut dyn Driver,
    ) {
        let Some(breaker) = &mut self.breaker else { return };
        let traffic = self.streams.iter().map(OutStream::traffic);
        if let Some(tripped) = breaker.received(now, reports, round_trip, path.reports, traffic) {
            self.tripped(now, tripped, out);
        }
    }

    fn tripped(&mut self, time: Time, breaker: Breaker, out: &mut dyn Driver) {
        out.record().tripped(time, self.flow, breaker, self.obeys_breaker);
        self.breaker = None;
        if self.obeys_breaker {
            // the packets in the pacer are not sent any more
            self.stop = self.stop.min(time);
            self.update_wakeup();
        }
    }
}
