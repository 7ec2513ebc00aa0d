//! What happens in a TTI: who sends, what arrives, what is sent again.

use super::fading::WIDTH;
use super::link_adaptation::CQI;
use super::network::{Block, DECODING, DOWN, Network, SLOTS, UP};
use super::rlc::{BLOCK_HEADER, Segment};
use super::scheduler::{self, Candidate};
use super::settings::{BLOCKS, Scheduler};
use super::uplink;
use tidegate_core::{Outbox, Port, Time};

/// A block is sent so often at most (maxHARQ-Tx of TS 36.331: one transmission and three more).
const TRIES: u8 = 4;
/// Processes of a user in one direction (TS 36.213 section 7): so many blocks can be under way.
const PROCESSES: u32 = 8;
/// TTIs from the loss of a block to its repetition by RLC: t-Reordering of 35 ms (TS 36.331 section 9.2.1.2) and
/// a status report on its way.
const STATUS: i64 = 40;

impl Network {
    /// Resource elements of a subband in a TTI.
    fn elements(&self, way: usize) -> f64 {
        let each = if way == DOWN { self.settings.antennas.elements() } else { uplink::ELEMENTS };
        each * BLOCKS as f64
    }

    /// Hears what became of the blocks whose decoding ends in this TTI.
    pub(super) fn decode(&mut self, way: usize, tti: i64, out: &mut Outbox) {
        let slot = tti as usize % SLOTS;
        let mut due = std::mem::take(&mut self.ways[way].calendar[slot]);
        for at in due.drain(..) {
            let block = self.ways[way].blocks[at];
            let k = block.user as usize;
            if block.void {
                self.ways[way].free.push(at);
                continue;
            }
            let Some(radio) = &mut self.radios[k] else { continue };
            let state = &mut radio.ways[way];
            if block.tries == 1 {
                if self.settings.outer_loop {
                    state.outer.learn(block.decoded);
                }
                state.told.failed += u32::from(!block.decoded);
            }
            if !block.decoded && block.tries < TRIES {
                self.ways[way].cells[block.cell].again.push_back((tti + DECODING, at));
                continue;
            }
            state.blocks -= 1;
            self.ways[way].free.push(at);
            if block.decoded {
                state.told.bytes += block.bytes;
                self.ways[way].cells[block.cell].bytes += block.bytes;
                self.bearers[way][k].receive(block.segment, Port(2 * block.user as u16 + way as u16), out);
            } else {
                self.bearers[way][k].lose(block.segment, tti + STATUS);
            }
        }
        self.ways[way].calendar[slot] = due;
    }

    /// Fills the subbands of all cells.
    pub(super) fn schedule(&mut self, way: usize, tti: i64, now: Time, out: &mut Outbox) {
        for cell in 0..self.ways[way].cells.len() {
            let here = &self.ways[way].cells[cell];
            if here.users.is_empty() && here.again.is_empty() {
                continue;
            }
            let mut free = (1_u32 << self.subbands) - 1;
            self.repeat(way, cell, tti, &mut free);
            if free != 0 {
                self.gather(way, cell, tti, now, out);
                match (way, self.settings.scheduler) {
                    (DOWN, Scheduler::ProportionalFair) => scheduler::share(&mut self.candidates, free),
                    (DOWN, Scheduler::RoundRobin) => scheduler::in_turn(&mut self.candidates, free),
                    _ => scheduler::share_in_runs(&mut self.candidates, free, self.subbands, &self.most),
                }
                self.send(way, cell, tti, now);
            }
        }
    }

    /// Sends what has to be sent again.
    fn repeat(&mut self, way: usize, cell: usize, tti: i64, free: &mut u32) {
        for _ in 0..self.ways[way].cells[cell].again.len() {
            let Some((from, at)) = self.ways[way].cells[cell].again.pop_front() else { return };
            let block = self.ways[way].blocks[at];
            if block.void {
                self.ways[way].free.push(at);
                continue;
            }
            let Some(radio) = &mut self.radios[block.user as usize] else { continue };
            let state = &mut radio.ways[way];
            let count = block.mask.count_ones();
            let mask = match way {
                _ if from > tti || state.ready > tti || state.last == tti => 0,
                DOWN => scheduler::best(*free, &state.report, count),
                _ => scheduler::run(*free, count),
            };
            if mask == 0 {
                self.ways[way].cells[cell].again.push_back((from, at));
                continue;
            }
            state.last = tti;
            *free &= !mask;
            let block = &mut self.ways[way].blocks[at];
            block.mask = mask;
            block.tries += 1;
            self.ways[way].sent.push(at);
            self.ways[way].cells[cell].used += u64::from(count);
        }
    }

    /// Finds who has something to send.
    fn gather(&mut self, way: usize, cell: usize, tti: i64, now: Time, out: &mut Outbox) {
        self.candidates.clear();
        self.most.clear();
        let each = self.elements(way) / 8.0;
        let worth = CQI.map(|efficiency| (efficiency * each) as f32);
        let count = self.ways[way].cells[cell].users.len();
        for at in 0..count {
            let user = self.ways[way].cells[cell].users[at];
            let k = user as usize;
            let Some(radio) = &mut self.radios[k] else { continue };
            let gain = radio.gains[cell];
            let state = &mut radio.ways[way];
            if state.ready > tti || state.last == tti || state.blocks >= PROCESSES {
                continue;
            }
            self.bearers[way][k].expire(now, out);
            let full = way == DOWN && self.users[k].full;
            let need = if full { u64::MAX } else { self.bearers[way][k].need(tti) };
            if need == 0 {
                continue;
            }
            state.update(tti);
            let mut bytes = [0.0_f32; WIDTH];
            for (bytes, &cqi) in bytes.iter_mut().zip(&state.report).take(self.subbands) {
                *bytes = worth[usize::from(cqi & 15)];
            }
            if state.average <= 0.0 {
                // as if all had been sharing the cell so far
                let whole: f32 = bytes[..self.subbands].iter().sum();
                state.average = f64::from(whole.max(1.0)) / count as f64;
            }
            if way == UP {
                self.most.push(uplink::power(gain, self.subbands).1);
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

    /// Makes transport blocks of what the candidates were given.
    fn send(&mut self, way: usize, cell: usize, tti: i64, now: Time) {
        let window = f64::from(self.settings.window);
        let each = self.elements(way) / 8.0;
        for at in 0..self.candidates.len() {
            let Candidate { bearer: user, mask, bytes: worth, .. } = self.candidates[at];
            let k = user as usize;
            let full = way == DOWN && self.users[k].full;
            let Some(radio) = &mut self.radios[k] else { continue };
            let state = &mut radio.ways[way];
            // what was given is counted in what reports say, as it is compared: else whoever's reports are too low
            // would get less
            let mut given = 0.0;
            if mask != 0 {
                let scheme = self.tables.scheme(&state.report, mask, state.outer.offset());
                let count = mask.count_ones();
                let room = self.tables.schemes[scheme].efficiency * each * f64::from(count);
                let room = (room as u64).saturating_sub(BLOCK_HEADER);
                let segment =
                    if full { Segment::default() } else { self.bearers[way][k].take(now, tti, room) };
                let bytes = if full { room } else { segment.len() };
                if bytes > 0 {
                    given = (0..self.subbands).map(|at| worth[at] * (mask >> at & 1) as f32).sum();
                    state.last = tti;
                    state.blocks += 1;
                    let direction = &mut self.ways[way];
                    let block =
                        Block { user, cell, segment, bytes, scheme, mask, tries: 1, ..Block::default() };
                    let place = direction.free.pop().unwrap_or(direction.blocks.len());
                    if place == direction.blocks.len() {
                        direction.blocks.push(block);
                    } else {
                        direction.blocks[place] = block;
                    }
                    direction.sent.push(place);
                    direction.cells[cell].used += u64::from(count);
                }
            }
            state.average += (f64::from(given) - state.average) / window;
        }
    }

    /// Lets everything that is sent in this TTI disturb everything else, and draws what arrives.
    pub(super) fn transmit(&mut self, way: usize, tti: i64) {
        self.light_up(way);
        let mut sent = std::mem::take(&mut self.ways[way].sent);
        for at in sent.drain(..) {
            let block = self.ways[way].blocks[at];
            let Some(radio) = &self.radios[block.user as usize] else { continue };
            let sinr = if way == DOWN {
                let direction = &self.ways[DOWN];
                radio.sinr(&direction.now, &direction.silent, self.noise[DOWN])
            } else {
                self.sinr_up(radio, &self.ways[UP].now[block.cell])
            };
            let scheme = self.tables.schemes[block.scheme];
            let effective = self.tables.over(scheme.modulation, &sinr, block.mask);
            let sum = block.sinr + self.tables.factor(effective);
            let failure = self.tables.block_errors(self.tables.decibels(sum) - scheme.threshold);
            let Some(radio) = &mut self.radios[block.user as usize] else { continue };
            let decoded = !radio.errors[way].chance(failure);
            if block.tries == 1 {
                let told = &mut radio.ways[way].told;
                told.blocks += 1;
                told.sinr += f64::from(effective);
            }
            let direction = &mut self.ways[way];
            direction.blocks[at].sinr = sum;
            direction.blocks[at].decoded = decoded;
            direction.calendar[(tti + DECODING) as usize % SLOTS].push(at);
        }
        self.ways[way].sent = sent;
    }

    /// Says where something is sent: downlink by which cell, uplink how much of it comes in at all others.
    fn light_up(&mut self, way: usize) {
        let direction = &mut self.ways[way];
        for at in 0..direction.sent.len() {
            let block = direction.blocks[direction.sent[at]];
            if way == DOWN {
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
