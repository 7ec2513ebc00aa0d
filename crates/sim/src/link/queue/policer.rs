//! A policer: packets without tokens are dropped at once instead of waiting.

use super::bucket::Tokens;
use super::discipline::{Moment, QueueDiscipline, Waiting};
use super::drop_tail::DropTail;
use tidegate_core::record::Backlog;
use tidegate_core::rng::Draws;
use tidegate_core::{Span, Time};

/// Token buckets in front of a queue; see [`super::bucket`].
pub(super) struct Policer {
    tokens: Tokens,
    queue: Box<dyn QueueDiscipline>,
}

impl Policer {
    pub(super) fn new(tokens: Tokens, queue: Box<dyn QueueDiscipline>) -> Self {
        Self { tokens, queue }
    }
}

impl QueueDiscipline for Policer {
    fn enqueue(&mut self, moment: &mut Moment<'_>, waiting: Waiting) {
        let size = waiting.packet.size;
        if self.tokens.can_pass(size) && self.tokens.wait(moment.now, size) == Span::ZERO {
            self.tokens.take(size);
            self.queue.enqueue(moment, waiting);
        } else {
            moment.drop(waiting.packet);
        }
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Waiting> {
        self.queue.dequeue(moment)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.queue.next_wakeup()
    }

    fn wake(&mut self, moment: &mut Moment<'_>) {
        self.queue.wake(moment);
    }

    fn limit(&mut self, moment: &mut Moment<'_>, limits: &DropTail) {
        self.queue.limit(moment, limits);
    }

    fn into_waiting(self: Box<Self>) -> Vec<Waiting> {
        self.queue.into_waiting()
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&Waiting)) {
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
