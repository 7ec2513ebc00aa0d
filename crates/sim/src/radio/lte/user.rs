//! A user's radio: how each cell reaches it, which one serves it, what it measures and reports.

use super::fading::{Band, Channel, Model, Response, WIDTH};
use super::layout::Layout;
use super::link_adaptation::{OuterLoop, Tables};
use super::mobility::Walk;
use super::propagation::{self, Shadowing};
use super::settings::{INTERFERERS, Report, Settings};
use crate::radio::User;
use tidegate_core::rng::{Draws, Stream};

/// TTIs between two looks at places, shadows and serving cells.
pub const TICK: i64 = 100;
/// TTIs between two CQI, and how old one is when it is used (TR 36.814 table A.2.2-1: every 5 ms, 6 ms late).
pub const REPORT_PERIOD: i64 = 5;
const REPORT_DELAY: i64 = 6;

/// What link adaptation and scheduling keep of a user in one direction.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Whether the bearer has something inside, or is a full buffer.
    pub active: bool,
    /// TTI before which nothing may be sent.
    pub ready: i64,
    /// The last TTI in which something was sent.
    pub last: i64,
    /// Transport blocks under way.
    pub blocks: u32,
    /// Bytes a TTI on average; zero: nothing yet.
    pub average: f64,
    /// The outer loop.
    pub outer: OuterLoop,
    /// The serving cell's fading after combining, as a power over the subbands.
    pub signal: Band,
    /// The report in use, and those on their way with the TTI they were measured in.
    pub report: Report,
    waiting: [(i64, Report); 2],
    /// What has happened since it was told last.
    pub told: Told,
}

/// What has happened in one direction since it was told last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Bytes of transport blocks that arrived, without headers.
    pub bytes: u64,
    /// First transmissions, how many of them failed, and the sum of their effective SINR in dB.
    pub blocks: u32,
    /// How many of them failed.
    pub failed: u32,
    /// Sum of their effective SINR in dB.
    pub sinr: f64,
}

impl Way {
    /// Takes note of a report measured at `tti`.
    pub fn measured(&mut self, tti: i64, report: Report) {
        self.waiting[0] = self.waiting[1];
        self.waiting[1] = (tti, report);
    }

    /// Forgets reports that were measured elsewhere or long ago, and uses `report`.
    pub fn begin(&mut self, report: Report) {
        self.report = report;
        self.waiting = [(i64::MAX / 2, report); 2];
    }

    /// Puts the newest report that has come in by `tti` to use.
    pub fn update(&mut self, tti: i64) {
        for (measured, report) in self.waiting {
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
    /// The large-scale tick that `gains` are of.
    tick: i64,
    /// The share of each cell's power that reaches the user on average.
    pub gains: Vec<f32>,
    decibels: Vec<f32>,
    /// The cell that serves it.
    pub serving: usize,
    /// A better one, and the tick since when it has been.
    better: Option<(usize, i64)>,
    /// The cells whose fading is followed: the serving one first, then the strongest others.
    near: [usize; INTERFERERS + 1],
    count: usize,
    channels: Vec<Channel>,
    channel_cells: [usize; INTERFERERS + 1],
    uplink: Option<(usize, Channel)>,
    /// For each followed interferer its fading after combining.
    faded: [Band; INTERFERERS],
    /// Luck of transport blocks, down and up.
    pub errors: [Stream; 2],
    /// Down and up.
    pub ways: [Way; 2],
}

const NOBODY: usize = usize::MAX;

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
            serving: NOBODY,
            better: None,
            near: [NOBODY; INTERFERERS + 1],
            count,
            channels: Vec::new(),
            channel_cells: [NOBODY; INTERFERERS + 1],
            uplink: None,
            faded: Default::default(),
            errors: [luck("errors down"), luck("errors up")],
            ways: Default::default(),
        }
    }

    /// Looks at where the user is at `tick`; says which cell should serve it from now on, if another.
    pub fn look(&mut self, tick: i64, layout: &Layout, settings: &Settings) -> Option<usize> {
        let slept = tick - self.tick > 1;
        self.tick = tick;
        let place = self.walk.at(layout, tick);
        let tilt = settings.tilt.then(|| settings.case.tilt());
        propagation::gains(layout, place, tilt, &mut self.decibels);
        self.shadowing.add(self.walk.metres(tick), &mut self.decibels);
        for (gain, &decibels) in self.gains.iter_mut().zip(&self.decibels) {
            *gain = propagation::linear(f64::from(decibels)) as f32;
        }
        let best = (0..self.gains.len())
            .fold(0, |best, cell| if self.decibels[cell] > self.decibels[best] { cell } else { best });
        if self.serving == NOBODY {
            return Some(best);
        }
        if self.decibels[best] <= self.decibels[self.serving] + settings.handover.hysteresis as f32 {
            self.better = None;
            return None;
        }
        // nobody has measured while the user slept: the cell that is better now has been for long enough
        let since = match self.better {
            _ if slept => tick - settings.handover.trigger.as_nanos() / (TICK * 1_000_000) - 1,
            Some((cell, since)) if cell == best => since,
            _ => tick,
        };
        self.better = Some((best, since));
        ((tick - since) * TICK * 1_000_000 >= settings.handover.trigger.as_nanos()).then_some(best)
    }

    /// The tick of the last look.
    #[must_use]
    pub fn tick(&self) -> i64 {
        self.tick
    }

    /// Lets `cell` serve it.
    pub fn serve(&mut self, cell: usize) {
        self.serving = cell;
        self.better = None;
    }

    /// Follows the fading of the serving cell and of the strongest others as they are now.
    pub fn follow(&mut self, model: &Model) {
        self.near[0] = self.serving;
        for at in 1..self.count {
            let known = &self.near[..at];
            let next = (0..self.gains.len()).filter(|cell| !known.contains(cell));
            let next = next.max_by(|&a, &b| self.gains[a].total_cmp(&self.gains[b]).then(b.cmp(&a)));
            self.near[at] = next.unwrap_or(NOBODY);
        }
        self.channels.resize_with(self.count, Channel::default);
        for at in 0..self.count {
            let cell = self.near[at];
            if self.channel_cells[..self.count].contains(&cell) {
                continue;
            }
            let near = &self.near[..self.count];
            if let Some(free) = self.channel_cells[..self.count].iter().position(|old| !near.contains(old)) {
                self.channel_cells[free] = cell;
                // a channel is named by its two ends: whoever comes back to a cell finds it as it was
                let purpose = format!("{} fading {cell}", self.name);
                let mut luck = Stream::new(self.seed, &self.component, &purpose);
                model.draw(&mut luck, &mut self.channels[free]);
            }
        }
    }

    /// Computes the fading at `tti`.
    pub fn fade(&mut self, tti: i64, model: &Model, share: f32) {
        let slot = |cells: &[usize], cell: usize| cells.iter().position(|&other| other == cell).unwrap_or(0);
        let cells = &self.channel_cells[..self.count];
        let (mut own, mut other) = (Response::default(), Response::default());
        model.at(&self.channels[slot(cells, self.near[0])], tti, &mut own);
        let mut power = Band::default();
        model.combined(&own, &mut power);
        for at in 1..self.count {
            model.at(&self.channels[slot(cells, self.near[at])], tti, &mut other);
            model.leaked(&own, &power, &other, &mut self.faded[at - 1]);
        }
        power.iter_mut().for_each(|power| *power *= share);
        self.ways[0].signal = power;
    }

    /// Computes the fading of the way up at `tti`.
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
        model.combined(&response, &mut self.ways[1].signal);
    }

    /// The SINR downlink over the subbands, if each cell uses this share of each subband and the noise is so strong
    /// relative to a cell's power.
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
        let signal = &self.ways[0].signal;
        // the subtraction above may leave a rounding error below the noise
        std::array::from_fn(|at| gain * signal[at] / disturbance[at].max(noise))
    }

    /// What a user reports of a SINR.
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
        let others = (0..self.gains.len()).filter(|&cell| cell != self.serving);
        let disturbance: f64 = others.map(|cell| f64::from(self.gains[cell])).sum::<f64>() + f64::from(noise);
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

    /// Shows what its substreams gave out, but for those of the channels.
    pub fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.walk.luck().draws());
        visit(self.shadowing.luck().draws());
        self.errors.iter().for_each(|luck| visit(luck.draws()));
    }

    /// Gives back what only a present user needs.
    pub fn leave(&mut self) {
        self.channels = Vec::new();
        self.channel_cells = [NOBODY; INTERFERERS + 1];
        self.uplink = None;
    }
}
