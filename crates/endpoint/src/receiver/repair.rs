//! The receiver's part in repair: what is missing, what is restored, and what it asks for.

use super::Receiver;
use crate::datagram::{marks, protected};
use crate::packetizer::Extensions;
use crate::repair::missing::{Missing, Place, Standing};
use crate::repair::parity::{Decoder, Header};
use crate::repair::resend::OSN;
use crate::settings::{MediaKind, ReceiveSettings};
use tidegate_core::datagram::RtpBody;
use tidegate_core::driver::Driver;
use tidegate_core::record::RepairRecord;
use tidegate_core::wire::rtcp::{self, Nack};
use tidegate_core::wire::wrap;
use tidegate_core::{Datagram, Frame, Kind, Size, Span, Time};

/// Numbers in one request: as many as a compound of RTCP carries beside reports in a packet of any network, where
/// each takes a pair of 4 bytes.
const ASKED_MAX: usize = 256;

/// Repair of the video stream.
#[derive(Debug)]
pub(super) struct ReceiverRepair {
    /// Index of the stream.
    video: usize,
    missing: Missing,
    decoder: Option<Decoder>,
    /// The least time between two requests of a key frame, and when the next one may go.
    key_interval: Option<Span>,
    key_next: Time,
}

impl ReceiverRepair {
    /// `None` where nothing is repaired.
    pub(super) fn new(settings: &ReceiveSettings) -> Option<Self> {
        let repair = settings.repair;
        let any = repair.nack.is_some() || repair.pli.is_some() || repair.fec.is_some();
        any.then_some(Self {
            video: settings.streams.iter().position(|stream| stream.kind == MediaKind::Video)?,
            missing: Missing::new(repair.nack, repair.fec.map(|fec| fec.packets)),
            decoder: repair.fec.map(|_| Decoder::new()),
            key_interval: repair.pli.map(|pli| pli.interval),
            key_next: Time::ZERO,
        })
    }
}

/// A packet of media that the receiver has, in whatever way it came.
#[derive(Clone, Copy, Debug)]
struct Have {
    sequence: i64,
    header: Header,
    frame: Frame,
    by: Kind,
}

impl Receiver {
    /// When repair has something to ask for; [`Time::MAX`] for never.
    pub(crate) fn request_due(&self) -> Time {
        let Some(repair) = &self.repair else { return Time::MAX };
        let broken = self.streams[repair.video].playout.as_ref().is_some_and(|playout| playout.wants_key());
        let key = if broken && repair.key_interval.is_some() { repair.key_next } else { Time::MAX };
        key.min(repair.missing.ask_due())
    }

    /// When repair gives something up.
    pub(super) fn repair_expiry(&self) -> Time {
        self.repair.as_ref().map_or(Time::MAX, |repair| repair.missing.expiry())
    }

    /// What repair asks for now, in the name of `reporter`.
    pub(crate) fn requests(&mut self, now: Time, reporter: u32) -> Vec<rtcp::Packet> {
        let mut packets = Vec::new();
        if self.request_due() > now {
            return packets;
        }
        let Some(repair) = &mut self.repair else { return packets };
        let stream = &self.streams[repair.video];
        let media_ssrc = stream.signalled.ssrc;
        let lost = repair.missing.take(now, ASKED_MAX);
        if !lost.is_empty() {
            packets.push(rtcp::Packet::Nack(Nack::new(reporter, media_ssrc, &lost)));
        }
        if let Some(interval) = repair.key_interval
            && now >= repair.key_next
            && stream.playout.as_ref().is_some_and(|playout| playout.wants_key())
        {
            repair.key_next = now + interval;
            packets.push(rtcp::Packet::Pli(rtcp::Pli { sender_ssrc: reporter, media_ssrc }));
        }
        packets
    }

    /// Gives up what cannot be repaired any more, and lets playout go on without it.
    pub(super) fn give_up(&mut self, now: Time, out: &mut dyn Driver) {
        let Some(repair) = &mut self.repair else { return };
        let Some(playout) = &mut self.streams[repair.video].playout else {
            repair.missing.give_up(now, 0);
            return;
        };
        loop {
            let base = playout.base();
            repair.missing.give_up(now, base);
            playout.hope(repair.missing.hope());
            playout.run(now, out);
            if playout.base() == base {
                return;
            }
        }
    }

    /// Takes note of a packet that has arrived from the network for the first time; says whether playout has it
    /// already.
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
        let place = Place { frame: frame.number, last: frame.is_last() };
        let standing = repair.missing.arrived(now, sequence, place);
        if let Some(decoder) = &mut repair.decoder {
            let length = size.saturating_sub(Extensions::NONE_LEN);
            decoder.have(
                sequence,
                Header::of(
                    body,
                    protected(body, packet.extension()),
                    u16::try_from(length).unwrap_or(u16::MAX),
                ),
            );
        }
        if let Some(playout) = &mut self.streams[index].playout {
            playout.hope(repair.missing.hope());
        }
        standing == Standing::Restored
    }

    /// Takes a retransmission or parity of the stream `index`, of `size` bytes with a header of `header`.
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
            let found = Header { payload_type, ..Header::of(body, protected, length) };
            let frame = self.frame(video, body, out);
            self.restored(
                now,
                Have { sequence: number, header: found, frame, by: Kind::Retransmission },
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

    /// Restores what can be restored by parity, after a packet with a header of `header` bytes has arrived.
    pub(super) fn restore_by_parity(&mut self, now: Time, header: u32, out: &mut dyn Driver) {
        loop {
            let Some(repair) = &mut self.repair else { return };
            let newest = repair.missing.next().unwrap_or(0);
            let Some(decoder) = &mut repair.decoder else { return };
            let Some((sequence, found)) = decoder.restore(newest) else { return };
            // a source without frames marks none
            let stream = &mut self.streams[repair.video];
            let frame = marks(&found.protected).map(|marks| stream.numbers.frame(marks)).unwrap_or_default();
            self.restored(now, Have { sequence, header: found, frame, by: Kind::Repair }, header, out);
        }
    }

    /// Hands a packet that was restored to playout, if anybody waited for it; what brought it had a header of
    /// `header` bytes.
    fn restored(&mut self, now: Time, have: Have, header: u32, out: &mut dyn Driver) {
        let Have { sequence, header: found, frame, by } = have;
        let Some(repair) = &mut self.repair else { return };
        let place = Place { frame: frame.number, last: frame.is_last() };
        if !repair.missing.restored(now, sequence, by == Kind::Retransmission, place) {
            return;
        }
        if let Some(decoder) = &mut repair.decoder {
            decoder.have(sequence, found);
        }
        let payload = u32::from(found.length).saturating_sub(header - Extensions::NONE_LEN);
        out.record().goodput(now, self.flow, Size::from_bytes(u64::from(payload)));
        let hope = repair.missing.hope();
        let in_time = match &mut self.streams[repair.video].playout {
            None => true,
            Some(playout) => {
                playout.hope(hope);
                playout.packet(now, frame, found.timestamp, sequence, out)
            }
        };
        let (flow, frame, sequence) = (self.flow, frame.number, sequence as u16);
        out.record().repaired(now, &RepairRecord { flow, frame, sequence, by, in_time });
    }
}
