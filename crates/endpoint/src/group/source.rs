//! What a member knows of one of the others: its stream, what is missing of it, and how far away it is.

use super::flow;
use crate::reception::{Reception, rtp_clock};
use crate::settings::VIDEO_CLOCK;
use tidegate_core::datagram::RtpBody;
use tidegate_core::{FlowId, Span, Time};

/// A loss that nobody repairs is forgotten after so many packets: less than sequence numbers take to come again.
const FORGOTTEN: i64 = 1 << 15;

/// A packet that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) sequence: i64,
    /// When a later one arrived.
    pub(super) detected: Time,
}

/// One of the others.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) ssrc: u32,
    /// Its flow, which follows from its SSRC.
    pub(super) flow: FlowId,
    pub(super) reception: Reception,
    /// Round-trip time, from its report on us.
    pub(super) rtt: Option<Span>,
    /// The highest sequence number so far, unwrapped.
    highest: Option<i64>,
    /// Segments of a picture, if its packets form pictures.
    segments: Option<i64>,
    /// Segments that are missing of pictures that are not over yet.
    missing: Vec<Missing>,
    /// For each segment the losses that still show.
    damaged: Vec<Vec<Missing>>,
}

impl Source {
    pub(super) fn new(ssrc: u32, segments: Option<u16>) -> Self {
        Self {
            ssrc,
            flow: flow(ssrc),
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
    pub(super) fn packet(&mut self, now: Time, body: &RtpBody, lost: &mut Vec<Missing>) -> i64 {
        lost.clear();
        let sequence = self.reception.packet(now, body.sequence, body.timestamp).sequence;
        let from = match self.highest {
            None => sequence,
            Some(highest) => highest + 1,
        };
        if sequence < from && self.highest.is_some() {
            self.missing.retain(|missing| missing.sequence != sequence);
            return sequence;
        }
        self.highest = Some(sequence);
        let found = (from..sequence).map(|sequence| Missing { sequence, detected: now });
        let Some(segments) = self.segments else {
            lost.extend(found);
            return sequence;
        };
        // a picture's losses are reported together, when it is over
        self.missing.extend(found);
        let picture = sequence.div_euclid(segments);
        let over = if body.marker { picture } else { picture - 1 };
        self.missing.retain(|&missing| {
            let ended = missing.sequence.div_euclid(segments) <= over;
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

    /// A segment is missing, and what refers to it shows that.
    pub(super) fn damage(&mut self, missing: Missing) {
        if let Some(segment) = self.segment(missing.sequence) {
            let damaged = &mut self.damaged[segment];
            // nobody answers reports that were lost
            if damaged.first().is_some_and(|oldest| missing.sequence - oldest.sequence > FORGOTTEN) {
                damaged.remove(0);
            }
            damaged.push(missing);
        }
    }

    /// The times of detection of the losses that the packet `sequence` makes good, because its encoder knew of them.
    /// Where the first such segment is lost itself, the next one repairs as much: it shows that other loss, but not
    /// this one any more.
    pub(super) fn repaired(&mut self, sequence: i64, avoids: &[u16]) -> impl Iterator<Item = Time> + use<> {
        let segment = self.segment(sequence);
        let damaged = segment.filter(|_| !avoids.is_empty()).map(|segment| &mut self.damaged[segment]);
        let known = |loss: &mut Missing| avoids.contains(&(loss.sequence as u16));
        let repaired: Vec<Missing> =
            damaged.map(|losses| losses.extract_if(.., known).collect()).unwrap_or_default();
        repaired.into_iter().map(|loss| loss.detected)
    }

    /// `at` on the RTP clock of every member.
    pub(super) fn timestamp(at: Time) -> u32 {
        rtp_clock(at, VIDEO_CLOCK)
    }
}
