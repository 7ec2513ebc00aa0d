//! What the caller tells the answerer of the call: all that its receiving endpoint needs, and what both need to write
//! the same record.

use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use tidegate_core::{FlowId, Level, Rate, Span, Time};
use tidegate_endpoint::{
    Endpoint, EndpointSettings, FeedbackSettings, Playout, ReceiveSettings, Repair, RtcpSettings, Signalled,
};
use tidegate_sim::Refusal;
use tidegate_sim::scenario::assemble::{Maker, Makers, ends, label};
use tidegate_sim::scenario::{ControllerSpec, FlowKind, Scenario};

use crate::session::OVERHEAD;
use crate::session::message::MOST_SETTINGS;

/// The most bytes of settings, uncompressed.
const MOST: u64 = 1 << 16;

/// Nobody stays longer in one call: a day.
const LONGEST_CALL: Span = Span::from_secs(86_400);

/// The settings of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// The flow's name.
    pub flow: String,
    /// Its controller, as tables call it.
    pub controller: String,
    /// The run's seed.
    pub seed: u64,
    /// How long the call lasts, of which so much at the beginning is left out of the metrics.
    pub duration: Span,
    /// See `duration`.
    pub warmup: Span,
    /// When the flow begins.
    pub start: Time,
    /// When it ends, if before the call.
    pub stop: Option<Time>,
    /// Width of a bin of the series.
    pub bin: Span,
    /// How much is kept.
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
    /// When frames are shown.
    pub playout: Playout,
    /// From when on there should be pictures.
    pub pictures: Time,
    /// How losses are repaired.
    pub repair: Repair,
    /// RTCP timing.
    pub rtcp: RtcpSettings,
    /// The scheme whose receiver half is wanted.
    pub half: Option<ControllerSpec>,
}

impl Offer {
    /// The caller's endpoint for the only flow of `scenario`, and what to offer.
    ///
    /// `most` bounds its rate. Controllers come from `make`, sources from `encoder` where they need one.
    ///
    /// # Errors
    /// When the scenario is not one flow of media, one way, or cannot go over a socket.
    pub fn new(scenario: &Scenario, most: Rate, make: &mut Makers<'_>) -> Result<(Endpoint, Self), Refusal> {
        let [mut sender, mut receiver] = ends(scenario, make)?;
        let [flow] = scenario.flows.as_slice() else { return Err(Refusal::from("not one flow")) };
        let FlowKind::Media(media) = &flow.kind else { return Err(Refusal::from("no media")) };
        let place = format!("flows.{}", flow.name);
        let refused = |key: &str, found: &str, expected: &str| {
            Err(Refusal::new(format!("media.{key}"), found, expected).at(&place))
        };
        let (Some(send), Some(receive)) = (&mut sender.send, receiver.receive.take()) else {
            return Err(Refusal::from("no media"));
        };
        if receive.streams.iter().any(|stream| stream.frames) && !send.marks() && media.video.is_some() {
            return refused(
                "marks",
                "false",
                "true: over a socket only marks say which frame a packet is of",
            );
        }
        let half = match &receive.half {
            None => None,
            Some(half) if half.needs_true_delay() => {
                let expected =
                    "a scheme whose receiver measures what a receiver can: it asks for the true delay";
                return refused("controller", &label(&flow.kind), expected);
            }
            Some(_) if media.controller.python => {
                let expected = "a controller without a receiver half in Python, or one of the registry: the other side has \
                                no such class";
                return refused("controller", &label(&flow.kind), expected);
            }
            Some(_) => Some(media.controller.clone()),
        };
        let least = 28 + OVERHEAD as u32;
        if media.overhead < least {
            return refused(
                "overhead",
                &media.overhead.to_string(),
                &format!("at least {least}: IPv4, UDP and the session's seal"),
            );
        }
        send.limits.max = send.limits.max.min(most);
        send.limits.start = send.limits.start.min(most);
        if send.limits.min > most {
            let expected = format!("at most the rate that the call is capped at ({} bit/s)", most.as_bps());
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
        offer.check().map_err(|reason| Refusal::from(reason).at(&place))?;
        Ok((Endpoint::new(sender)?, offer))
    }

    /// Bytes of the largest datagram that either side sends above UDP: a full packet with the headers of RTP and of
    /// repair, or a compound of RTCP, which fits into Ethernet.
    #[must_use]
    pub fn largest(&self) -> usize {
        (usize::from(self.payload) + 512 + OVERHEAD).clamp(1500, 65_507)
    }

    fn check(&self) -> Result<(), String> {
        let long = |name: &str, found: Span, most: Span| {
            (found > most || found.is_negative())
                .then(|| format!("{name}: found {found}; expected up to {most}"))
        };
        let wrong = long("duration", self.duration, LONGEST_CALL)
            .or_else(|| long("warmup", self.warmup, self.duration))
            .or_else(|| long("start", self.start - Time::ZERO, self.duration))
            .or_else(|| (self.bin < Span::from_millis(1)).then(|| format!("bin: found {}", self.bin)))
            .or_else(|| (self.streams.len() > 8).then(|| format!("{} streams", self.streams.len())))
            .or_else(|| (self.overhead > 1 << 12).then(|| format!("overhead: found {}", self.overhead)))
            .or_else(|| {
                let names = [&self.flow, &self.controller, &self.end.0];
                let odd = |name: &&&String| name.len() > 200 || name.contains(char::is_control);
                names.iter().find(odd).map(|name| format!("a name of {} bytes", name.len()))
            });
        wrong.map_or(Ok(()), Err)
    }

    /// The answerer's endpoint; receiver halves come from `make`.
    ///
    /// # Errors
    /// When a setting makes no sense, or there is no such scheme here.
    pub fn endpoint(&self, make: &mut Maker<'_>) -> Result<Endpoint, String> {
        self.check()?;
        let mut settings = EndpointSettings::new(self.end.0.clone(), self.end.1);
        settings.overhead = self.overhead;
        settings.rtcp = self.rtcp;
        let half = match &self.half {
            None => None,
            Some(spec) if spec.python => return Err("a receiver half in Python".to_owned()),
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
    /// With the reason, when they do not fit into one.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let plain = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        let bytes =
            packed.write_all(&plain).and_then(|()| packed.finish()).map_err(|error| error.to_string())?;
        if bytes.len() > MOST_SETTINGS {
            return Err(format!("the settings take {} bytes; one datagram has {MOST_SETTINGS}", bytes.len()));
        }
        Ok(bytes)
    }

    /// Reads what [`Offer::to_bytes`] has written.
    ///
    /// # Errors
    /// With the reason, when the bytes are no offer.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let mut plain = Vec::new();
        let mut read = flate2::read::DeflateDecoder::new(bytes).take(MOST + 1);
        read.read_to_end(&mut plain).map_err(|error| error.to_string())?;
        if plain.len() as u64 > MOST {
            return Err(format!("more than {MOST} bytes of settings"));
        }
        serde_json::from_slice(&plain).map_err(|error| error.to_string())
    }
}
