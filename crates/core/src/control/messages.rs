//! What passes between a controller and its host: reports and limits go in, decisions come out.

use super::probes::Probes;
use crate::datagram::{Ecn, Extension};
use crate::units::{Rate, RemoteTime, Size, Span, Time};
use crate::wire::rtcp;

/// The complete present policy of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Decision {
    /// What the encoder may use.
    pub target: Rate,
    /// What congestion-window pushback leaves of the target: video comes down to it by leaving frames out before they
    /// are encoded, at most every other one, as WebRTC's does. Without it none is left out.
    pub pushback: Option<Rate>,
    /// What the pacer may send.
    pub pacing: Rate,
    /// Keep at least this much on the wire, with padding where media does not fill it.
    pub padding: Rate,
    /// Whether audio, too, waits for the pacing rate. Otherwise it goes at once and video makes room for it,
    /// as WebRTC does; a scheme that must not send faster than its rate cannot have that.
    pub pace_audio: bool,
    /// Whether the pacer sends faster than `pacing` where that takes too long, so that what waits is out within the
    /// session's queue limit, as WebRTC does. Otherwise frames are left out while more waits.
    pub drain_queue: bool,
    /// How long a burst the pacer may send at once whenever media comes to an empty queue, at most 63 kB: what `pacing` carries
    /// in it, as WebRTC's does. Then it waits until all that was sent is paid off. Without it groups of 5 ms leave
    /// (draft-ietf-rmcat-gcc-02 section 4).
    pub burst: Option<Span>,
    /// At least this much time between two packets.
    pub min_gap: Option<Span>,
    /// At most this much in flight; `None` for a scheme that is limited by rate only.
    pub window: Option<Size>,
    /// At most this much time between two packets (and no less than a millisecond): then a small one of padding
    /// goes, whatever the rates and the window are.
    pub heartbeat: Option<Span>,
    /// When to be called next; replaces the earlier alarm. It is not in the past, and once at each instant it may be
    /// the present one.
    pub alarm: Option<Time>,
    /// Bursts to be sent after those that were asked for before.
    pub probes: Probes,
}

impl Decision {
    /// Send at `rate`, paced at the same rate, nothing else.
    pub const fn rate(rate: Rate) -> Self {
        Self {
            target: rate,
            pushback: None,
            pacing: rate,
            padding: Rate::ZERO,
            pace_audio: false,
            drain_queue: false,
            burst: None,
            min_gap: None,
            window: None,
            heartbeat: None,
            alarm: None,
            probes: Probes::NONE,
        }
    }

    /// This, with an alarm at `at`.
    pub const fn with_alarm(mut self, at: Time) -> Self {
        self.alarm = Some(at);
        self
    }

    /// Whether this and `other` are the same but for their alarms.
    #[inline]
    #[must_use]
    pub fn same_but_alarm(&self, other: &Self) -> bool {
        let Self {
            target,
            pushback,
            pacing,
            padding,
            pace_audio,
            drain_queue,
            burst,
            min_gap,
            window,
            heartbeat,
            alarm: _,
            probes,
        } = self;
        (*target, *pushback) == (other.target, other.pushback)
            && (*pacing, *padding) == (other.pacing, other.padding)
            && (*pace_audio, *drain_queue, *min_gap) == (other.pace_audio, other.drain_queue, other.min_gap)
            && (*burst, *window, *heartbeat) == (other.burst, other.window, other.heartbeat)
            && *probes == other.probes
    }
}

/// What feedback says of one packet, joined with what was sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PacketResult {
    /// Transport-wide sequence number, unwrapped.
    pub sequence: u64,
    /// Bytes: payload and RTP header with extensions, and IP and UDP where the controller counts them
    /// ([`super::Counts`]).
    pub size: Size,
    /// When it was sent, by our clock.
    pub sent: Time,
    /// When it arrived, by the far clock; `None`: reported as not received.
    pub arrival: Option<RemoteTime>,
    /// The ECN field as it arrived.
    pub ecn: Ecn,
    /// The probe it was part of.
    pub probe: Option<u32>,
}

/// What a receiver report says (RFC 3550 section 6.4.1), with what can be computed from it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LossReport {
    /// Fraction lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the session began; negative with duplicates.
    pub cumulative_lost: i32,
    /// Extended highest sequence number received.
    pub highest_sequence: u32,
    /// Interarrival jitter, converted from timestamp units.
    pub jitter: Span,
    /// Packets expected since the last report of this source (0 for the first).
    pub expected: u32,
}

/// Packets received, by the ECN field that they had on arrival: the counters of RFC 6679 section 5.1, for one report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EcnCounts {
    /// Not ECN-capable: sent so, or cleared on the way.
    pub not_ect: u32,
    /// ECT(0).
    pub ect0: u32,
    /// ECT(1).
    pub ect1: u32,
    /// Congestion experienced.
    pub ce: u32,
}

impl EcnCounts {
    /// Counts a packet that arrived with `ecn`.
    pub fn add(&mut self, ecn: Ecn) {
        *match ecn {
            Ecn::NotEct => &mut self.not_ect,
            Ecn::Ect0 => &mut self.ect0,
            Ecn::Ect1 => &mut self.ect1,
            Ecn::Ce => &mut self.ce,
        } += 1;
    }
}

/// One feedback report, joined with what was sent: whatever it said.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// SSRC of the reporter.
    pub reporter: u32,
    /// Per-packet results in order of sequence (TWCC, RFC 8888); empty if the report had none.
    pub packets: Vec<PacketResult>,
    /// Bytes sent and not yet reported on, this report taken into account.
    pub in_flight: Size,
    /// Bytes that wait in the pacer, as rates count them.
    pub backlog: Size,
    /// How long the packet of media that has waited longest in the pacer has waited by now; zero if none waits
    /// (measured; the RTP queue delay of RFC 8298 section 4.1.3 is the backlog over the
    /// rate instead). Retransmissions and padding do not count.
    pub pacer_delay: Span,
    /// The round trip to the far end and back, from the LSR and DLSR of a receiver report (RFC 3550 section
    /// 6.4.1).
    pub report_rtt: Option<Span>,
    /// The time from sending the newest packet that this report says was received until now, less how long it has
    /// waited for the report. RFC 8888 tells that; of transport-wide feedback up to one interval of it is left in.
    pub packet_rtt: Option<Span>,
    /// The packets of which this report is the first to say that they were received, by ECN field; `None`: the
    /// feedback does not tell (transport-wide feedback, receiver reports, without RFC 6679's beside them).
    pub ecn: Option<EcnCounts>,
    /// Receiver-report statistics.
    pub loss: Option<LossReport>,
    /// A REMB rate.
    pub remb: Option<Rate>,
    /// The scheme's own messages.
    pub messages: Vec<rtcp::App>,
}

impl Report {
    /// A fresh round-trip sample: that of a receiver report, or else that of the newest packet.
    #[must_use]
    pub fn rtt(&self) -> Option<Span> {
        self.report_rtt.or(self.packet_rtt)
    }
}

/// What the session allows and wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Never less than this.
    pub min: Rate,
    /// Never more than this.
    pub max: Rate,
    /// Begin with this.
    pub start: Rate,
    /// What the sources would use if they could; `None`: as much as there is.
    pub wanted: Option<Rate>,
    /// Whether the sources use less than the target lately (application-limited).
    pub app_limited: bool,
    /// The network route changed: what was learned of the path no longer holds.
    pub route_changed: bool,
}

impl Limits {
    /// What the sources would use, and the session allows.
    #[must_use]
    pub fn desired(&self) -> Rate {
        self.wanted.map_or(self.max, |wanted| wanted.min(self.max))
    }

    /// The most that a target need be: [`Self::desired`], but no less than the minimum.
    #[must_use]
    pub fn target_max(&self) -> Rate {
        self.desired().max(self.min)
    }
}

impl Default for Limits {
    /// 30 kb/s to 10 Mb/s, starting at 300 kb/s (libwebrtc's defaults for start and minimum).
    fn default() -> Self {
        Self {
            min: Rate::from_kbps(30),
            max: Rate::from_mbps(10),
            start: Rate::from_kbps(300),
            wanted: None,
            app_limited: false,
            route_changed: false,
        }
    }
}

/// One packet has left.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sent {
    /// Transport-wide sequence number, unwrapped.
    pub sequence: u64,
    /// Bytes as in [`PacketResult::size`].
    pub size: Size,
    /// Bytes in flight, this packet included.
    pub in_flight: Size,
    /// Bytes that wait in the pacer.
    pub backlog: Size,
}

/// A frame of media has come into the pacer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NewFrame {
    /// Whether it is of video.
    pub video: bool,
    /// Bytes of its packets, as in [`PacketResult::size`] but for a stamp.
    pub size: Size,
    /// Bytes that wait in the pacer, this frame included.
    pub backlog: Size,
    /// How long the packet of media that has waited longest in the pacer has waited by now; zero if this frame found none.
    pub pacer_delay: Span,
}

/// One packet is about to leave.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outgoing {
    /// Transport-wide sequence number, unwrapped.
    pub sequence: u64,
    /// Bytes as in [`PacketResult::size`], before the stamp.
    pub size: Size,
    /// Bytes that wait in the pacer behind it.
    pub backlog: Size,
}

/// A data packet that has arrived at the receiver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arrived<'a> {
    /// Transport-wide sequence number, unwrapped, where a header extension carries it.
    pub sequence: Option<u64>,
    /// Bytes of the RTP packet, without IP and UDP.
    pub size: Size,
    /// Those of its header with extensions.
    pub header: Size,
    /// Those of the padding at its end.
    pub padding: Size,
    /// Its payload type, 7 bits.
    pub payload_type: u8,
    /// Abs-send-time in 2^-18 s, 24 bits (wraps every 64 s), where a header extension carries it.
    pub abs_send_time: Option<u32>,
    /// SSRC of its stream.
    pub ssrc: u32,
    /// RTP sequence number, unwrapped.
    pub rtp_sequence: u64,
    /// RTP timestamp.
    pub timestamp: u32,
    /// The marker bit: of video, the last packet of its frame.
    pub marker: bool,
    /// The ECN field as it arrived.
    pub ecn: Ecn,
    /// What the sending half stamped on it.
    pub extension: Option<&'a Extension>,
    /// How long it was on its way, which no receiver can measure: only for a half that
    /// [`ReceiverHalf::needs_true_delay`](super::ReceiverHalf::needs_true_delay), and only where the driver knows it.
    pub true_delay: Option<Span>,
}

/// How soon a receiver half wants to speak.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Urgency {
    /// Nothing to say.
    #[default]
    None,
    /// With the next regular RTCP packet.
    Regular,
    /// As an early RTCP packet, and worthless after this long (RFC 4585).
    Early(Span),
    /// At once, whatever the RTCP rules say (only under `rtcp = "free"`; else as early as allowed).
    Now,
}

/// What a receiver half asks of its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Ask {
    /// How soon to call [`ReceiverHalf::message`](super::ReceiverHalf::message).
    pub urgency: Urgency,
    /// When to be called next; replaces the earlier alarm. As for [`Decision::alarm`], not in the past, and once at
    /// each instant the present one.
    pub alarm: Option<Time>,
}

/// What a receiver half says: RTCP packets to go into the next compound, in order.
pub type Feedback = Vec<rtcp::Packet>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_a_target_need_be_is_what_sources_want_within_the_limits() {
        let [min, wanted, max] = [100, 500, 900].map(Rate::from_kbps);
        let limits = |wanted| Limits { min, max, wanted, ..Limits::default() };
        let both = |wanted| (limits(wanted).desired(), limits(wanted).target_max());
        assert_eq!(both(None), (max, max), "as much as there is");
        assert_eq!(both(Some(wanted)), (wanted, wanted));
        assert_eq!(both(Some(Rate::from_mbps(2))), (max, max));
        let little = Rate::from_kbps(20);
        assert_eq!(both(Some(little)), (little, min), "a target is no less than the minimum");
    }
}
