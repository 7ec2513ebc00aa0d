//! A shaper: packets without tokens wait for them, in a queue of any discipline.

use super::bucket::Tokens;
use super::discipline::{Moment, QueueDiscipline, Waiting};
use super::drop_tail::DropTail;
use tidegate_core::record::Backlog;
use tidegate_core::rng::Draws;
use tidegate_core::{Size, Span, Time};

/// Token buckets behind a queue; see [`super::bucket`].
///
/// The tokens needed depend on the size of the next packet, which only the queue knows. So the next packet is taken off
/// the queue as soon as the transmitter is free, and waits for its tokens separately, as in Linux (`tbf_dequeue` of
/// net/sched/sch_tbf.c, `qdisc_peek_dequeued`). The queue decides on a drop or mark at that time.
pub(super) struct Shaper {
    tokens: Tokens,
    queue: Box<dyn QueueDiscipline>,
    /// The packet that goes next, and the time at which there will be tokens for it.
    next: Option<(Waiting, Time)>,
    /// Whether there were no tokens when it was taken off the queue.
    is_awaited: bool,
    /// Time at which the link is to be woken for it; `None` after that.
    wakeup: Option<Time>,
}

impl Shaper {
    pub(super) fn new(tokens: Tokens, queue: Box<dyn QueueDiscipline>) -> Self {
        Self { tokens, queue, next: None, is_awaited: false, wakeup: None }
    }

    /// The queue and its moment: for it, a packet that waits for tokens is like one in service.
    fn inner<'a>(&mut self, moment: &'a mut Moment<'_>) -> (Moment<'a>, &mut dyn QueueDiscipline) {
        let next = self.next.as_ref().map(|(next, _)| next.packet.size);
        let in_service = moment.in_service.or(next);
        (Moment { in_service, out: &mut *moment.out, ..*moment }, &mut *self.queue)
    }
}

impl QueueDiscipline for Shaper {
    fn enqueue(&mut self, moment: &mut Moment<'_>, waiting: Waiting) {
        if !self.tokens.can_pass(waiting.packet.size) {
            return moment.drop(waiting.packet);
        }
        let (mut moment, queue) = self.inner(moment);
        queue.enqueue(&mut moment, waiting);
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Waiting> {
        let now = moment.now;
        if self.next.is_none() {
            let waiting = self.queue.dequeue(moment)?;
            let ready = now + self.tokens.wait(now, waiting.packet.size);
            self.next = Some((waiting, ready));
            self.is_awaited = ready > now;
            self.wakeup = Some(ready).filter(|_| self.is_awaited);
        }
        let (going, ready) = self.next.take_if(|(_, ready)| *ready <= now)?;
        let size = going.packet.size;
        if ready == now && self.is_awaited {
            self.tokens.take_awaited(now, size);
        } else {
            // the transmitter was not free when the tokens were there; they wait in the buckets
            let wait = self.tokens.wait(now, size);
            assert!(wait == Span::ZERO, "the next packet goes {wait} before its tokens are there");
            self.tokens.take(size);
        }
        Some(going)
    }

    fn next_wakeup(&self) -> Option<Time> {
        [self.wakeup, self.queue.next_wakeup()].into_iter().flatten().min()
    }

    fn wake(&mut self, moment: &mut Moment<'_>) {
        // the link calls `dequeue` after each call
        self.wakeup = self.wakeup.filter(|&time| time > moment.now);
        if self.queue.next_wakeup().is_some_and(|time| time <= moment.now) {
            self.queue.wake(moment);
        }
    }

    fn limit(&mut self, moment: &mut Moment<'_>, limits: &DropTail) {
        let (mut moment, queue) = self.inner(moment);
        queue.limit(&mut moment, limits);
    }

    fn into_waiting(self: Box<Self>) -> Vec<Waiting> {
        self.next.into_iter().map(|(next, _)| next).chain(self.queue.into_waiting()).collect()
    }

    fn backlog(&self) -> Backlog {
        let mut backlog = self.queue.backlog();
        if let Some((next, _)) = &self.next {
            backlog.packets += 1;
            backlog.bytes += Size::from_bytes(u64::from(next.packet.size));
        }
        backlog
    }

    fn for_each(&self, visit: &mut dyn FnMut(&Waiting)) {
        self.next.iter().for_each(|(next, _)| visit(next));
        self.queue.for_each(visit);
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.queue.draws(visit);
    }

    fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        self.tokens.warnings(tell);
        self.queue.warnings(tell);
    }
}
