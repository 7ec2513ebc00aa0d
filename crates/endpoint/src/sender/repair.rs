//! The sender's part in repair: answers to requests, parity, key frames, and the rate that these leave for media.

use super::Sender;
use crate::packetizer::{Extensions, Queued};
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
    /// Index of the retransmission stream, and what it sends from.
    resend: Option<(u8, Resend)>,
    /// Index of the parity stream, and what makes it.
    parity: Option<(u8, Encoder)>,
    share: Share,
    /// The least time between two key frames that were asked for, and when the last one was.
    key_interval: Option<Span>,
    key_asked: Option<Time>,
}

impl SenderRepair {
    /// `None` where nothing is repaired.
    pub(super) fn new(settings: &SendSettings) -> Option<Self> {
        let signalled = settings.signalled();
        let index = |kind| signalled.iter().position(|stream| stream.kind == kind);
        let repair = settings.repair;
        let resend = repair.nack.zip(index(MediaKind::Retransmission));
        let parity = repair.fec.zip(index(MediaKind::Parity));
        (resend.is_some() || parity.is_some() || repair.pli.is_some()).then_some(Self {
            video: index(MediaKind::Video)?,
            resend: resend.map(|(nack, index)| (index as u8, Resend::new(nack.keep))),
            parity: parity.map(|(fec, index)| (index as u8, Encoder::new(fec))),
            share: Share::new(repair.fec),
            key_interval: repair.pli.map(|pli| pli.interval),
            key_asked: None,
        })
    }

    /// Lets time pass; says whether what is left for media may be another rate now.
    pub(super) fn pass(&mut self, now: Time) -> bool {
        self.share.pass(now)
    }

    /// What is left for media of the rate `target`.
    pub(super) fn media(&self, target: Rate) -> Rate {
        self.share.media(target)
    }

    /// A round trip was measured.
    pub(super) fn round(&mut self, round: Span) {
        if let Some((_, resend)) = &mut self.resend {
            resend.round(round);
        }
    }

    pub(super) fn route_changed(&mut self) {
        if let Some((_, resend)) = &mut self.resend {
            resend.route_changed();
        }
    }

    /// Whether a key frame that is asked for at `now` is to be made.
    pub(super) fn makes_key(&mut self, now: Time) -> bool {
        let (Some(interval), Some(last)) = (self.key_interval, self.key_asked) else {
            self.key_asked = Some(now);
            return true;
        };
        let late = now - last >= interval;
        if late {
            self.key_asked = Some(now);
        }
        late
    }

    /// Whether video is protected by parity.
    pub(super) fn protects(&self) -> bool {
        self.parity.is_some()
    }

    /// What the next packet of parity to leave contains.
    pub(super) fn parity_leaves(&mut self) -> Option<Parity> {
        self.parity.as_mut().and_then(|(_, encoder)| encoder.leaves())
    }
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    /// As it waited, with the payload that it really has.
    pub(super) packet: Queued,
    pub(super) kind: Kind,
    pub(super) body: RtpBody,
    /// The first bytes behind its fixed header, where parity protects it.
    pub(super) protected: Protected,
    /// Bytes of its header, and as rates count it.
    pub(super) header: u32,
    pub(super) counted: Size,
}

impl Sender {
    /// Answers what is asked for, as long as retransmission does not fill more than the target.
    pub(super) fn nack(&mut self, now: Time, nack: &Nack) {
        let Some(repair) = &mut self.repair else { return };
        let Some((stream, resend)) = &mut repair.resend else { return };
        if self.streams[repair.video].signalled.ssrc != nack.media_ssrc {
            return;
        }
        repair.share.pass(now);
        for sequence in nack.lost() {
            let least = Size::from_bytes(1);
            if !repair.share.allows(self.decision.target, self.pacer.resent_backlog(), least) {
                return;
            }
            if let Some(packet) = resend.answer(now, sequence, *stream) {
                self.pacer.push_resent(packet);
            }
        }
    }

    /// Takes note of a packet that leaves: video is kept and protected, and everything counted.
    pub(super) fn note_repair(&mut self, now: Time, leaving: &Leaving) {
        let Some(repair) = &mut self.repair else { return };
        let Leaving { packet, kind, body, protected, header, counted } = *leaving;
        let what = match kind {
            Kind::Video => Use::Media,
            Kind::Retransmission => Use::Resent,
            Kind::Repair => Use::Parity,
            _ => return,
        };
        repair.share.sent(now, what, counted);
        match (&mut repair.resend, what) {
            (Some((_, resend)), Use::Media) => resend.sent(now, body.sequence, packet),
            (Some((_, resend)), Use::Resent) => resend.left(now, packet.original),
            _ => {}
        }
        if let (Some((stream, encoder)), Use::Media) = (&mut repair.parity, what) {
            // what is behind the fixed header, extensions included, is protected
            let length = u32::from(packet.payload) + header - Extensions::NONE_LEN;
            let length = u16::try_from(length).unwrap_or(u16::MAX);
            let what = parity::Header::of(&body, protected, length);
            if encoder.add(body.sequence, what, packet.place().is_last()) {
                for made in encoder.close(Queued { since: now, ..packet }, *stream) {
                    self.pacer.push(false, made);
                }
            }
        }
    }
}
