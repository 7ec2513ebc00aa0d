//! Which users are there, which are awake, and which cell serves each.

use super::network::{DOWN, Network, UP};
use super::user::{REPORT_PERIOD, TICK};
use tidegate_core::{Outbox, Time};

impl Network {
    /// Fading and reports of those who are awake.
    pub(super) fn follow(&mut self, tti: i64) {
        for at in 0..self.awake.len() {
            let user = self.awake[at];
            let phase = tti + i64::from(user);
            let (fading, report) = (phase % self.step == 0, phase % REPORT_PERIOD == 0);
            if !fading && !report {
                continue;
            }
            for way in [DOWN, UP] {
                let Some(radio) = &mut self.radios[user as usize] else { continue };
                if !radio.ways[way].active {
                    continue;
                }
                if way == DOWN {
                    radio.fade(tti, &self.models[DOWN], self.settings.antennas.share());
                } else {
                    radio.fade_up(tti, &self.models[UP]);
                }
                if report {
                    let report = self.measure(user, way);
                    if let Some(radio) = &mut self.radios[user as usize] {
                        radio.ways[way].measured(tti, report);
                    }
                }
            }
        }
    }

    /// Places, shadows, handovers, and the record.
    pub(super) fn tick(&mut self, tti: i64, now: Time, out: &mut Outbox) {
        self.told = tti.div_euclid(TICK);
        for at in 0..self.awake.len() {
            let user = self.awake[at];
            self.tell(user, now, out);
            let Some(radio) = &mut self.radios[user as usize] else { continue };
            if radio.tick() < self.told {
                let before = radio.serving;
                if let Some(cell) = radio.look(self.told, &self.layout, &self.settings) {
                    radio.serve(cell);
                    self.hand_over(user, before, tti);
                }
                if let Some(radio) = &mut self.radios[user as usize] {
                    radio.follow(&self.models[DOWN]);
                }
            }
        }
        self.tell_cells(now, out);
    }

    /// Moves what a user has in its old cell to the one that serves it now.
    fn hand_over(&mut self, user: u32, before: usize, tti: i64) {
        let until = tti + self.settings.handover.interruption.as_nanos() / 1_000_000;
        for way in [DOWN, UP] {
            self.bearers[way][user as usize].lose_all(until);
            let direction = &mut self.ways[way];
            let Some(radio) = &mut self.radios[user as usize] else { return };
            let state = &mut radio.ways[way];
            state.ready = state.ready.max(until);
            state.blocks = 0;
            for block in &mut direction.blocks {
                block.void |= block.user == user;
            }
            if state.active {
                direction.cells[before].users.retain(|&other| other != user);
                direction.cells[radio.serving].users.push(user);
            }
        }
    }

    pub(super) fn depart(&mut self, user: u32, now: Time, out: &mut Outbox) {
        let k = user as usize;
        self.gone[k] = true;
        for way in [DOWN, UP] {
            self.bearers[way][k].clear(now, out);
            for block in &mut self.ways[way].blocks {
                block.void |= block.user == user;
            }
            if let Some(radio) = &mut self.radios[k] {
                radio.ways[way].blocks = 0;
            }
        }
        if !self.is_awake[k]
            && let Some(radio) = &mut self.radios[k]
        {
            radio.leave();
        }
    }

    /// Lets those sleep who have nothing under way any more.
    pub(super) fn retire(&mut self, now: Time, out: &mut Outbox) {
        let mut at = 0;
        while at < self.awake.len() {
            let user = self.awake[at];
            let k = user as usize;
            let mut busy = false;
            for way in [DOWN, UP] {
                let full = way == DOWN && self.users[k].full && !self.gone[k];
                let Some(radio) = &mut self.radios[k] else { continue };
                let state = &mut radio.ways[way];
                let more = full || !self.bearers[way][k].is_empty();
                if state.active && !more {
                    state.active = false;
                    self.ways[way].cells[radio.serving].users.retain(|&other| other != user);
                }
                busy |= more || radio.ways[way].blocks > 0;
            }
            if busy {
                at += 1;
                continue;
            }
            self.tell(user, now, out);
            if self.gone[k]
                && let Some(radio) = &mut self.radios[k]
            {
                radio.leave();
            }
            self.is_awake[k] = false;
            self.awake.swap_remove(at);
        }
    }
}
