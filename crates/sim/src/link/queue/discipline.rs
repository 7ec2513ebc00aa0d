//! The interface of queue disciplines.

use super::drop_tail::DropTail;
use tidegate_core::record::Backlog;
use tidegate_core::rng::Draws;
use tidegate_core::{Cause, Outbox, Packet, Rate, Time};

/// A packet in a queue.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Time at which it came in: [`Moment::now`] minus this is its sojourn time.
    pub since: Time,
    /// The packet.
    pub packet: Box<Packet>,
}

/// The present state of a link for its queue discipline, which drops and marks packets only through it.
pub struct Moment<'a> {
    /// The present time.
    pub now: Time,
    /// The link's nominal rate, from which limits in time are computed.
    pub nominal: Rate,
    /// The size of the packet in service, if there is one.
    pub in_service: Option<u32>,
    pub(crate) out: &'a mut Outbox,
}

impl Moment<'_> {
    /// Drops a packet; it is recorded as dropped by the queue.
    pub fn drop(&mut self, packet: Box<Packet>) {
        self.out.discard(self.now, &packet, Cause::Queue);
        self.out.recycle(packet);
    }

    /// Marks a packet with congestion experienced, if its transport is ECN-capable; returns whether it is. If not, the
    /// scheme has to drop the packet instead.
    #[must_use]
    pub fn mark(&mut self, packet: &mut Packet) -> bool {
        self.out.mark(self.now, packet)
    }
}

/// A queue discipline: decides which packets a link accepts, which goes next, and which are dropped.
///
/// The link calls it at three times: when a packet comes ([`enqueue`](Self::enqueue)), when the transmitter is free and
/// could begin a packet at this very instant ([`dequeue`](Self::dequeue)), and when the discipline asked to be woken
/// ([`wake`](Self::wake)). At each of them it may drop any packet that it holds. The driver may also change
/// the limits ([`limit`](Self::limit)) or replace the discipline ([`into_waiting`](Self::into_waiting)). Every packet
/// that it was given must come back exactly once: out of `dequeue` or `into_waiting`, or through [`Moment::drop`]; the
/// world's accounting of packets detects a discipline that loses one.
///
/// A discipline that needs random numbers draws them from its own substream, of the run's seed and the link's name, and
/// reports it in [`draws`](Self::draws).
///
/// The existing disciplines do the following at these times:
///
/// * CoDel (`codel`): `dequeue` marks or drops at the head until the sojourn time or the control law lets a packet
///   pass.
/// * FQ-CoDel (`fq_codel`): `enqueue` hashes addresses, protocol and ports of the datagram into one of the queues, and
///   drops from the head of the longest one, up to 64 at once, when full; `dequeue` goes round by deficits, with CoDel in
///   each queue. No two flows have the same five-tuple (`tidegate_core::address`).
/// * PIE (`pie`): `enqueue` draws and marks or drops; `wake` every 15 ms (`T_UPDATE`) computes the probability, from the
///   sojourn time of the packet that left last.
/// * DualPI2 (`dualpi2`): `enqueue` classifies by the ECN field; `wake` computes the base probability from the sojourn
///   times of the heads; `dequeue` takes from one of the two queues by weight, and marks or drops there.
/// * A policer (`policer`): `enqueue` drops packets without tokens; no packet waits longer than the transmitter is
///   busy.
/// * A shaper (`shaper`): `dequeue` returns nothing while there are no tokens, `next_wakeup` is the time at which there
///   will be, and `wake` adds them: it may come while a packet is in service, when `dequeue` is not called.
pub trait QueueDiscipline: Send {
    /// Takes in a packet.
    fn enqueue(&mut self, moment: &mut Moment<'_>, waiting: Waiting);

    /// Takes out the packet that goes into service now. If it returns `None` while packets wait, the link calls again
    /// when a packet comes or the discipline is woken.
    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Waiting>;

    /// The time at which it wants to be woken, independent of packets; later than the last call. `wake` must move this
    /// time on: the world stops a run in which time does not pass.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// Does the work that is due.
    fn wake(&mut self, moment: &mut Moment<'_>) {
        let _ = moment;
    }

    /// Limits the waiting packets to `limits`, those in time at [`Moment::nominal`], and drops packets until they hold.
    fn limit(&mut self, moment: &mut Moment<'_>, limits: &DropTail);

    /// All waiting packets, for another discipline; those of one queue in the order in which they go.
    fn into_waiting(self: Box<Self>) -> Vec<Waiting>;

    /// Waiting packets and bytes, without the packet in service. Called for every packet, so it must not count them
    /// anew.
    fn backlog(&self) -> Backlog;

    /// Passes the name and the fill level of each of its queues to `visit`, where it has a few that differ in kind.
    fn parts(&self, visit: &mut dyn FnMut(&'static str, Backlog)) {
        let _ = visit;
    }

    /// Visits each waiting packet, those of one queue in the order in which they go.
    fn for_each(&self, visit: &mut dyn FnMut(&Waiting));

    /// Visits the draws of each of its random substreams.
    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        let _ = visit;
    }

    /// Calls `tell` with its warnings for readers of the results, as [`tidegate_core::Node::warnings`].
    fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        let _ = tell;
    }
}
