//! A link that serves packet by packet, with any queue discipline.
//!
//! Each step of a packet is computed when it happens: the discipline chooses the next packet when the transmitter is
//! free, and the medium carries served packets. So packets may be dropped at either end of the queue, and the driver
//! may change the link while they wait. With drop-tail it does the same as [`super::Link`], which computes a packet's
//! departure and arrival when it comes in and is faster.

use super::capacity::{Served, Server};
use super::flight::{Flight, Flying};
use super::medium::Medium;
use super::mtu::Mtu;
use super::netem::Netem;
use super::queue::{Discipline, DropTail, Moment, QueueDiscipline, Waiting};
use super::{LinkChange, LinkSettings, beside_statuses};
use crate::refusal::{Refusal, ensure};
use tidegate_core::record::Backlog;
use tidegate_core::rng::Draws;
use tidegate_core::{Node, Outbox, Packet, Port, Rate, Size, Span, Time};

/// One direction of a link, packet by packet.
pub struct ManagedLink {
    name: String,
    seed: u64,
    /// The nominal capacity, or that which was set last.
    nominal: Rate,
    /// Limits and kind of the queue.
    limits: DropTail,
    discipline: Discipline,
    mtu: Option<Box<Mtu>>,
    netem: Option<Box<Netem>>,
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
        let room = settings.queue.resolve(discipline.drain_rate(settings.nominal_rate()));
        let queue = discipline.start(room, seed, &name);
        let queue = queue.map_err(|refusal| refusal.at("discipline").at(&name))?;
        Self::with_queue(name, seed, settings, queue)
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
        let (limits, discipline) = (settings.queue, settings.discipline.clone());
        let netem = settings.netem.clone().map(|netem| Netem::new(netem, seed, &name)).transpose();
        let netem = netem.map_err(|refusal| refusal.at(&name))?.map(Box::new);
        settings.mtu.map_or(Ok(()), |mtu| mtu.check()).map_err(|refusal| refusal.at(&name))?;
        let mtu = settings.mtu.map(|mtu| Box::new(Mtu::new(mtu)));
        let (server, medium) = settings.parts(&name, seed)?;
        let medium = Box::new(medium);
        Ok(Self {
            name,
            seed,
            nominal,
            limits,
            discipline,
            mtu,
            netem,
            server: server.variable(),
            queue,
            next: None,
            serving: None,
            medium,
            flight,
        })
    }

    /// Checks that [`ManagedLink::change`] can make the change.
    ///
    /// # Errors
    /// If a value is out of its range, or excluded by a capacity of statuses.
    pub fn changeable(&self, change: &LinkChange) -> Result<(), Refusal> {
        change.capacity.map_or(Ok(()), |_| self.server.changeable())?;
        self.medium.changeable(change)?;
        change.netem.as_ref().map_or(Ok(()), |netem| netem.check())?;
        change.mtu.map_or(Ok(()), |mtu| mtu.check())?;
        let has_queue = self.server.status_process().is_none();
        ensure(has_queue || change.queue.is_none(), || beside_statuses("queue"))?;
        let Some(discipline) = &change.discipline else { return Ok(()) };
        ensure(has_queue, || beside_statuses("discipline"))?;
        self.start(discipline.clone(), DropTail::UNLIMITED).map(drop)
    }

    /// Makes a change. To be called at the present time, before all events at it.
    ///
    /// # Errors
    /// As [`ManagedLink::changeable`]; nothing is changed then.
    pub fn change(&mut self, now: Time, change: &LinkChange, out: &mut Outbox) -> Result<(), Refusal> {
        self.changeable(change)?;
        self.medium.change(change, self.seed, &self.name)?;
        if self.medium.reorders() {
            self.flight.scatter();
        }
        if let Some(settings) = change.netem.clone() {
            match &mut self.netem {
                Some(netem) => netem.change(settings),
                none => *none = Some(Box::new(Netem::new(settings, self.seed, &self.name)?)),
            }
        }
        if let Some(settings) = change.mtu {
            match &mut self.mtu {
                Some(mtu) => mtu.change(settings),
                none => *none = Some(Box::new(Mtu::new(settings))),
            }
        }
        change.capacity.map_or(Ok(()), |rate| self.set_capacity(now, rate))?;
        if change.queue.is_some() || change.discipline.is_some() {
            self.change_queue(now, change.queue, change.discipline.clone(), out)?;
        }
        Ok(())
    }

    /// Sets the capacity to `rate` from `now` on, also where it followed a schedule, a trace or a random process until
    /// then. The remaining bits of a packet in service go at the new rate (with delivery opportunities, the whole
    /// packet is sent again).
    fn set_capacity(&mut self, now: Time, rate: Rate) -> Result<(), Refusal> {
        let current = self.serving.as_mut().filter(|(served, _)| served.finish > now);
        let finish = current.as_ref().map(|(served, packet)| (*served, packet.wire_size()));
        let finish = self.server.set_rate(now, rate, finish)?;
        if let (Some((served, _)), Some(finish)) = (current, finish) {
            served.finish = finish;
        }
        if let Some(Next { from, .. }) = self.next {
            self.plan(from);
        }
        // an outage says nothing of a queue's size
        if rate > Rate::ZERO {
            self.nominal = rate;
        }
        Ok(())
    }

    /// Changes the limits of the queue, its discipline, or both.
    fn change_queue(
        &mut self,
        now: Time,
        limits: Option<DropTail>,
        discipline: Option<Discipline>,
        out: &mut Outbox,
    ) -> Result<(), Refusal> {
        self.limits = limits.unwrap_or(self.limits);
        let before = discipline.map(|discipline| -> Result<_, Refusal> {
            let queue = self.start(discipline.clone(), self.limits)?;
            self.discipline = discipline;
            Ok(std::mem::replace(&mut self.queue, queue))
        });
        let in_service = self.serving.as_ref().map(|(_, packet)| packet.size);
        let mut moment = Moment { now, nominal: self.drain_rate(), in_service, out };
        if let Some(before) = before.transpose()? {
            let mut waiting = before.into_waiting();
            // those of several queues, as they came
            waiting.sort_by_key(|waiting| waiting.since);
            waiting.into_iter().for_each(|waiting| self.queue.enqueue(&mut moment, waiting));
        } else {
            self.queue.limit(&mut moment, &self.limits);
        }
        self.plan_waiting(now);
        Ok(())
    }

    /// An empty queue of a discipline with these limits.
    fn start(&self, discipline: Discipline, limits: DropTail) -> Result<Box<dyn QueueDiscipline>, Refusal> {
        let room = limits.resolve(discipline.drain_rate(self.nominal));
        discipline.start(room, self.seed, &self.name).map_err(|refusal| refusal.at("discipline"))
    }

    /// The rate at which the queue is emptied, from which limits in time are computed.
    fn drain_rate(&self) -> Rate {
        self.discipline.drain_rate(self.nominal)
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
            let mut moment = Moment { now, nominal: self.drain_rate(), in_service: None, out };
            let Some(Waiting { since, mut packet }) = self.queue.dequeue(&mut moment) else { return };
            packet.queued += now - since;
            let finish = self.server.serve(from, packet.wire_size()).finish.max(now);
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
        let mut moment = Moment { now, nominal: self.drain_rate(), in_service, out };
        ask(&mut *self.queue, &mut moment);
        self.plan_waiting(now);
        self.serve(now, out);
    }

    /// Queues the packets that leave the emulator at `now`.
    fn leave_netem(&mut self, now: Time, out: &mut Outbox) {
        while let Some(packet) = self.netem.as_mut().and_then(|netem| netem.dequeue(now, out)) {
            self.ask(now, out, |queue, moment| queue.enqueue(moment, Waiting { since: now, packet }));
        }
    }

    /// Plans the service of a packet that waits at `now`, if none is planned or going on.
    fn plan_waiting(&mut self, now: Time) {
        if self.serving.is_none() && self.next.is_none() && self.queue.backlog().packets > 0 {
            self.plan(now);
        }
    }
}

impl Node for ManagedLink {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_wakeup(&self) -> Option<Time> {
        let service = self.serving.as_ref().map(|(served, _)| served.finish);
        let netem = self.netem.as_ref().and_then(|netem| netem.next());
        let next = self.next.map(|next| next.begins);
        let times = [netem, service, next, self.queue.next_wakeup(), self.flight.next()];
        times.into_iter().flatten().min().filter(|&time| time != Time::MAX)
    }

    fn advance(&mut self, now: Time, out: &mut Outbox) {
        if self.queue.next_wakeup().is_some_and(|time| time <= now) {
            self.ask(now, out, |queue, moment| queue.wake(moment));
        } else {
            self.serve(now, out);
        }
        self.leave_netem(now, out);
        while let Some(flying) = self.flight.arrived(now) {
            flying.land(now, out);
        }
    }

    fn receive(&mut self, now: Time, _port: Port, mut packet: Box<Packet>, out: &mut Outbox) {
        if self.mtu.as_mut().is_some_and(|mtu| !mtu.pass(now, &mut packet, out)) {
            return out.recycle(packet);
        }
        if let Some(netem) = &mut self.netem {
            netem.enqueue(now, packet, out);
            return self.leave_netem(now, out);
        }
        self.ask(now, out, |queue, moment| queue.enqueue(moment, Waiting { since: now, packet }));
    }

    fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        self.netem.iter().for_each(|netem| netem.for_each(visit));
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
        // with a rate, packets wait for each other there
        if let Some(netem) = self.netem.as_ref().filter(|netem| netem.rate().is_some()) {
            let inside = netem.backlog();
            packets += inside.packets;
            bytes += inside.bytes.as_bytes();
        }
        Some(Backlog { packets, bytes: Size::from_bytes(bytes) })
    }

    fn queue_parts(&self, visit: &mut dyn FnMut(&'static str, Backlog)) {
        self.queue.parts(visit);
    }

    fn capacity(&mut self, from: Time, to: Time) -> Option<Rate> {
        let netem = self.netem.as_ref().and_then(|netem| netem.rate()).unwrap_or(Rate::MAX);
        Some(self.server.mean_rate(from, to).min(self.discipline.max_rate()).min(netem))
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.netem.iter().for_each(|netem| netem.draws(visit));
        self.server.draws(visit);
        self.queue.draws(visit);
        self.medium.draws(visit);
    }

    fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        self.queue.warnings(tell);
        self.netem.iter().for_each(|netem| netem.warnings(tell));
        self.mtu.iter().for_each(|mtu| mtu.warnings(tell));
    }
}
