//! The caller's offer of a call: the settings that the answerer's endpoint needs, and those that both sides need to
//! write the same record.

use serde::{Deserialize, Serialize};
use tidegate_core::{FlowId, Level, Rate, Span, Time};
use tidegate_endpoint::{
    Endpoint, EndpointSettings, FeedbackSettings, Playout, ReceiveSettings, Repair, RtcpSettings, Signalled,
};
use tidegate_sim::Refusal;
use tidegate_sim::scenario::assemble::{Maker, Makers, endpoint_settings, label};
use tidegate_sim::scenario::{ControllerSpec, FlowKind, Scenario};

use super::compression::{deflate, inflate};
use crate::session::OVERHEAD;
use crate::session::message::MAX_SETTINGS;

/// Largest size of the uncompressed settings in bytes.
const MAX_UNCOMPRESSED: u64 = 1 << 16;

/// Longest call: a day.
const MAX_CALL: Span = Span::from_secs(86_400);

/// The settings of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// The flow's name.
    pub flow: String,
    /// Name of its controller in tables.
    pub controller: String,
    /// The run's seed.
    pub seed: u64,
    /// Duration of the call.
    pub duration: Span,
    /// Time at the beginning of the call that the metrics leave out.
    pub warmup: Span,
    /// Beginning of the flow.
    pub start: Time,
    /// End of the flow, if before that of the call.
    pub stop: Option<Time>,
    /// Width of a bin of the series.
    pub bin: Span,
    /// Level of detail of the record.
    pub level: Level,
    /// Bytes of headers on each packet, the seal included.
    pub overhead: u32,
    /// RTP payload bytes of a full packet.
    pub payload: u16,
    /// The receiving endpoint's name and seed.
    pub end: (String, u64),
    /// The streams.
    pub streams: Vec<Signalled>,
    /// Per-packet feedback.
    pub feedback: FeedbackSettings,
    /// Playout buffer.
    pub playout: Playout,
    /// Time from which on pictures are expected.
    pub pictures: Time,
    /// Repair of losses.
    pub repair: Repair,
    /// RTCP timing.
    pub rtcp: RtcpSettings,
    /// Scheme whose receiver half runs at the answerer.
    pub half: Option<ControllerSpec>,
}

impl Offer {
    /// The caller's endpoint for the only flow of `scenario`, and the offer.
    ///
    /// `max_rate` limits the sending rate. `make` makes controllers and encoders.
    ///
    /// # Errors
    /// If the scenario is not one flow of media in one direction, or cannot go over a socket.
    pub fn new(
        scenario: &Scenario,
        max_rate: Rate,
        make: &mut Makers<'_>,
    ) -> Result<(Endpoint, Self), Refusal> {
        let [mut sender, mut receiver] = endpoint_settings(scenario, make)?;
        let [flow] = scenario.flows.as_slice() else {
            return Err(Refusal::from("the scenario must have one flow"));
        };
        let FlowKind::Media(media) = &flow.kind else {
            return Err(Refusal::from("the flow must be a media flow"));
        };
        if let Some(node) = scenario.clocks.keys().next() {
            return Err(Refusal::new(
                format!("clocks.{node}"),
                "a clock",
                "none: over a socket each end has the clock of its machine",
            ));
        }
        let path = format!("flows.{}", flow.name);
        let refused = |key: &str, value: &str, expected: &str| {
            Err(Refusal::new(format!("media.{key}"), value, expected).at(&path))
        };
        let (Some(send), Some(receive)) = (&mut sender.send, receiver.receive.take()) else {
            return Err(Refusal::from("the flow must be a media flow"));
        };
        if receive.streams.iter().any(|stream| stream.frames) && !send.marks() && media.video.is_some() {
            return refused(
                "marks",
                "false",
                "true: over a socket only marks show to which frame a packet belongs",
            );
        }
        let half = match &receive.half {
            None => None,
            Some(half) if half.needs_true_delay() => {
                let expected = "a controller whose receiver half does not need the true delay: a socket does not show it";
                return refused("controller", &label(&flow.kind), expected);
            }
            Some(_) if media.controller.python => {
                let expected = "a controller of the registry, or one without a receiver half in Python: the other side \
                                does not have its class";
                return refused("controller", &label(&flow.kind), expected);
            }
            Some(_) => Some(media.controller.clone()),
        };
        let min_overhead = 28 + OVERHEAD as u32;
        if media.overhead < min_overhead {
            return refused(
                "overhead",
                &media.overhead.to_string(),
                &format!("at least {min_overhead} bytes, for IPv4, UDP and the session's seal"),
            );
        }
        send.limits.max = send.limits.max.min(max_rate);
        send.limits.start = send.limits.start.min(max_rate);
        if send.limits.min > max_rate {
            let expected = format!("at most the maximum rate of the call ({} bit/s)", max_rate.as_bps());
            return refused("min_rate", &send.limits.min.as_bps().to_string(), &expected);
        }
        let offer = Self {
            flow: flow.name.clone(),
            controller: label(&flow.kind),
            seed: scenario.seed,
            duration: scenario.duration,
            warmup: scenario.warmup,
            start: flow.start,
            stop: flow.stop,
            bin: scenario.record.bin,
            level: scenario.record.level,
            overhead: media.overhead,
            payload: send.payload,
            end: (receiver.name, receiver.seed),
            streams: receive.streams,
            feedback: receive.feedback,
            playout: receive.playout,
            pictures: receive.start,
            repair: receive.repair,
            rtcp: receiver.rtcp,
            half,
        };
        offer.check().map_err(|reason| Refusal::from(reason).at(&path))?;
        Ok((Endpoint::new(sender)?, offer))
    }

    /// Size of the largest UDP payload of either side in bytes: a full packet with the headers of RTP and of repair, or
    /// a compound RTCP packet, which fits into an Ethernet frame.
    #[must_use]
    pub fn max_datagram(&self) -> usize {
        (usize::from(self.payload) + 512 + OVERHEAD).clamp(1500, 65_507)
    }

    fn check(&self) -> Result<(), String> {
        let out_of_range = |name: &str, span: Span, max: Span| {
            (span > max || span.is_negative()).then(|| format!("{name}: found {span}; expected 0 to {max}"))
        };
        let problem = out_of_range("duration", self.duration, MAX_CALL)
            .or_else(|| out_of_range("warmup", self.warmup, self.duration))
            .or_else(|| out_of_range("start", self.start - Time::ZERO, self.duration))
            .or_else(|| {
                (self.bin < Span::from_millis(1))
                    .then(|| format!("bin: found {}; expected at least 1 ms", self.bin))
            })
            .or_else(|| {
                (self.streams.len() > 8)
                    .then(|| format!("streams: found {}; expected at most 8", self.streams.len()))
            })
            .or_else(|| {
                (self.overhead > 1 << 12)
                    .then(|| format!("overhead: found {}; expected at most 4096", self.overhead))
            })
            .or_else(|| {
                let names = [&self.flow, &self.controller, &self.end.0];
                let is_bad = |name: &&&String| name.len() > 200 || name.contains(char::is_control);
                names.iter().find(is_bad).map(|name| {
                    format!(
                        "found a name of {} bytes; expected at most 200, without control characters",
                        name.len()
                    )
                })
            });
        problem.map_or(Ok(()), Err)
    }

    /// The answerer's endpoint; receiver halves come from `make`.
    ///
    /// # Errors
    /// If a setting is invalid, or the scheme is not known.
    pub fn endpoint(&self, make: &mut Maker<'_>) -> Result<Endpoint, String> {
        self.check()?;
        let mut settings = EndpointSettings::new(self.end.0.clone(), self.end.1);
        settings.overhead = self.overhead;
        settings.rtcp = self.rtcp;
        let half = match &self.half {
            None => None,
            Some(spec) if spec.python => {
                return Err("a receiver half in Python does not exist on this side".to_owned());
            }
            Some(spec) => {
                let (_, half) = make(spec).map_err(|refusal| refusal.to_string())?;
                half
            }
        };
        settings.receive = Some(ReceiveSettings {
            flow: FlowId(0),
            streams: self.streams.clone(),
            half,
            feedback: self.feedback,
            playout: self.playout,
            start: self.pictures,
            repair: self.repair,
        });
        Endpoint::new(settings).map_err(|error| error.to_string())
    }

    /// The offer as the bytes of a message: JSON, compressed.
    ///
    /// # Errors
    /// With the reason, if they do not fit into one message.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let json = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        let bytes = deflate(&json, flate2::Compression::best())?;
        if bytes.len() > MAX_SETTINGS {
            return Err(format!(
                "the settings take {} bytes; a datagram has room for {MAX_SETTINGS}",
                bytes.len()
            ));
        }
        Ok(bytes)
    }

    /// Reads the bytes that [`Offer::to_bytes`] writes.
    ///
    /// # Errors
    /// With the reason, if the bytes are no offer.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let json = inflate(bytes, MAX_UNCOMPRESSED, "bytes of settings")?;
        serde_json::from_slice(&json).map_err(|error| error.to_string())
    }
}
