//! Sessions of any number of members, over multicast or between two: their media, their reports of losses, and the
//! timing of both.
//!
//! A [`Participant`] is one member. It has no congestion controller and no playout: it models RTCP, its timing, and the
//! feedback that the timing lets through (RFC 3550 section 6, RFC 4585). Calls under a controller are
//! [`crate::Endpoint`]s.

mod media;
mod participant;
mod source;

pub use participant::Participant;

use crate::clock::Clock;
use crate::settings::{RtcpMode, RtcpSettings, SettingsError};
use tidegate_core::{FlowId, Rate, Time};

/// Media of a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MediaSettings {
    /// Packets of one size at a constant rate.
    Packets {
        /// Bytes of each packet on the wire.
        size: u32,
        /// Rate of all packets on the wire.
        rate: Rate,
    },
    /// Pictures that are cut into segments, one packet for each; the encoder repairs losses that NEWPRED reports
    /// (ISO/IEC 14496-2 Amd. 1; draft-burmeister-avt-rtcp-feedback-sim-00 section 9).
    Segments {
        /// Pictures a second.
        fps: f64,
        /// Segments of a picture.
        segments: u16,
        /// Rate of all packets on the wire.
        rate: Rate,
    },
}

/// Way in which a member leaves the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It says goodbye (RFC 3550 section 6.3.7).
    Goodbye,
    /// It falls silent.
    Crash,
}

/// One member of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct ParticipantSettings {
    /// The name in tables, and the first part of its substreams' names.
    pub name: String,
    /// Its canonical name (RFC 3550 section 6.5.1), which is in every report.
    pub cname: String,
    /// Seed of the run.
    pub seed: u64,
    /// Its clock.
    pub clock: Clock,
    /// The flow that all its packets belong to; its SSRC follows from it.
    pub flow: FlowId,
    /// Bytes of IP and UDP headers on each packet.
    pub overhead: u32,
    /// RTCP timing: [`RtcpMode::Avp`] or [`RtcpMode::Avpf`].
    pub rtcp: RtcpSettings,
    /// Its media, if it sends any.
    pub media: Option<MediaSettings>,
    /// Segments of a picture if the senders of the session send [`MediaSettings::Segments`]: their losses are reported
    /// by NEWPRED messages.
    pub segments: Option<u16>,
    /// Whether it counts as a sender, with sender reports, even if it sends no RTP: then it learns the round-trip time
    /// to the members that report on it.
    pub declared_sender: bool,
    /// Whether the session has declared senders: then sender reports count as a sign of sending, and are answered in
    /// report blocks.
    pub declared_senders: bool,
    /// Whether it reports losses.
    pub reports_losses: bool,
    /// When it joins.
    pub join: Time,
    /// When and how it leaves; `None`: with the end of the run.
    pub leave: Option<(Time, Leave)>,
}

impl ParticipantSettings {
    /// A receiver that reports losses, from the start of the run to its end, with 28 bytes of IPv4 and UDP
    /// header, under AVPF.
    #[must_use]
    pub fn new(name: impl Into<String>, seed: u64, flow: FlowId) -> Self {
        let name = name.into();
        Self {
            clock: Clock::new(seed, &name),
            seed,
            flow,
            overhead: 28,
            rtcp: RtcpSettings { mode: RtcpMode::Avpf, ..RtcpSettings::default() },
            media: None,
            segments: None,
            declared_sender: false,
            declared_senders: false,
            reports_losses: true,
            join: Time::ZERO,
            leave: None,
            cname: name.clone(),
            name,
        }
    }

    fn check(&self) -> Result<(), SettingsError> {
        let problem = self.problem();
        problem.map_or(Ok(()), |problem| Err(SettingsError { endpoint: self.name.clone(), problem }))
    }

    fn problem(&self) -> Option<String> {
        if self.rtcp.mode == RtcpMode::Free {
            return Some("the RTCP mode is free; members of a session need avp or avpf".into());
        }
        if self.cname.len() > 255 {
            return Some("the canonical name is longer than 255 bytes".into());
        }
        if self.leave.is_some_and(|(time, _)| time <= self.join) {
            return Some("the time of leaving is not after the time of joining".into());
        }
        if self.segments == Some(0) {
            return Some("pictures have 0 segments; at least 1 is needed".into());
        }
        self.rtcp.problem().or_else(|| self.media.as_ref().and_then(|media| media.problem(self.overhead)))
    }
}

impl MediaSettings {
    /// Bytes of a packet on the wire.
    #[must_use]
    pub fn packet_size(&self) -> u32 {
        match *self {
            Self::Packets { size, .. } => size,
            Self::Segments { fps, segments, rate } => {
                let bytes = rate.as_bps_f64() / (8.0 * fps * f64::from(segments));
                // rounded: half a byte in hundreds
                Rate::from_bps_f64(bytes).as_bps() as u32
            }
        }
    }

    fn problem(&self, overhead: u32) -> Option<String> {
        let headers = overhead.saturating_add(RTP_HEADER);
        let rate = match *self {
            Self::Packets { rate, .. } | Self::Segments { rate, .. } => rate,
        };
        if rate == Rate::ZERO {
            return Some("the media rate is 0 bit/s; leave the media out instead".into());
        }
        if let Self::Segments { fps, segments, .. } = *self
            && !(fps > 0.0 && fps <= 1000.0 && segments > 0)
        {
            return Some(format!(
                "the media has {fps} pictures per second of {segments} segments; expected more than 0 and at most 1000 \
                 pictures per second, of at least 1 segment"
            ));
        }
        let size = self.packet_size();
        (size <= headers || size > u32::from(u16::MAX)).then(|| {
            format!(
                "the packets have {size} bytes; expected more than the {headers} bytes of headers, and at most 65535"
            )
        })
    }
}

/// Bytes of an RTP header without extensions (RFC 3550 section 5.1).
const RTP_HEADER: u32 = 12;

/// The SSRC of the member with this flow; no two members have the same.
#[must_use]
pub fn ssrc(flow: FlowId) -> u32 {
    // an odd factor maps 32 bits one to one
    flow.0.wrapping_add(1).wrapping_mul(SSRC_FACTOR)
}

/// The flow of the member with this SSRC, as the session has assigned them.
#[must_use]
pub fn flow(ssrc: u32) -> FlowId {
    FlowId(ssrc.wrapping_mul(inverse(SSRC_FACTOR)).wrapping_sub(1))
}

const SSRC_FACTOR: u32 = 0x9e37_79b1;

/// The inverse of an odd number modulo 2^32, by Newton: the number itself has three correct bits, and each step doubles
/// them.
const fn inverse(odd: u32) -> u32 {
    let mut guess = odd;
    let mut bits = 3;
    while bits < 32 {
        guess = guess.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(guess)));
        bits *= 2;
    }
    guess
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ssrc_determines_its_flow() {
        for number in [0, 1, 2, 999, 65_536, u32::MAX - 1, u32::MAX] {
            assert_eq!(flow(ssrc(FlowId(number))), FlowId(number));
        }
    }
}
