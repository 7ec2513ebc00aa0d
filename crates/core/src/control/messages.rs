//! Messages between a controller and its host: reports and limits go in, decisions come out.

use super::probes::Probes;
use crate::datagram::{Ecn, Extension};
use crate::units::{Rate, RemoteTime, Size, Span, Time};
use crate::wire::rtcp;

/// Complete present policy of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Decision {
    /// Rate of the encoder.
    pub target: Rate,
    /// Target after congestion-window pushback. Video is reduced to it by dropping frames before they are encoded, at most
    /// every other one, as in WebRTC. `None`: no frame is dropped.
    pub pushback: Option<Rate>,
    /// Rate of the pacer.
    pub pacing: Rate,
    /// Lowest rate on the wire; padding is added if media is below it.
    pub padding: Rate,
    /// Whether audio, too, is paced. Otherwise it leaves at once and video makes room for it, as in WebRTC; that is not
    /// possible for a scheme that must not exceed its rate.
    pub pace_audio: bool,
    /// Whether the pacer exceeds `pacing` if needed to empty its queue within the session's queue limit, as in WebRTC.
    /// Otherwise frames are dropped while more bytes wait.
    pub drain_queue: bool,
    /// Duration of a burst: the bytes that `pacing` carries in it, at most 63 kB, leave at once whenever media enters an
    /// empty queue, as in WebRTC; then the pacer waits until they are paid off. `None`: groups of 5 ms leave
    /// (draft-ietf-rmcat-gcc-02 section 4).
    pub burst: Option<Span>,
    /// Shortest time between two packets.
    pub min_gap: Option<Span>,
    /// Limit of the bytes in flight; `None` for a scheme that is limited by rate only.
    pub window: Option<Size>,
    /// Longest time between two packets, at least a millisecond. After it a small padding packet leaves, regardless of
    /// rates and window.
    pub heartbeat: Option<Span>,
    /// Time of the next call; replaces the earlier alarm. It must not be in the past, and may be the present time only once
    /// at each time.
    pub alarm: Option<Time>,
    /// Probes, sent after those of earlier decisions.
    pub probes: Probes,
}

impl Decision {
    /// Creates a decision with target and pacing rate `rate`, and no other instructions.
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

    /// Sets the alarm.
    pub const fn with_alarm(mut self, time: Time) -> Self {
        self.alarm = Some(time);
        self
    }

    /// Whether two decisions are equal except for their alarms.
    #[inline]
    #[must_use]
    pub fn same_but_alarm(&self, rhs: &Self) -> bool {
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
        (*target, *pushback) == (rhs.target, rhs.pushback)
            && (*pacing, *padding) == (rhs.pacing, rhs.padding)
            && (*pace_audio, *drain_queue, *min_gap) == (rhs.pace_audio, rhs.drain_queue, rhs.min_gap)
            && (*burst, *window, *heartbeat) == (rhs.burst, rhs.window, rhs.heartbeat)
            && *probes == rhs.probes
    }
}

/// Result of a packet in feedback, joined with the sent packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PacketResult {
    /// Transport-wide sequence number, unwrapped.
    pub sequence: u64,
    /// Size: payload and RTP header with extensions, and IP and UDP if the controller counts them ([`super::Counts`]).
    pub size: Size,
    /// Departure by our clock.
    pub sent: Time,
    /// Arrival by the far clock; `None`: reported as not received.
    pub arrival: Option<RemoteTime>,
    /// ECN field on arrival.
    pub ecn: Ecn,
    /// Identifier of the probe to which the packet belongs.
    pub probe: Option<u32>,
}

/// Contents of a receiver report (RFC 3550 section 6.4.1), and values calculated from it.
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

/// Packets received, by ECN field on arrival: the counters of RFC 6679 section 5.1, for one report.
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

/// Feedback report, joined with the sent packets.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// SSRC of the reporter.
    pub reporter: u32,
    /// Per-packet results in order of sequence numbers (TWCC, RFC 8888); empty if the report has none.
    pub packets: Vec<PacketResult>,
    /// Bytes sent and not yet reported, with this report taken into account.
    pub in_flight: Size,
    /// Bytes waiting in the pacer, as rates count them.
    pub backlog: Size,
    /// Wait of the oldest media packet in the pacer so far; zero if none waits. This is measured, while the RTP queue delay
    /// of RFC 8298 section 4.1.3 is the backlog over the rate. Retransmissions and padding do not count.
    pub pacer_delay: Span,
    /// Round trip from the LSR and DLSR of a receiver report (RFC 3550 section 6.4.1).
    pub report_rtt: Option<Span>,
    /// Time since the departure of the newest packet that this report reports as received, without its wait for the report.
    /// RFC 8888 reports that wait; with transport-wide feedback, up to one report interval of it remains in this time.
    pub packet_rtt: Option<Span>,
    /// Packets that this report is the first to report as received, by ECN field; `None`: the feedback has no ECN fields
    /// (transport-wide feedback and receiver reports without RFC 6679).
    pub ecn: Option<EcnCounts>,
    /// Receiver-report statistics.
    pub loss: Option<LossReport>,
    /// REMB rate.
    pub remb: Option<Rate>,
    /// Messages of the scheme's receiver half.
    pub messages: Vec<rtcp::App>,
}

impl Report {
    /// New round-trip sample: that of a receiver report, or else that of the newest packet.
    #[must_use]
    pub fn rtt(&self) -> Option<Span> {
        self.report_rtt.or(self.packet_rtt)
    }
}

/// Limits and wishes of the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Lowest rate.
    pub min: Rate,
    /// Highest rate.
    pub max: Rate,
    /// Start rate.
    pub start: Rate,
    /// Rate that the sources would use if they could; `None`: unlimited.
    pub wanted: Option<Rate>,
    /// Whether the sources currently use less than the target (application-limited).
    pub app_limited: bool,
    /// Whether the network route has changed, so that measurements of the path no longer hold, and packets that were sent
    /// before are not reported any more.
    pub route_changed: bool,
}

impl Limits {
    /// Rate that the sources want, up to the session's maximum.
    #[must_use]
    pub fn desired(&self) -> Rate {
        self.wanted.map_or(self.max, |wanted| wanted.min(self.max))
    }

    /// Highest useful target: [`Self::desired`], but at least the minimum.
    #[must_use]
    pub fn target_max(&self) -> Rate {
        self.desired().max(self.min)
    }
}

impl Default for Limits {
    /// Limits of 30 kb/s to 10 Mb/s with a start at 300 kb/s (libwebrtc's defaults for start and minimum).
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

/// Packet that has left.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sent {
    /// Transport-wide sequence number, unwrapped.
    pub sequence: u64,
    /// Size as in [`PacketResult::size`].
    pub size: Size,
    /// Bytes in flight, including this packet.
    pub in_flight: Size,
    /// Bytes waiting in the pacer.
    pub backlog: Size,
}

/// Media frame that has entered the pacer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NewFrame {
    /// Whether it is a video frame.
    pub video: bool,
    /// Size of its packets, as in [`PacketResult::size`], but without a stamp.
    pub size: Size,
    /// Bytes waiting in the pacer, including this frame.
    pub backlog: Size,
    /// Wait of the oldest media packet in the pacer so far; zero if the pacer had none.
    pub pacer_delay: Span,
}

/// Packet that is about to leave.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outgoing {
    /// Transport-wide sequence number, unwrapped.
    pub sequence: u64,
    /// Size as in [`PacketResult::size`], before the stamp.
    pub size: Size,
    /// Bytes waiting in the pacer behind it.
    pub backlog: Size,
}

/// Data packet that has arrived at the receiver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arrived<'a> {
    /// Transport-wide sequence number, unwrapped, if a header extension carries it.
    pub sequence: Option<u64>,
    /// Size of the RTP packet, without IP and UDP.
    pub size: Size,
    /// Size of the header with extensions.
    pub header: Size,
    /// Size of the padding at the end.
    pub padding: Size,
    /// Payload type, 7 bits.
    pub payload_type: u8,
    /// Abs-send-time in 2^-18 s, 24 bits (wraps every 64 s), if a header extension carries it.
    pub abs_send_time: Option<u32>,
    /// SSRC of the stream.
    pub ssrc: u32,
    /// RTP sequence number, unwrapped.
    pub rtp_sequence: u64,
    /// RTP timestamp.
    pub timestamp: u32,
    /// Marker bit: for video, the last packet of a frame.
    pub marker: bool,
    /// ECN field on arrival.
    pub ecn: Ecn,
    /// Extension element stamped by the sending half.
    pub extension: Option<&'a Extension>,
    /// One-way delay, which no receiver can measure: only for a half that
    /// [`ReceiverHalf::needs_true_delay`](super::ReceiverHalf::needs_true_delay), and only if the driver knows it.
    pub true_delay: Option<Span>,
}

/// Urgency of a receiver half's message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Urgency {
    /// No message.
    #[default]
    None,
    /// With the next regular RTCP packet.
    Regular,
    /// As an early RTCP packet, which is worthless after this time (RFC 4585).
    Early(Span),
    /// At once, regardless of the RTCP rules (only with `rtcp = "free"`; else as early as allowed).
    Now,
}

/// Request of a receiver half to its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct FeedbackRequest {
    /// Urgency of the call of [`ReceiverHalf::message`](super::ReceiverHalf::message).
    pub urgency: Urgency,
    /// Time of the next call; replaces the earlier alarm. As for [`Decision::alarm`], not in the past, and the present time
    /// only once at each time.
    pub alarm: Option<Time>,
}

/// Message of a receiver half: RTCP packets for the next compound, in order.
pub type Feedback = Vec<rtcp::Packet>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_useful_target_is_what_sources_want_within_the_limits() {
        let [min, wanted, max] = [100, 500, 900].map(Rate::from_kbps);
        let limits = |wanted| Limits { min, max, wanted, ..Limits::default() };
        let both = |wanted| (limits(wanted).desired(), limits(wanted).target_max());
        assert_eq!(both(None), (max, max), "unlimited");
        assert_eq!(both(Some(wanted)), (wanted, wanted));
        assert_eq!(both(Some(Rate::from_mbps(2))), (max, max));
        let low = Rate::from_kbps(20);
        assert_eq!(both(Some(low)), (low, min), "a target is no less than the minimum");
    }
}
