//! State that a member keeps of another one: its stream, the losses of it, and the round-trip time.

use super::flow;
use crate::reception::Reception;
use crate::settings::VIDEO_CLOCK;
use tidegate_core::datagram::RtpBody;
use tidegate_core::{FlowId, Span, Time};

/// Packets after which an unrepaired loss is forgotten: fewer than sequence numbers take to repeat.
const DAMAGE_MEMORY: i64 = 1 << 15;

/// A packet that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) sequence: i64,
    /// When a later packet arrived.
    pub(super) detected: Time,
}

/// One of the other members.
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
    /// Missing segments of pictures that have not ended yet.
    missing: Vec<Missing>,
    /// For each segment, the losses whose damage still shows.
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

    /// Notes a packet and returns its unwrapped sequence number; puts newly detected losses into `lost`. Pictures are
    /// counted from the sender's first packet, so that a member that joins more than 2^16 packets later mistakes the
    /// position of segments.
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
        let missing = (from..sequence).map(|sequence| Missing { sequence, detected: now });
        let Some(segments) = self.segments else {
            lost.extend(missing);
            return sequence;
        };
        // a picture's losses are reported together, when it has ended
        self.missing.extend(missing);
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

    /// Index of a packet's segment in its picture.
    fn segment(&self, sequence: i64) -> Option<usize> {
        self.segments.map(|segments| sequence.rem_euclid(segments) as usize)
    }

    /// Notes a lost segment: its damage shows in all segments that refer to it.
    pub(super) fn damage(&mut self, missing: Missing) {
        if let Some(segment) = self.segment(missing.sequence) {
            let damaged = &mut self.damaged[segment];
            // a report that was lost gets no answer, so that its damage would stay for good
            if damaged.first().is_some_and(|oldest| missing.sequence - oldest.sequence > DAMAGE_MEMORY) {
                damaged.remove(0);
            }
            damaged.push(missing);
        }
    }

    /// Repairs the losses `avoids`, which the encoder of the packet `sequence` knew of, and returns the times of their
    /// detection. If the first such packet is lost itself, the next one repairs the same losses: it shows the damage of
    /// the lost packet, but no longer theirs.
    pub(super) fn repaired(&mut self, sequence: i64, avoids: &[u16]) -> impl Iterator<Item = Time> + use<> {
        let segment = self.segment(sequence);
        let damaged = segment.filter(|_| !avoids.is_empty()).map(|segment| &mut self.damaged[segment]);
        let avoided = |loss: &mut Missing| avoids.contains(&(loss.sequence as u16));
        let repaired: Vec<Missing> =
            damaged.map(|losses| losses.extract_if(.., avoided).collect()).unwrap_or_default();
        repaired.into_iter().map(|loss| loss.detected)
    }
}
