//! What became of the media of a flow: lost, late, repaired.

use super::count::Count;
use std::collections::VecDeque;
use tidegate_core::record::{RepairRecord, RtcpRecord};
use tidegate_core::wire::rtcp::Contents;
use tidegate_core::{Body, Kind, Packet};

/// Lost packets that are remembered until they are repaired: at 2 % loss of 10 Mb/s those of 3 minutes.
const OPEN_MAX: usize = 4096;

/// Losses of audio and video, and their repair.
#[derive(Clone, Debug, Default)]
pub struct Repairs {
    /// Packets of audio and video sent.
    pub media: Count,
    /// Retransmissions sent.
    pub resent: Count,
    /// Packets of parity sent.
    pub parity: Count,
    /// Losses that retransmission repaired in time for playout.
    pub by_resent: u64,
    /// Losses that parity repaired in time.
    pub by_parity: u64,
    /// Requests of the receiver.
    pub nacks: u64,
    /// Requests of key frames.
    pub plis: u64,
    /// Packets of audio and video that arrived, those of them that were late, and those that died.
    arrived: u64,
    late: u64,
    lost: u64,
    /// Video packets that died and may yet be repaired, by RTP sequence number.
    open: VecDeque<u16>,
}

fn is_media(packet: &Packet) -> bool {
    matches!(packet.kind, Kind::Video | Kind::Audio)
}

impl Repairs {
    /// A packet is put on the wire.
    #[inline]
    pub fn sent(&mut self, packet: &Packet) {
        match packet.kind {
            Kind::Video | Kind::Audio => self.media.add(packet),
            Kind::Retransmission => self.resent.add(packet),
            Kind::Repair => self.parity.add(packet),
            _ => {}
        }
    }

    /// A packet has arrived.
    #[inline]
    pub fn arrived(&mut self, packet: &Packet) {
        self.arrived += u64::from(is_media(packet));
    }

    /// It was too late for playout.
    pub fn late(&mut self, packet: &Packet) {
        self.late += u64::from(is_media(packet));
    }

    /// A packet died.
    pub fn lost(&mut self, packet: &Packet) {
        self.lost += u64::from(is_media(packet));
        if let (Kind::Video, Body::Rtp(body)) = (packet.kind, packet.body) {
            if self.open.len() == OPEN_MAX {
                self.open.pop_front();
            }
            self.open.push_back(body.sequence);
        }
    }

    /// A packet was restored. It counts only if it is one of the losses counted here: not if it was restored before
    /// it would have arrived, or was lost before the statistics began.
    pub fn repaired(&mut self, repair: &RepairRecord) {
        let Some(place) = self.open.iter().rposition(|&sequence| sequence == repair.sequence) else { return };
        self.open.remove(place);
        match repair.by {
            _ if !repair.in_time => {}
            Kind::Retransmission => self.by_resent += 1,
            _ => self.by_parity += 1,
        }
    }

    /// RTCP was put on the wire.
    pub fn rtcp(&mut self, rtcp: &RtcpRecord) {
        let has = |what| u64::from(rtcp.from_receiver && rtcp.contents.has(what));
        self.nacks += has(Contents::NACK);
        self.plis += has(Contents::PLI);
    }

    /// The part of media that neither arrived nor was repaired in time; `None` where the fate of none is known.
    #[must_use]
    pub fn residual(&self) -> Option<f64> {
        let known = self.arrived + self.lost;
        // a packet that is late itself may restore another one too late, which makes two that are late of one that arrived
        let missing = self.lost + self.late.min(self.arrived);
        let repaired = self.by_resent + self.by_parity;
        debug_assert!(repaired <= self.lost + self.late, "more repaired than was missing: {self:?}");
        let missing = missing.saturating_sub(repaired);
        (known > 0).then(|| missing as f64 / known as f64)
    }

    /// Bytes of repair over bytes of media; `None` without media.
    #[must_use]
    pub fn overhead(&self) -> Option<f64> {
        let repair = self.resent.bytes + self.parity.bytes;
        (self.media.bytes > 0).then(|| repair as f64 / self.media.bytes as f64)
    }
}
