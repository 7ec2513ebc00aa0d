//! The receiver's part in repair: missing packets, restored ones, and requests.

use super::Receiver;
use crate::datagram::{marks, protected};
use crate::packetizer::Extensions;
use crate::repair::Repair;
use crate::repair::missing::{ArrivalKind, FramePosition, Missing};
use crate::repair::parity::{Decoder, Header};
use crate::repair::resend::OSN;
use crate::settings::MediaKind;
use tidegate_core::datagram::RtpBody;
use tidegate_core::driver::Driver;
use tidegate_core::record::RepairRecord;
use tidegate_core::wire::rtcp::{self, Nack};
use tidegate_core::wire::wrap;
use tidegate_core::{Datagram, Frame, Kind, Size, Span, Time};

/// Entries of 4 bytes in one request: as many as an RTCP compound with reports carries in a packet of any network.
const NACK_PAIRS_MAX: usize = 256;

/// Repair of the video stream.
#[derive(Debug)]
pub(super) struct ReceiverRepair {
    /// Index of the stream.
    video: usize,
    missing: Missing,
    decoder: Option<Decoder>,
    /// Minimum time between two requests of a key frame, and the time from which on the next one may go.
    key_interval: Option<Span>,
    key_next: Time,
}

impl ReceiverRepair {
    /// Repair of the stream `video` from a time on; `None` where nothing is repaired.
    pub(super) fn new(repair: Repair, video: usize, from: Time) -> Option<Self> {
        let any = repair.nack.is_some() || repair.pli.is_some() || repair.fec.is_some();
        any.then_some(Self {
            video,
            missing: Missing::new(repair.nack, repair.fec.map(|fec| fec.packets)),
            decoder: repair.fec.map(|_| Decoder::new()),
            key_interval: repair.pli.map(|pli| pli.interval),
            key_next: from,
        })
    }
}

/// A packet of media that was restored.
#[derive(Clone, Copy, Debug)]
struct RestoredPacket {
    sequence: i64,
    header: Header,
    frame: Frame,
    by: Kind,
}

impl Receiver {
    /// Ends repair, or begins it anew.
    pub(crate) fn switch_repair(&mut self, now: Time, on: bool, out: &mut dyn Driver) {
        let Some((settings, video)) = self.repairs.filter(|_| on != self.repair.is_some()) else { return };
        self.repair = if on { ReceiverRepair::new(settings, video, now) } else { None };
        if let Some(playout) = &mut self.streams[video].playout {
            playout.set_requests(on && settings.nack.is_some(), on && settings.pli.is_some());
            playout.set_first_repairable(None);
            playout.run(now, out);
        }
        self.update_wakeup();
    }

    /// When a repair request is due; [`Time::MAX`]: never.
    pub(crate) fn request_due(&self) -> Time {
        let Some(repair) = &self.repair else { return Time::MAX };
        let stream = &self.streams[repair.video];
        let broken =
            stream.gone.is_none() && stream.playout.as_ref().is_some_and(|playout| playout.wants_key());
        let key = if broken && repair.key_interval.is_some() { repair.key_next } else { Time::MAX };
        key.min(repair.missing.request_due())
    }

    /// When repair gives up a packet.
    pub(super) fn repair_expiry(&self) -> Time {
        self.repair.as_ref().map_or(Time::MAX, |repair| repair.missing.expiry())
    }

    /// The repair requests that are due now, with the SSRC `reporter`.
    pub(crate) fn requests(&mut self, now: Time, reporter: u32) -> Vec<rtcp::Packet> {
        let mut packets = Vec::new();
        if self.request_due() > now {
            return packets;
        }
        let Some(repair) = &mut self.repair else { return packets };
        let stream = &mut self.streams[repair.video];
        let media_ssrc = stream.signalled.ssrc;
        let lost = repair.missing.take(now, NACK_PAIRS_MAX);
        if !lost.is_empty() {
            packets.push(rtcp::Packet::Nack(Nack::new(reporter, media_ssrc, &lost)));
        }
        if let Some(interval) = repair.key_interval
            && now >= repair.key_next
            && let Some(playout) = stream.playout.as_mut().filter(|playout| playout.wants_key())
        {
            repair.key_next = now + interval;
            playout.key_requested();
            packets.push(rtcp::Packet::Pli(rtcp::Pli { sender_ssrc: reporter, media_ssrc }));
        }
        packets
    }

    /// Gives up packets that cannot be repaired any more, and lets playout go on without them.
    pub(super) fn give_up(&mut self, now: Time, out: &mut dyn Driver) {
        let Some(repair) = &mut self.repair else { return };
        let Some(playout) = &mut self.streams[repair.video].playout else {
            repair.missing.give_up(now, 0);
            return;
        };
        loop {
            let base = playout.base();
            repair.missing.give_up(now, base);
            playout.set_first_repairable(repair.missing.first_repairable());
            playout.run(now, out);
            if playout.base() == base {
                return;
            }
        }
    }

    /// Notes a packet that has arrived from the network for the first time; returns whether playout has it already.
    pub(super) fn media_arrived(
        &mut self,
        now: Time,
        index: usize,
        (sequence, size): (i64, u32),
        packet: &Datagram,
        body: &RtpBody,
        frame: Frame,
    ) -> bool {
        let Some(repair) = self.repair.as_mut().filter(|repair| repair.video == index) else { return false };
        let position = FramePosition { frame: frame.number, last: frame.is_last() };
        let kind = repair.missing.arrived(now, sequence, position);
        let overflow = repair.missing.take_overflow();
        if let Some(decoder) = &mut repair.decoder {
            let length = size.saturating_sub(Extensions::NONE_LEN);
            decoder.add(
                sequence,
                Header::of(
                    body,
                    protected(body, packet.extension()),
                    u16::try_from(length).unwrap_or(u16::MAX),
                ),
            );
        }
        if let Some(playout) = &mut self.streams[index].playout {
            playout.set_first_repairable(repair.missing.first_repairable());
            if overflow {
                playout.too_many_missing();
            }
        }
        kind == ArrivalKind::Restored
    }

    /// Processes a retransmission or parity of the stream `index`, of `size` bytes with a header of `header` bytes.
    pub(super) fn repair_arrived(
        &mut self,
        now: Time,
        index: usize,
        packet: &Datagram,
        body: &RtpBody,
        (size, header): (u32, u32),
        out: &mut dyn Driver,
    ) {
        let Some(repair) = &mut self.repair else { return };
        let Some(next) = repair.missing.next() else { return };
        let number = wrap::nearest(u32::from(body.original), 16, next);
        if self.streams[index].signalled.kind == MediaKind::Retransmission {
            let video = repair.video;
            let length = size.saturating_sub(Extensions::NONE_LEN + u32::from(OSN));
            let length = u16::try_from(length).unwrap_or(u16::MAX);
            let protected = protected(body, packet.extension());
            let payload_type = self.streams[video].signalled.payload_type;
            let restored_header = Header { payload_type, ..Header::of(body, protected, length) };
            let frame = self.frame(video, body, out);
            self.restored(
                now,
                RestoredPacket { sequence: number, header: restored_header, frame, by: Kind::Retransmission },
                header,
                out,
            );
        } else if let (Some(decoder), Some(parity)) = (&mut repair.decoder, packet.parity()) {
            decoder.parity(number, *parity);
        }
        self.restore_by_parity(now, header, out);
        if let (Some(repair), Some(parity)) = (&mut self.repair, packet.parity()) {
            repair.missing.parity(number, parity);
        }
    }

    /// Restores all possible packets by parity, after a packet with a header of `header` bytes has arrived.
    pub(super) fn restore_by_parity(&mut self, now: Time, header: u32, out: &mut dyn Driver) {
        loop {
            let Some(repair) = &mut self.repair else { return };
            let newest = repair.missing.next().unwrap_or(0);
            let Some(decoder) = &mut repair.decoder else { return };
            let Some((sequence, restored_header)) = decoder.restore(newest) else { return };
            // a source without frames marks none
            let stream = &mut self.streams[repair.video];
            let frame = marks(&restored_header.protected)
                .map(|marks| stream.numbers.frame(marks))
                .unwrap_or_default();
            self.restored(
                now,
                RestoredPacket { sequence, header: restored_header, frame, by: Kind::Repair },
                header,
                out,
            );
        }
    }

    /// Hands a restored packet to playout, if it was needed. `header`: bytes of the header of the packet that restored
    /// it.
    fn restored(&mut self, now: Time, packet: RestoredPacket, header: u32, out: &mut dyn Driver) {
        let RestoredPacket { sequence, header: restored_header, frame, by } = packet;
        let Some(repair) = &mut self.repair else { return };
        let position = FramePosition { frame: frame.number, last: frame.is_last() };
        if !repair.missing.restored(now, sequence, by == Kind::Retransmission, position) {
            return;
        }
        if let Some(decoder) = &mut repair.decoder {
            decoder.add(sequence, restored_header);
        }
        let payload = u32::from(restored_header.length).saturating_sub(header - Extensions::NONE_LEN);
        out.record().goodput(now, self.flow, Size::from_bytes(u64::from(payload)));
        let first_repairable = repair.missing.first_repairable();
        let in_time = match &mut self.streams[repair.video].playout {
            None => true,
            Some(playout) => {
                playout.set_first_repairable(first_repairable);
                playout.packet(now, frame, restored_header.timestamp, sequence, out)
            }
        };
        let (flow, frame, sequence) = (self.flow, frame.number, sequence as u16);
        out.record().repaired(now, &RepairRecord { flow, frame, sequence, by, in_time });
    }
}
