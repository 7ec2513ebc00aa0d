//! What a member knows of one of the others: its stream, what is missing of it, and how far away it is.

use super::ssrc;
use crate::reception::{Reception, rtp_clock};
use crate::settings::VIDEO_CLOCK;
use tidegate_core::packet::RtpBody;
use tidegate_core::{FlowId, Span, Time};

/// One of the others.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) ssrc: u32,
    /// Its flow, known from its packets.
    pub(super) flow: FlowId,
    pub(super) reception: Reception,
    /// Round-trip time, from its report on us.
    pub(super) rtt: Option<Span>,
    /// The highest sequence number so far, unwrapped.
    highest: Option<i64>,
    /// Segments of a picture, if its packets form pictures.
    segments: Option<i64>,
    /// Segments that are missing of pictures that are not over yet.
    missing: Vec<i64>,
    /// For each segment when its losses were detected that still show.
    damaged: Vec<Vec<Time>>,
}

impl Source {
    pub(super) fn new(flow: FlowId, segments: Option<u16>) -> Self {
        let ssrc = ssrc(flow);
        Self {
            ssrc,
            flow,
            reception: Reception::new(ssrc, VIDEO_CLOCK),
            rtt: None,
            highest: None,
            segments: segments.map(i64::from),
            missing: Vec::new(),
            damaged: vec![Vec::new(); segments.map_or(0, usize::from)],
        }
    }

    /// Takes in a packet and gives its sequence number, unwrapped; puts those that are now known to be missing
    /// into `lost`. Pictures are counted from the sender's first packet, so that a member that joins more
    /// than 2^16 packets later takes other segments for the same.
    pub(super) fn packet(&mut self, now: Time, body: &RtpBody, lost: &mut Vec<i64>) -> i64 {
        lost.clear();
        let sequence = self.reception.packet(now, body.sequence, body.timestamp).sequence;
        let from = match self.highest {
            None => sequence,
            Some(highest) => highest + 1,
        };
        if sequence < from && self.highest.is_some() {
            self.missing.retain(|&missing| missing != sequence);
            return sequence;
        }
        self.highest = Some(sequence);
        let Some(segments) = self.segments else {
            lost.extend(from..sequence);
            return sequence;
        };
        // a picture's losses are known together, when it is over
        self.missing.extend(from..sequence);
        let picture = sequence.div_euclid(segments);
        let over = if body.flags & RtpBody::LAST != 0 { picture } else { picture - 1 };
        self.missing.retain(|&missing| {
            let ended = missing.div_euclid(segments) <= over;
            if ended {
                lost.push(missing);
            }
            !ended
        });
        sequence
    }

    /// Which segment of a picture a packet is.
    fn segment(&self, sequence: i64) -> Option<usize> {
        self.segments.map(|segments| sequence.rem_euclid(segments) as usize)
    }

    /// A segment is missing since `now`, and what refers to it shows that.
    pub(super) fn damage(&mut self, now: Time, sequence: i64) {
        if let Some(segment) = self.segment(sequence) {
            self.damaged[segment].push(now);
        }
    }

    /// The times of detection of the losses that the packet `sequence` with these flags makes good.
    pub(super) fn mended(&mut self, sequence: i64, flags: u8) -> Vec<Time> {
        match self.segment(sequence) {
            Some(segment) if flags & RtpBody::KEY != 0 => std::mem::take(&mut self.damaged[segment]),
            _ => Vec::new(),
        }
    }

    /// `at` on the RTP clock of every member.
    pub(super) fn timestamp(at: Time) -> u32 {
        rtp_clock(at, VIDEO_CLOCK)
    }
}
