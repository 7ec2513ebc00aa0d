//! Counts of a flow's media packets that were lost, late or repaired.

use super::count::Count;
use std::collections::VecDeque;
use tidegate_core::record::{RepairRecord, RtcpRecord};
use tidegate_core::wire::rtcp::Contents;
use tidegate_core::{Body, Kind, Packet};

/// Largest number of lost packets that wait for their repair: those of 3 minutes at 2 % loss of 10 Mbit/s.
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
    /// RTCP packets of the receiver with a NACK.
    pub nacks: u64,
    /// RTCP packets of the receiver with a PLI.
    pub plis: u64,
    /// Packets of audio and video: those that arrived, those of them that were late, and those that died.
    arrived: u64,
    late: u64,
    lost: u64,
    /// RTP sequence numbers of video packets that died and may still be repaired.
    open: VecDeque<u16>,
}

fn is_media(packet: &Packet) -> bool {
    matches!(packet.kind, Kind::Video | Kind::Audio)
}

impl Repairs {
    /// Counts a packet that is put on the wire.
    #[inline]
    pub fn sent(&mut self, packet: &Packet) {
        match packet.kind {
            Kind::Video | Kind::Audio => self.media.add(packet),
            Kind::Retransmission => self.resent.add(packet),
            Kind::Repair => self.parity.add(packet),
            _ => {}
        }
    }

    /// Counts a packet that has arrived.
    #[inline]
    pub fn arrived(&mut self, packet: &Packet) {
        self.arrived += u64::from(is_media(packet));
    }

    /// Counts a packet that was too late for playout.
    pub fn late(&mut self, packet: &Packet) {
        self.late += u64::from(is_media(packet));
    }

    /// Counts a packet that died.
    pub fn lost(&mut self, packet: &Packet) {
        self.lost += u64::from(is_media(packet));
        if let (Kind::Video, Body::Rtp(body)) = (packet.kind, packet.body) {
            if self.open.len() == OPEN_MAX {
                self.open.pop_front();
            }
            self.open.push_back(body.sequence);
        }
    }

    /// Counts a packet that was restored, if it is one of the losses counted here: not if it was restored before
    /// it would have arrived, or was lost before the statistics began.
    pub fn repaired(&mut self, repair: &RepairRecord) {
        let Some(index) = self.open.iter().rposition(|&sequence| sequence == repair.sequence) else { return };
        self.open.remove(index);
        match repair.by {
            _ if !repair.in_time => {}
            Kind::Retransmission => self.by_resent += 1,
            _ => self.by_parity += 1,
        }
    }

    /// Counts an RTCP packet that was put on the wire.
    pub fn rtcp(&mut self, rtcp: &RtcpRecord) {
        let has = |kind| u64::from(rtcp.from_receiver && rtcp.contents.has(kind));
        self.nacks += has(Contents::NACK);
        self.plis += has(Contents::PLI);
    }

    /// The share of media packets that neither arrived nor were repaired in time; `None` if no packet's fate is known.
    #[must_use]
    pub fn residual(&self) -> Option<f64> {
        let decided = self.arrived + self.lost;
        // a late packet may restore another one too late: then two packets are late, but only one has arrived
        let missing = self.lost + self.late.min(self.arrived);
        let repaired = self.by_resent + self.by_parity;
        debug_assert!(repaired <= self.lost + self.late, "more repaired than was missing: {self:?}");
        let missing = missing.saturating_sub(repaired);
        (decided > 0).then(|| missing as f64 / decided as f64)
    }

    /// Bytes of repair over bytes of media; `None` without media.
    #[must_use]
    pub fn overhead(&self) -> Option<f64> {
        let repair = self.resent.bytes + self.parity.bytes;
        (self.media.bytes > 0).then(|| repair as f64 / self.media.bytes as f64)
    }
}
