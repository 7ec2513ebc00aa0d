//! A user's radio: gains of all cells, serving cell, measurements and reports.

use super::fading::{Band, Channel, Model, Response, WIDTH};
use super::layout::Layout;
use super::link_adaptation::{OuterLoop, Tables};
use super::mobility::Walk;
use super::propagation::{self, Shadowing};
use super::settings::{INTERFERERS, Report, Settings};
use crate::radio::User;
use tidegate_core::rng::{Draws, Stream};

/// TTIs between updates of positions, shadowing and serving cells.
pub const TICK: i64 = 100;
/// TTIs between two CQI, and age of a CQI when it is used (TR 36.814 table A.2.2-1: every 5 ms, 6 ms late).
pub const REPORT_PERIOD: i64 = 5;
const REPORT_DELAY: i64 = 6;

/// The state of a user in one direction, for link adaptation and scheduling.
#[derive(Clone, Debug, Default)]
pub struct LinkState {
    /// Whether the bearer has packets, or is a full buffer.
    pub active: bool,
    /// TTI before which the user may not send.
    pub ready: i64,
    /// The last TTI in which data was sent.
    pub last: i64,
    /// Transport blocks under way.
    pub blocks: u32,
    /// Average bytes a TTI; zero before the first data.
    pub average: f64,
    /// The outer loop.
    pub outer: OuterLoop,
    /// The serving cell's fading after combining, as a power over the subbands.
    pub signal: Band,
    /// The report in use, and pending ones with the TTI in which they were measured.
    pub report: Report,
    pending: [(i64, Report); 2],
    /// Counts since the last record.
    pub tally: Tally,
}

/// Counts in one direction since the last record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Bytes of transport blocks that arrived, without headers.
    pub bytes: u64,
    /// Number of first transmissions.
    pub blocks: u32,
    /// Number of first transmissions that failed.
    pub failed: u32,
    /// Sum of the effective SINR of first transmissions in dB.
    pub sinr: f64,
}

impl LinkState {
    /// Stores a report measured at `tti`.
    pub fn measured(&mut self, tti: i64, report: Report) {
        self.pending[0] = self.pending[1];
        self.pending[1] = (tti, report);
    }

    /// Discards reports measured in another cell or long ago, and uses `report`.
    pub fn begin(&mut self, report: Report) {
        self.report = report;
        self.pending = [(i64::MAX / 2, report); 2];
    }

    /// Uses the newest report that has come in by `tti`.
    pub fn update(&mut self, tti: i64) {
        for (measured, report) in self.pending {
            if measured + REPORT_DELAY <= tti {
                self.report = report;
            }
        }
    }

    /// The mean CQI of the report in use.
    #[must_use]
    pub fn mean_cqi(&self, subbands: usize) -> f64 {
        self.report[..subbands].iter().map(|&cqi| f64::from(cqi)).sum::<f64>() / subbands as f64
    }
}

/// A user's radio.
#[derive(Clone, Debug)]
pub struct Radio {
    walk: Walk,
    shadowing: Shadowing,
    seed: u64,
    component: String,
    name: String,
    /// The tick at which `gains` were computed.
    tick: i64,
    /// The share of each cell's power that reaches the user on average.
    pub gains: Vec<f32>,
    decibels: Vec<f32>,
    /// The cell that serves it.
    pub serving: usize,
    /// A better cell, and the tick since which it has been better.
    better: Option<(usize, i64)>,
    /// The cells whose fading is followed: the serving one first, then the strongest others.
    near: [usize; INTERFERERS + 1],
    count: usize,
    channels: Vec<Channel>,
    channel_cells: [usize; INTERFERERS + 1],
    uplink: Option<(usize, Channel)>,
    /// For each followed interferer its fading after combining.
    faded: [Band; INTERFERERS],
    /// Random numbers for errors of transport blocks, downlink and uplink.
    pub errors: [Stream; 2],
    /// The states, downlink and uplink.
    pub links: [LinkState; 2],
}

const NO_CELL: usize = usize::MAX;

impl Radio {
    /// The radio of `user` in a network called `component` in the run with `seed`.
    #[must_use]
    pub fn new(seed: u64, component: &str, user: &User, layout: &Layout, settings: &Settings) -> Self {
        let name = &user.name;
        let luck = |purpose: &str| Stream::new(seed, component, &format!("{name} {purpose}"));
        let cells = layout.cells();
        let count = (settings.interferers + 1).min(cells);
        Self {
            walk: Walk::new(luck("walk"), layout, user.place, settings.speed),
            shadowing: Shadowing::new(luck("shadowing"), layout.sites().len()),
            seed,
            component: component.to_owned(),
            name: name.clone(),
            tick: -1,
            gains: vec![0.0; cells],
            decibels: vec![0.0; cells],
            serving: NO_CELL,
            better: None,
            near: [NO_CELL; INTERFERERS + 1],
            count,
            channels: Vec::new(),
            channel_cells: [NO_CELL; INTERFERERS + 1],
            uplink: None,
            faded: Default::default(),
            errors: [luck("errors down"), luck("errors up")],
            links: Default::default(),
        }
    }

    /// Updates position and gains to `tick`; returns the cell that should serve the user from now on, if it is another
    /// one.
    pub fn update_position(&mut self, tick: i64, layout: &Layout, settings: &Settings) -> Option<usize> {
        let has_slept = tick - self.tick > 1;
        self.tick = tick;
        let position = self.walk.at(layout, tick);
        let tilt = settings.tilt.then(|| settings.case.tilt());
        propagation::gains(layout, position, tilt, &mut self.decibels);
        self.shadowing.add(self.walk.metres(tick), &mut self.decibels);
        for (gain, &decibels) in self.gains.iter_mut().zip(&self.decibels) {
            *gain = propagation::linear(f64::from(decibels)) as f32;
        }
        let best = (0..self.gains.len())
            .fold(0, |best, cell| if self.decibels[cell] > self.decibels[best] { cell } else { best });
        if self.serving == NO_CELL {
            return Some(best);
        }
        if self.decibels[best] <= self.decibels[self.serving] + settings.handover.hysteresis as f32 {
            self.better = None;
            return None;
        }
        // there were no measurements while the user slept: the cell that is better now counts as better for long enough
        let since = match self.better {
            _ if has_slept => tick - settings.handover.trigger.as_nanos() / (TICK * 1_000_000) - 1,
            Some((cell, since)) if cell == best => since,
            _ => tick,
        };
        self.better = Some((best, since));
        ((tick - since) * TICK * 1_000_000 >= settings.handover.trigger.as_nanos()).then_some(best)
    }

    /// The tick of the last update.
    #[must_use]
    pub fn tick(&self) -> i64 {
        self.tick
    }

    /// Makes `cell` the serving cell.
    pub fn serve(&mut self, cell: usize) {
        self.serving = cell;
        self.better = None;
    }

    /// Begins to follow the fading of the serving cell and of the presently strongest other cells.
    pub fn follow_strongest(&mut self, model: &Model) {
        self.near[0] = self.serving;
        for index in 1..self.count {
            let chosen = &self.near[..index];
            let next = (0..self.gains.len()).filter(|cell| !chosen.contains(cell));
            let next = next.max_by(|&a, &b| self.gains[a].total_cmp(&self.gains[b]).then(b.cmp(&a)));
            self.near[index] = next.unwrap_or(NO_CELL);
        }
        self.channels.resize_with(self.count, Channel::default);
        for index in 0..self.count {
            let cell = self.near[index];
            if self.channel_cells[..self.count].contains(&cell) {
                continue;
            }
            let near = &self.near[..self.count];
            if let Some(free) =
                self.channel_cells[..self.count].iter().position(|followed| !near.contains(followed))
            {
                self.channel_cells[free] = cell;
                // a channel is named by its two ends: a user that comes back to a cell has the same channel again
                let purpose = format!("{} fading {cell}", self.name);
                let mut luck = Stream::new(self.seed, &self.component, &purpose);
                model.draw(&mut luck, &mut self.channels[free]);
            }
        }
    }

    /// Computes the fading at `tti`.
    pub fn fade(&mut self, tti: i64, model: &Model, share: f32) {
        let slot =
            |cells: &[usize], cell: usize| cells.iter().position(|&followed| followed == cell).unwrap_or(0);
        let cells = &self.channel_cells[..self.count];
        let (mut serving, mut interferer) = (Response::default(), Response::default());
        model.at(&self.channels[slot(cells, self.near[0])], tti, &mut serving);
        let mut power = Band::default();
        model.combined(&serving, &mut power);
        for index in 1..self.count {
            model.at(&self.channels[slot(cells, self.near[index])], tti, &mut interferer);
            model.leaked(&serving, &power, &interferer, &mut self.faded[index - 1]);
        }
        power.iter_mut().for_each(|power| *power *= share);
        self.links[0].signal = power;
    }

    /// Computes the uplink fading at `tti`.
    pub fn fade_up(&mut self, tti: i64, model: &Model) {
        if self.uplink.as_ref().is_none_or(|&(cell, _)| cell != self.serving) {
            let purpose = format!("{} uplink fading {}", self.name, self.serving);
            let mut channel = Channel::default();
            model.draw(&mut Stream::new(self.seed, &self.component, &purpose), &mut channel);
            self.uplink = Some((self.serving, channel));
        }
        let Some((_, channel)) = &self.uplink else { return };
        let mut response = Response::default();
        model.at(channel, tti, &mut response);
        model.combined(&response, &mut self.links[1].signal);
    }

    /// The downlink SINR over the subbands, if each cell uses the share `used` of each subband; `noise` is relative to
    /// a cell's power.
    #[inline]
    pub fn sinr(&self, used: &[Band], silent: &[bool], noise: f32) -> Band {
        let mut disturbance = [noise; WIDTH];
        for (cell, (used, &gain)) in used.iter().zip(&self.gains).enumerate() {
            if silent[cell] || cell == self.serving {
                continue;
            }
            for (sum, used) in disturbance.iter_mut().zip(used) {
                *sum += gain * used;
            }
        }
        for (faded, &cell) in self.faded.iter().zip(&self.near[1..self.count]) {
            if silent[cell] {
                continue;
            }
            let gain = self.gains[cell];
            for ((sum, faded), used) in disturbance.iter_mut().zip(faded).zip(&used[cell]) {
                *sum += gain * (faded - 1.0) * used;
            }
        }
        let gain = self.gains[self.serving];
        let signal = &self.links[0].signal;
        // the subtraction above may leave a rounding error below the noise
        std::array::from_fn(|subband| gain * signal[subband] / disturbance[subband].max(noise))
    }

    /// The report of a user for a SINR.
    #[must_use]
    pub fn report(tables: &Tables, sinr: &Band, subbands: usize) -> Report {
        let mut report = Report::default();
        for (cqi, &sinr) in report.iter_mut().zip(sinr).take(subbands) {
            *cqi = tables.cqi(sinr);
        }
        report
    }

    /// Mean SINR without fast fading, in dB, if all cells send: the geometry.
    #[must_use]
    pub fn geometry(&self, noise: f32) -> f64 {
        let interferers = (0..self.gains.len()).filter(|&cell| cell != self.serving);
        let disturbance: f64 =
            interferers.map(|cell| f64::from(self.gains[cell])).sum::<f64>() + f64::from(noise);
        10.0 * tidegate_core::math::log10(f64::from(self.gains[self.serving]) / disturbance)
    }

    /// The share of each cell's power that reaches the user on average, in dB.
    #[must_use]
    pub fn gains_db(&self) -> Vec<f64> {
        self.decibels.iter().map(|&gain| f64::from(gain)).collect()
    }

    /// The loss between the user and its cell in dB, antennas and walls included.
    #[must_use]
    pub fn coupling_loss(&self) -> f64 {
        -f64::from(self.decibels[self.serving])
    }

    /// Visits the draws of its substreams, except those of the channels.
    pub fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.walk.luck().draws());
        visit(self.shadowing.luck().draws());
        self.errors.iter().for_each(|luck| visit(luck.draws()));
    }

    /// Frees the memory that only a present user needs.
    pub fn leave(&mut self) {
        self.channels = Vec::new();
        self.channel_cells = [NO_CELL; INTERFERERS + 1];
        self.uplink = None;
    }
}
