//! The contract of what waits in a link and who goes next.

use tidegate_core::record::Backlog;
use tidegate_core::rng::Draws;
use tidegate_core::{Cause, Outbox, Packet, Rate, Time};

/// A packet in a queue.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// When it came in: [`Moment::now`] less this is its sojourn time.
    pub since: Time,
    /// The packet.
    pub packet: Box<Packet>,
}

/// The present of a link, as its queue discipline sees it, and the only way in which one lets packets die or
/// marks them.
pub struct Moment<'a> {
    /// The present time.
    pub now: Time,
    /// The link's nominal rate: what limits in time are computed from.
    pub nominal: Rate,
    /// The size of the packet in service, if there is one.
    pub in_service: Option<u32>,
    pub(crate) out: &'a mut Outbox,
}

impl Moment<'_> {
    /// Lets a packet die; it is recorded as dropped by the queue.
    pub fn drop(&mut self, packet: Box<Packet>) {
        self.out.discard(self.now, &packet, Cause::Queue);
        self.out.recycle(packet);
    }

    /// Marks a packet with congestion experienced, if its transport is ECN-capable; says whether. If not it is to be
    /// dropped where the scheme drops.
    #[must_use]
    pub fn mark(&mut self, packet: &mut Packet) -> bool {
        self.out.mark(self.now, packet)
    }
}

/// Decides what a link takes in, what goes next, and who is dropped.
///
/// The link asks at three times: when a packet comes ([`enqueue`](Self::enqueue)), when the transmitter is free and
/// could begin a packet at this very instant ([`dequeue`](Self::dequeue)), and when the discipline asked to be woken
/// ([`wake`](Self::wake)). At each of them it may drop any packet that it holds. Every packet that it was given
/// comes back exactly once: out of `dequeue`, or through [`Moment::drop`]; the world's accounting of packets finds
/// whoever loses one.
///
/// One that needs chance draws from a substream of its own, of the run's seed and the link's name, and shows it in
/// [`draws`](Self::draws).
///
/// What those that there are do at these times:
///
/// * CoDel (`codel`): `dequeue` marks or drops at the head until the sojourn time or the control law lets one pass.
/// * FQ-CoDel (`fq_codel`): `enqueue` hashes addresses, protocol and ports of the datagram into one of the queues, and
///   drops from the head of the longest one, up to 64 at once, when full; `dequeue` goes round by deficits, with CoDel in
///   each queue. No two flows have the same five of them (`tidegate_core::address`).
/// * PIE (`pie`): `enqueue` draws and marks or drops; `wake` every 15 ms (`T_UPDATE`) computes the probability, from the
///   sojourn time of what left last.
/// * DualPI2 (`dualpi2`): `enqueue` classifies by the ECN field; `wake` computes the base probability from the sojourn
///   times of the heads; `dequeue` takes from one of the two queues by weight, and marks or drops there.
/// * A policer (`policer`): `enqueue` drops what finds no tokens; nothing waits longer than the transmitter is busy.
/// * A shaper (`shaper`): `dequeue` gives nothing while there are no tokens, `next_wakeup` says when there will be, and
///   `wake` adds them: it may come while a packet is in service, when `dequeue` is not asked.
pub trait QueueDiscipline: Send {
    /// A packet comes in.
    fn enqueue(&mut self, moment: &mut Moment<'_>, waiting: Waiting);

    /// What goes into service now. `None`, though something waits: the link asks again when a packet comes or the
    /// discipline is woken.
    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Waiting>;

    /// When it wants to act by itself, whatever comes or goes; later than the last call. So who gives a time here
    /// needs a `wake` that moves it: the world stops a run in which time does not pass.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// Does whatever is due.
    fn wake(&mut self, moment: &mut Moment<'_>) {
        let _ = moment;
    }

    /// What waits, without the packet in service. Asked for every packet: to be kept, not counted anew.
    fn backlog(&self) -> Backlog;

    /// Shows each packet that waits, those of one queue in the order in which they go.
    fn each(&self, visit: &mut dyn FnMut(&Waiting));

    /// Shows what each of its random substreams gave out.
    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        let _ = visit;
    }

    /// Tells what whoever reads the results has to know of it, as [`tidegate_core::Node::warnings`].
    fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        let _ = tell;
    }
}
