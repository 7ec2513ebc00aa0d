//! What a participant learns from the packets of others.

use super::super::flow;
use super::super::source::Missing;
use super::{AFB, Life, PSFB, Participant, Pending, RETENTION, Source};
use crate::reception::clock;
use crate::rtcp::schedule::Chance;
use tidegate_core::Time;
use tidegate_core::datagram::RtpBody;
use tidegate_core::driver::Driver;
use tidegate_core::record::Reporting;
use tidegate_core::wire::ntp;
use tidegate_core::wire::rtcp::{self, ReportBlock, Unknown};

impl Participant {
    /// The place of the source with this SSRC, in the order of flows.
    fn source(&mut self, ssrc: u32) -> usize {
        let known = self.sources.binary_search_by_key(&flow(ssrc), |source| source.flow);
        known.unwrap_or_else(|place| {
            self.sources.insert(place, Source::new(ssrc, self.settings.segments));
            // the places behind it have moved
            for loss in &mut self.pending {
                loss.source += usize::from(loss.source >= place);
            }
            place
        })
    }

    pub(super) fn rtp(&mut self, now: Time, body: &RtpBody, avoids: &[u16], out: &mut dyn Driver) {
        if self.members.heard(now, body.ssrc, true) {
            self.count(now);
        }
        let place = self.source(body.ssrc);
        let mut lost = std::mem::take(&mut self.lost);
        let source = &mut self.sources[place];
        let sequence = source.packet(now, body, &mut lost);
        for detected in source.repaired(sequence, avoids) {
            out.record().recovered(now, self.settings.flow, now - detected);
        }
        // who was thought lost may only have been late
        let waiting = self.pending.len();
        self.pending.retain(|loss| (loss.source, loss.sequence) != (place, sequence));
        if self.pending.is_empty() && waiting > 0 {
            self.schedule.cancel_early();
        }
        if !lost.is_empty() && self.settings.reports_losses {
            self.missed(now, place, &lost, out);
        }
        self.lost = lost;
    }

    /// Packets of a source are missing.
    fn missed(&mut self, now: Time, place: usize, lost: &[Missing], out: &mut dyn Driver) {
        let (reporter, rtt) = (self.sources[place].ssrc, self.sources[place].rtt);
        let mut chance = None;
        for &missing in lost {
            let Missing { sequence, detected } = missing;
            self.sources[place].damage(missing);
            let loss = Pending { source: place, sequence, detected };
            let same = |&(at, ssrc, other): &(Time, u32, u16)| {
                (ssrc, other) == (reporter, sequence as u16) && now - at <= RETENTION
            };
            if self.heard.iter().any(same) {
                self.tell(now, &loss, Reporting::Suppressed, out);
                continue;
            }
            // what is detected at one time is one feedback (RFC 4585 section 3.5.2)
            let chance =
                *chance.get_or_insert_with(|| self.schedule.feedback(now, rtt, || self.luck.uniform()));
            match chance {
                Chance::No => self.tell(now, &loss, Reporting::NotAllowed, out),
                Chance::Early(_) | Chance::Regular => self.pending.push(loss),
            }
        }
        if chance == Some(Chance::Early(now)) && !self.pending.is_empty() {
            self.send_early(now, out);
        }
    }

    pub(super) fn rtcp(&mut self, now: Time, bytes: &[u8], size: u32, out: &mut dyn Driver) {
        // what cannot be read is as good as lost: hostile bytes must not end a run
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
                    let place = self.source(report.ssrc);
                    self.sources[place].reception.sender_report(now, report.middle());
                    self.round_trip(now, place, &report.blocks);
                }
                rtcp::Packet::ReceiverReport(report)
                    if report.blocks.iter().any(|block| block.ssrc == self.ssrc) =>
                {
                    let place = self.source(report.ssrc);
                    self.round_trip(now, place, &report.blocks);
                }
                rtcp::Packet::Bye(bye) => {
                    for ssrc in bye.ssrcs {
                        changed |= self.members.bye(now, ssrc);
                    }
                }
                rtcp::Packet::Nack(nack) => {
                    for sequence in nack.lost() {
                        self.reported(now, nack.media_ssrc, sequence, out);
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

    /// Takes the round-trip time from a report on us.
    fn round_trip(&mut self, now: Time, place: usize, blocks: &[ReportBlock]) {
        let clock = ntp::short(clock(now, self.settings.clock_offset));
        let own = blocks.iter().filter(|block| block.ssrc == self.ssrc);
        if let Some(rtt) = own.filter_map(|block| block.round_trip(clock)).next() {
            self.sources[place].rtt = Some(rtt);
        }
    }

    /// Somebody has reported a loss.
    fn reported(&mut self, now: Time, media_ssrc: u32, sequence: u16, out: &mut dyn Driver) {
        if media_ssrc == self.ssrc {
            if let Some(sent) = self.media.as_mut().and_then(|media| media.reported(sequence)) {
                out.record().loss_reported(now, self.settings.flow, now - sent);
            }
            return;
        }
        while self.heard.front().is_some_and(|&(at, ..)| now - at > RETENTION) {
            self.heard.pop_front();
        }
        self.heard.push_back((now, media_ssrc, sequence));
        let same =
            |loss: &Pending| self.sources[loss.source].ssrc == media_ssrc && loss.sequence as u16 == sequence;
        let Some(place) = self.pending.iter().position(same) else { return };
        let loss = self.pending.remove(place);
        self.tell(now, &loss, Reporting::Suppressed, out);
        if self.pending.is_empty() {
            self.schedule.cancel_early();
        }
    }

    /// A NEWPRED message, if that is what it is.
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
            self.reported(now, media_ssrc, sequence, out);
        }
    }
}
