//! An LTE network as a node.

use super::fading::{Band, Model, WIDTH};
use super::layout::Layout;
use super::link_adaptation::Tables;
use super::propagation;
use super::rlc::{Bearer, Segment};
use super::scheduler::Candidate;
use super::settings::{BLOCKS, Scheduler, Settings};
use super::uplink;
use super::user::{REPORT_PERIOD, Radio, TICK};
use crate::radio::{Access, MOST_USERS, User};
use crate::refusal::{Refusal, ensure};
use std::collections::VecDeque;
use tidegate_core::record::Backlog;
use tidegate_core::record::{CellRecord, RadioRecord};
use tidegate_core::rng::Draws;
use tidegate_core::{Cause, Level, Node, Outbox, Packet, Port, Span, Time};

/// Downlink and uplink, as indices.
pub(super) const DOWN: usize = 0;
pub(super) const UP: usize = 1;
/// TTIs from a transmission until the receiver has decoded it: one on the air and three of work (TS 36.213
/// section 7.3); until it can be repeated another four pass.
pub(super) const DECODING: i64 = 4;
/// Slots of the calendar of transmissions that are being decoded.
pub(super) const SLOTS: usize = 8;
/// How fast the mean use of a subband by a cell follows what happens, a TTI: what the receivers of CQI measure as
/// interference is a mean over some 10 ms.
const MEMORY: f32 = 0.1;
/// Bandwidth of a resource block in hertz.
const BLOCK: f64 = 180e3;
/// Noise of a user's receiver in dBm for each resource block: -174 dBm/Hz and a noise figure of 9 dB (TR 25.814
/// table A.2.1.1-2).
const NOISE: f64 = -174.0 + 52.552_725_051 + 9.0;

/// A transport block on its way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    pub(super) user: u32,
    pub(super) cell: usize,
    pub(super) segment: Segment,
    /// Bytes without headers.
    pub(super) bytes: u64,
    pub(super) scheme: usize,
    pub(super) mask: u32,
    pub(super) tries: u8,
    /// Effective SINR collected by chase combining.
    pub(super) sinr: f32,
    pub(super) decoded: bool,
    /// Its user has left its cell: nobody waits for it any more.
    pub(super) void: bool,
}

/// A cell in one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// Users whose bearer is active.
    pub(super) users: Vec<u32>,
    /// Blocks that wait for another transmission, and from which TTI on they may be sent.
    pub(super) again: VecDeque<(i64, usize)>,
    /// Subband-TTIs used since they were told last.
    pub(super) used: u64,
    pub(super) bytes: u64,
}

/// One direction of the whole network.
#[derive(Clone, Debug, Default)]
pub(super) struct Direction {
    pub(super) cells: Vec<Cell>,
    pub(super) blocks: Vec<Block>,
    pub(super) free: Vec<usize>,
    /// By the TTI in which they are decoded.
    pub(super) calendar: [Vec<usize>; SLOTS],
    /// What is sent in this TTI.
    pub(super) sent: Vec<usize>,
    /// For each cell and subband: downlink whether it is used, uplink the interference that comes in.
    pub(super) now: Vec<Band>,
    /// The same on average.
    pub(super) mean: Vec<Band>,
    /// Whether nothing is used now, and on average.
    pub(super) silent: Vec<bool>,
    pub(super) quiet: Vec<bool>,
}

/// A radio network of many cells and users, both directions, with the ports of [`crate::radio::port`]. It sleeps while
/// nothing is queued.
pub struct Network {
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) settings: Settings,
    pub(super) layout: Layout,
    pub(super) tables: Tables,
    pub(super) models: [Model; 2],
    pub(super) users: Vec<User>,
    pub(super) radios: Vec<Option<Box<Radio>>>,
    pub(super) bearers: [Vec<Bearer>; 2],
    pub(super) ways: [Direction; 2],
    /// Users of whom something is under way.
    pub(super) awake: Vec<u32>,
    pub(super) is_awake: Vec<bool>,
    /// When full buffers begin and users leave, the next one last.
    pub(super) arrivals: Vec<(i64, u32)>,
    pub(super) departures: Vec<(i64, u32)>,
    pub(super) gone: Vec<bool>,
    /// The next TTI, while anybody is awake, and the last one.
    next: i64,
    last: i64,
    pub(super) told: i64,
    /// Noise of a user relative to a cell's power for each resource block, and of a cell in milliwatts.
    pub(super) noise: [f32; 2],
    pub(super) subbands: usize,
    /// TTIs between two looks at the fading.
    pub(super) step: i64,
    pub(super) candidates: Vec<Candidate>,
    pub(super) most: Vec<usize>,
}

fn tti_of(at: Time) -> i64 {
    at.as_nanos().div_euclid(1_000_000)
}

/// When a TTI begins.
pub(super) fn time_of(tti: i64) -> Time {
    Time::ZERO + Span::from_millis(tti)
}

impl Network {
    /// A radio network called `name` in the run with `seed`.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn new(
        name: impl Into<String>,
        seed: u64,
        settings: Settings,
        users: Vec<User>,
    ) -> Result<Self, Refusal> {
        let name = name.into();
        settings.check()?;
        ensure(users.len() <= MOST_USERS, || {
            Refusal::new("users", users.len(), format!("at most {MOST_USERS}"))
        })?;
        for User { name: who, start, stop, .. } in &users {
            let stop = stop.unwrap_or(Time::MAX);
            ensure(stop > *start, || {
                Refusal::new(format!("users.{who}.stop"), stop, format!("after the start ({start})"))
            })?;
        }
        let layout = Layout::new(settings.sites, settings.case.distance(), settings.wrap);
        let subbands = settings.bandwidth.subbands();
        let shift = propagation::doppler(settings.speed);
        let model = |branches| Model::new(settings.fading, branches, subbands, BLOCK * BLOCKS as f64, shift);
        // a cell receives with as many antennas as a user does
        let models = [model(settings.antennas.branches()), model(settings.antennas.branches().min(2))];
        let cells = layout.cells();
        let way = Direction {
            cells: vec![Cell::default(); cells],
            now: vec![[0.0; WIDTH]; cells],
            mean: vec![[0.0; WIDTH]; cells],
            silent: vec![true; cells],
            quiet: vec![true; cells],
            ..Direction::default()
        };
        let resource_blocks = (subbands * BLOCKS) as f64;
        let sent = propagation::linear(settings.bandwidth.power()) / resource_blocks;
        let mut arrivals: Vec<_> =
            (0..users.len()).filter(|&k| users[k].full).map(|k| (tti_of(users[k].start), k as u32)).collect();
        let mut departures: Vec<_> =
            (0..users.len()).filter_map(|k| users[k].stop.map(|stop| (tti_of(stop), k as u32))).collect();
        arrivals.sort_unstable_by(|a, b| b.cmp(a));
        departures.sort_unstable_by(|a, b| b.cmp(a));
        // the phase of the fastest wave turns by a ninth of a turn at most between two looks
        let step = if shift > 0.0 { (30.0 / shift) as i64 } else { REPORT_PERIOD };
        let bearers = vec![Bearer::new(settings.queue); users.len()];
        Ok(Self {
            seed,
            tables: Tables::new(),
            models,
            radios: vec![None; users.len()],
            bearers: [bearers.clone(), bearers],
            ways: [way.clone(), way],
            awake: Vec::with_capacity(users.len()),
            is_awake: vec![false; users.len()],
            arrivals,
            departures,
            gone: vec![false; users.len()],
            next: 0,
            last: -1,
            told: 0,
            noise: [(propagation::linear(NOISE) / sent) as f32, uplink::noise()],
            subbands,
            step: step.clamp(1, REPORT_PERIOD),
            candidates: Vec::new(),
            most: Vec::new(),
            name,
            settings,
            layout,
            users,
        })
    }

    /// Each user's cell, geometry in dB and coupling loss in dB after `tick` tenths of a second, of a network that has
    /// not carried anything yet.
    pub fn survey(&mut self, tick: i64) -> Vec<(usize, f64, f64)> {
        (0..self.users.len())
            .map(|user| {
                let (noise, layout, settings) = (self.noise[DOWN], &self.layout, &self.settings);
                let make =
                    || Box::new(Radio::new(self.seed, &self.name, &self.users[user], layout, settings));
                let radio = self.radios[user].get_or_insert_with(make);
                if radio.tick() < tick
                    && let Some(cell) = radio.look(tick, layout, settings)
                    && radio.serving >= layout.cells()
                {
                    radio.serve(cell);
                }
                (radio.serving, radio.geometry(noise), radio.coupling_loss())
            })
            .collect()
    }

    /// The cell that serves a user, if it has been awake.
    #[must_use]
    pub fn serving(&self, user: usize) -> Option<usize> {
        self.radios[user].as_ref().map(|radio| radio.serving)
    }

    /// The share of each cell's power that reaches a user, in dB, at the last survey.
    pub fn gains(&self, user: usize) -> Vec<f64> {
        self.radios[user].as_ref().map_or_else(Vec::new, |radio| radio.gains_db())
    }

    /// Bytes of transport blocks that have reached each user since it was told last.
    #[must_use]
    pub fn served(&self, user: usize) -> u64 {
        self.radios[user].as_ref().map_or(0, |radio| radio.ways[DOWN].told.bytes)
    }

    fn wake(&mut self, user: u32, tti: i64) {
        let k = user as usize;
        if self.awake.is_empty() {
            self.next = self.next.max(tti + 1);
        }
        if !self.is_awake[k] {
            self.is_awake[k] = true;
            self.awake.push(user);
            let (layout, settings) = (&self.layout, &self.settings);
            let make = || Box::new(Radio::new(self.seed, &self.name, &self.users[k], layout, settings));
            let radio = self.radios[k].get_or_insert_with(make);
            let tick = tti.div_euclid(TICK);
            if radio.tick() < tick
                && let Some(cell) = radio.look(tick, layout, settings)
            {
                radio.serve(cell);
            }
            radio.follow(&self.models[DOWN]);
        }
    }

    /// Wakes the user of a bearer that has something to send, and tells its cell.
    fn activate(&mut self, user: u32, way: usize, tti: i64) {
        let k = user as usize;
        self.wake(user, tti);
        let Some(radio) = &mut self.radios[k] else { return };
        if radio.ways[way].active {
            return;
        }
        radio.ways[way].active = true;
        self.ways[way].cells[radio.serving].users.push(user);
        // what was reported before is as old as a report in use
        let measured = (tti - REPORT_PERIOD).max(0);
        if way == UP {
            radio.ways[UP].ready = radio.ways[UP].ready.max(uplink::first_grant(user, tti));
            radio.fade_up(measured, &self.models[UP]);
        } else {
            radio.fade(measured, &self.models[DOWN], self.settings.antennas.share());
        }
        let report = self.measure(user, way);
        let Some(radio) = &mut self.radios[k] else { return };
        radio.ways[way].begin(report);
        if way == UP {
            radio.fade_up(tti, &self.models[UP]);
        } else {
            radio.fade(tti, &self.models[DOWN], self.settings.antennas.share());
        }
    }

    /// What a user would report now.
    pub(super) fn measure(&self, user: u32, way: usize) -> [u8; WIDTH] {
        let Some(radio) = &self.radios[user as usize] else { return [0; WIDTH] };
        let direction = &self.ways[way];
        let sinr = if way == DOWN {
            radio.sinr(&direction.mean, &direction.quiet, self.noise[DOWN])
        } else {
            self.sinr_up(radio, &direction.mean[radio.serving])
        };
        if way == DOWN && self.settings.scheduler == Scheduler::RoundRobin {
            let all = (1 << self.subbands) - 1;
            // what all of the carrier is worth is said by the modulation in the middle
            let mean = propagation::linear(f64::from(self.tables.over(1, &sinr, all)));
            return [self.tables.cqi(mean as f32); WIDTH];
        }
        Radio::report(&self.tables, &sinr, self.subbands)
    }

    /// SINR uplink over the subbands with that much interference.
    pub(super) fn sinr_up(&self, radio: &Radio, interference: &Band) -> Band {
        let gain = radio.gains[radio.serving];
        let (power, _) = uplink::power(gain, self.subbands);
        let signal = &radio.ways[UP].signal;
        std::array::from_fn(|at| power * gain * signal[at] / (interference[at] + self.noise[UP]))
    }

    /// Everything that is due in a TTI.
    fn tti(&mut self, tti: i64, out: &mut Outbox) {
        self.forget(tti - self.last - 1);
        self.last = tti;
        let now = time_of(tti);
        while self.arrivals.last().is_some_and(|&(at, _)| at <= tti) {
            if let Some((_, user)) = self.arrivals.pop() {
                self.activate(user, DOWN, tti);
            }
        }
        while self.departures.last().is_some_and(|&(at, _)| at <= tti) {
            if let Some((_, user)) = self.departures.pop() {
                self.depart(user, now, out);
            }
        }
        if tti.div_euclid(TICK) != self.told {
            self.tick(tti, now, out);
        }
        for way in [DOWN, UP] {
            self.decode(way, tti, out);
        }
        self.follow(tti);
        for way in [DOWN, UP] {
            self.schedule(way, tti, now, out);
            self.transmit(way, tti);
        }
        self.remember();
        self.retire(now, out);
    }

    /// Lets `ttis` TTIs pass in which nobody sends anything.
    fn forget(&mut self, ttis: i64) {
        if ttis <= 0 {
            return;
        }
        let left = tidegate_core::math::pow(f64::from(1.0 - MEMORY), ttis as f64) as f32;
        for direction in &mut self.ways {
            for (mean, quiet) in direction.mean.iter_mut().zip(&mut direction.quiet) {
                mean.iter_mut().for_each(|mean| *mean *= left);
                *quiet |= left < 1e-4;
            }
        }
    }

    /// Takes what was sent in this TTI into the means.
    fn remember(&mut self) {
        for (way, direction) in self.ways.iter_mut().enumerate() {
            for cell in 0..direction.now.len() {
                if direction.silent[cell] && direction.quiet[cell] {
                    continue;
                }
                let (mean, now) = (&mut direction.mean[cell], &mut direction.now[cell]);
                let mut most = 0.0_f32;
                for (mean, now) in mean.iter_mut().zip(now.iter_mut()) {
                    *mean += MEMORY * (*now - *mean);
                    most = most.max(*mean);
                    *now = 0.0;
                }
                direction.silent[cell] = true;
                // a thousandth of a cell's power, or of the noise
                let least = if way == DOWN { 1e-3 } else { 1e-3 * self.noise[UP] };
                direction.quiet[cell] = most < least;
                if direction.quiet[cell] {
                    *mean = [0.0; WIDTH];
                }
            }
        }
    }

    pub(super) fn tell(&mut self, user: u32, now: Time, out: &mut Outbox) {
        if out.record.level() < Level::Series {
            return;
        }
        let Some(radio) = &mut self.radios[user as usize] else { return };
        for way in [DOWN, UP] {
            let told = std::mem::take(&mut radio.ways[way].told);
            if told.blocks == 0 && told.bytes == 0 {
                continue;
            }
            let record = RadioRecord {
                network: out.node(),
                user,
                up: way == UP,
                cell: radio.serving as u32,
                bytes: told.bytes,
                blocks: told.blocks,
                failed: told.failed,
                sinr_db: told.sinr / f64::from(told.blocks),
                rate_index: radio.ways[way].mean_cqi(self.subbands),
            };
            out.record.radio(now, &record);
        }
    }

    pub(super) fn tell_cells(&mut self, now: Time, out: &mut Outbox) {
        for (way, direction) in self.ways.iter_mut().enumerate() {
            for (number, cell) in direction.cells.iter_mut().enumerate() {
                let (used, bytes) = (std::mem::take(&mut cell.used), std::mem::take(&mut cell.bytes));
                if used > 0 || bytes > 0 {
                    let record = CellRecord {
                        network: out.node(),
                        cell: number as u32,
                        up: way == UP,
                        resources: used,
                        bytes,
                    };
                    out.record.cell(now, &record);
                }
            }
        }
    }
}

impl Access for Settings {
    fn network(&self, name: &str, seed: u64, users: &[User]) -> Result<Box<dyn Node>, Refusal> {
        Ok(Box::new(Network::new(name, seed, self.clone(), users.to_vec())?))
    }
}

impl Node for Network {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_wakeup(&self) -> Option<Time> {
        let awake = (!self.awake.is_empty()).then_some(self.next);
        let arrival = self.arrivals.last().map(|&(at, _)| at.max(self.next));
        awake.into_iter().chain(arrival).min().map(time_of)
    }

    fn advance(&mut self, now: Time, out: &mut Outbox) {
        let due = self.next_wakeup().filter(|&at| at <= now);
        if let Some(at) = due {
            let tti = tti_of(at);
            self.next = tti + 1;
            self.tti(tti, out);
        }
    }

    fn receive(&mut self, now: Time, port: Port, packet: Box<Packet>, out: &mut Outbox) {
        let (user, way) = (u32::from(port.0) / 2, usize::from(port.0) % 2);
        let k = user as usize;
        let here = self
            .users
            .get(k)
            .is_some_and(|user| user.start <= now && user.stop.is_none_or(|stop| now < stop));
        if !here {
            out.discard(now, &packet, Cause::Outage);
            out.recycle(packet);
            return;
        }
        self.bearers[way][k].push(now, packet, out);
        if !self.bearers[way][k].is_empty() {
            self.activate(user, way, tti_of(now));
        }
    }

    fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        self.bearers.iter().flatten().for_each(|bearer| bearer.contents(visit));
    }

    fn backlog(&self, _now: Time) -> Option<Backlog> {
        let mut all = Backlog::default();
        for &user in &self.awake {
            for way in [DOWN, UP] {
                let here = self.bearers[way][user as usize].backlog();
                all.packets += here.packets;
                all.bytes += here.bytes;
            }
        }
        Some(all)
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.radios.iter().flatten().for_each(|radio| radio.draws(visit));
    }

    fn finish(&mut self, now: Time, out: &mut Outbox) {
        for user in 0..self.users.len() {
            self.tell(user as u32, now, out);
        }
        self.tell_cells(now, out);
    }
}
