//! A link that serves packet by packet, with any queue discipline.
//!
//! Each step of a packet is computed when it happens: the discipline chooses the next packet when the transmitter is
//! free, and the medium carries served packets. So packets may be dropped at either end of the queue, and the driver
//! may change the link while they wait. With drop-tail it does the same as [`super::Link`], which computes a packet's
//! departure and arrival when it comes in and is faster.

use super::LinkSettings;
use super::capacity::{Served, Server};
use super::flight::{Flight, Flying};
use super::medium::Medium;
use super::queue::{Moment, QueueDiscipline, Waiting};
use crate::link::loss::Loss;
use crate::refusal::Refusal;
use tidegate_core::record::Backlog;
use tidegate_core::rng::Draws;
use tidegate_core::{Node, Outbox, Packet, Port, Rate, Size, Span, Time};

/// One direction of a link, packet by packet.
pub struct ManagedLink {
    name: String,
    seed: u64,
    nominal: Rate,
    /// Largest rate that the queue discipline lets pass in the long run.
    max_rate: Rate,
    server: Server,
    queue: Box<dyn QueueDiscipline>,
    /// The next service, while packets wait and none is in service.
    next: Option<Next>,
    serving: Option<(Served, Box<Packet>)>,
    medium: Box<Medium>,
    flight: Flight,
}

/// The next service: the time from which the packet has waited for the transmitter (the argument of
/// [`Server::serve`]), and the time at which the transmitter can begin it.
#[derive(Clone, Copy, Debug)]
struct Next {
    from: Time,
    begins: Time,
}

impl ManagedLink {
    /// A link called `name` in the run with `seed`, with the queue discipline of its `settings`.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn new(name: impl Into<String>, seed: u64, settings: LinkSettings) -> Result<Self, Refusal> {
        let name = name.into();
        let discipline = settings.discipline.clone();
        let (drain_rate, max_rate) = (discipline.drain_rate(settings.nominal_rate()), discipline.max_rate());
        let queue = discipline.start(settings.queue.resolve(drain_rate), seed, &name);
        let queue = queue.map_err(|refusal| refusal.at("discipline").at(&name))?;
        let link = Self::with_queue(name, seed, settings, queue)?;
        Ok(Self { nominal: drain_rate, max_rate, ..link })
    }

    /// A link called `name` in the run with `seed`, with the discipline `queue` instead of that in `settings`.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn with_queue(
        name: impl Into<String>,
        seed: u64,
        settings: LinkSettings,
        queue: Box<dyn QueueDiscipline>,
    ) -> Result<Self, Refusal> {
        let name = name.into();
        let nominal = settings.nominal_rate();
        let flight = Flight::new(settings.jitter.reorders());
        let (server, medium) = settings.parts(&name, seed)?;
        let medium = Box::new(medium);
        Ok(Self {
            name,
            seed,
            nominal,
            max_rate: Rate::MAX,
            server: server.variable(),
            queue,
            next: None,
            serving: None,
            medium,
            flight,
        })
    }

    /// Sets the capacity to `rate` from `now` on, also where it followed a schedule, a trace or a random process until
    /// then. The remaining bits of a packet in service go at the new rate (with delivery opportunities, the whole
    /// packet is sent again). To be called at the present time ([`crate::World::tell`]).
    ///
    /// # Errors
    /// If its capacity is one of statuses, whose losses follow from it.
    pub fn set_capacity(&mut self, now: Time, rate: Rate) -> Result<(), Refusal> {
        let current = self.serving.as_mut().filter(|(served, _)| served.finish > now);
        let finish = current.as_ref().map(|(served, packet)| (*served, packet.size));
        let finish = self.server.set_rate(now, rate, finish)?;
        if let (Some((served, _)), Some(finish)) = (current, finish) {
            served.finish = finish;
        }
        if let Some(Next { from, .. }) = self.next {
            self.plan(from);
        }
        Ok(())
    }

    /// Checks that these changes can be made; `None` is no change.
    ///
    /// # Errors
    /// As [`Self::set_capacity`], [`Self::set_delay`] and [`Self::set_loss`].
    pub fn changeable(
        &self,
        capacity: Option<Rate>,
        delay: Option<Span>,
        loss: Option<&Loss>,
    ) -> Result<(), Refusal> {
        capacity.map_or(Ok(()), |_| self.server.changeable())?;
        delay.map_or(Ok(()), |delay| self.medium.check_delay(delay))?;
        loss.map_or(Ok(()), |loss| self.medium.check_loss(loss))
    }

    /// Sets the propagation delay of packets that are served from now on.
    ///
    /// # Errors
    /// If it is negative.
    pub fn set_delay(&mut self, delay: Span) -> Result<(), Refusal> {
        self.medium.set_delay(delay)
    }

    /// Sets the loss of packets that are served from now on.
    ///
    /// # Errors
    /// If the loss is invalid, or the link's losses follow from statuses.
    pub fn set_loss(&mut self, loss: Loss) -> Result<(), Refusal> {
        self.medium.set_loss(loss, self.seed, &self.name)
    }

    /// Visits the packets not yet served at `now`: the packet in service, and then each waiting one, with the time at
    /// which it came in.
    pub(crate) fn waiting(&self, now: Time, visit: &mut dyn FnMut(&Packet, Option<Time>)) {
        if let Some((_, packet)) = self.serving.as_ref().filter(|(served, _)| served.finish > now) {
            visit(packet, None);
        }
        self.queue.for_each(&mut |waiting| visit(&waiting.packet, Some(waiting.since)));
    }

    /// Ends and begins the services that are due.
    fn serve(&mut self, now: Time, out: &mut Outbox) {
        loop {
            if let Some((served, mut packet)) = self.serving.take_if(|(served, _)| served.finish <= now) {
                let (arrival, fate) = self.medium.carry(now, served, &mut packet, out);
                self.flight.push(Flying { arrival, fate, packet });
                if self.queue.backlog().packets > 0 {
                    // the next packet has waited since before the end of this service: the transmitter does not pause
                    self.plan(served.finish - Span::from_nanos(1));
                }
            }
            let Some(Next { from, .. }) = self.next.take_if(|next| next.begins <= now) else { return };
            let mut moment = Moment { now, nominal: self.nominal, in_service: None, out };
            let Some(Waiting { since, mut packet }) = self.queue.dequeue(&mut moment) else { return };
            packet.queued += now - since;
            let finish = self.server.serve(from, packet.size).finish.max(now);
            assert!(self.serving.is_none() && since <= now, "two packets in service, or one from the future");
            self.serving = Some((Served { start: now, finish }, packet));
        }
    }

    /// Plans the service of a packet that has waited since `from`: it begins then, or when the transmitter is free.
    fn plan(&mut self, from: Time) {
        self.next = Some(Next { from, begins: self.server.begins(from) });
    }

    /// Calls the discipline, and then begins or plans the service of a waiting packet.
    fn ask(
        &mut self,
        now: Time,
        out: &mut Outbox,
        ask: impl FnOnce(&mut dyn QueueDiscipline, &mut Moment<'_>),
    ) {
        self.serve(now, out);
        let in_service = self.serving.as_ref().map(|(_, packet)| packet.size);
        let mut moment = Moment { now, nominal: self.nominal, in_service, out };
        ask(&mut *self.queue, &mut moment);
        if self.serving.is_none() && self.next.is_none() && self.queue.backlog().packets > 0 {
            self.plan(now);
        }
        self.serve(now, out);
    }
}

impl Node for ManagedLink {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_wakeup(&self) -> Option<Time> {
        let service = self.serving.as_ref().map(|(served, _)| served.finish);
        let times =
            [service, self.next.map(|next| next.begins), self.queue.next_wakeup(), self.flight.next()];
        times.into_iter().flatten().min().filter(|&time| time != Time::MAX)
    }

    fn advance(&mut self, now: Time, out: &mut Outbox) {
        if self.queue.next_wakeup().is_some_and(|time| time <= now) {
            self.ask(now, out, |queue, moment| queue.wake(moment));
        } else {
            self.serve(now, out);
        }
        while let Some(flying) = self.flight.arrived(now) {
            flying.land(now, out);
        }
    }

    fn receive(&mut self, now: Time, _port: Port, packet: Box<Packet>, out: &mut Outbox) {
        self.ask(now, out, |queue, moment| queue.enqueue(moment, Waiting { since: now, packet }));
    }

    fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        self.queue.for_each(&mut |waiting| visit(&waiting.packet));
        self.serving.iter().for_each(|(_, packet)| visit(packet));
        self.flight.for_each(visit);
    }

    fn backlog(&self, now: Time) -> Option<Backlog> {
        let Backlog { mut packets, bytes } = self.queue.backlog();
        let mut bytes = bytes.as_bytes();
        if let Some((_, packet)) = self.serving.as_ref().filter(|(served, _)| served.finish > now) {
            packets += 1;
            bytes += u64::from(packet.size);
        }
        Some(Backlog { packets, bytes: Size::from_bytes(bytes) })
    }

    fn capacity(&mut self, from: Time, to: Time) -> Option<Rate> {
        Some(self.server.mean_rate(from, to).min(self.max_rate))
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.server.draws(visit);
        self.queue.draws(visit);
        self.medium.draws(visit);
    }

    fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        self.queue.warnings(tell);
    }
}
