//! The medium of a link, which packets cross after service: propagation, jitter, loss, overload, byte errors.

use crate::link::capacity::Served;
use crate::link::jitter::JitterProcess;
use crate::link::loss::{ByteErrors, LossProcess};
use crate::link::overload::OverloadLoss;
use crate::link::phases::Phases;
use crate::link::{LinkChange, LinkSettings};
use crate::refusal::{Refusal, ensure, ensure_probability};
use serde::Deserialize;
use tidegate_core::rng::Draws;
use tidegate_core::{Cause, Outbox, Packet, Span, Time};

/// Treatment of packets of ECN-capable transports on the path after the queue (RFC 6679 section 7.4: nodes without
/// support of ECN).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EcnPath {
    /// They pass unchanged.
    #[default]
    Pass,
    /// Their ECN field is cleared, including marks.
    Bleach,
    /// They are dropped.
    Drop,
}

/// The medium between the two ends of a link.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    delay: Phases<Span>,
    /// The last arrival.
    last: Time,
    /// Whether packets may overtake each other; otherwise they do not, even when the delay shrinks.
    reorders: bool,
    jitter: Option<JitterProcess>,
    loss: Option<LossProcess>,
    overload: Option<OverloadLoss>,
    errors: Option<ByteErrors>,
    ecn: EcnPath,
}

impl Medium {
    /// The medium of the link called `name` in the run with `seed`.
    pub(crate) fn new(
        settings: LinkSettings,
        overload: Option<OverloadLoss>,
        seed: u64,
        name: &str,
    ) -> Result<Self, Refusal> {
        let LinkSettings { delay, jitter, loss, byte_error, ecn, .. } = settings;
        for (time, delay) in delay.phases() {
            ensure(!delay.is_negative(), || {
                Refusal::new("delay", format!("{delay} from {time} on"), "zero or more")
            })?;
        }
        Ok(Self {
            delay,
            last: Time::from_nanos(i64::MIN),
            reorders: jitter.reorders(),
            jitter: JitterProcess::new(jitter, seed, name)?,
            loss: LossProcess::new(loss, seed, name)?,
            overload,
            errors: ByteErrors::new(byte_error, seed, name)?,
            ecn,
        })
    }

    /// Checks that [`Medium::change`] can make the change.
    pub(crate) fn changeable(&self, change: &LinkChange) -> Result<(), Refusal> {
        if let Some(delay) = change.delay {
            ensure(!delay.is_negative(), || Refusal::new("delay", delay, "zero or more"))?;
        }
        if let Some(loss) = &change.loss {
            ensure(self.overload.is_none(), || super::beside_statuses("loss"))?;
            loss.check()?;
        }
        change.jitter.map_or(Ok(()), |jitter| jitter.check())?;
        change.byte_error.map_or(Ok(()), |error| ensure_probability("byte_error", error))
    }

    /// Makes a change, from which packets that are served from now on depend. They do not overtake others because of it,
    /// and draw from the same substreams as before.
    ///
    /// # Errors
    /// As [`Medium::changeable`]; nothing is changed then.
    pub(crate) fn change(&mut self, change: &LinkChange, seed: u64, name: &str) -> Result<(), Refusal> {
        self.changeable(change)?;
        if let Some(delay) = change.delay {
            self.delay = Phases::constant(delay);
        }
        if let Some(loss) = change.loss.clone() {
            match &mut self.loss {
                Some(process) => process.change(loss),
                none => *none = LossProcess::new(loss, seed, name)?,
            }
        }
        if let Some(jitter) = change.jitter {
            self.reorders = jitter.reorders();
            match &mut self.jitter {
                Some(process) => process.change(jitter),
                none => *none = JitterProcess::new(jitter, seed, name)?,
            }
        }
        if let Some(byte_error) = change.byte_error {
            match &mut self.errors {
                Some(errors) => errors.change(byte_error),
                none => *none = ByteErrors::new(byte_error, seed, name)?,
            }
        }
        self.ecn = change.ecn.unwrap_or(self.ecn);
        Ok(())
    }

    /// Whether packets may overtake each other.
    pub(crate) fn reorders(&self) -> bool {
        self.reorders
    }

    /// The delay, if it is constant and the medium's only effect.
    pub(crate) fn constant_delay(&self) -> Option<Span> {
        let lossless = self.loss.is_none() && self.overload.is_none() && self.errors.is_none();
        let delay_only = lossless && self.jitter.is_none() && self.ecn == EcnPath::Pass;
        match self.delay.phases() {
            [(_, delay)] if delay_only => Some(*delay),
            _ => None,
        }
    }

    /// The arrival of a `served` packet, and the cause of its death, if it dies. A packet that dies draws as
    /// many random numbers, and takes as much of the medium's time, as one that arrives.
    pub(crate) fn carry(
        &mut self,
        now: Time,
        served: Served,
        packet: &mut Packet,
        out: &mut Outbox,
    ) -> (Time, Option<Cause>) {
        let size = packet.wire_size();
        let delay = *self.delay.at(served.finish);
        let mut arrival = match &mut self.jitter {
            Some(jitter) => jitter.arrival(served, delay),
            None => served.finish + delay,
        };
        if !self.reorders {
            arrival = arrival.max(self.last);
        }
        self.last = arrival.max(self.last);
        // each of its fragments can be lost, and then all of it is
        let lost = self.loss.as_mut().is_some_and(|loss| packet.any_fragment(|| loss.takes(served.finish)));
        let overload = self.overload.as_mut().is_some_and(|overload| overload.takes(served.finish, size));
        let hit = self.errors.as_mut().is_some_and(|errors| errors.hit(size));
        let refused = self.ecn == EcnPath::Drop && packet.ecn.is_capable();
        let fate = if lost || overload || refused {
            Some(Cause::Loss)
        } else if hit {
            Some(Cause::Corrupt)
        } else {
            None
        };
        if self.ecn == EcnPath::Bleach && fate.is_none() {
            out.bleach(now, packet);
        }
        (arrival, fate)
    }

    /// Visits the draws of each random substream.
    pub(crate) fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        if let Some(jitter) = &self.jitter {
            jitter.draws(visit);
        }
        if let Some(loss) = &self.loss {
            loss.draws(visit);
        }
        if let Some(overload) = &self.overload {
            overload.draws(visit);
        }
        if let Some(errors) = &self.errors {
            errors.draws(visit);
        }
    }
}
