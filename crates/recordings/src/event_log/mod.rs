//! Decodes RTC event logs of libwebrtc, format 2 (`logging/rtc_event_log/rtc_event_log2.proto`). Chromium writes them
//! with
//! `--webrtc-event-logging=DIR`, and `chrome://webrtc-internals` on request.
//!
//! A log is one message, an `EventStream`. Its fields are batches of events of one kind: the first event in scalar
//! fields, the others as columns of differences (`deltas`). Concatenated logs are a log. Unknown fields are skipped and
//! counted. Times are milliseconds of the writer's monotonic clock.

mod batch;
mod deltas;
mod events;

pub use events::{Decoded, DelayBased, LoggedRtcp, LoggedRtp, LossBased, Millis, Probe, Scream, Stream};

use crate::problem::{Problem, Problems};
use crate::protobuf::{Field, Fields, Value};
use batch::Batch;
use std::collections::BTreeMap;

/// A decoded log, with each list in the order of time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventLog {
    /// Beginning of the log, and its Unix time in ms.
    pub begin: Option<(Millis, i64)>,
    /// Packets sent.
    pub outgoing: Vec<LoggedRtp>,
    /// Packets received.
    pub incoming: Vec<LoggedRtp>,
    /// RTCP sent.
    pub outgoing_rtcp: Vec<LoggedRtcp>,
    /// RTCP received.
    pub incoming_rtcp: Vec<LoggedRtcp>,
    /// The delay-based estimate.
    pub delay_based: Vec<DelayBased>,
    /// The sender's estimate.
    pub loss_based: Vec<LossBased>,
    /// SCReAM's state.
    pub scream: Vec<Scream>,
    /// Probe clusters requested.
    pub probes: Vec<Probe>,
    /// Results of probe clusters.
    pub probe_results: Vec<Probe>,
    /// Times at which the sender began or ceased to be application-limited (ALR).
    pub application_limited: Vec<(Millis, bool)>,
    /// Bytes that the route adds to each packet, with the times of the changes.
    pub overhead: Vec<(Millis, u32)>,
    /// Frames decoded.
    pub decoded: Vec<Decoded>,
    /// Streams announced, each SSRC once.
    pub streams: Vec<Stream>,
    /// Numbers of unknown fields, with their counts.
    pub unknown: BTreeMap<u32, u64>,
    /// Parts that could not be read.
    pub problems: Problems,
}

/// The field numbers of `EventStream`.
mod field {
    pub(super) const LEGACY: u32 = 1;
    pub(super) const INCOMING_RTP: u32 = 2;
    pub(super) const OUTGOING_RTP: u32 = 3;
    pub(super) const INCOMING_RTCP: u32 = 4;
    pub(super) const OUTGOING_RTCP: u32 = 5;
    pub(super) const FRAME_DECODED: u32 = 7;
    pub(super) const BEGIN: u32 = 16;
    pub(super) const LOSS_BASED: u32 = 18;
    pub(super) const DELAY_BASED: u32 = 19;
    pub(super) const PROBE_CLUSTER: u32 = 21;
    pub(super) const PROBE_SUCCESS: u32 = 22;
    pub(super) const PROBE_FAILURE: u32 = 23;
    pub(super) const ALR: u32 = 24;
    pub(super) const ROUTE_CHANGE: u32 = 32;
    pub(super) const SCREAM: u32 = 35;
    pub(super) const AUDIO_RECEIVE: u32 = 101;
    pub(super) const AUDIO_SEND: u32 = 102;
    pub(super) const VIDEO_RECEIVE: u32 = 103;
    pub(super) const VIDEO_SEND: u32 = 104;
    /// Fields that are batches.
    pub(super) const BATCHES: [u32; 8] = [
        INCOMING_RTP,
        OUTGOING_RTP,
        INCOMING_RTCP,
        OUTGOING_RTCP,
        FRAME_DECODED,
        LOSS_BASED,
        DELAY_BASED,
        SCREAM,
    ];
    /// Fields that are single events.
    pub(super) const SINGLE_EVENTS: [u32; 10] = [
        BEGIN,
        PROBE_CLUSTER,
        PROBE_SUCCESS,
        PROBE_FAILURE,
        ALR,
        ROUTE_CHANGE,
        AUDIO_RECEIVE,
        AUDIO_SEND,
        VIDEO_RECEIVE,
        VIDEO_SEND,
    ];
    /// Fields that are ignored: playout of audio, the end of the log, audio network adaptation, ICE, DTLS, generic
    /// packets, remote estimates, NetEq.
    pub(super) const IGNORED: [u32; 12] = [6, 17, 20, 25, 26, 27, 28, 29, 30, 31, 33, 34];
}

/// Number of broken fields after which a file without a usable one is given up: it is no log, and each costs an error.
const MAX_BROKEN_FIELDS: usize = 10_000;

impl EventLog {
    /// Reads a log. Batches that cannot be read are skipped and reported in `problems`, and so is the end of a log that
    /// was cut off.
    ///
    /// # Errors
    /// If the bytes are no such log, or no field of it can be read.
    pub fn read(bytes: &[u8]) -> Result<Self, Problem> {
        let mut log = Self::default();
        let (mut used_fields, mut broken_fields) = (0usize, 0usize);
        for field in Fields::of(bytes, 0) {
            match field.and_then(|field| log.field(&field)) {
                Ok(used) => used_fields += usize::from(used),
                Err(problem) => {
                    log.problems.add(problem);
                    broken_fields += 1;
                }
            }
            if used_fields == 0 && broken_fields == MAX_BROKEN_FIELDS {
                break;
            }
        }
        if used_fields == 0 {
            let first = log.problems.first.into_iter().next();
            return Err(first.unwrap_or_else(|| {
                Problem::new(
                    0,
                    "found no events of an RTC event log; expected format 2 (rtc_event_log2.proto)",
                )
            }));
        }
        log.sort();
        Ok(log)
    }

    /// Adds a field of the `EventStream`, and returns whether it is used here.
    fn field(&mut self, field: &Field<'_>) -> Result<bool, Problem> {
        let is_used = |number| field::SINGLE_EVENTS.contains(&number) || field::BATCHES.contains(&number);
        match field.value {
            _ if field.number == field::LEGACY => Err(Problem::new(
                field.offset,
                "found an RTC event log of format 1, which libwebrtc gave up in 2019; expected format 2",
            )),
            Value::Bytes(offset, bytes) if is_used(field.number) => {
                self.batch(field.number, &Batch::decode(bytes, offset)?)?;
                Ok(true)
            }
            _ => {
                if !field::IGNORED.contains(&field.number) {
                    *self.unknown.entry(field.number).or_default() += 1;
                }
                Ok(false)
            }
        }
    }

    /// Sorts each list by time: a batch has the events of one stream only.
    fn sort(&mut self) {
        self.outgoing.sort_by_key(|packet| packet.at);
        self.incoming.sort_by_key(|packet| packet.at);
        self.outgoing_rtcp.sort_by_key(|packet| packet.at);
        self.incoming_rtcp.sort_by_key(|packet| packet.at);
        self.delay_based.sort_by_key(|event| event.at);
        self.loss_based.sort_by_key(|event| event.at);
        self.scream.sort_by_key(|event| event.at);
        self.probes.sort_by_key(|event| event.at);
        self.probe_results.sort_by_key(|event| event.at);
        self.application_limited.sort_by_key(|&(time, _)| time);
        self.overhead.sort_by_key(|&(time, _)| time);
        self.decoded.sort_by_key(|event| event.at);
    }

    /// Adds the events of a batch.
    fn batch(&mut self, number: u32, batch: &Batch<'_>) -> Result<(), Problem> {
        match number {
            field::INCOMING_RTP => rtp(batch, &mut self.incoming)?,
            field::OUTGOING_RTP => rtp(batch, &mut self.outgoing)?,
            field::INCOMING_RTCP => rtcp(batch, &mut self.incoming_rtcp)?,
            field::OUTGOING_RTCP => rtcp(batch, &mut self.outgoing_rtcp)?,
            field::FRAME_DECODED => {
                let count = batch.count(15)?;
                let times = batch.times(1, 101, count)?;
                let ssrc = batch.required(2, 102, count, "an SSRC")?;
                let render = batch.required(3, 103, count, "a rendering time")?;
                let rows = times.into_iter().zip(ssrc).zip(render);
                self.decoded.extend(rows.map(|((at, ssrc), render)| Decoded {
                    at,
                    ssrc: ssrc as u32,
                    render: render as i64,
                }));
            }
            field::BEGIN => {
                let version = batch.number(2).unwrap_or(0);
                if version != 2 {
                    let message = format!("found an RTC event log of format {version}; expected format 2");
                    return Err(Problem::new(batch.offset, message));
                }
                let begin = (batch.time(1)?, batch.number(3).unwrap_or(0) as i64);
                self.begin.get_or_insert(begin);
            }
            field::LOSS_BASED => {
                let updates = estimates(batch, 5, "a fraction lost")?
                    .map(|(at, bitrate, fraction_lost)| LossBased { at, bitrate, fraction_lost });
                self.loss_based.extend(updates);
            }
            field::DELAY_BASED => {
                let updates = estimates(batch, 4, "a detector state")?
                    .map(|(at, bitrate, state)| DelayBased { at, bitrate, state });
                self.delay_based.extend(updates);
            }
            field::SCREAM => {
                let count = batch.count(7)?;
                let times = batch.times(1, 101, count)?;
                let [window, target, rtt, queue] = [(2, 102), (3, 103), (4, 104), (5, 105)]
                    .map(|(first, rest)| batch.column(first, rest, count));
                let (window, target, rtt, queue) = (window?, target?, rtt?, queue?);
                self.scream.extend(times.into_iter().enumerate().map(|(row, at)| Scream {
                    at,
                    ref_window: window[row].map(|value| value as u32),
                    target_kbps: target[row].map(|value| value as u32),
                    smoothed_rtt: rtt[row].map(|value| value as u32),
                    queue_delay: queue[row].map(|value| value as u32),
                }));
            }
            field::PROBE_CLUSTER => {
                let probe = Probe { at: batch.time(1)?, id: batch.probe_id(), bitrate: batch.number32(3) };
                self.probes.push(probe);
            }
            field::PROBE_SUCCESS | field::PROBE_FAILURE => {
                let bitrate = batch.number32(3).filter(|_| number == field::PROBE_SUCCESS);
                self.probe_results.push(Probe { at: batch.time(1)?, id: batch.probe_id(), bitrate });
            }
            field::ALR => self.application_limited.push((batch.time(1)?, batch.number(2) == Some(1))),
            field::ROUTE_CHANGE => {
                let overhead = batch.number32(3).filter(|_| batch.number(2) == Some(1));
                let at = batch.time(1)?;
                self.overhead.extend(overhead.map(|overhead| (at, overhead)));
            }
            field::AUDIO_RECEIVE => self.stream(batch.number32(2), None, false),
            field::AUDIO_SEND => self.stream(batch.number32(2), None, false),
            field::VIDEO_RECEIVE => self.stream(batch.number32(2), batch.number32(4), true),
            field::VIDEO_SEND => self.stream(batch.number32(2), batch.number32(3), true),
            _ => (),
        }
        Ok(())
    }

    /// Adds a stream; a repeated announcement replaces the first.
    fn stream(&mut self, ssrc: Option<u32>, rtx: Option<u32>, video: bool) {
        let Some(ssrc) = ssrc else { return };
        let stream = Stream { ssrc, rtx, video };
        match self.streams.iter_mut().find(|existing| existing.ssrc == ssrc) {
            Some(existing) => *existing = stream,
            None => self.streams.push(stream),
        }
    }
}

/// Time, rate in bit/s, and a third column of each estimate in a batch. Field `more` counts the estimates after the
/// first;
/// `name` is that of the third column, for errors.
fn estimates(
    batch: &Batch<'_>,
    more: u32,
    name: &str,
) -> Result<impl Iterator<Item = (Millis, u32, u8)>, Problem> {
    let count = batch.count(more)?;
    let times = batch.times(1, 101, count)?;
    let bitrate = batch.required(2, 102, count, "a bit rate")?;
    let third = batch.required(3, 103, count, name)?;
    let rows = times.into_iter().zip(bitrate).zip(third);
    Ok(rows.map(|((at, bitrate), third)| (at, bitrate as u32, third as u8)))
}

fn rtp(batch: &Batch<'_>, packets: &mut Vec<LoggedRtp>) -> Result<(), Problem> {
    let count = batch.count(11)?;
    let times = batch.times(1, 101, count)?;
    let marker = batch.required(2, 102, count, "a marker bit")?;
    let payload_type = batch.required(3, 103, count, "a payload type")?;
    let sequence = batch.required(4, 104, count, "a sequence number")?;
    let timestamp = batch.required(5, 105, count, "an RTP timestamp")?;
    let ssrc = batch.required(6, 106, count, "an SSRC")?;
    let payload = batch.required(8, 108, count, "a payload size")?;
    let header = batch.required(9, 109, count, "a header size")?;
    let padding = batch.required(10, 110, count, "a padding size")?;
    let transport = batch.column(15, 115, count)?;
    let abs_send_time = batch.column(17, 117, count)?;
    // no part of an RTP packet is longer than a datagram
    let size = |value: u64| value.min(u64::from(u16::MAX)) as u32;
    packets.extend((0..count).map(|row| LoggedRtp {
        at: times[row],
        ssrc: ssrc[row] as u32,
        timestamp: timestamp[row] as u32,
        size: size(header[row]) + size(payload[row]) + size(padding[row]),
        payload: size(payload[row]),
        abs_send_time: abs_send_time[row].map(|stamp| stamp as u32 & 0xff_ffff),
        sequence: sequence[row] as u16,
        transport_sequence: transport[row].map(|number| number as u16),
        payload_type: payload_type[row] as u8 & 0x7f,
        marker: marker[row] != 0,
    }));
    Ok(())
}

fn rtcp(batch: &Batch<'_>, packets: &mut Vec<LoggedRtcp>) -> Result<(), Problem> {
    let count = batch.count(3)?;
    let times = batch.times(1, 101, count)?;
    let (_, first) = batch.bytes(2);
    let (offset, rest) = batch.bytes(102);
    let rest = if count > 1 { deltas::blobs(rest, offset, count - 1)? } else { Vec::new() };
    let datagrams = std::iter::once(first).chain(rest);
    packets
        .extend(times.into_iter().zip(datagrams).map(|(at, bytes)| LoggedRtcp { at, bytes: bytes.to_vec() }));
    Ok(())
}

#[cfg(test)]
mod tests;
