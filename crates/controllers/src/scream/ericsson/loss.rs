//! Which packets are lost (ScreamV2Tx.cpp: `markAcked`, `detectLoss`): those that were sent long before one that has arrived, and, where
//! frames are stamped, long before its frame.

use super::delay::Ticks;
use std::collections::VecDeque;
use tidegate_core::control::{Report, Sent};

/// kReorderTime: 30 ms.
const REORDERING: Ticks = 1966;
/// Packets that are so far behind the highest that was acknowledged are lost for good (`detectLoss`): as many as that has gone on, 32 at most.
const FAR_BEHIND: u64 = 512;
const FAR_WIDTH: u64 = 32;
/// kMaxTxPackets.
const MOST: usize = 4096;
/// Frames that wait in the pacer are remembered up to so many: ours, more than any pacer holds.
const FRAMES: usize = 512;

/// A packet that was sent and not yet acknowledged or given up.
#[derive(Clone, Copy, Debug)]
struct Open {
    sequence: u64,
    sent: Ticks,
    /// When its frame came, and whether it is the last packet of that.
    frame: Ticks,
    ends: bool,
}

/// Packets of which it is open whether they are lost.
#[derive(Clone, Debug)]
pub struct Losses {
    open: VecDeque<Open>,
    highest: u64,
    /// Frames that wait in the pacer: when they came, and their bytes.
    frames: VecDeque<(Ticks, u64)>,
    /// `timeStampAckHigh`: the newest frame of which a packet has arrived.
    frame_acked: Ticks,
    /// Whether the receiver is told the time stamps of frames.
    frame_stamps: bool,
}

impl Losses {
    /// Nothing was sent yet.
    #[must_use]
    pub fn new(frame_stamps: bool) -> Self {
        Self { open: VecDeque::new(), highest: 0, frames: VecDeque::new(), frame_acked: 0, frame_stamps }
    }

    /// A frame of so many bytes has come into the pacer.
    pub fn frame(&mut self, now: Ticks, bytes: u64) {
        if self.frames.len() == FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back((now, bytes));
    }

    /// A packet has left.
    pub fn sent(&mut self, now: Ticks, packet: &Sent) {
        let (frame, ends) = self.frame_of(now, packet.backlog.as_bytes());
        self.open.push_back(Open { sequence: packet.sequence, sent: now, frame, ends });
        while self.open.len() > MOST {
            self.open.pop_front();
        }
    }

    /// When the frame came of which a packet now leaves with `backlog` bytes behind it, and whether that is its last one.
    fn frame_of(&mut self, now: Ticks, backlog: u64) -> (Ticks, bool) {
        let mut newer = 0;
        for at in (0..self.frames.len()).rev() {
            let (came, bytes) = self.frames[at];
            if newer + bytes > backlog {
                self.frames.drain(..at);
                return (came, newer == backlog);
            }
            newer += bytes;
        }
        (self.frames.front().map_or(now, |&(came, _)| came), false)
    }

    /// Takes a report, in which `newest` is the highest sequence number that has arrived, and when that packet was sent. Calls
    /// `known` for each packet of which it is known by now whether it is lost: with true if it is.
    pub fn take(&mut self, report: &Report, newest: (u64, Ticks), mut known: impl FnMut(bool)) {
        // losses are looked for at the end of each frame and of the report
        let arrived = |packet: &&Open| {
            let told = report.packets.binary_search_by_key(&packet.sequence, |told| told.sequence);
            told.is_ok_and(|at| report.packets[at].arrival.is_some())
        };
        let ends =
            self.open.iter().filter(|packet| packet.ends && packet.sequence < newest.0).filter(arrived);
        let ends: Vec<(u64, Ticks)> = ends.map(|packet| (packet.sequence, packet.sent)).collect();
        for (sequence, sent) in ends.into_iter().chain([newest]) {
            let acked = self.open.iter().filter(|packet| packet.sequence <= sequence).filter(arrived);
            self.frame_acked = acked.map(|packet| packet.frame).fold(self.frame_acked, Ticks::max);
            self.find(report, (sequence, sent), &mut known);
        }
    }

    /// Looks for losses up to the packet `newest`, which has arrived (`detectLoss`).
    fn find(&mut self, report: &Report, (newest, newest_sent): (u64, Ticks), known: &mut impl FnMut(bool)) {
        let on = newest.saturating_sub(self.highest).min(FAR_WIDTH);
        let far = self.highest.saturating_sub(FAR_BEHIND);
        self.highest = self.highest.max(newest);
        let (frame_acked, frame_stamps) = (self.frame_acked, self.frame_stamps);
        let mut arrived = report.packets.iter().filter(|packet| packet.arrival.is_some()).peekable();
        self.open.retain(|packet| {
            while arrived.next_if(|told| told.sequence < packet.sequence).is_some() {}
            let is_acked = arrived.peek().is_some_and(|told| told.sequence == packet.sequence);
            if packet.sequence > newest {
                return true;
            }
            let frames = if frame_stamps { (frame_acked - packet.frame).max(0) } else { 0 };
            let late = packet.sent + REORDERING + frames < newest_sent;
            if packet.sequence < far {
                // lost only if among as many as the highest has gone on; others that are further behind are forgotten
                if is_acked || packet.sequence + on < far {
                    return !is_acked && packet.sequence + FAR_WIDTH >= far;
                }
            } else if !is_acked && !late {
                return true;
            }
            known(!is_acked);
            false
        });
    }

    /// Gives all up of which it is open whether it is lost.
    pub fn clear(&mut self) {
        self.open.clear();
    }
}
