//! The sender's part in repair: retransmissions, parity, and the rate that these leave for media.

use super::Sender;
use crate::packetizer::{Extensions, Queued};
use crate::repair::Fec;
use crate::repair::parity::{self, Encoder};
use crate::repair::resend::Resend;
use crate::repair::share::{Share, Use};
use crate::settings::{MediaKind, SendSettings};
use tidegate_core::datagram::{Parity, Protected, RtpBody};
use tidegate_core::wire::rtcp::Nack;
use tidegate_core::{Kind, Rate, Size, Span, Time};

/// Repair of the video stream.
#[derive(Debug)]
pub(super) struct SenderRepair {
    /// Index of the stream.
    video: usize,
    /// Index of the retransmission stream, and the packets that it may send.
    resend: Option<(u8, Resend)>,
    /// Index of the parity stream, and its encoder.
    parity: Option<(u8, Encoder)>,
    share: Share,
    /// The parity that is set, and whether repair goes on.
    fec: Option<Fec>,
    on: bool,
}

impl SenderRepair {
    /// `None` where nothing is repaired.
    pub(super) fn new(settings: &SendSettings) -> Option<Self> {
        let signalled = settings.signalled();
        let index = |kind| signalled.iter().position(|stream| stream.kind == kind);
        let repair = settings.repair;
        let resend = repair.nack.zip(index(MediaKind::Retransmission));
        let parity = repair.fec.zip(index(MediaKind::Parity));
        (resend.is_some() || parity.is_some()).then_some(Self {
            video: index(MediaKind::Video)?,
            resend: resend.map(|(nack, index)| (index as u8, Resend::new(nack.keep))),
            parity: parity.map(|(fec, index)| (index as u8, Encoder::new(fec))),
            share: Share::new(repair.fec),
            fec: repair.fec,
            on: true,
        })
    }

    /// Ends repair, or begins it anew.
    pub(super) fn switch(&mut self, on: bool) {
        if on == self.on {
            return;
        }
        self.on = on;
        self.share = Share::new(self.fec.filter(|_| on));
        if let Some((_, encoder)) = &mut self.parity {
            encoder.restart();
        }
    }

    /// Lets time pass; returns whether the rate for media may have changed.
    pub(super) fn pass(&mut self, now: Time) -> bool {
        self.share.pass(now)
    }

    /// The part of the rate `target` that repair leaves for media.
    pub(super) fn media_rate(&self, target: Rate) -> Rate {
        self.share.media_rate(target)
    }

    /// Notes the round trip of a receiver report.
    pub(super) fn set_rtt(&mut self, now: Time, rtt: Span) {
        if let Some((_, resend)) = &mut self.resend {
            resend.set_rtt(now, rtt);
        }
    }

    pub(super) fn route_changed(&mut self) {
        if let Some((_, resend)) = &mut self.resend {
            resend.route_changed();
        }
    }

    /// Whether video is protected by parity.
    pub(super) fn protects(&self) -> bool {
        self.parity.is_some()
    }

    /// Takes the contents of the next packet of parity to leave.
    pub(super) fn parity_leaves(&mut self) -> Option<Parity> {
        self.parity.as_mut().and_then(|(_, encoder)| encoder.leaves())
    }
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    /// The packet as it was queued, with its final payload size.
    pub(super) packet: Queued,
    pub(super) kind: Kind,
    pub(super) body: RtpBody,
    /// The first bytes behind its fixed header, where parity protects it.
    pub(super) protected: Protected,
    /// Bytes of its header, and of all of it as rates count them.
    pub(super) header: u32,
    pub(super) counted: Size,
}

impl Sender {
    /// Queues the requested packets, as long as retransmission does not fill more than the target.
    pub(super) fn nack(&mut self, now: Time, nack: &Nack) {
        let Some(repair) = self.repair.as_mut().filter(|repair| repair.on) else { return };
        let Some((stream, resend)) = &mut repair.resend else { return };
        if self.streams[repair.video].signalled.ssrc != nack.media_ssrc {
            return;
        }
        repair.share.pass(now);
        for sequence in nack.lost() {
            let minimum = Size::from_bytes(1);
            if !repair.share.allows(self.decision.target, self.pacer.resent_backlog(), minimum) {
                return;
            }
            if let Some(packet) = resend.retransmit(now, sequence, *stream) {
                self.pacer.push_resent(packet);
            }
        }
    }

    /// Keeps and protects a packet of video that leaves, and counts media and repair.
    pub(super) fn note_repair(&mut self, now: Time, leaving: &Leaving) {
        let Some(repair) = &mut self.repair else { return };
        let Leaving { packet, kind, body, protected, header, counted } = *leaving;
        let usage = match kind {
            Kind::Video => Use::Media,
            Kind::Retransmission => Use::Resent,
            Kind::Repair => Use::Parity,
            _ => return,
        };
        repair.share.sent(now, usage, counted);
        match (&mut repair.resend, usage) {
            (Some((_, resend)), Use::Media) => resend.sent(now, body.sequence, packet),
            (Some((_, resend)), Use::Resent) => resend.resent(now, packet.original),
            _ => {}
        }
        let protects = repair.on && usage == Use::Media;
        if let Some((stream, encoder)) = repair.parity.as_mut().filter(|_| protects) {
            // all behind the fixed header, extensions included, is protected
            let length = u32::from(packet.payload) + header - Extensions::NONE_LEN;
            let length = u16::try_from(length).unwrap_or(u16::MAX);
            let header = parity::Header::of(&body, protected, length);
            if encoder.add(body.sequence, header, packet.frame_position().is_last()) {
                for parity_packet in encoder.close(Queued { since: now, ..packet }, *stream) {
                    self.pacer.push(false, parity_packet);
                }
            }
        }
    }
}
