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
use crate::radio::{Access, MAX_USERS, User};
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
/// Weight of a TTI in the mean use of a subband by a cell: the interference that CQI are measured with is a mean over
/// some 10 ms.
const MEAN_WEIGHT: f32 = 0.1;
/// Bandwidth of a resource block in hertz.
const BLOCK: f64 = 180e3;
/// Noise of a user's receiver in dBm for each resource block: -174 dBm/Hz and a noise figure of 9 dB (TR 25.814
/// table A.2.1.1-2).
const NOISE: f64 = -174.0 + 52.552_725_051 + 9.0;

/// A transport block under way.
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
    /// Whether its user has left its cell, so that it is discarded.
    pub(super) void: bool,
}

/// A cell in one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// Users whose bearer is active.
    pub(super) users: Vec<u32>,
    /// Blocks that wait for another transmission, each with the TTI from which it may be sent.
    pub(super) retransmissions: VecDeque<(i64, usize)>,
    /// Subband-TTIs used since the last record.
    pub(super) used: u64,
    pub(super) bytes: u64,
}

/// One direction of the whole network.
#[derive(Clone, Debug, Default)]
pub(super) struct Direction {
    pub(super) cells: Vec<Cell>,
    pub(super) blocks: Vec<Block>,
    pub(super) free: Vec<usize>,
    /// Blocks by the TTI in which they are decoded.
    pub(super) calendar: [Vec<usize>; SLOTS],
    /// Blocks that are sent in this TTI.
    pub(super) sent: Vec<usize>,
    /// For each cell and subband: downlink whether it is used, uplink the interference that comes in.
    pub(super) now: Vec<Band>,
    /// The mean of `now`.
    pub(super) mean: Vec<Band>,
    /// Whether each cell has no use or interference now, and on average.
    pub(super) silent: Vec<bool>,
    pub(super) quiet: Vec<bool>,
}

/// A radio network of many cells and users, in both directions, with the ports of [`crate::radio::port`]. It sleeps
/// while no data is queued.
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
    pub(super) directions: [Direction; 2],
    /// Users with data queued or under way.
    pub(super) awake: Vec<u32>,
    pub(super) is_awake: Vec<bool>,
    /// Beginnings of full buffers, and departures of users, in reverse order of time.
    pub(super) arrivals: Vec<(i64, u32)>,
    pub(super) departures: Vec<(i64, u32)>,
    pub(super) departed: Vec<bool>,
    /// The next TTI, while a user is awake, and the last one.
    next: i64,
    last: i64,
    pub(super) recorded_tick: i64,
    /// Noise of a user relative to a cell's power for each resource block, and of a cell in milliwatts.
    pub(super) noise: [f32; 2],
    pub(super) subbands: usize,
    /// TTIs between updates of the fading.
    pub(super) step: i64,
    pub(super) candidates: Vec<Candidate>,
    pub(super) max_subbands: Vec<usize>,
}

fn tti_of(time: Time) -> i64 {
    time.as_nanos().div_euclid(1_000_000)
}

/// The beginning of a TTI.
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
        ensure(users.len() <= MAX_USERS, || {
            Refusal::new("users", users.len(), format!("at most {MAX_USERS} users"))
        })?;
        for User { name: user_name, start, stop, .. } in &users {
            let stop = stop.unwrap_or(Time::MAX);
            ensure(stop > *start, || {
                Refusal::new(format!("users.{user_name}.stop"), stop, format!("after the start ({start})"))
            })?;
        }
        let layout = Layout::new(settings.sites, settings.case.distance(), settings.wrap);
        let subbands = settings.bandwidth.subbands();
        let shift = propagation::doppler(settings.speed);
        let model = |branches| Model::new(settings.fading, branches, subbands, BLOCK * BLOCKS as f64, shift);
        // a cell receives with as many antennas as a user does
        let models = [model(settings.antennas.branches()), model(settings.antennas.branches().min(2))];
        let cells = layout.cells();
        let direction = Direction {
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
        // the phase of the fastest wave turns by at most a ninth of a turn between updates
        let step = if shift > 0.0 { (30.0 / shift) as i64 } else { REPORT_PERIOD };
        let bearers = vec![Bearer::new(settings.queue); users.len()];
        Ok(Self {
            seed,
            tables: Tables::new(),
            models,
            radios: vec![None; users.len()],
            bearers: [bearers.clone(), bearers],
            directions: [direction.clone(), direction],
            awake: Vec::with_capacity(users.len()),
            is_awake: vec![false; users.len()],
            arrivals,
            departures,
            departed: vec![false; users.len()],
            next: 0,
            last: -1,
            recorded_tick: 0,
            noise: [(propagation::linear(NOISE) / sent) as f32, uplink::noise()],
            subbands,
            step: step.clamp(1, REPORT_PERIOD),
            candidates: Vec::new(),
            max_subbands: Vec::new(),
            name,
            settings,
            layout,
            users,
        })
    }

    /// Each user's cell, geometry in dB and coupling loss in dB after `tick` tenths of a second, of a network that has
    /// not carried data yet.
    pub fn survey(&mut self, tick: i64) -> Vec<(usize, f64, f64)> {
        (0..self.users.len())
            .map(|user| {
                let (noise, layout, settings) = (self.noise[DOWN], &self.layout, &self.settings);
                let new_radio =
                    || Box::new(Radio::new(self.seed, &self.name, &self.users[user], layout, settings));
                let radio = self.radios[user].get_or_insert_with(new_radio);
                if radio.tick() < tick
                    && let Some(cell) = radio.update_position(tick, layout, settings)
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

    /// Bytes of transport blocks that have reached the user since its last record.
    #[must_use]
    pub fn served(&self, user: usize) -> u64 {
        self.radios[user].as_ref().map_or(0, |radio| radio.links[DOWN].tally.bytes)
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
            let new_radio = || Box::new(Radio::new(self.seed, &self.name, &self.users[k], layout, settings));
            let radio = self.radios[k].get_or_insert_with(new_radio);
            let tick = tti.div_euclid(TICK);
            if radio.tick() < tick
                && let Some(cell) = radio.update_position(tick, layout, settings)
            {
                radio.serve(cell);
            }
            radio.follow_strongest(&self.models[DOWN]);
        }
    }

    /// Wakes the user of a bearer with data to send, and adds it to its cell.
    fn activate(&mut self, user: u32, dir: usize, tti: i64) {
        let k = user as usize;
        self.wake(user, tti);
        let Some(radio) = &mut self.radios[k] else { return };
        if radio.links[dir].active {
            return;
        }
        radio.links[dir].active = true;
        self.directions[dir].cells[radio.serving].users.push(user);
        // the first report is as old as a report in use
        let measured = (tti - REPORT_PERIOD).max(0);
        if dir == UP {
            radio.links[UP].ready = radio.links[UP].ready.max(uplink::first_grant(user, tti));
            radio.fade_up(measured, &self.models[UP]);
        } else {
            radio.fade(measured, &self.models[DOWN], self.settings.antennas.share());
        }
        let report = self.measure(user, dir);
        let Some(radio) = &mut self.radios[k] else { return };
        radio.links[dir].begin(report);
        if dir == UP {
            radio.fade_up(tti, &self.models[UP]);
        } else {
            radio.fade(tti, &self.models[DOWN], self.settings.antennas.share());
        }
    }

    /// The report that a user would send now.
    pub(super) fn measure(&self, user: u32, dir: usize) -> [u8; WIDTH] {
        let Some(radio) = &self.radios[user as usize] else { return [0; WIDTH] };
        let direction = &self.directions[dir];
        let sinr = if dir == DOWN {
            radio.sinr(&direction.mean, &direction.quiet, self.noise[DOWN])
        } else {
            self.sinr_up(radio, &direction.mean[radio.serving])
        };
        if dir == DOWN && self.settings.scheduler == Scheduler::RoundRobin {
            let all_subbands = (1 << self.subbands) - 1;
            // the effective SINR of the whole carrier is that of the middle modulation
            let mean = propagation::linear(f64::from(self.tables.over(1, &sinr, all_subbands)));
            return [self.tables.cqi(mean as f32); WIDTH];
        }
        Radio::report(&self.tables, &sinr, self.subbands)
    }

    /// Uplink SINR over the subbands with this interference.
    pub(super) fn sinr_up(&self, radio: &Radio, interference: &Band) -> Band {
        let gain = radio.gains[radio.serving];
        let (power, _) = uplink::power(gain, self.subbands);
        let signal = &radio.links[UP].signal;
        std::array::from_fn(|subband| {
            power * gain * signal[subband] / (interference[subband] + self.noise[UP])
        })
    }

    /// Runs one TTI.
    fn tti(&mut self, tti: i64, out: &mut Outbox) {
        self.decay_means(tti - self.last - 1);
        self.last = tti;
        let now = time_of(tti);
        while self.arrivals.last().is_some_and(|&(tti_due, _)| tti_due <= tti) {
            if let Some((_, user)) = self.arrivals.pop() {
                self.activate(user, DOWN, tti);
            }
        }
        while self.departures.last().is_some_and(|&(tti_due, _)| tti_due <= tti) {
            if let Some((_, user)) = self.departures.pop() {
                self.depart(user, now, out);
            }
        }
        if tti.div_euclid(TICK) != self.recorded_tick {
            self.tick(tti, now, out);
        }
        for dir in [DOWN, UP] {
            self.decode(dir, tti, out);
        }
        self.update_channels(tti);
        for dir in [DOWN, UP] {
            self.schedule(dir, tti, now, out);
            self.transmit(dir, tti);
        }
        self.update_means();
        self.put_to_sleep(now, out);
    }

    /// Lets the means decay over `ttis` TTIs without transmissions.
    fn decay_means(&mut self, ttis: i64) {
        if ttis <= 0 {
            return;
        }
        let factor = tidegate_core::math::pow(f64::from(1.0 - MEAN_WEIGHT), ttis as f64) as f32;
        for direction in &mut self.directions {
            for (mean, quiet) in direction.mean.iter_mut().zip(&mut direction.quiet) {
                mean.iter_mut().for_each(|mean| *mean *= factor);
                *quiet |= factor < 1e-4;
            }
        }
    }

    /// Updates the means with the transmissions of this TTI.
    fn update_means(&mut self) {
        for (dir, direction) in self.directions.iter_mut().enumerate() {
            for cell in 0..direction.now.len() {
                if direction.silent[cell] && direction.quiet[cell] {
                    continue;
                }
                let (mean, now) = (&mut direction.mean[cell], &mut direction.now[cell]);
                let mut max_mean = 0.0_f32;
                for (mean, now) in mean.iter_mut().zip(now.iter_mut()) {
                    *mean += MEAN_WEIGHT * (*now - *mean);
                    max_mean = max_mean.max(*mean);
                    *now = 0.0;
                }
                direction.silent[cell] = true;
                // a thousandth of a cell's power, or of the noise
                let threshold = if dir == DOWN { 1e-3 } else { 1e-3 * self.noise[UP] };
                direction.quiet[cell] = max_mean < threshold;
                if direction.quiet[cell] {
                    *mean = [0.0; WIDTH];
                }
            }
        }
    }

    pub(super) fn record_user(&mut self, user: u32, now: Time, out: &mut Outbox) {
        if out.record.level() < Level::Series {
            return;
        }
        let Some(radio) = &mut self.radios[user as usize] else { return };
        for dir in [DOWN, UP] {
            let tally = std::mem::take(&mut radio.links[dir].tally);
            if tally.blocks == 0 && tally.bytes == 0 {
                continue;
            }
            let record = RadioRecord {
                network: out.node(),
                user,
                up: dir == UP,
                cell: radio.serving as u32,
                bytes: tally.bytes,
                blocks: tally.blocks,
                failed: tally.failed,
                // NaN (0 / 0) for bytes of blocks that were all sent before the last record
                sinr_db: tally.sinr / f64::from(tally.blocks),
                rate_index: radio.links[dir].mean_cqi(self.subbands),
            };
            out.record.radio(now, &record);
        }
    }

    pub(super) fn record_cells(&mut self, now: Time, out: &mut Outbox) {
        for (dir, direction) in self.directions.iter_mut().enumerate() {
            for (number, cell) in direction.cells.iter_mut().enumerate() {
                let (used, bytes) = (std::mem::take(&mut cell.used), std::mem::take(&mut cell.bytes));
                if used > 0 || bytes > 0 {
                    let record = CellRecord {
                        network: out.node(),
                        cell: number as u32,
                        up: dir == UP,
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
        let arrival = self.arrivals.last().map(|&(tti, _)| tti.max(self.next));
        awake.into_iter().chain(arrival).min().map(time_of)
    }

    fn advance(&mut self, now: Time, out: &mut Outbox) {
        let due = self.next_wakeup().filter(|&time| time <= now);
        if let Some(time) = due {
            let tti = tti_of(time);
            self.next = tti + 1;
            self.tti(tti, out);
        }
    }

    fn receive(&mut self, now: Time, port: Port, packet: Box<Packet>, out: &mut Outbox) {
        let (user, dir) = (u32::from(port.0) / 2, usize::from(port.0) % 2);
        let k = user as usize;
        let is_present = self
            .users
            .get(k)
            .is_some_and(|user| user.start <= now && user.stop.is_none_or(|stop| now < stop));
        if !is_present {
            out.discard(now, &packet, Cause::Outage);
            out.recycle(packet);
            return;
        }
        self.bearers[dir][k].push(now, packet, out);
        if !self.bearers[dir][k].is_empty() {
            self.activate(user, dir, tti_of(now));
        }
    }

    fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        self.bearers.iter().flatten().for_each(|bearer| bearer.contents(visit));
    }

    fn backlog(&self, _now: Time) -> Option<Backlog> {
        let mut total = Backlog::default();
        for &user in &self.awake {
            for dir in [DOWN, UP] {
                let backlog = self.bearers[dir][user as usize].backlog();
                total.packets += backlog.packets;
                total.bytes += backlog.bytes;
            }
        }
        Some(total)
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.radios.iter().flatten().for_each(|radio| radio.draws(visit));
    }

    fn finish(&mut self, now: Time, out: &mut Outbox) {
        for user in 0..self.users.len() {
            self.record_user(user as u32, now, out);
        }
        self.record_cells(now, out);
    }
}
