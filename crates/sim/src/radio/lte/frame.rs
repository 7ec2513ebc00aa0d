//! The steps of a TTI: scheduling, transmission, decoding and retransmission.

use super::fading::WIDTH;
use super::link_adaptation::CQI;
use super::network::{Block, DECODING, DOWN, Network, SLOTS, UP};
use super::rlc::{BLOCK_HEADER, Segment};
use super::scheduler::{self, Candidate};
use super::settings::{BLOCKS, Scheduler};
use super::uplink;
use tidegate_core::{Outbox, Port, Time};

/// Largest number of transmissions of a block (maxHARQ-Tx of TS 36.331: one transmission and three more).
const MAX_HARQ_TX: u8 = 4;
/// HARQ processes of a user in one direction, and so its largest number of blocks under way (TS 36.213 section 7).
const HARQ_PROCESSES: u32 = 8;
/// TTIs from the loss of a block to its retransmission by RLC: t-Reordering of 35 ms (TS 36.331 section 9.2.1.2) and
/// the delay of a status report.
const STATUS_DELAY: i64 = 40;

impl Network {
    /// Resource elements of a subband in a TTI.
    fn elements(&self, dir: usize) -> f64 {
        let block_elements = if dir == DOWN { self.settings.antennas.elements() } else { uplink::ELEMENTS };
        block_elements * BLOCKS as f64
    }

    /// Handles the results of blocks whose decoding ends in this TTI.
    pub(super) fn decode(&mut self, dir: usize, tti: i64, out: &mut Outbox) {
        let slot = tti as usize % SLOTS;
        let mut due = std::mem::take(&mut self.directions[dir].calendar[slot]);
        for index in due.drain(..) {
            let block = self.directions[dir].blocks[index];
            let k = block.user as usize;
            if block.void {
                self.directions[dir].free.push(index);
                continue;
            }
            let Some(radio) = &mut self.radios[k] else { continue };
            let state = &mut radio.links[dir];
            if block.tries == 1 {
                if self.settings.outer_loop {
                    state.outer.learn(block.decoded);
                }
                state.tally.failed += u32::from(!block.decoded);
            }
            if !block.decoded && block.tries < MAX_HARQ_TX {
                self.directions[dir].cells[block.cell].retransmissions.push_back((tti + DECODING, index));
                continue;
            }
            state.blocks -= 1;
            self.directions[dir].free.push(index);
            if block.decoded {
                state.tally.bytes += block.bytes;
                self.directions[dir].cells[block.cell].bytes += block.bytes;
                self.bearers[dir][k].receive(block.segment, Port(2 * block.user as u16 + dir as u16), out);
            } else {
                self.bearers[dir][k].lose(block.segment, tti + STATUS_DELAY);
            }
        }
        self.directions[dir].calendar[slot] = due;
    }

    /// Assigns the subbands of all cells.
    pub(super) fn schedule(&mut self, dir: usize, tti: i64, now: Time, out: &mut Outbox) {
        for cell in 0..self.directions[dir].cells.len() {
            let cell_state = &self.directions[dir].cells[cell];
            if cell_state.users.is_empty() && cell_state.retransmissions.is_empty() {
                continue;
            }
            let mut free = (1_u32 << self.subbands) - 1;
            self.repeat(dir, cell, tti, &mut free);
            if free != 0 {
                self.gather(dir, cell, tti, now, out);
                match (dir, self.settings.scheduler) {
                    (DOWN, Scheduler::ProportionalFair) => scheduler::share(&mut self.candidates, free),
                    (DOWN, Scheduler::RoundRobin) => scheduler::in_turn(&mut self.candidates, free),
                    _ => scheduler::share_in_runs(
                        &mut self.candidates,
                        free,
                        self.subbands,
                        &self.max_subbands,
                    ),
                }
                self.send(dir, cell, tti, now);
            }
        }
    }

    /// Schedules retransmissions of blocks.
    fn repeat(&mut self, dir: usize, cell: usize, tti: i64, free: &mut u32) {
        for _ in 0..self.directions[dir].cells[cell].retransmissions.len() {
            let Some((from, index)) = self.directions[dir].cells[cell].retransmissions.pop_front() else {
                return;
            };
            let block = self.directions[dir].blocks[index];
            if block.void {
                self.directions[dir].free.push(index);
                continue;
            }
            let Some(radio) = &mut self.radios[block.user as usize] else { continue };
            let state = &mut radio.links[dir];
            let count = block.mask.count_ones();
            let mask = match dir {
                _ if from > tti || state.ready > tti || state.last == tti => 0,
                DOWN => scheduler::best(*free, &state.report, count),
                _ => scheduler::run(*free, count),
            };
            if mask == 0 {
                self.directions[dir].cells[cell].retransmissions.push_back((from, index));
                continue;
            }
            state.last = tti;
            *free &= !mask;
            let block = &mut self.directions[dir].blocks[index];
            block.mask = mask;
            block.tries += 1;
            self.directions[dir].sent.push(index);
            self.directions[dir].cells[cell].used += u64::from(count);
        }
    }

    /// Collects the users that have data to send.
    fn gather(&mut self, dir: usize, cell: usize, tti: i64, now: Time, out: &mut Outbox) {
        self.candidates.clear();
        self.max_subbands.clear();
        let subband_bytes = self.elements(dir) / 8.0;
        let cqi_bytes = CQI.map(|efficiency| (efficiency * subband_bytes) as f32);
        let count = self.directions[dir].cells[cell].users.len();
        for index in 0..count {
            let user = self.directions[dir].cells[cell].users[index];
            let k = user as usize;
            let Some(radio) = &mut self.radios[k] else { continue };
            let gain = radio.gains[cell];
            let state = &mut radio.links[dir];
            if state.ready > tti || state.last == tti || state.blocks >= HARQ_PROCESSES {
                continue;
            }
            self.bearers[dir][k].expire(now, out);
            let has_full_buffer = dir == DOWN && self.users[k].full;
            let need = if has_full_buffer { u64::MAX } else { self.bearers[dir][k].need(tti) };
            if need == 0 {
                continue;
            }
            state.update(tti);
            let mut bytes = [0.0_f32; WIDTH];
            for (bytes, &cqi) in bytes.iter_mut().zip(&state.report).take(self.subbands) {
                *bytes = cqi_bytes[usize::from(cqi & 15)];
            }
            if state.average <= 0.0 {
                // as if all users had shared the cell so far
                let carrier_bytes: f32 = bytes[..self.subbands].iter().sum();
                state.average = f64::from(carrier_bytes.max(1.0)) / count as f64;
            }
            if dir == UP {
                self.max_subbands.push(uplink::power(gain, self.subbands).1);
            }
            let need = need.saturating_add(BLOCK_HEADER);
            self.candidates.push(Candidate {
                bearer: user,
                need,
                scarce: (1.0 / state.average) as f32,
                last: state.last,
                bytes,
                mask: 0,
            });
        }
    }

    /// Makes transport blocks for the assignments of the candidates.
    fn send(&mut self, dir: usize, cell: usize, tti: i64, now: Time) {
        let window = f64::from(self.settings.window);
        let subband_bytes = self.elements(dir) / 8.0;
        for index in 0..self.candidates.len() {
            let Candidate { bearer: user, mask, bytes: bytes_of, .. } = self.candidates[index];
            let k = user as usize;
            let has_full_buffer = dir == DOWN && self.users[k].full;
            let Some(radio) = &mut self.radios[k] else { continue };
            let state = &mut radio.links[dir];
            // the average counts the assigned bytes by the reports, as they are compared; otherwise a user with too
            // low reports would get less
            let mut served_bytes = 0.0;
            if mask != 0 {
                let scheme = self.tables.scheme(&state.report, mask, state.outer.offset());
                let count = mask.count_ones();
                let room = self.tables.schemes[scheme].efficiency * subband_bytes * f64::from(count);
                let room = (room as u64).saturating_sub(BLOCK_HEADER);
                let segment = if has_full_buffer {
                    Segment::default()
                } else {
                    self.bearers[dir][k].take(now, tti, room)
                };
                let bytes = if has_full_buffer { room } else { segment.len() };
                if bytes > 0 {
                    served_bytes = (0..self.subbands)
                        .map(|subband| bytes_of[subband] * (mask >> subband & 1) as f32)
                        .sum();
                    state.last = tti;
                    state.blocks += 1;
                    let direction = &mut self.directions[dir];
                    let block =
                        Block { user, cell, segment, bytes, scheme, mask, tries: 1, ..Block::default() };
                    let slot = direction.free.pop().unwrap_or(direction.blocks.len());
                    if slot == direction.blocks.len() {
                        direction.blocks.push(block);
                    } else {
                        direction.blocks[slot] = block;
                    }
                    direction.sent.push(slot);
                    direction.cells[cell].used += u64::from(count);
                }
            }
            state.average += (f64::from(served_bytes) - state.average) / window;
        }
    }

    /// Computes the interference between all transmissions of this TTI, and draws which blocks arrive.
    pub(super) fn transmit(&mut self, dir: usize, tti: i64) {
        self.mark_transmissions(dir);
        let mut sent = std::mem::take(&mut self.directions[dir].sent);
        for index in sent.drain(..) {
            let block = self.directions[dir].blocks[index];
            let Some(radio) = &self.radios[block.user as usize] else { continue };
            let sinr = if dir == DOWN {
                let direction = &self.directions[DOWN];
                radio.sinr(&direction.now, &direction.silent, self.noise[DOWN])
            } else {
                self.sinr_up(radio, &self.directions[UP].now[block.cell])
            };
            let scheme = self.tables.schemes[block.scheme];
            let effective = self.tables.over(scheme.modulation, &sinr, block.mask);
            let sum = block.sinr + self.tables.factor(effective);
            let failure = self.tables.block_errors(self.tables.decibels(sum) - scheme.threshold);
            let Some(radio) = &mut self.radios[block.user as usize] else { continue };
            let decoded = !radio.errors[dir].chance(failure);
            if block.tries == 1 {
                let tally = &mut radio.links[dir].tally;
                tally.blocks += 1;
                tally.sinr += f64::from(effective);
            }
            let direction = &mut self.directions[dir];
            direction.blocks[index].sinr = sum;
            direction.blocks[index].decoded = decoded;
            direction.calendar[(tti + DECODING) as usize % SLOTS].push(index);
        }
        self.directions[dir].sent = sent;
    }

    /// Marks the transmissions: downlink the sending cells, uplink the power that comes in at all other cells.
    fn mark_transmissions(&mut self, dir: usize) {
        let direction = &mut self.directions[dir];
        for index in 0..direction.sent.len() {
            let block = direction.blocks[direction.sent[index]];
            if dir == DOWN {
                direction.silent[block.cell] = false;
                for (subband, used) in direction.now[block.cell].iter_mut().enumerate() {
                    *used += (block.mask >> subband & 1) as f32;
                }
                continue;
            }
            let Some(radio) = &self.radios[block.user as usize] else { continue };
            let (power, _) = uplink::power(radio.gains[block.cell], self.subbands);
            for cell in (0..direction.now.len()).filter(|&cell| cell != block.cell) {
                direction.silent[cell] = false;
                let strength = power * radio.gains[cell];
                for (subband, sum) in direction.now[cell].iter_mut().enumerate() {
                    *sum += strength * (block.mask >> subband & 1) as f32;
                }
            }
        }
    }
}
