//! From the pacer to the wire: numbers, stamp and size of each packet.

use super::pacer::Turn;
use super::repair::{Leaving, SenderRepair};
use super::{Life, Path, Sender};
use crate::datagram;
use crate::packetizer::{ABS_SEND_TIME_ID, Extensions, MARKS_ID, Queued, TRANSPORT_SEQUENCE_ID};
use crate::settings::{MediaKind, largest_rtp};
use std::sync::Arc;
use tidegate_core::control::{Outgoing, Sent};
use tidegate_core::datagram::{Attachment, Extension, Protected, RtpBody};
use tidegate_core::driver::{DatagramInfo, Driver};
use tidegate_core::frame::Marks;
use tidegate_core::wire::rtp;
use tidegate_core::{Body, Datagram, Frame, Kind, Size, Time};

impl Sender {
    /// Bytes of RTP sent so far, headers included.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.streams.iter().map(|stream| stream.traffic().bytes).sum()
    }

    /// Sends all packets that may leave now.
    pub(super) fn drain(&mut self, now: Time, path: &Path, out: &mut dyn Driver) {
        while self.packets_left > 0
            && let Some(turn) = self.pacer.turn(now, self.in_flight())
        {
            self.send(now, turn, path, out);
            if out.has_failed() {
                return;
            }
        }
    }

    fn send(&mut self, now: Time, turn: Turn, path: &Path, out: &mut dyn Driver) {
        let padding = self.streams.len() - 1;
        let (index, mut payload, probe) = match turn {
            Turn::Media(packet, probe) => (usize::from(packet.stream), packet.payload, probe),
            Turn::Padding(probe) => (padding, u16::from(self.padding_payload), probe),
            // the last byte of padding holds its length, so that one byte is the minimum (RFC 3550 section 5.1)
            Turn::Heartbeat => (padding, 1, None),
        };
        let sequence = self.history.next();
        let marks = match turn {
            Turn::Media(packet, _) if self.streams[index].extensions.marks => {
                Some(Marks::of_frame(packet.frame_position()))
            }
            _ => None,
        };
        let stamp = self.stamp(now, sequence, payload, marks, out);
        let unmarked_header = match &stamp {
            None => self.header,
            stamp => self.extensions.header_len(None, stamp.as_ref()),
        };
        let header = match (&stamp, marks) {
            (_, None) => unmarked_header,
            (None, marks) => self.header_with(marks),
            (stamp, marks) => self.extensions.header_len(marks, stamp.as_ref()),
        };
        if let (Turn::Media(..), Some(packet_size)) = (turn, self.streams[index].packet_size()) {
            if packet_size <= header {
                let name = &self.name;
                out.fail(format!(
                    "{name} at {now}: RTP packets of {packet_size} bytes have no room for a payload: \
                     their header alone has {header} bytes"
                ));
                return;
            }
            // the first packet was cut before its stamp was known
            payload = u16::try_from(packet_size - header).unwrap_or(u16::MAX);
        }
        if unmarked_header != self.stamped_header {
            self.set_header(now, unmarked_header);
        }
        let size = u32::from(payload) + header;
        let limit = largest_rtp(path.overhead);
        if size > limit {
            let name = &self.name;
            out.fail(format!(
                "controller of {name} at {now}: an RTP packet with the stamp has {size} bytes; \
                 at most {limit} bytes fit an IP packet"
            ));
            return;
        }
        let stream = &mut self.streams[index];
        stream.bytes += u64::from(size);
        let rtp_sequence = stream.sent(sequence, !matches!(turn, Turn::Media(..)), payload);
        let ecn = self.codepoint(now, path);
        self.sent_with(index, rtp_sequence, ecn);
        let stream = &self.streams[index];
        let (timestamp, frame, original) = match turn {
            Turn::Media(packet, _) => (packet.timestamp, packet.frame_position(), packet.original),
            Turn::Padding(_) | Turn::Heartbeat => (stream.timestamp(now), Frame::default(), 0),
        };
        let (signalled, extensions) = (stream.signalled, self.extensions);
        let abs_send_time = extensions.abs_send_time.then(|| {
            let local = Time::from_nanos(path.clock.date(now).as_nanos());
            let [_, time @ ..] = rtp::abs_send_time(local).to_be_bytes();
            time
        });
        let is_padding = signalled.kind == MediaKind::Padding;
        let is_video = matches!(signalled.kind, MediaKind::Video | MediaKind::Retransmission);
        let body = RtpBody {
            timestamp,
            ssrc: signalled.ssrc,
            sequence: rtp_sequence,
            original,
            transport_sequence: extensions.transport_sequence.then_some(sequence as u16),
            abs_send_time,
            marks,
            payload_type: signalled.payload_type,
            padding: if is_padding { payload as u8 } else { 0 },
            marker: is_video && frame.is_last(),
        };
        let kind = match signalled.kind {
            MediaKind::Video => Kind::Video,
            MediaKind::Audio => Kind::Audio,
            MediaKind::Padding => Kind::Padding,
            MediaKind::Retransmission => Kind::Retransmission,
            MediaKind::Parity => Kind::Repair,
        };
        let media = matches!(kind, Kind::Video | Kind::Audio);
        if let (true, Turn::Media(packet, _)) = (media, turn) {
            out.record().paced(now, self.flow, now - packet.since);
        }
        let parity =
            self.repair.as_mut().filter(|_| kind == Kind::Repair).and_then(SenderRepair::parity_leaves);
        let protects = kind == Kind::Video && self.repair.as_ref().is_some_and(SenderRepair::protects);
        let protected =
            if protects { datagram::protected(&body, stamp.as_ref()) } else { Protected::default() };
        let datagram = Datagram {
            size: size + path.overhead,
            ecn,
            body: Body::Rtp(body),
            attachment: match parity {
                Some(parity) => Some(Arc::new(Attachment::Parity(parity, stamp))),
                None => stamp.map(|stamp| Arc::new(Attachment::Extension(stamp))),
            },
            ..Datagram::default()
        };
        out.send(now, datagram, DatagramInfo { flow: self.flow, kind, frame });
        if media {
            self.packets_left -= 1;
            if self.packets_left == 0 {
                self.stop = now;
            }
        }

        debug_assert_eq!(sequence, self.history.next(), "each packet has the number that was drawn for it");
        let counted = self.counted(size);
        self.history.sent(now, size + self.below, probe, ecn.is_capable());
        self.pacer.sent(now, counted, probe.is_some());
        if let (true, Turn::Media(packet, _)) = (self.repair.is_some(), turn) {
            let packet = Queued { payload, ..packet };
            self.note_repair(now, &Leaving { packet, kind, body, protected, header, counted });
        }
        self.app_limit.sent(now, counted);
        if let Life::Running(host) = &self.life
            && host.needs_sent()
        {
            let sent = Sent {
                sequence,
                size: counted,
                in_flight: self.history.in_flight(),
                backlog: self.pacer.backlog(),
            };
            self.call(now, out, false, |host| host.sent(now, &sent));
        }
    }

    /// Size that rates and the controller count for an RTP packet of `size` bytes.
    fn counted(&self, size: u32) -> Size {
        Size::from_bytes(u64::from(size + self.below))
    }

    /// Bytes of an RTP header with these marks and no stamp.
    fn header_with(&self, marks: Option<Marks>) -> u32 {
        marks.map_or(self.header, |marks| self.marked_header[usize::from(marks.has_structure())])
    }

    fn stamp(
        &mut self,
        now: Time,
        sequence: u64,
        payload: u16,
        marks: Option<Marks>,
        out: &mut dyn Driver,
    ) -> Option<Extension> {
        let header = self.header_with(marks);
        let size = self.counted(u32::from(payload) + header);
        let Life::Running(host) = &mut self.life else { return None };
        let outgoing = Outgoing { sequence, size, backlog: self.pacer.backlog() };
        let stamp = host.stamp(now, &outgoing)?;
        if stamp.id == 0 || stamp.data.len() > 255 || Extensions::uses(stamp.id) {
            let (name, id, length) = (&self.name, stamp.id, stamp.data.len());
            out.fail(format!(
                "controller of {name} at {now}: the stamp has id {id} and {length} bytes; the id must be from 1 to \
                 255 and not {ABS_SEND_TIME_ID}, {TRANSPORT_SEQUENCE_ID} or {MARKS_ID}, the data at most 255 bytes"
            ));
            return None;
        }
        Some(stamp)
    }
}
