//! What happens to a packet after service: propagation, jitter, loss, overload, byte errors.

use crate::link::LinkSettings;
use crate::link::capacity::Served;
use crate::link::jitter::JitterProcess;
use crate::link::loss::{ByteErrors, Loss, LossProcess};
use crate::link::overload::OverloadLoss;
use crate::link::phases::Phases;
use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use tidegate_core::rng::Draws;
use tidegate_core::{Cause, Outbox, Packet, Span, Time};

/// What the path behind the queue does to packets of ECN-capable transports (RFC 6679 section 7.4: nodes that know no ECN).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EcnPath {
    /// It lets them pass.
    #[default]
    Pass,
    /// It clears their ECN field, marks among them.
    Bleach,
    /// It drops them.
    Drop,
}

/// The medium between the two ends of a link.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    delay: Phases<Span>,
    /// The last arrival, where order is kept: a delay that shrinks does not let packets overtake.
    last: Option<Time>,
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
        for (at, delay) in delay.phases() {
            ensure(!delay.is_negative(), || {
                Refusal::new("delay", format!("{delay} from {at} on"), "zero or more")
            })?;
        }
        Ok(Self {
            delay,
            last: (!jitter.reorders()).then_some(Time::from_nanos(i64::MIN)),
            jitter: JitterProcess::new(jitter, seed, name)?,
            loss: LossProcess::new(loss, seed, name)?,
            overload,
            errors: ByteErrors::new(byte_error, seed, name)?,
            ecn,
        })
    }

    /// Sets the delay of packets that are served from now on; they do not overtake others because of it.
    pub(crate) fn set_delay(&mut self, delay: Span) -> Result<(), Refusal> {
        self.check_delay(delay)?;
        self.delay = Phases::constant(delay);
        Ok(())
    }

    /// Whether [`Medium::set_delay`] takes it.
    pub(crate) fn check_delay(&self, delay: Span) -> Result<(), Refusal> {
        ensure(!delay.is_negative(), || Refusal::new("delay", delay, "zero or more"))
    }

    /// Sets the loss of packets that are served from now on, drawn from the same substream as before.
    pub(crate) fn set_loss(&mut self, loss: Loss, seed: u64, name: &str) -> Result<(), Refusal> {
        self.check_loss(&loss)?;
        match &mut self.loss {
            Some(process) => process.change(loss),
            none => LossProcess::new(Phases::constant(loss), seed, name).map(|process| *none = process),
        }
    }

    /// Whether [`Medium::set_loss`] takes it.
    pub(crate) fn check_loss(&self, loss: &Loss) -> Result<(), Refusal> {
        ensure(self.overload.is_none(), || super::lossless("loss"))?;
        loss.check()
    }

    /// The delay, if that is all there is to this medium.
    pub(crate) fn plain_delay(&self) -> Option<Span> {
        let lossless = self.loss.is_none() && self.overload.is_none() && self.errors.is_none();
        let plain = lossless && self.jitter.is_none() && self.ecn == EcnPath::Pass;
        match self.delay.phases() {
            [(_, delay)] if plain => Some(*delay),
            _ => None,
        }
    }

    /// When a `served` packet arrives, and what it dies of, if it does. A packet that dies draws as
    /// many random numbers, and takes as much of the medium's time, as one that arrives.
    pub(crate) fn carry(
        &mut self,
        now: Time,
        served: Served,
        packet: &mut Packet,
        out: &mut Outbox,
    ) -> (Time, Option<Cause>) {
        let size = packet.size;
        let delay = *self.delay.at(served.finish);
        let mut arrival = match &mut self.jitter {
            Some(jitter) => jitter.arrival(served, delay),
            None => served.finish + delay,
        };
        if let Some(last) = &mut self.last {
            arrival = arrival.max(*last);
            *last = arrival;
        }
        let lost = self.loss.as_mut().is_some_and(|loss| loss.takes(served.finish));
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

    /// Shows what each random substream gave out.
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
