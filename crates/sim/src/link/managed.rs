//! A link that serves packet by packet and asks a queue discipline.
//!
//! What a packet meets is decided when it happens: the discipline says what goes when the transmitter is free, the
//! medium takes what has been served. So packets may be dropped at either end of the queue, and the driver may change
//! the link while they wait. With drop-tail it does the same as [`super::Link`], which computes a packet's whole
//! stay at once and is faster.

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
    /// What the queue discipline lets pass in the long run.
    most: Rate,
    server: Server,
    queue: Box<dyn QueueDiscipline>,
    /// When the transmitter can begin the next packet, while something waits and none is in service, and since when
    /// the transmitter has known of it (what [`Server::serve`] is to be told).
    next: Option<Next>,
    serving: Option<(Served, Box<Packet>)>,
    medium: Box<Medium>,
    flight: Flight,
}

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
        let (drains, most) = (discipline.drains(settings.nominal_rate()), discipline.most());
        let queue = discipline.start(settings.queue.resolve(drains), seed, &name);
        let queue = queue.map_err(|refusal| refusal.at("discipline").at(&name))?;
        let link = Self::with_queue(name, seed, settings, queue)?;
        Ok(Self { nominal: drains, most, ..link })
    }

    /// A link called `name` in the run with `seed`, with a queue discipline of one's own instead of that in `settings`.
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
            most: Rate::MAX,
            server: server.variable(),
            queue,
            next: None,
            serving: None,
            medium,
            flight,
        })
    }

    /// From `now` on it carries `rate`, also where it followed a schedule, a trace or chance until then; the bits that
    /// are left of a packet in service go at the new rate (where there were opportunities, the packet goes again). To
    /// be called at the present time ([`crate::World::tell`]).
    ///
    /// # Errors
    /// If its capacity is one of statuses: what they lose follows from it.
    pub fn set_capacity(&mut self, now: Time, rate: Rate) -> Result<(), Refusal> {
        let current = self.serving.as_mut().filter(|(served, _)| served.finish > now);
        let finish = current.as_ref().map(|(served, packet)| (*served, packet.size));
        let finish = self.server.set_rate(now, rate, finish)?;
        if let (Some((served, _)), Some(finish)) = (current, finish) {
            served.finish = finish;
        }
        if let Some(Next { from, .. }) = self.next {
            self.call(from);
        }
        Ok(())
    }

    /// Whether these changes could be made, each of them if it is there.
    ///
    /// # Errors
    /// As those of the three that make them.
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
    /// If there is no such loss, or it follows from statuses.
    pub fn set_loss(&mut self, loss: Loss) -> Result<(), Refusal> {
        self.medium.set_loss(loss, self.seed, &self.name)
    }

    /// Shows what has not been served at `now`: the packet in service, and then each one that waits, with the time
    /// at which it came in.
    pub(crate) fn waiting(&self, now: Time, visit: &mut dyn FnMut(&Packet, Option<Time>)) {
        if let Some((_, packet)) = self.serving.as_ref().filter(|(served, _)| served.finish > now) {
            visit(packet, None);
        }
        self.queue.each(&mut |waiting| visit(&waiting.packet, Some(waiting.since)));
    }

    /// Ends and begins the services that are due.
    fn serve(&mut self, now: Time, out: &mut Outbox) {
        loop {
            if let Some((served, mut packet)) = self.serving.take_if(|(served, _)| served.finish <= now) {
                let (arrival, fate) = self.medium.carry(now, served, &mut packet, out);
                self.flight.push(Flying { arrival, fate, packet });
                if self.queue.backlog().packets > 0 {
                    // it has waited since before the end of this service: the transmitter does not pause
                    self.call(served.finish - Span::from_nanos(1));
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

    /// Takes note that a packet has waited since `from`: the transmitter can begin it then, or when it is free.
    fn call(&mut self, from: Time) {
        self.next = Some(Next { from, begins: self.server.begins(from) });
    }

    /// Asks the discipline something, and then begins or plans the service of what waits.
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
            self.call(now);
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
        times.into_iter().flatten().min().filter(|&at| at != Time::MAX)
    }

    fn advance(&mut self, now: Time, out: &mut Outbox) {
        if self.queue.next_wakeup().is_some_and(|at| at <= now) {
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
        self.queue.each(&mut |waiting| visit(&waiting.packet));
        self.serving.iter().for_each(|(_, packet)| visit(packet));
        self.flight.each(visit);
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
        Some(self.server.mean_rate(from, to).min(self.most))
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
