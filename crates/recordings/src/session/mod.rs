//! A call as one or two capture points recorded it: for each direction its packets, their times of sending and arrival,
//! and their fates.

mod single_sided;
mod stamps;
mod two_sided;

use crate::feedback::FeedbackHistory;
use crate::kinds::{Media, Source};
use crate::point::{MILLI, Nanos, Rtcp, Rtp};
use std::collections::BTreeMap;
use tidegate_core::{Ecn, Kind};

/// Fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It arrived at this time.
    Arrived(Nanos),
    /// It did not arrive.
    Lost,
    /// The recording does not say.
    Unknown,
}

/// An RTP packet of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Its header, as it was recorded.
    pub rtp: Rtp,
    /// Kind of media that it carries.
    pub kind: Kind,
    /// Time of sending; an estimate if the sender's end was not recorded.
    pub sent: Nanos,
    /// Whether it arrived, and when.
    pub fate: Fate,
    /// The ECN field on arrival, if feedback has it.
    pub ecn: Ecn,
}

/// Facts about a direction that the recording determines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// Every packet that was sent, with its time.
    pub sent: bool,
    /// The packets that arrived, with their times relative to each other.
    pub arrived: bool,
    /// Absolute one-way delays, and not only differences from the fastest packet.
    pub delay: bool,
    /// Times of sending and arrival whose clocks run evenly: no clock was set.
    pub steady: bool,
    /// Contents of the RTCP about it.
    pub feedback: bool,
    /// Times and sizes of the RTCP about it, which may be encrypted.
    pub rtcp: bool,
}

/// One direction of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Direction {
    /// Its name, one of [`DIRECTIONS`].
    pub name: String,
    /// Its packets, in the order of sending.
    pub packets: Vec<Packet>,
    /// RTCP from its receiver, with the times of sending, or of capture if the receiver's end was not recorded.
    pub feedback: Vec<(Nanos, Rtcp)>,
    /// RTCP from its sender, with times.
    pub reports: Vec<(Nanos, Rtcp)>,
    /// Facts that the recording determines.
    pub coverage: Coverage,
    /// Feedback that the sender received; empty if that could not be read.
    pub history: FeedbackHistory,
    /// Its streams by SSRC.
    pub media: BTreeMap<u32, Media>,
}

impl Direction {
    /// Time of the last arrival of a packet, or of the last feedback on packets.
    fn last_event(&self) -> Option<Nanos> {
        let arrivals = self.packets.iter().filter_map(|packet| match packet.fate {
            Fate::Arrived(arrival) => Some(arrival),
            _ => None,
        });
        let feedback = self.history.feedback.iter().filter(|feedback| !feedback.packets.is_empty());
        arrivals.chain(feedback.map(|feedback| feedback.at)).max()
    }

    /// Facts that the recording determines; without any RTCP, none about feedback.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        let rtcp = !self.feedback.is_empty();
        Coverage { rtcp, feedback: rtcp && self.coverage.feedback, ..self.coverage }
    }
}

/// A call, put together from the recordings of one or two capture points.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Session {
    /// The directions in which media was sent.
    pub directions: Vec<Direction>,
    /// Beginning and end on the near clock.
    pub span: (Nanos, Nanos),
    /// Assumptions and omissions in putting it together, for the user to read.
    pub remarks: Vec<String>,
    /// Reasons to doubt its numbers, for the user to read.
    pub doubts: Vec<String>,
}

/// Whether two capture points have one clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clocks {
    /// Both use one clock.
    Same,
    /// Each has its own clock.
    Separate,
}

/// Names of the two directions: from the near end, and towards it.
pub const DIRECTIONS: [&str; 2] = ["outgoing", "incoming"];

fn millis(nanos: Nanos) -> f64 {
    nanos as f64 / MILLI as f64
}

impl Session {
    /// Adds a remark on the streams whose clock rates the recording does not say.
    fn remark_on_clocks(&mut self) {
        let mut by_pace: Vec<String> = Vec::new();
        let mut unknown = 0;
        for media in self.directions.iter().flat_map(|direction| direction.media.values()) {
            match (media.source, media.clock) {
                (Source::Pace, Some(clock)) => {
                    let rate = format!("{} kHz", f64::from(clock) / 1000.0);
                    if !by_pace.contains(&rate) {
                        by_pace.push(rate);
                    }
                }
                (_, None) => unknown += 1,
                _ => (),
            }
        }
        if !by_pace.is_empty() {
            let rates = by_pace.join(", ");
            self.remarks
                .push(format!("clock rates of streams are told by the pace of their timestamps: {rates}"));
        }
        if unknown > 0 {
            self.remarks.push(match unknown {
                1 => "the clock rate of 1 stream is not known: it has no jitter by RTP timestamps".to_owned(),
                _ => format!(
                    "the clock rates of {unknown} streams are not known: they have no jitter by RTP timestamps"
                ),
            });
        }
    }

    /// Removes what was sent after `end`, the time when `source` ends: its fate cannot be known. Nothing is removed if
    /// the call lasts no more than a second longer, since packets that were in flight at the end explain that.
    fn cut(&mut self, end: Nanos, source: &str) {
        const IN_FLIGHT: Nanos = 1000 * MILLI;
        let excess = self.span.1.saturating_sub(end);
        if excess <= IN_FLIGHT {
            return;
        }
        let seconds = excess as f64 / 1e9;
        self.remarks.push(format!("the last {seconds:.1} s, after the end of {source}, are left out"));
        self.span.1 = end;
        for direction in &mut self.directions {
            direction.packets.retain(|packet| packet.sent <= end);
            direction.feedback.retain(|&(time, _)| time <= end);
            direction.reports.retain(|&(time, _)| time <= end);
        }
    }
}

fn kind(media: &BTreeMap<u32, Media>, packet: &Rtp) -> Kind {
    if packet.padding {
        Kind::Padding
    } else {
        media.get(&packet.ssrc).map_or(Kind::Video, |media| media.kind)
    }
}

fn timed(rtcp: &[Rtcp]) -> Vec<(Nanos, Rtcp)> {
    timed_by(rtcp, |time| time)
}

fn timed_by(rtcp: &[Rtcp], clock: impl Fn(Nanos) -> Nanos) -> Vec<(Nanos, Rtcp)> {
    rtcp.iter().map(|datagram| (clock(datagram.at), datagram.clone())).collect()
}
