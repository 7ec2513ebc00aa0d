//! TCP as cross traffic and as a yardstick: Tahoe, Reno, NewReno, SACK, CUBIC, BBR
//! (versions 1 and 3), DCTCP and Prague.
//!
//! A connection is two nodes, a [`TcpSender`] and a [`TcpReceiver`], joined by any path of other nodes.
//! Data flows in one direction. It has:
//!
//! - congestion control of RFC 5681 (slow start, congestion avoidance, fast retransmit and recovery,
//!   restart after idle), NewReno of RFC 6582 (its check of `recover` guards Tahoe and Reno as well, as
//!   in ns-2), SACK-based recovery of RFC 6675 with the options of RFC 2018, CUBIC of RFC 9438 (on top of
//!   RFC 6675 or RACK; with Linux's HyStart, a setting), limited transmit of RFC 3042, the initial
//!   windows of RFC 6928 and before, the retransmission timer of RFC 6298;
//! - by the setting `recovery` losses found by time and by probes (RACK-TLP, RFC 8985), with D-SACK (RFC 2883) and
//!   proportional rate reduction (RFC 6937), as in Linux;
//! - BBR of draft-cardwell-iccrg-bbr-congestion-control-00 (version 1) and of draft-ietf-ccwg-bbr (version 3) with
//!   pacing;
//! - DCTCP of RFC 8257, and the parts of Prague listed in `scalable.rs`; the receiver's echo is DCTCP's for both: with an
//!   acknowledgement for each packet it is as exact as AccECN's counters;
//! - ECN of RFC 3168, if both ends use it;
//! - by the setting `timestamps` those of RFC 7323, for round trips where Karn's algorithm has none;
//! - by the setting `offload` bursts of segments, as Linux's segmentation offload makes them;
//! - delayed acknowledgements of RFC 5681 section 4.2;
//! - no growth of a window that was not in use (RFC 7661 section 4.3, in its simplest form).
//!
//! It does not have FIN, urgent data, F-RTO, the undoing of needless reductions, and of the uses of timestamps
//! the protection against wrapped sequence numbers.
//!
//! For congestion control each download of [`Workload::Web`] is a new connection. Its bytes
//! continue the sequence numbers of the last one, so that the receiver does not notice.

mod algorithm;
mod bbr;
mod bbr3;
mod cubic;
mod delivery;
mod ecn;
mod flight;
mod hystart;
mod max_filter;
mod model;
mod offload;
mod pacer;
mod prr;
mod rack;
mod receiver;
mod recovery;
mod reno;
mod rto;
mod sack;
mod scalable;
mod sender;
mod sequence;
mod stamps;
mod window;
mod workload;

pub use receiver::TcpReceiver;
pub use sender::TcpSender;
pub use workload::Workload;

use crate::refusal::{Refusal, ensure};
use algorithm::Recovery;
use rto::RoundTrip;
use serde::Deserialize;
use tidegate_core::datagram::{Ecn, Opening};
use tidegate_core::wire::tcp::MOST_SCALE;
use tidegate_core::{Span, Time};

/// A TCP variant: detection and repair of losses, and growth of the window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Fast retransmit without fast recovery: after three duplicates slow start from one segment.
    Tahoe,
    /// RFC 5681: fast recovery that ends with the first new acknowledgement.
    Reno,
    /// RFC 6582: fast recovery that lasts until all data then in flight is acknowledged.
    #[default]
    NewReno,
    /// RFC 6675: recovery guided by selective acknowledgements; Reno's window.
    Sack,
    /// RFC 9438: CUBIC's window.
    Cubic,
    /// BBR version 1: paces by a model of the path.
    Bbr,
    /// BBR version 3: a model of the path that also answers losses.
    Bbr3,
    /// RFC 8257: responds to the share of marks.
    Dctcp,
    /// DCTCP for L4S (RFC 9331): ECT(1), less dependence on the round trip, pacing.
    Prague,
}

/// The growth of the window for an acknowledgement in Reno's congestion avoidance (RFC 5681 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Increase {
    /// Equation (3), SMSS * SMSS / cwnd for each acknowledgement of new data, however much it covers:
    /// half a segment a round trip with delayed acknowledgements. As in ns-2 and ns-3.
    #[default]
    PerAck,
    /// One segment for each window of bytes acknowledged, delayed or not.
    PerByte,
}

/// A way to find and repair losses by selective acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SackRecovery {
    /// RACK-TLP with proportional rate reduction, as in Linux: by the times at which segments left, with a probe where
    /// acknowledgements stay away (RFC 8985, RFC 6937).
    Rack,
    /// By the number of segments that arrived after a hole (RFC 6675), as in ns-2 and ns-3.
    Rfc6675,
}

/// The times at which the sender measures a round trip.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RttSampling {
    /// With each acknowledgement of data that was sent only once (Karn's rule); with RACK also of data that are SACKed.
    #[default]
    PerAck,
    /// One segment at a time, without timestamps (RFC 6298 section 3); not with RACK, which needs them all.
    OneAtATime,
}

/// All settings of one connection, the same for both ends.
#[derive(Clone, PartialEq, Debug)]
pub struct TcpSettings {
    /// Loss recovery and growth.
    pub variant: Variant,
    /// The way in which a variant with selective acknowledgements finds and repairs losses. `None`: RFC 6675 with SACK,
    /// and RACK with the other ones.
    pub recovery: Option<SackRecovery>,
    /// Bytes of data in a full segment (SMSS).
    pub segment: u16,
    /// Initial window in segments: 10 (RFC 6928), 2 to 4 (RFC 5681), 1 (RFC 2001).
    pub initial_window: u32,
    /// The window that the receiver advertises, in bytes; rounded down to a value that fits the header (RFC 7323
    /// section 2.3).
    pub receive_window: u32,
    /// Whether each of the first two duplicates allows a new segment (RFC 3042).
    pub limited_transmit: bool,
    /// Reno's increase.
    pub increase: Increase,
    /// Whether CUBIC lowers its W_max when its window at a loss has fallen (RFC 9438 section 4.7).
    pub fast_convergence: bool,
    /// Whether CUBIC detects the end of slow start (HyStart), as Linux's does.
    pub hystart: bool,
    /// Share by which BBR paces below the bandwidth: Linux's 1 % (`bbr_pacing_margin_percent`), which is version 3's in
    /// its draft, too; the draft of version 1 and ns-3.37 have no margin.
    pub pacing_margin: f64,
    /// Whether data are sent ECN-capable, and the receiver echoes marks (RFC 3168); always with DCTCP and Prague.
    pub ecn: bool,
    /// Whether segments carry timestamps (RFC 7323), with which copies measure round trips, too.
    pub timestamps: bool,
    /// Whether segments leave in bursts of up to 64 kB, as with the segmentation offload of Linux.
    pub offload: bool,
    /// The times at which round trips are measured.
    pub rtt_sampling: RttSampling,
    /// Minimum of the retransmission timeout (RFC 6298 section 2.4). With RACK it is what the timeout is above the smoothed
    /// round trip at least, as in Linux. `None`: 1 s, and with RACK Linux's 200 ms.
    pub min_rto: Option<Span>,
    /// Maximum of the retransmission timeout (RFC 6298 section 2.5: at least 60 s).
    pub max_rto: Span,
    /// Clock granularity G (RFC 6298 section 2).
    pub granularity: Span,
    /// The longest delay of an acknowledgement, which every second segment gets at once; `None`: each segment is
    /// acknowledged at once.
    pub delayed_ack: Option<Span>,
    /// Whether a connection begins with SYN and SYN-ACK (RFC 9293 section 3.5), which give the first
    /// round-trip sample; otherwise it is established from the start.
    pub handshake: bool,
    /// Whether SYN segments carry options; without them window scale and SACK are agreed on beforehand.
    pub options: bool,
    /// Sequence number of the first byte (of the SYN with a handshake).
    pub initial_sequence: u32,
    /// The data to send.
    pub workload: Workload,
    /// Time at which the application begins.
    pub start: Time,
    /// Time at which the application stops writing; data sent before is still repaired.
    pub stop: Option<Time>,
}

impl Default for TcpSettings {
    fn default() -> Self {
        Self {
            variant: Variant::default(),
            recovery: None,
            segment: 1460,
            initial_window: 10,
            // never a limit
            receive_window: MAX_WINDOW,
            limited_transmit: true,
            increase: Increase::default(),
            fast_convergence: true,
            hystart: true,
            pacing_margin: 0.01,
            ecn: false,
            timestamps: false,
            offload: false,
            rtt_sampling: RttSampling::default(),
            min_rto: None,
            max_rto: Span::from_secs(60),
            granularity: Span::from_millis(1),
            delayed_ack: None,
            handshake: true,
            options: true,
            initial_sequence: 0,
            workload: Workload::default(),
            start: Time::ZERO,
            stop: None,
        }
    }
}

/// The shortest timeout of RFC 6298 (section 2.4), and of Linux (`TCP_RTO_MIN`).
const MIN_RTO: Span = Span::from_secs(1);
const LINUX_MIN_RTO: Span = Span::from_millis(200);
/// The largest window: 16 bits with the largest shift (RFC 7323 section 2.3).
const MAX_WINDOW: u32 = (u16::MAX as u32) << MOST_SCALE;

impl TcpSettings {
    /// Window scale of the receiver, in bits: the smallest that its window needs.
    fn scale(&self) -> u8 {
        let bits = u32::BITS - self.receive_window.leading_zeros();
        bits.saturating_sub(u16::BITS) as u8
    }

    /// The way in which losses are repaired.
    fn loss_recovery(&self) -> Recovery {
        match self.recovery {
            None => self.variant.algorithm().recovery,
            Some(SackRecovery::Rack) => Recovery::Rack,
            Some(SackRecovery::Rfc6675) => Recovery::Rfc6675,
        }
    }

    /// The estimator of the round trip at the beginning of a connection.
    fn round_trip(&self) -> RoundTrip {
        let is_linux = self.loss_recovery() == Recovery::Rack;
        let min = self.min_rto.unwrap_or(if is_linux { LINUX_MIN_RTO } else { MIN_RTO });
        // Linux bounds the variation's share and not the sum (`tcp_rtt_estimator`)
        let granularity = if is_linux { min.max(self.granularity) } else { self.granularity };
        RoundTrip::new(min, self.max_rto, granularity)
    }

    /// The ECN field of packets with data, if both ends agree on ECN.
    fn codepoint(&self) -> Ecn {
        let fallback = if self.ecn { Ecn::Ect0 } else { Ecn::NotEct };
        self.variant.algorithm().scalable.unwrap_or(fallback)
    }

    /// The options of a SYN of an end with the window scale `scale`.
    fn opening(&self, scale: u8) -> Option<Opening> {
        let opening =
            Opening { segment: Some(self.segment), scale: Some(scale), sack: self.variant.uses_sack() };
        self.options.then_some(opening)
    }

    /// Checks that a connection can work with these settings.
    ///
    /// # Errors
    /// With the key of the setting, the value found, and the expected one.
    pub fn check(&self) -> Result<(), Refusal> {
        let Self { segment, initial_window, receive_window, granularity, min_rto, max_rto, .. } = *self;
        ensure(segment > 0, || Refusal::new("packet_size", "no data", "at least 1 byte of data"))?;
        ensure(initial_window > 0, || Refusal::new("initial_window", initial_window, "at least 1 segment"))?;
        ensure((u32::from(segment)..=MAX_WINDOW).contains(&receive_window), || {
            let expected =
                format!("from one segment ({segment} bytes) to {MAX_WINDOW} bytes (RFC 7323 section 2.3)");
            Refusal::new("receive_window", receive_window, expected)
        })?;
        ensure(granularity >= Span::ZERO, || Refusal::new("granularity", granularity, "zero or more"))?;
        if let Some(min) = min_rto.filter(|&min| min <= Span::ZERO || min > max_rto) {
            return Err(Refusal::new("min_rto", min, format!("more than zero, and at most {max_rto}")));
        }
        ensure(self.recovery.is_none() || self.variant.uses_sack(), || {
            let name = format!("{:?}", self.variant).to_lowercase();
            Refusal::new(
                "recovery",
                format!("it with {name}"),
                "an algorithm with selective acknowledgements",
            )
        })?;
        if let (true, Some(reason)) = (self.ecn, self.variant.algorithm().no_ecn) {
            let name = format!("{:?}", self.variant).to_lowercase();
            return Err(Refusal::new("ecn", format!("ECN with {name}"), format!("no ECN: {reason}")));
        }
        if let Some(delay) = self.delayed_ack.filter(|&delay| delay <= Span::ZERO) {
            return Err(Refusal::new("delayed_ack", delay, "more than zero, or none"));
        }
        if let Some(stop) = self.stop.filter(|&stop| stop < self.start) {
            return Err(Refusal::new("stop", stop, format!("after the start ({})", self.start)));
        }
        self.workload.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RACK is what Linux has for each of them; SACK stays that of ns-2 and ns-3.
    #[test]
    fn todays_algorithms_repair_losses_by_time() {
        use Variant::{Bbr, Bbr3, Cubic, Dctcp, Prague, Sack};
        let repair = |variant| TcpSettings { variant, ..TcpSettings::default() }.loss_recovery();
        assert_eq!([Cubic, Bbr, Bbr3, Dctcp, Prague].map(repair), [Recovery::Rack; 5]);
        assert_eq!(repair(Sack), Recovery::Rfc6675);
    }

    #[test]
    fn impossible_settings_are_named() {
        let spoilt = |spoil: fn(&mut TcpSettings)| {
            let mut settings = TcpSettings::default();
            spoil(&mut settings);
            settings.check().unwrap_err().to_string()
        };
        assert_eq!(TcpSettings::default().check(), Ok(()));
        assert!(spoilt(|s| s.segment = 0).starts_with("packet_size: found no data"));
        assert!(spoilt(|s| s.initial_window = 0).starts_with("initial_window: found 0"));
        assert!(spoilt(|s| s.receive_window = 1459).starts_with("receive_window: found 1459"));
        assert!(spoilt(|s| s.receive_window = u32::MAX).starts_with("receive_window: found 4294967295"));
        let scale = |receive_window| TcpSettings { receive_window, ..TcpSettings::default() }.scale();
        assert_eq!([1460, 65_535, 65_536, 1 << 29, MAX_WINDOW].map(scale), [0, 0, 1, 14, 14]);
        assert!(spoilt(|s| s.granularity = Span::from_nanos(-1)).starts_with("granularity"));
        assert!(spoilt(|s| s.min_rto = Some(Span::ZERO)).starts_with("min_rto"));
        let below =
            |s: &mut TcpSettings| (s.min_rto, s.max_rto) = (Some(Span::from_millis(2)), Span::from_millis(1));
        assert!(spoilt(below).starts_with("min_rto"));
        let ecn_with_bbr = |s: &mut TcpSettings| (s.variant, s.ecn) = (Variant::Bbr, true);
        let reno_with_rack = |s: &mut TcpSettings| s.recovery = Some(SackRecovery::Rack);
        assert!(spoilt(reno_with_rack).starts_with("recovery: found it with newreno"));
        assert!(spoilt(ecn_with_bbr).starts_with("ecn: found ECN with bbr"));
        let ecn_with_bbr3 = |s: &mut TcpSettings| (s.variant, s.ecn) = (Variant::Bbr3, true);
        assert!(spoilt(ecn_with_bbr3).starts_with("ecn: found ECN with bbr3"));
        assert!(spoilt(|s| s.delayed_ack = Some(Span::ZERO)).starts_with("delayed_ack"));
        assert!(spoilt(|s| s.stop = Some(Time::from_nanos(-1))).starts_with("stop"));
        assert!(spoilt(|s| s.workload = Workload::File(0)).starts_with("workload"));
    }
}
