//! Checks of the settings of an endpoint, with the error for each that makes no sense.

use super::{
    EndpointSettings, FeedbackFormat, LARGEST_PACKET, MediaKind, Playout, ReceiveSettings, RtcpMinimum,
    RtcpMode, RtcpSettings, SendSettings, SettingsError, Signalled, largest_rtp,
};
use crate::media;
use crate::packetizer::Extensions;
use tidegate_core::{Rate, Span};

/// Largest number of requests of key frames a second: a thousand receivers, each of which asks once a second.
const REQUESTS_MAX: f64 = 1000.0;

impl EndpointSettings {
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let long =
            (self.name.len() > 255).then(|| "the name is longer than the 255 bytes of a CNAME".to_owned());
        let problem = long
            .or_else(|| self.clock.settings.check().err().map(|problem| format!("clock.{problem}")))
            .or_else(|| self.rtcp.problem())
            .or_else(|| self.packet_problem())
            .or_else(|| self.send.as_ref().and_then(SendSettings::problem))
            .or_else(|| self.receive.as_ref().and_then(ReceiveSettings::problem));
        match problem {
            None => Ok(()),
            Some(problem) => Err(SettingsError { endpoint: self.name.clone(), problem }),
        }
    }

    fn packet_problem(&self) -> Option<String> {
        let send = self.send.as_ref()?;
        let extensions = Extensions { marks: send.marks(), ..send.extensions };
        let between = send.streams.iter().map(|stream| stream.source.most_between()).max().unwrap_or(0);
        let max = largest_rtp(self.overhead)
            .saturating_sub(extensions.longest_header(between) + send.repair.max_added(extensions, between));
        (u32::from(send.payload) > max).then(|| {
            format!(
                "payloads of {} bytes do not fit IP packets of {LARGEST_PACKET} bytes; at most {max} bytes fit",
                send.payload
            )
        })
    }
}

impl RtcpSettings {
    pub(crate) fn problem(&self) -> Option<String> {
        if self.session_bandwidth == Rate::ZERO {
            return Some("the RTCP session bandwidth is zero; it must be positive".into());
        }
        match self.minimum {
            RtcpMinimum::Fixed(span) if span <= Span::ZERO => {
                Some(format!("the minimum RTCP interval is {span}; it must be positive"))
            }
            RtcpMinimum::Libwebrtc if self.mode != RtcpMode::Free => Some(format!(
                "reports at libwebrtc's times in the mode {:?}; that rule is for the mode Free",
                self.mode
            )),
            _ => None,
        }
    }
}

impl SendSettings {
    fn problem(&self) -> Option<String> {
        if self.queue_limit.is_negative() {
            return Some(format!("the queue limit is {}; it must not be negative", self.queue_limit));
        }
        if self.payload == 0 {
            return Some("the largest payload is zero; it must be positive".into());
        }
        if self.packets == Some(0) {
            return Some("the flow ends after 0 packets; at least 1 is needed".into());
        }
        if self.padding_payload == 0 {
            return Some("the padding payload is zero; it must be positive".into());
        }
        if self.stop.is_some_and(|stop| stop <= self.start) {
            return Some(format!(
                "the stop at {} is not after the start at {}",
                self.stop.unwrap_or_default(),
                self.start
            ));
        }
        if self.limits.min > self.limits.max {
            return Some(format!(
                "the minimum rate {:?} is above the maximum rate {:?}",
                self.limits.min, self.limits.max
            ));
        }
        let frames =
            self.streams.iter().any(|stream| stream.kind == MediaKind::Video && stream.signalled().frames);
        if self.repair.fec.is_some() && frames && !self.extensions.marks {
            return Some(
                "parity needs marks in the packets, which name the frame of a restored packet; the marks are off"
                    .into(),
            );
        }
        if self.feedback == FeedbackFormat::Twcc && !self.extensions.transport_sequence {
            return Some(
                "TWCC feedback needs transport-wide sequence numbers in the packets; the extension is off"
                    .into(),
            );
        }
        if let Some(problem) = self.repair.problem() {
            return Some(problem);
        }
        for kind in [MediaKind::Video, MediaKind::Audio] {
            let count = self.streams.iter().filter(|stream| stream.kind == kind).count();
            if count > 1 {
                return Some(format!("the flow has {count} streams of {kind:?}; at most one is allowed"));
            }
        }
        for stream in &self.streams {
            let name = &stream.name;
            if !matches!(stream.kind, MediaKind::Video | MediaKind::Audio) {
                return Some(format!(
                    "stream {name} has the kind of a built-in stream, {:?}; expected Video or Audio",
                    stream.kind
                ));
            }
            if let Some(interval) = stream.key_interval.filter(|&interval| interval <= Span::ZERO) {
                return Some(format!(
                    "stream {name} has a key frame each {interval}; the interval must be positive"
                ));
            }
            if let Some(rate) = stream.requests
                && !(rate > 0.0 && rate <= REQUESTS_MAX)
            {
                return Some(format!(
                    "stream {name} gets {rate} requests of key frames a second; expected more than 0 and at most \
                     {REQUESTS_MAX}"
                ));
            }
            if !media::in_order(&stream.pauses) {
                return Some(format!(
                    "the pauses of stream {name} are not in order of time: {:?}",
                    stream.pauses
                ));
            }
        }
        streams_problem(&self.signalled())
    }
}

impl ReceiveSettings {
    fn problem(&self) -> Option<String> {
        if let Some(interval) = self.feedback.interval.filter(|&interval| interval <= Span::ZERO) {
            return Some(format!("the feedback interval is {interval}; it must be positive"));
        }
        match self.playout {
            Playout::Fixed { delay } if delay.is_negative() => {
                return Some(format!("the playout delay is {delay}; it must not be negative"));
            }
            Playout::Adaptive { min, max, shrink } => {
                if min.is_negative() || max < min {
                    return Some(format!(
                        "the playout delay goes from {min} to {max}; expected a minimum from 0 to the maximum"
                    ));
                }
                if !(0.0..1.0).contains(&shrink) {
                    return Some(format!(
                        "the playout delay shrinks by {shrink}; it must be from 0 to less than 1"
                    ));
                }
            }
            Playout::Fixed { .. } => {}
        }
        streams_problem(&self.streams)
    }
}

fn streams_problem(streams: &[Signalled]) -> Option<String> {
    for (index, stream) in streams.iter().enumerate() {
        if stream.payload_type > 127 {
            return Some(format!("payload type {} does not fit 7 bits", stream.payload_type));
        }
        if stream.clock_rate == 0 {
            return Some(format!("the stream with SSRC {:#x} has a clock rate of zero", stream.ssrc));
        }
        let preceding = &streams[..index];
        if preceding.iter().any(|earlier| earlier.payload_type == stream.payload_type) {
            return Some(format!("two streams have the payload type {}", stream.payload_type));
        }
        if preceding.iter().any(|earlier| earlier.ssrc == stream.ssrc) {
            return Some(format!("two streams have the SSRC {:#x}", stream.ssrc));
        }
    }
    // a report has room for 31 report blocks (RFC 3550 section 6.4.1)
    (streams.len() > 31)
        .then(|| format!("the flow has {} streams; one report covers at most 31", streams.len()))
}
