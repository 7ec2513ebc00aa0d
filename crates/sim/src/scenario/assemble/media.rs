//! Media flows: from their specification to the settings of two endpoints.

use super::coupling::Plans;
use super::{Builder, EncoderRequest, Makers, Refusal, clock_of, label, no_path, seed_of};
use crate::engine::host::{Destination, Host};
use crate::scenario::calls::{End, OtherPath, Place};
use crate::scenario::moves::{CallChange, PathChange, at_move};
use crate::scenario::{
    EcnSpec, FeedbackFormat, FeedbackInterval, FeedbackRule, FlowKind, FlowSpec, MediaSpec, PlayoutSpec,
    ReportInterval, ReportRule, Scenario, SpurtsSpec, VideoSource,
};
use std::sync::Arc;
use tidegate_core::control::{FeedbackKind, Limits};
use tidegate_core::{Ecn, FlowId, NodeId, Port, Rate, Span, Time};
use tidegate_endpoint::media::{dtx, ladder, packets, spurts, statistical};
use tidegate_endpoint::rtcp::schedule::Avpf;
use tidegate_endpoint::{
    Bounds, Endpoint, EndpointSettings, Playout, ReceiveSettings, RtcpMinimum, RtcpSettings, SendSettings,
    SourceSettings, StreamSettings,
};

impl Builder<'_> {
    /// The endpoints of all media flows: two for each flow, or two for a pair of flows in opposite directions. Returns the
    /// flows whose controllers need no feedback, and so do not adapt.
    pub(super) fn media(&mut self, make: &mut Makers<'_>) -> Result<Vec<FlowId>, Refusal> {
        let scenario = self.scenario;
        let mut plans = Plans::new(scenario)?;
        let mut built = vec![false; scenario.flows.len()];
        let mut without_feedback = Vec::new();
        for (index, flow) in scenario.flows.iter().enumerate() {
            let FlowKind::Media(media) = &flow.kind else { continue };
            if built[index] {
                continue;
            }
            let key = format!("flows.{}", flow.name);
            let pair = match &media.pair {
                None => None,
                Some(name) => {
                    let position = scenario.flows.iter().position(|peer| &peer.name == name);
                    let opposite = position.filter(|&peer| {
                        let peer = &scenario.flows[peer];
                        peer.from == flow.to
                            && peer.to == flow.from
                            && matches!(peer.kind, FlowKind::Media(_))
                    });
                    match opposite {
                        Some(peer) if !built[peer] && peer != index => Some(peer),
                        _ => {
                            let refusal =
                                Refusal::new("media.pair", name, "a media flow in the other direction");
                            return Err(refusal.at(&key));
                        }
                    }
                }
            };
            built[index] = true;
            if let Some(peer) = pair {
                built[peer] = true;
            }
            let ends = self.call(index, pair, &mut plans, &mut without_feedback, make);
            self.note_call([Some(index), pair], ends.map_err(|refusal| refusal.at(&key))?)?;
        }
        self.nodes.extend(plans.nodes());
        Ok(without_feedback)
    }

    /// Notes the flows of a call, and adds the moves that change their limits or paths; `flows` are that of the caller and
    /// that of the callee.
    fn note_call(&mut self, flows: [Option<usize>; 2], [caller, callee]: [End; 2]) -> Result<(), Refusal> {
        let scenario = self.scenario;
        let [Some(call), _] = flows else { return Ok(()) };
        for (flow, other, ends) in
            [(flows[0], flows[1], [caller, callee]), (flows[1], flows[0], [callee, caller])]
        {
            let Some(flow) = flow else { continue };
            let FlowSpec { name, from, to, .. } = &scenario.flows[flow];
            let place = Place {
                call,
                flow: FlowId(flow as u32),
                other: other.map(|other| FlowId(other as u32)),
                ends,
                points: [from.clone(), to.clone()],
            };
            self.calls.add(name, place);
            for (index, change) in scenario.moves.iter().enumerate() {
                if change.flow.as_ref() != Some(name) {
                    continue;
                }
                if !change.limits.is_empty() {
                    self.changes.insert(index, CallChange::Limits(ends, change.limits));
                }
                let Some(path) = &change.path else { continue };
                let other_path = self.calls.other_path(name, path, &change.back);
                let OtherPath { flows, ways } = other_path.map_err(|refusal| at_move(index, &refusal))?;
                let routes = ways.map(|(end, hops)| (end, self.add_route(hops))).to_vec();
                let signalled = change.signalled.unwrap_or(true);
                self.changes.insert(index, CallChange::Path(PathChange { flows, routes, signalled }));
            }
        }
        Ok(())
    }

    /// Plans the two endpoints of a call, and returns their places: that of the flow's sender, and that of its receiver.
    fn call(
        &mut self,
        index: usize,
        pair: Option<usize>,
        plans: &mut Plans,
        without_feedback: &mut Vec<FlowId>,
        make: &mut Makers<'_>,
    ) -> Result<[(NodeId, Port); 2], Refusal> {
        let scenario = self.scenario;
        let flow = &scenario.flows[index];
        let path = self.graph.path(&flow.from, &flow.to).ok_or_else(|| no_path(&flow.from, &flow.to))?;
        let back = self.way_back(flow)?;
        let [path, back] = [path, back].map(|path| self.calls.legs.on(index, &path));
        let [mut caller, mut callee] = ends(scenario, flow);
        connect(&mut caller, &mut callee, flow, index, make)?;
        if let Some(peer) = pair {
            connect(&mut callee, &mut caller, &scenario.flows[peer], peer, make)?;
        }
        let first = self.next_node(0);
        let slots = [&caller, &callee].map(|settings| plans.reserve(settings));
        let [caller_port, callee_port] = slots.map(|(node, port)| (NodeId(first.0 + node as u32), port));
        let (forward, backward) = (self.route_to(&path, callee_port), self.route_to(&back, caller_port));
        for (settings, route, (node, _)) in [(caller, forward, slots[0]), (callee, backward, slots[1])] {
            let flow = settings.send.as_ref().map(|send| send.flow);
            let priority = flow.and_then(|flow| plans.priority(flow));
            let needs_none = |send: &&SendSettings| send.controller.needs().feedback == FeedbackKind::None;
            without_feedback.extend(settings.send.as_ref().filter(needs_none).map(|send| send.flow));
            if let (Some(_), Some(send)) = (priority, &settings.send)
                && send.controller.coupled_rate().is_none()
            {
                let expected = "a controller that can be coupled, such as gcc";
                return Err(Refusal::new(
                    "media.controller",
                    label(&scenario.flows[send.flow.0 as usize].kind),
                    expected,
                ));
            }
            let host = Host::new(Endpoint::new(settings)?, route, Destination::Call(flow));
            plans.put(node, host, priority.unwrap_or(1.0));
        }
        Ok([caller_port, callee_port])
    }
}

/// The ends of a flow, sender and receiver, with their clocks, before they send or receive.
fn ends(scenario: &Scenario, flow: &FlowSpec) -> [EndpointSettings; 2] {
    let seed = seed_of(scenario, &flow.name);
    [("sender", &flow.from), ("receiver", &flow.to)].map(|(role, node)| {
        let mut end = EndpointSettings::new(format!("{}.{role}", flow.name), seed);
        end.clock.settings = clock_of(scenario, node);
        end
    })
}

/// The settings of the two ends, sender and receiver, of the only flow of `scenario`, for callers that drive them
/// without a world.
///
/// # Errors
/// When it is not one media flow in one direction, or its settings are invalid.
pub fn endpoint_settings(
    scenario: &Scenario,
    make: &mut Makers<'_>,
) -> Result<[EndpointSettings; 2], Refusal> {
    let [flow] = scenario.flows.as_slice() else {
        return Err(Refusal::new("flows", format!("{} flows", scenario.flows.len()), "one media flow"));
    };
    if let FlowKind::Media(media) = &flow.kind
        && let Some(name) = &media.pair
    {
        return Err(Refusal::new("media.pair", name, "no pair: a flow in one direction")
            .at(&format!("flows.{}", flow.name)));
    }
    let [mut sender, mut receiver] = ends(scenario, flow);
    connect(&mut sender, &mut receiver, flow, 0, make)
        .map_err(|refusal| refusal.at(&format!("flows.{}", flow.name)))?;
    Ok([sender, receiver])
}

/// Sets up `sender` to send `flow` to `receiver`.
fn connect(
    sender: &mut EndpointSettings,
    receiver: &mut EndpointSettings,
    flow: &FlowSpec,
    index: usize,
    make: &mut Makers<'_>,
) -> Result<(), Refusal> {
    let FlowKind::Media(media) = &flow.kind else {
        return Err(Refusal::new("kind", &flow.name, "a media flow"));
    };
    let id = FlowId(index as u32);
    let (controller, half) = (make.controller)(&media.controller)?;
    let mut send = SendSettings::new(id, controller);
    send.limits =
        Limits { min: media.min_rate, max: media.max_rate, start: media.start_rate, ..Limits::default() };
    send.start = flow.start;
    send.stop = flow.stop;
    send.packets = media.packets;
    send.payload = u16::try_from(media.payload)
        .map_err(|_| Refusal::new("media.payload", media.payload, "at most 65535 bytes"))?;
    send.queue_limit = media.queue_limit;
    send.feedback = match media.feedback.format {
        FeedbackFormat::Twcc => tidegate_endpoint::FeedbackFormat::Twcc,
        FeedbackFormat::Ccfb => tidegate_endpoint::FeedbackFormat::Ccfb,
        FeedbackFormat::None => tidegate_endpoint::FeedbackFormat::None,
    };
    send.extensions.transport_sequence = media.feedback.format == FeedbackFormat::Twcc;
    send.extensions.marks = media.marks;
    send.ecn = match media.ecn {
        EcnSpec::Off => Ecn::NotEct,
        EcnSpec::Ect0 => Ecn::Ect0,
        EcnSpec::Ect1 => Ecn::Ect1,
    };
    send.ecn_initiation = media.ecn_initiation;
    send.repair = media.repair;
    send.circuit_breaker = media.circuit_breaker;
    send.streams = streams(&flow.name, media, id, make)?;
    let mut receive = ReceiveSettings::new(&send);
    receive.half = half;
    match media.feedback.interval {
        FeedbackInterval::Every(interval) => receive.feedback.interval = interval,
        FeedbackInterval::Rule(FeedbackRule::Frame) => receive.feedback.frames = true,
    }
    receive.feedback.ecn_reports = media.feedback.ecn_reports;
    receive.playout = match media.playout {
        PlayoutSpec::Fixed { delay } => Playout::Fixed { delay },
        PlayoutSpec::Adaptive { min, max } => match Playout::default() {
            Playout::Adaptive { shrink, .. } => Playout::Adaptive { min, max, shrink },
            fixed @ Playout::Fixed { .. } => fixed,
        },
    };
    let rtcp = RtcpSettings {
        mode: media.feedback.profile,
        session_bandwidth: media.feedback.bandwidth.unwrap_or(media.max_rate),
        minimum: match media.feedback.reports {
            ReportInterval::Rule(ReportRule::Libwebrtc) => RtcpMinimum::Libwebrtc,
            ReportInterval::Rule(ReportRule::Rfc3550) | ReportInterval::Every(None) => RtcpMinimum::Reduced,
            ReportInterval::Every(Some(interval)) => RtcpMinimum::Fixed(interval),
        },
        avpf: Avpf { rr_interval: media.feedback.rr_interval, ..Avpf::default() },
        reduced_size: media.feedback.reduced_size,
    };
    for end in [&mut *sender, &mut *receiver] {
        end.overhead = media.overhead;
        end.rtcp = rtcp;
    }
    sender.send = Some(send);
    receiver.receive = Some(receive);
    Ok(())
}

fn streams(
    flow: &str,
    media: &MediaSpec,
    id: FlowId,
    make: &mut Makers<'_>,
) -> Result<Vec<StreamSettings>, Refusal> {
    // SSRCs need only differ within the session; the flow in the high bits makes captures readable
    let ssrc = |stream: u32| (id.0 + 1) << 8 | stream;
    let mut streams = Vec::new();
    if let Some(video) = &media.video {
        let bounds = Bounds::new(video.min, video.max);
        let fps = video.fps;
        let source = match &video.source {
            VideoSource::Greedy => SourceSettings::Greedy(bounds),
            VideoSource::Ideal => SourceSettings::Ideal { fps, bounds },
            VideoSource::Statistical {
                tau_v,
                transient_frames,
                burst,
                key_factor,
                transient_change,
                scale_t,
                scale_b,
            } => SourceSettings::Statistical(statistical::Settings {
                tau_v: *tau_v,
                transient_frames: *transient_frames,
                burst: *burst,
                key_factor: *key_factor,
                transient_change: *transient_change,
                scale_t: *scale_t,
                scale_b: *scale_b,
                fps,
                bounds,
                ..statistical::Settings::default()
            }),
            VideoSource::Cbr { packet_size, schedule } => SourceSettings::Packets(packets::Settings {
                size: *packet_size,
                overhead: media.overhead,
                rates: since_start(schedule),
            }),
            VideoSource::Frames { rungs, skip, group, unreferenced } => SourceSettings::Frames {
                ladder: Arc::new(ladder_of(rungs)?.with_unreferenced(unreferenced.clone())?),
                fps,
                skip: *skip,
                group: *group,
                bounds,
            },
            VideoSource::Encoder(spec) => SourceSettings::Live {
                encoder: (make.encoder)(&EncoderRequest { flow, spec, fps, payload: media.payload })?,
                fps,
                bounds,
            },
        };
        let source = match &video.adaptation {
            None => source,
            Some(settings) => {
                SourceSettings::Adapted { source: Box::new(source), settings: settings.clone() }
            }
        };
        let source = if video.schedule.is_empty() {
            source
        } else {
            SourceSettings::Scheduled { source: Box::new(source), steps: since_start(&video.schedule) }
        };
        streams.push(StreamSettings {
            key_interval: video.key_interval,
            requests: video.requests,
            below_min: video.below_min,
            ..StreamSettings::video(ssrc(1), source)
        });
    }
    if let Some(audio) = &media.audio {
        let source = SourceSettings::Cbr {
            rate: audio.rate,
            interval: audio.interval,
            spurts: audio.spurts.map(|SpurtsSpec { talk, pause }| spurts::Means { talk, pause }),
        };
        let source = match audio.dtx {
            None => source,
            Some(interval) => {
                let settings = dtx::Settings { interval, mutes: media.audio_pauses.clone() };
                SourceSettings::Dtx { source: Box::new(source), settings }
            }
        };
        streams.push(StreamSettings::audio(ssrc(2), source));
    }
    if streams.is_empty() {
        return Err("a media flow needs video, audio or both".into());
    }
    for stream in &mut streams {
        stream.pauses = media.pauses_of(stream.kind == tidegate_endpoint::settings::MediaKind::Video);
    }
    Ok(streams)
}

/// The steps of a schedule, with the time since the flow's start.
fn since_start(schedule: &[(Time, Rate)]) -> Vec<(Span, Rate)> {
    schedule.iter().map(|&(time, rate)| (time - Time::ZERO, rate)).collect()
}

fn ladder_of(rungs: &[(Rate, Vec<u32>)]) -> Result<ladder::Ladder, String> {
    let rungs =
        rungs.iter().map(|(rate, sizes)| ladder::Rung { rate: *rate, sizes: sizes.clone() }).collect();
    ladder::Ladder::new(rungs).map_err(|error| error.to_string())
}
