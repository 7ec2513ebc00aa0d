//! A call as it is known from one or two places: each way of it with its packets, when they were sent, when they arrived,
//! and what became of them.

mod one;
mod two;

use crate::feedback::Said;
use crate::point::{MILLI, Nanos, Rtcp, Rtp};
use std::collections::BTreeMap;
use tidegate_core::{Ecn, Kind};

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It arrived, at this time.
    Arrived(Nanos),
    /// It did not.
    Lost,
    /// Nobody tells.
    Unknown,
}

/// A packet of RTP on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Its header.
    pub rtp: Rtp,
    /// What it carries.
    pub kind: Kind,
    /// When it was sent; of one that nobody saw leave, when it is taken to have.
    pub sent: Nanos,
    /// What became of it.
    pub fate: Fate,
    /// The ECN field as it arrived, where that is told.
    pub ecn: Ecn,
}

/// What is known of a way, and what therefore may be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Known {
    /// When packets were sent, and all of them.
    pub sent: bool,
    /// Which arrived, and when as against each other.
    pub arrived: bool,
    /// How long they were on their way, and not only how much longer than the fastest.
    pub delay: bool,
    /// Its RTCP, and what is in it.
    pub feedback: bool,
    /// Its RTCP, be it encrypted.
    pub rtcp: bool,
}

/// One way of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Way {
    /// Its name.
    pub name: String,
    /// Its packets, in the order of sending.
    pub packets: Vec<Packet>,
    /// RTCP about it, from its receiver: when it was sent, or else seen.
    pub feedback: Vec<(Nanos, Rtcp)>,
    /// RTCP of its sender.
    pub reports: Vec<(Nanos, Rtcp)>,
    /// What is known.
    pub known: Known,
    /// What feedback said to the sender, where that could be read.
    pub said: Said,
}

impl Way {
    /// When the last thing happened of which it is known: a packet arrived, or feedback came.
    fn last_known(&self) -> Option<Nanos> {
        let arrivals = self.packets.iter().filter_map(|packet| match packet.fate {
            Fate::Arrived(at) => Some(at),
            _ => None,
        });
        let told = self.said.feedback.iter().filter(|one| !one.packets.is_empty()).map(|one| one.at);
        arrivals.chain(told).max()
    }

    /// What is known of it.
    #[must_use]
    pub fn known(&self) -> Known {
        let rtcp = !self.feedback.is_empty();
        Known { rtcp, feedback: rtcp && self.known.feedback, ..self.known }
    }
}

/// A call.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Session {
    /// Its ways: those in which media went.
    pub ways: Vec<Way>,
    /// When it begins and ends, by the near clock.
    pub span: (Nanos, Nanos),
    /// What has to be known of how it was put together: sentences.
    pub remarks: Vec<String>,
}

/// Whose clocks two places have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clocks {
    /// One.
    Same,
    /// Each its own.
    Own,
}

/// Names of the two ways: from the near end, and to it.
pub const WAYS: [&str; 2] = ["outgoing", "incoming"];

fn millis(nanos: Nanos) -> f64 {
    nanos as f64 / MILLI as f64
}

impl Session {
    /// Leaves out what comes after `end`, when `what` ends: of it nobody could tell what became. What is no more than on
    /// its way then stays.
    fn cut(&mut self, end: Nanos, what: &str) {
        const UNDER_WAY: Nanos = 1000 * MILLI;
        let over = self.span.1.saturating_sub(end);
        if over <= UNDER_WAY {
            return;
        }
        let seconds = over as f64 / 1e9;
        self.remarks.push(format!("the last {seconds:.1} s, after the end of {what}, are left out"));
        self.span.1 = end;
        for way in &mut self.ways {
            way.packets.retain(|packet| packet.sent <= end);
            way.feedback.retain(|one| one.0 <= end);
            way.reports.retain(|one| one.0 <= end);
        }
    }
}

fn kind(kinds: &BTreeMap<u32, Kind>, packet: &Rtp) -> Kind {
    if packet.padding { Kind::Padding } else { kinds.get(&packet.ssrc).copied().unwrap_or(Kind::Video) }
}

fn timed(rtcp: &[Rtcp]) -> Vec<(Nanos, Rtcp)> {
    left(rtcp, |at| at)
}

fn left(rtcp: &[Rtcp], clock: impl Fn(Nanos) -> Nanos) -> Vec<(Nanos, Rtcp)> {
    rtcp.iter().map(|one| (clock(one.at), one.clone())).collect()
}
