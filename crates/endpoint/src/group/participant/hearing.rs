//! Packets that a participant receives from other members.

use super::super::flow;
use super::super::source::Missing;
use super::{AFB, Life, PSFB, Participant, Pending, RETENTION, Source};
use crate::rtcp::schedule::Chance;
use tidegate_core::Time;
use tidegate_core::datagram::RtpBody;
use tidegate_core::driver::Driver;
use tidegate_core::record::Reporting;
use tidegate_core::wire::ntp;
use tidegate_core::wire::rtcp::{self, ReportBlock, Unknown};

impl Participant {
    /// Index of the source with this SSRC, in the order of flows; adds the source if it is new.
    fn source(&mut self, ssrc: u32) -> usize {
        let found = self.sources.binary_search_by_key(&flow(ssrc), |source| source.flow);
        found.unwrap_or_else(|index| {
            self.sources.insert(index, Source::new(ssrc, self.settings.segments));
            // the indices behind it have moved
            for loss in &mut self.pending {
                loss.source += usize::from(loss.source >= index);
            }
            index
        })
    }

    pub(super) fn rtp(&mut self, now: Time, body: &RtpBody, avoids: &[u16], out: &mut dyn Driver) {
        if self.members.heard(now, body.ssrc, true) {
            self.count(now);
        }
        let index = self.source(body.ssrc);
        let mut lost = std::mem::take(&mut self.lost);
        let source = &mut self.sources[index];
        let sequence = source.packet(now, body, &mut lost);
        for detected in source.repaired(sequence, avoids) {
            out.record().recovered(now, self.settings.flow, now - detected);
        }
        // a packet that was taken for lost may only have been late
        let waiting = self.pending.len();
        self.pending.retain(|loss| (loss.source, loss.sequence) != (index, sequence));
        if self.pending.is_empty() && waiting > 0 {
            self.schedule.cancel_early();
        }
        if !lost.is_empty() && self.settings.reports_losses {
            self.missed(now, index, &lost, out);
        }
        self.lost = lost;
    }

    /// Reports losses of a source, unless another member has reported them.
    fn missed(&mut self, now: Time, index: usize, lost: &[Missing], out: &mut dyn Driver) {
        let (media_ssrc, rtt) = (self.sources[index].ssrc, self.sources[index].rtt);
        let mut chance = None;
        for &missing in lost {
            let Missing { sequence, detected } = missing;
            self.sources[index].damage(missing);
            let loss = Pending { source: index, sequence, detected };
            let same = |&(time, ssrc, reported): &(Time, u32, u16)| {
                (ssrc, reported) == (media_ssrc, sequence as u16) && now - time <= RETENTION
            };
            if self.reported.iter().any(same) {
                self.record_loss(now, &loss, Reporting::Suppressed, out);
                continue;
            }
            // losses that are detected at the same time are one feedback (RFC 4585 section 3.5.2)
            let chance =
                *chance.get_or_insert_with(|| self.schedule.feedback(now, rtt, || self.rng.uniform()));
            match chance {
                Chance::No => self.record_loss(now, &loss, Reporting::NotAllowed, out),
                Chance::Early(_) | Chance::Regular => self.pending.push(loss),
            }
        }
        if chance == Some(Chance::Early(now)) && !self.pending.is_empty() {
            self.send_early(now, out);
        }
    }

    pub(super) fn rtcp(&mut self, now: Time, bytes: &[u8], size: u32, out: &mut dyn Driver) {
        // a packet that cannot be parsed is as good as lost: hostile bytes must not end a run
        let Ok(packets) = rtcp::decode(bytes) else { return };
        let Some(speaker) = rtcp::speaker(&packets) else { return };
        let said_goodbye = packets.iter().any(|packet| matches!(packet, rtcp::Packet::Bye(_)));
        if self.life == Life::Leaving {
            if said_goodbye {
                self.schedule.heard_goodbye(size);
            }
            return;
        }
        self.schedule.received(size);
        let mut changed = !said_goodbye && self.members.heard(now, speaker, false);
        for packet in packets {
            match packet {
                rtcp::Packet::SenderReport(report) => {
                    if self.settings.declared_senders {
                        changed |= self.members.heard(now, report.ssrc, true);
                    }
                    let index = self.source(report.ssrc);
                    self.sources[index].reception.sender_report(now, report.middle());
                    self.round_trip(now, index, &report.blocks);
                }
                rtcp::Packet::ReceiverReport(report)
                    if report.blocks.iter().any(|block| block.ssrc == self.ssrc) =>
                {
                    let index = self.source(report.ssrc);
                    self.round_trip(now, index, &report.blocks);
                }
                rtcp::Packet::Bye(bye) => {
                    for ssrc in bye.ssrcs {
                        changed |= self.members.bye(now, ssrc);
                    }
                }
                rtcp::Packet::Nack(nack) => {
                    for sequence in nack.lost() {
                        self.note_report(now, nack.media_ssrc, sequence, out);
                    }
                }
                rtcp::Packet::Unknown(unknown) => self.newpred(now, &unknown, out),
                _ => {}
            }
        }
        if changed {
            self.count(now);
        }
    }

    /// Notes the round-trip time that follows from a report on us.
    fn round_trip(&mut self, now: Time, index: usize, blocks: &[ReportBlock]) {
        let clock = ntp::short(self.settings.clock.date(now));
        let ours = blocks.iter().filter(|block| block.ssrc == self.ssrc);
        if let Some(rtt) = ours.filter_map(|block| block.round_trip(clock)).next() {
            self.sources[index].rtt = Some(rtt);
        }
    }

    /// Notes that another member has reported a loss.
    fn note_report(&mut self, now: Time, media_ssrc: u32, sequence: u16, out: &mut dyn Driver) {
        if media_ssrc == self.ssrc {
            if let Some(sent) = self.media.as_mut().and_then(|media| media.reported(sequence)) {
                out.record().loss_reported(now, self.settings.flow, now - sent);
            }
            return;
        }
        while self.reported.front().is_some_and(|&(time, ..)| now - time > RETENTION) {
            self.reported.pop_front();
        }
        self.reported.push_back((now, media_ssrc, sequence));
        let same =
            |loss: &Pending| self.sources[loss.source].ssrc == media_ssrc && loss.sequence as u16 == sequence;
        let Some(index) = self.pending.iter().position(same) else { return };
        let loss = self.pending.remove(index);
        self.record_loss(now, &loss, Reporting::Suppressed, out);
        if self.pending.is_empty() {
            self.schedule.cancel_early();
        }
    }

    /// Notes the losses in `unknown` if it is a NEWPRED message.
    fn newpred(&mut self, now: Time, unknown: &Unknown, out: &mut dyn Driver) {
        let (PSFB, AFB, Some(segments)) = (unknown.packet_type, unknown.count, self.settings.segments) else {
            return;
        };
        let word = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let mut words = unknown.body.chunks_exact(4).map(word);
        let (Some(_), Some(media_ssrc)) = (words.next(), words.next()) else { return };
        for entry in words {
            let (picture, segment) = ((entry >> 16) as u16, entry as u16);
            let sequence = picture.wrapping_mul(segments).wrapping_add(segment);
            self.note_report(now, media_ssrc, sequence, out);
        }
    }
}
