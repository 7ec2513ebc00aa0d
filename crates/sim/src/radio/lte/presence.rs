//! Presence of users: departures, sleep, serving cells and handovers.

use super::network::{DOWN, Network, UP};
use super::user::{REPORT_PERIOD, TICK};
use tidegate_core::{Outbox, Time};

impl Network {
    /// Updates fading and reports of users that are awake.
    pub(super) fn update_channels(&mut self, tti: i64) {
        for index in 0..self.awake.len() {
            let user = self.awake[index];
            let phase = tti + i64::from(user);
            let (fading, report) = (phase % self.step == 0, phase % REPORT_PERIOD == 0);
            if !fading && !report {
                continue;
            }
            for dir in [DOWN, UP] {
                let Some(radio) = &mut self.radios[user as usize] else { continue };
                if !radio.links[dir].active {
                    continue;
                }
                if dir == DOWN {
                    radio.fade(tti, &self.models[DOWN], self.settings.antennas.share());
                } else {
                    radio.fade_up(tti, &self.models[UP]);
                }
                if report {
                    let report = self.measure(user, dir);
                    if let Some(radio) = &mut self.radios[user as usize] {
                        radio.links[dir].measured(tti, report);
                    }
                }
            }
        }
    }

    /// Updates positions, shadowing and serving cells, and writes the record.
    pub(super) fn tick(&mut self, tti: i64, now: Time, out: &mut Outbox) {
        self.recorded_tick = tti.div_euclid(TICK);
        for index in 0..self.awake.len() {
            let user = self.awake[index];
            self.record_user(user, now, out);
            let Some(radio) = &mut self.radios[user as usize] else { continue };
            if radio.tick() < self.recorded_tick {
                let before = radio.serving;
                if let Some(cell) = radio.update_position(self.recorded_tick, &self.layout, &self.settings) {
                    radio.serve(cell);
                    self.hand_over(user, before, tti);
                }
                if let Some(radio) = &mut self.radios[user as usize] {
                    radio.follow_strongest(&self.models[DOWN]);
                }
            }
        }
        self.record_cells(now, out);
    }

    /// Moves a user's state from its old cell to the serving one.
    fn hand_over(&mut self, user: u32, before: usize, tti: i64) {
        let until = tti + self.settings.handover.interruption.as_nanos() / 1_000_000;
        for dir in [DOWN, UP] {
            self.bearers[dir][user as usize].lose_all(until);
            let direction = &mut self.directions[dir];
            let Some(radio) = &mut self.radios[user as usize] else { return };
            let state = &mut radio.links[dir];
            state.ready = state.ready.max(until);
            state.blocks = 0;
            for block in &mut direction.blocks {
                block.void |= block.user == user;
            }
            if state.active {
                direction.cells[before].users.retain(|&active_user| active_user != user);
                direction.cells[radio.serving].users.push(user);
            }
        }
    }

    pub(super) fn depart(&mut self, user: u32, now: Time, out: &mut Outbox) {
        let k = user as usize;
        self.departed[k] = true;
        for dir in [DOWN, UP] {
            self.bearers[dir][k].clear(now, out);
            for block in &mut self.directions[dir].blocks {
                block.void |= block.user == user;
            }
            if let Some(radio) = &mut self.radios[k] {
                radio.links[dir].blocks = 0;
            }
        }
        if !self.is_awake[k]
            && let Some(radio) = &mut self.radios[k]
        {
            radio.leave();
        }
    }

    /// Puts users without data under way to sleep.
    pub(super) fn put_to_sleep(&mut self, now: Time, out: &mut Outbox) {
        let mut index = 0;
        while index < self.awake.len() {
            let user = self.awake[index];
            let k = user as usize;
            let mut busy = false;
            for dir in [DOWN, UP] {
                let has_full_buffer = dir == DOWN && self.users[k].full && !self.departed[k];
                let Some(radio) = &mut self.radios[k] else { continue };
                let state = &mut radio.links[dir];
                let has_data = has_full_buffer || !self.bearers[dir][k].is_empty();
                if state.active && !has_data {
                    state.active = false;
                    self.directions[dir].cells[radio.serving]
                        .users
                        .retain(|&active_user| active_user != user);
                }
                busy |= has_data || radio.links[dir].blocks > 0;
            }
            if busy {
                index += 1;
                continue;
            }
            self.record_user(user, now, out);
            if self.departed[k]
                && let Some(radio) = &mut self.radios[k]
            {
                radio.leave();
            }
            self.is_awake[k] = false;
            self.awake.swap_remove(index);
        }
    }
}
