//! One member of a session: it joins, sends, reports and leaves.

mod hearing;

use super::media::{Media, OutgoingPacket};
use super::source::{Missing, Source};
use super::{Leave, ParticipantSettings, RTP_HEADER, ssrc};
use crate::rtcp::members::Members;
use crate::rtcp::schedule::{Due, Profile, Schedule, Timing};
use crate::settings::{RtcpMode, SettingsError, VIDEO_CLOCK};
use std::collections::VecDeque;
use std::sync::Arc;
use tidegate_core::datagram::{Attachment, RtpBody};
use tidegate_core::driver::{DatagramInfo, Driver, Peer};
use tidegate_core::record::{LossRecord, Reporting, RtcpRecord};
use tidegate_core::rng::Draws;
use tidegate_core::wire::ntp;
use tidegate_core::wire::rtcp::{self, Bye, Nack, ReceiverReport, ReportBlock, Sdes, SenderReport, Unknown};
use tidegate_core::{Body, Datagram, Frame, Kind, Size, Span, Stream, Time};

/// Report blocks in one report (RFC 3550 section 6.4.1).
const BLOCKS_MAX: usize = 31;
/// Assumed size of the first RTCP packet in bytes: a report with one block, a short name, headers.
const FIRST_SIZE: u32 = 32 + 16 + 28;
/// Time for which reports of other members are remembered (T_retention, RFC 4585 section 3.5.2: at least 2 s).
const RETENTION: Span = Span::from_secs(2);
/// Application layer feedback (RFC 4585 section 6.4), in which NEWPRED messages travel.
const PSFB: u8 = 206;
const AFB: u8 = 15;

/// A loss that is to be reported.
#[derive(Clone, Copy, Debug)]
struct Pending {
    source: usize,
    sequence: i64,
    detected: Time,
}

/// Phase of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    Waiting,
    Member,
    /// Its goodbye waits.
    Leaving,
    Gone,
}

/// One member of a session.
pub struct Participant {
    settings: ParticipantSettings,
    ssrc: u32,
    life: Life,
    schedule: Schedule,
    rng: Stream,
    members: Members,
    media: Option<Media>,
    /// When it sent RTP last.
    last_rtp: Option<Time>,
    has_sent: bool,
    /// Times of the last two reports: a member that has sent RTP since the earlier one makes a sender report.
    reports: [Time; 2],
    sources: Vec<Source>,
    /// Index of the first source in the next report, if not all fit.
    next_reported: usize,
    pending: Vec<Pending>,
    /// Recent reports of other members: time, SSRC of the source, and sequence number.
    reported: VecDeque<(Time, u32, u16)>,
    lost: Vec<Missing>,
    rtp_bytes: u64,
    wakeup: Time,
}

impl Participant {
    /// # Errors
    /// When a setting makes no sense; the error names it.
    pub fn new(settings: ParticipantSettings) -> Result<Self, SettingsError> {
        settings.check()?;
        let rtcp = &settings.rtcp;
        let timing = Timing {
            profile: match rtcp.mode {
                RtcpMode::Avpf => Profile::Avpf(rtcp.avpf),
                RtcpMode::Avp | RtcpMode::Free => Profile::Avp,
            },
            session: rtcp.session_bandwidth,
            minimum: rtcp.minimum.span(rtcp.session_bandwidth),
            first_size: FIRST_SIZE,
        };
        Ok(Self {
            ssrc: ssrc(settings.flow),
            life: Life::Waiting,
            schedule: Schedule::new(&timing),
            rng: Stream::new(settings.seed, &settings.name, "rtcp"),
            members: Members::default(),
            media: settings.media.map(|media| Media::new(media, settings.overhead, settings.join)),
            last_rtp: None,
            has_sent: false,
            reports: [settings.join; 2],
            sources: Vec::new(),
            next_reported: 0,
            pending: Vec::new(),
            reported: VecDeque::new(),
            lost: Vec::new(),
            rtp_bytes: 0,
            wakeup: settings.join,
            settings,
        })
    }

    fn update_wakeup(&mut self) {
        self.wakeup = match self.life {
            Life::Waiting => self.settings.join,
            Life::Member => {
                let leave = self.settings.leave.map_or(Time::MAX, |(time, _)| time);
                let media = self.media.as_ref().map_or(Time::MAX, Media::due);
                self.schedule.due().min(leave).min(media)
            }
            Life::Leaving => self.schedule.due(),
            Life::Gone => Time::MAX,
        };
    }

    /// Whether it counts as a sender now.
    fn we_sent(&self, now: Time) -> bool {
        let lately = self.last_rtp.is_some_and(|time| now - time <= self.schedule.sender_timeout());
        self.settings.declared_sender || lately
    }

    /// Updates the numbers of members and senders in the schedule.
    fn count(&mut self, now: Time) {
        let we_sent = self.we_sent(now);
        self.schedule.set_members(now, self.members.count());
        self.schedule.set_senders(self.members.senders() + u32::from(we_sent), we_sent);
    }

    fn join(&mut self, now: Time) {
        self.life = Life::Member;
        self.count(now);
        let members = self.members.count();
        self.schedule.join(now, members, || self.rng.uniform());
    }

    fn leave(&mut self, now: Time, leave: Leave, out: &mut dyn Driver) {
        self.pending.clear();
        if leave == Leave::Crash || !self.has_sent {
            // a member that has never sent a packet must not say goodbye (RFC 3550 section 6.3.7)
            self.depart();
            return;
        }
        let goodbye = self.goodbye(now);
        let mut bytes = Vec::new();
        let size = match rtcp::encode(&goodbye, &mut bytes) {
            Ok(()) => bytes.len() as u32 + self.settings.overhead,
            Err(_) => FIRST_SIZE,
        };
        if self.schedule.goodbye(now, size, || self.rng.uniform()) {
            self.send_rtcp(now, &goodbye, Span::ZERO, out);
            self.depart();
        } else {
            self.life = Life::Leaving;
        }
    }

    fn depart(&mut self) {
        self.life = Life::Gone;
        self.schedule.leave();
    }

    fn goodbye(&mut self, now: Time) -> Vec<rtcp::Packet> {
        let blocks = self.blocks(now);
        let mut packets = self.report(now, blocks);
        packets.push(rtcp::Packet::Bye(Bye { ssrcs: vec![self.ssrc], reason: None }));
        packets
    }

    fn send_media(&mut self, now: Time, out: &mut dyn Driver) {
        let Some(media) = &mut self.media else { return };
        let (size, timestamp) =
            (media.size(), self.settings.clock.settings.drift.rtp_timestamp(now, VIDEO_CLOCK));
        let OutgoingPacket { sequence, frame, avoids } = media.take(now);
        let body = Body::Rtp(RtpBody {
            timestamp,
            ssrc: self.ssrc,
            sequence,
            payload_type: 96,
            marker: frame.is_last(),
            ..RtpBody::default()
        });
        let datagram = Datagram { size, body, attachment: avoids, ..Datagram::default() };
        self.rtp_bytes += u64::from(size - self.settings.overhead - RTP_HEADER);
        out.send(now, datagram, DatagramInfo { flow: self.settings.flow, kind: Kind::Video, frame });
        self.has_sent = true;
        if self.last_rtp.replace(now).is_none() {
            self.count(now);
        }
    }

    /// The report blocks on the sources that were heard of since the last report.
    fn blocks(&mut self, now: Time) -> Vec<ReportBlock> {
        let mut blocks = Vec::new();
        let count = self.sources.len();
        for step in 0..count {
            let index = (self.next_reported + step) % count;
            let reception = &mut self.sources[index].reception;
            let echo = self.settings.declared_senders.then(|| reception.echo(now)).flatten();
            if let Some(block) = reception.block(now).or(echo) {
                blocks.push(block);
                if blocks.len() == BLOCKS_MAX {
                    self.next_reported = (index + 1) % count;
                    break;
                }
            }
        }
        blocks
    }

    /// A report with these blocks, and a source description.
    fn report(&mut self, now: Time, blocks: Vec<ReportBlock>) -> Vec<rtcp::Packet> {
        let [before, last] = self.reports;
        self.reports = [last, now];
        let sent = self.last_rtp.is_some_and(|time| time >= before);
        let report = if self.settings.declared_sender || sent {
            rtcp::Packet::SenderReport(SenderReport {
                ssrc: self.ssrc,
                ntp: ntp::timestamp(self.settings.clock.date(now)),
                rtp_timestamp: self.settings.clock.settings.drift.rtp_timestamp(now, VIDEO_CLOCK),
                packet_count: self.media.as_ref().map_or(0, Media::packets) as u32,
                octet_count: self.rtp_bytes as u32,
                blocks,
                ..SenderReport::default()
            })
        } else {
            rtcp::Packet::ReceiverReport(ReceiverReport { ssrc: self.ssrc, blocks, ..Default::default() })
        };
        vec![report, rtcp::Packet::Sdes(Sdes::cname(self.ssrc, &self.settings.cname))]
    }

    /// Takes the pending feedback, as messages, and the time that its oldest part has waited; records how it is sent.
    fn feedback(
        &mut self,
        now: Time,
        reporting: Reporting,
        out: &mut dyn Driver,
    ) -> (Vec<rtcp::Packet>, Span) {
        let mut messages = Vec::new();
        let mut waited = Span::ZERO;
        let pending = std::mem::take(&mut self.pending);
        for (index, source) in self.sources.iter().enumerate() {
            let lost: Vec<i64> =
                pending.iter().filter(|loss| loss.source == index).map(|loss| loss.sequence).collect();
            if lost.is_empty() {
                continue;
            }
            match self.settings.segments {
                None => {
                    let lost: Vec<u16> = lost.iter().map(|&sequence| sequence as u16).collect();
                    messages.push(rtcp::Packet::Nack(Nack::new(self.ssrc, source.ssrc, &lost)));
                }
                Some(segments) => newpred(self.ssrc, source.ssrc, &lost, segments, &mut messages),
            }
        }
        for loss in &pending {
            waited = waited.max(now - loss.detected);
            self.record_loss(now, loss, reporting, out);
        }
        // keeps the buffer
        self.pending = pending;
        self.pending.clear();
        (messages, waited)
    }

    fn record_loss(&self, now: Time, loss: &Pending, reporting: Reporting, out: &mut dyn Driver) {
        let Pending { source, sequence, detected } = *loss;
        let source = self.sources[source].flow;
        let (flow, sequence) = (self.settings.flow, sequence as u16);
        out.record().loss(now, &LossRecord { flow, source, sequence, detected, reporting });
    }

    /// Sends a regular packet, or a minimal one in its place, with the pending feedback.
    fn send_regular(&mut self, now: Time, full: bool, out: &mut dyn Driver) {
        let mut packets = if full {
            let blocks = self.blocks(now);
            self.report(now, blocks)
        } else {
            self.minimal(now)
        };
        let (feedback, waited) = self.feedback(now, Reporting::Regular, out);
        packets.extend(feedback);
        let size = self.send_rtcp(now, &packets, waited, out);
        self.schedule.sent(now, size, || self.rng.uniform());
    }

    fn send_early(&mut self, now: Time, out: &mut dyn Driver) {
        let mut packets = self.minimal(now);
        let (feedback, waited) = self.feedback(now, Reporting::Early, out);
        packets.extend(feedback);
        let size = self.send_rtcp(now, &packets, waited, out);
        self.schedule.sent_early(size);
    }

    /// The packets before feedback: a report without blocks and the canonical name (RFC 4585 section 3.1), or none (RFC
    /// 5506).
    fn minimal(&mut self, now: Time) -> Vec<rtcp::Packet> {
        if self.settings.rtcp.reduced_size { Vec::new() } else { self.report(now, Vec::new()) }
    }

    /// Sends `packets` as one datagram; returns its size on the wire.
    fn send_rtcp(&mut self, now: Time, packets: &[rtcp::Packet], waited: Span, out: &mut dyn Driver) -> u32 {
        let mut bytes = Vec::with_capacity(128);
        if let Err(error) = rtcp::encode(packets, &mut bytes) {
            out.fail(format!("{} at {now}: RTCP: {error}", self.settings.name));
            return 0;
        }
        self.has_sent = true;
        let size = bytes.len() as u32 + self.settings.overhead;
        let record = RtcpRecord {
            flow: self.settings.flow,
            from_receiver: self.media.is_none(),
            size: Size::from_bytes(u64::from(size)),
            contents: rtcp::Contents::of(packets),
            waited,
        };
        out.record().rtcp(now, &record);
        let attachment = Some(Arc::new(Attachment::Rtcp(bytes)));
        let datagram = Datagram { size, body: Body::Rtcp, attachment, ..Datagram::default() };
        let info = DatagramInfo { flow: self.settings.flow, kind: Kind::Rtcp, frame: Frame::default() };
        out.send(now, datagram, info);
        size
    }
}

/// Appends a message of application layer feedback for each picture, with four bytes for each lost segment: the
/// picture's number and the segment's (draft-burmeister-avt-rtcp-feedback-sim-00 section 9.1).
fn newpred(sender: u32, media: u32, lost: &[i64], segments: u16, messages: &mut Vec<rtcp::Packet>) {
    let segments = i64::from(segments);
    for picture in lost.chunk_by(|a, b| a.div_euclid(segments) == b.div_euclid(segments)) {
        let mut body = Vec::with_capacity(8 + 4 * picture.len());
        body.extend_from_slice(&sender.to_be_bytes());
        body.extend_from_slice(&media.to_be_bytes());
        for sequence in picture {
            body.extend_from_slice(&(sequence.div_euclid(segments) as u16).to_be_bytes());
            body.extend_from_slice(&(sequence.rem_euclid(segments) as u16).to_be_bytes());
        }
        messages.push(rtcp::Packet::Unknown(Unknown { padding: false, count: AFB, packet_type: PSFB, body }));
    }
}

impl Peer for Participant {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn next_wakeup(&self) -> Option<Time> {
        (self.wakeup != Time::MAX).then_some(self.wakeup)
    }

    fn advance(&mut self, now: Time, out: &mut dyn Driver) {
        if now < self.wakeup {
            return;
        }
        if self.life == Life::Waiting {
            self.join(now);
        }
        if self.life == Life::Member {
            if let Some((_, leave)) = self.settings.leave.filter(|&(time, _)| time <= now) {
                self.leave(now, leave, out);
            } else if self.media.as_ref().is_some_and(|media| media.due() <= now) {
                self.send_media(now, out);
            }
        }
        if self.schedule.due() <= now {
            // once an interval (section 6.3.5)
            let (member_timeout, sender_timeout) =
                (self.schedule.member_timeout(), self.schedule.sender_timeout());
            self.members.time_out(now, member_timeout, sender_timeout);
            self.count(now);
            let waiting = !self.pending.is_empty();
            match self.schedule.expire(now, waiting, || self.rng.uniform()) {
                Due::Nothing => {}
                Due::Regular => self.send_regular(now, true, out),
                Due::Minimal => self.send_regular(now, false, out),
                Due::Early => self.send_early(now, out),
                Due::Goodbye => {
                    let goodbye = self.goodbye(now);
                    self.send_rtcp(now, &goodbye, Span::ZERO, out);
                    self.depart();
                }
            }
        }
        self.update_wakeup();
    }

    fn receive(&mut self, now: Time, datagram: &Datagram, out: &mut dyn Driver) {
        match self.life {
            Life::Member | Life::Leaving => {
                if let Body::Rtp(body) = &datagram.body {
                    if self.life == Life::Member {
                        let avoids = match datagram.attachment.as_deref() {
                            Some(Attachment::Avoids(avoids)) => &avoids[..],
                            _ => &[],
                        };
                        self.rtp(now, body, avoids, out);
                    }
                } else if let Some(bytes) = datagram.rtcp() {
                    self.rtcp(now, bytes, datagram.size, out);
                }
                self.update_wakeup();
            }
            Life::Waiting | Life::Gone => {}
        }
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.rng.draws());
    }
}
