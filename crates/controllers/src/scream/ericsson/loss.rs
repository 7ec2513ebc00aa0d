//! Loss detection (ScreamV2Tx.cpp: `markAcked`, `detectLoss`). A packet is lost when a received one was sent long after
//! it; with frame stamps, the time between the two frames is added.

use super::delay::Ticks;
use std::collections::VecDeque;
use tidegate_core::control::{Report, Sent};

/// Reordering window: 30 ms, in ticks of 1/65536 s (ScreamV2Tx.cpp).
const REORDER_TIME: Ticks = 1966;
/// Packets at least this far behind the highest acknowledged sequence number are always lost (`detectLoss`).
const FAR_BEHIND: u64 = 512;
/// One call checks as many packets beyond `FAR_BEHIND` as the highest number has advanced, but at most this many.
const FAR_WIDTH: u64 = 32;
/// Largest number of open packets (ScreamV2Tx.cpp).
const MAX_TX_PACKETS: usize = 4096;
/// Largest number of frames in the pacer that are tracked (our own limit, not in ScreamV2Tx.cpp; a pacer never holds as many).
const MAX_FRAMES: usize = 512;

/// Packet that was sent and is neither acknowledged nor declared lost.
#[derive(Clone, Copy, Debug)]
struct OpenPacket {
    sequence: u64,
    sent: Ticks,
    /// Time at which the packet's frame entered the pacer.
    frame: Ticks,
    /// Whether the packet is the frame's last one.
    ends_frame: bool,
}

/// Packets that may still be lost.
#[derive(Clone, Debug)]
pub struct Losses {
    open: VecDeque<OpenPacket>,
    highest: u64,
    /// Frames in the pacer: time of entry, and bytes.
    frames: VecDeque<(Ticks, u64)>,
    /// Newest frame with a received packet (`timeStampAckHigh`).
    frame_acked: Ticks,
    /// Whether time stamps of frames are used.
    frame_stamps: bool,
}

impl Losses {
    /// Creates a detector without packets.
    #[must_use]
    pub fn new(frame_stamps: bool) -> Self {
        Self { open: VecDeque::new(), highest: 0, frames: VecDeque::new(), frame_acked: 0, frame_stamps }
    }

    /// Takes a frame that enters the pacer.
    pub fn frame(&mut self, now: Ticks, bytes: u64) {
        if self.frames.len() == MAX_FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back((now, bytes));
    }

    /// Takes a packet that leaves `now`.
    pub fn sent(&mut self, now: Ticks, packet: &Sent) {
        let (frame, ends_frame) = self.frame_of(now, packet.backlog.as_bytes());
        self.open.push_back(OpenPacket { sequence: packet.sequence, sent: now, frame, ends_frame });
        while self.open.len() > MAX_TX_PACKETS {
            self.open.pop_front();
        }
    }

    /// Frame of a packet that leaves `now` with `backlog` bytes behind it: the frame's time of entry, and whether the packet
    /// is its last one.
    fn frame_of(&mut self, now: Ticks, backlog: u64) -> (Ticks, bool) {
        let mut newer = 0;
        for index in (0..self.frames.len()).rev() {
            let (entered, bytes) = self.frames[index];
            if newer + bytes > backlog {
                self.frames.drain(..index);
                return (entered, newer == backlog);
            }
            newer += bytes;
        }
        (self.frames.front().map_or(now, |&(entered, _)| entered), false)
    }

    /// Takes a report; `newest` is the highest received sequence number and that packet's departure. Calls `on_closed` for
    /// each packet that is now acknowledged (false) or lost (true).
    pub fn take(&mut self, report: &Report, newest: (u64, Ticks), mut on_closed: impl FnMut(bool)) {
        // losses are detected at the end of each frame and of the report
        let arrived = |packet: &&OpenPacket| {
            let index = report.packets.binary_search_by_key(&packet.sequence, |result| result.sequence);
            index.is_ok_and(|index| report.packets[index].arrival.is_some())
        };
        let ends =
            self.open.iter().filter(|packet| packet.ends_frame && packet.sequence < newest.0).filter(arrived);
        let ends: Vec<(u64, Ticks)> = ends.map(|packet| (packet.sequence, packet.sent)).collect();
        for (sequence, sent) in ends.into_iter().chain([newest]) {
            let acked = self.open.iter().filter(|packet| packet.sequence <= sequence).filter(arrived);
            self.frame_acked = acked.map(|packet| packet.frame).fold(self.frame_acked, Ticks::max);
            self.detect(report, (sequence, sent), &mut on_closed);
        }
    }

    /// Detects losses up to the received packet `newest` (`detectLoss`).
    fn detect(
        &mut self,
        report: &Report,
        (newest, newest_sent): (u64, Ticks),
        on_closed: &mut impl FnMut(bool),
    ) {
        let advance = newest.saturating_sub(self.highest).min(FAR_WIDTH);
        let far = self.highest.saturating_sub(FAR_BEHIND);
        self.highest = self.highest.max(newest);
        let (frame_acked, frame_stamps) = (self.frame_acked, self.frame_stamps);
        let mut arrived = report.packets.iter().filter(|packet| packet.arrival.is_some()).peekable();
        self.open.retain(|packet| {
            while arrived.next_if(|result| result.sequence < packet.sequence).is_some() {}
            let is_acked = arrived.peek().is_some_and(|result| result.sequence == packet.sequence);
            if packet.sequence > newest {
                return true;
            }
            let frames = if frame_stamps { (frame_acked - packet.frame).max(0) } else { 0 };
            let is_late = packet.sent + REORDER_TIME + frames < newest_sent;
            if packet.sequence < far {
                // only as many packets as the highest number has advanced are lost; those still further behind are dropped
                if is_acked || packet.sequence + advance < far {
                    return !is_acked && packet.sequence + FAR_WIDTH >= far;
                }
            } else if !is_acked && !is_late {
                return true;
            }
            on_closed(!is_acked);
            false
        });
    }

    /// Gives up all open packets.
    pub fn clear(&mut self) {
        self.open.clear();
    }
}
