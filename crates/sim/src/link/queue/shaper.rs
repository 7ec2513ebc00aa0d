//! A shaper: what finds no tokens waits for them, in a queue of any discipline.

use super::bucket::Tokens;
use super::discipline::{Moment, QueueDiscipline, Waiting};
use tidegate_core::record::Backlog;
use tidegate_core::rng::Draws;
use tidegate_core::{Size, Span, Time};

/// Token buckets behind a queue; see [`super::bucket`].
///
/// Tokens are for a packet of a size, and which one is next only the queue knows. So the next one is taken off the queue as
/// soon as the transmitter is free, and waits for its tokens by itself, as in Linux (`tbf_dequeue` of
/// net/sched/sch_tbf.c, `qdisc_peek_dequeued`): what the queue thinks of it, it has thought then.
pub(super) struct Shaper {
    tokens: Tokens,
    queue: Box<dyn QueueDiscipline>,
    /// The packet that goes next, and when there will be tokens for it.
    next: Option<(Waiting, Time)>,
    /// Whether there were none when it was taken off the queue.
    is_awaited: bool,
    /// When the link is to ask for it; nothing once it knows.
    wakeup: Option<Time>,
}

impl Shaper {
    pub(super) fn new(tokens: Tokens, queue: Box<dyn QueueDiscipline>) -> Self {
        Self { tokens, queue, next: None, is_awaited: false, wakeup: None }
    }
}

impl QueueDiscipline for Shaper {
    fn enqueue(&mut self, moment: &mut Moment<'_>, waiting: Waiting) {
        if !self.tokens.can_pass(waiting.packet.size) {
            return moment.drop(waiting.packet);
        }
        // to the queue, one that waits for tokens is like one in service
        let next = self.next.as_ref().map(|(next, _)| next.packet.size);
        let mut moment = Moment { in_service: moment.in_service.or(next), out: &mut *moment.out, ..*moment };
        self.queue.enqueue(&mut moment, waiting);
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Waiting> {
        let now = moment.now;
        if self.next.is_none() {
            let waiting = self.queue.dequeue(moment)?;
            let at = now + self.tokens.wait(now, waiting.packet.size);
            self.next = Some((waiting, at));
            self.is_awaited = at > now;
            self.wakeup = Some(at).filter(|_| self.is_awaited);
        }
        let (going, at) = self.next.take_if(|(_, at)| *at <= now)?;
        let size = going.packet.size;
        if at == now && self.is_awaited {
            self.tokens.take_awaited(now, size);
        } else {
            // the transmitter was not ready when the tokens were there, which wait in the buckets
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
        // the link asks for what waits after each call
        self.wakeup = self.wakeup.filter(|&at| at > moment.now);
        if self.queue.next_wakeup().is_some_and(|at| at <= moment.now) {
            self.queue.wake(moment);
        }
    }

    fn backlog(&self) -> Backlog {
        let mut backlog = self.queue.backlog();
        if let Some((next, _)) = &self.next {
            backlog.packets += 1;
            backlog.bytes += Size::from_bytes(u64::from(next.packet.size));
        }
        backlog
    }

    fn each(&self, visit: &mut dyn FnMut(&Waiting)) {
        self.next.iter().for_each(|(next, _)| visit(next));
        self.queue.each(visit);
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.queue.draws(visit);
    }

    fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        self.tokens.warnings(tell);
        self.queue.warnings(tell);
    }
}
