//! Finds the frames of a direction that was recorded at both ends, by RTP timestamp and marker: when each was sampled
//! and when it was complete.
//!
//! A retransmission is a packet of its own. It is usually encrypted, so that the packet that it repeats is not known. A
//! frame therefore is complete only if all of its packets arrived the first time.

use crate::point::{MILLI, Nanos};
use crate::session::{Direction, Fate};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tidegate_core::{Kind, Time};
use tidegate_sim::record::columns::{Column, Table};

/// A frame of video, or of audio.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frame {
    /// SSRC of its stream.
    pub ssrc: u32,
    /// Whether it is video.
    pub video: bool,
    /// Its number in the stream, in the order of timestamps.
    pub number: u32,
    /// Bytes of its IP packets.
    pub size: u64,
    /// Sampling instant by its timestamp, as late as possible without any frame of the stream sent before its instant.
    pub captured: Nanos,
    /// Arrival of its last packet; `None` if a packet was lost.
    pub complete: Option<Nanos>,
}

impl Frame {
    /// Time from its sampling instant until it was complete.
    #[must_use]
    pub fn delay(&self) -> Option<Nanos> {
        self.complete.map(|complete| complete.saturating_sub(self.captured))
    }
}

/// Accumulator of a stream: its frames by timestamp.
#[derive(Default)]
struct Stream {
    video: bool,
    frames: BTreeMap<i64, OpenFrame>,
}

/// Accumulator of a frame.
struct OpenFrame {
    timestamp: i64,
    first: Nanos,
    last: Option<Nanos>,
    size: u64,
    /// Whether its last packet was sent: for video, the one with the marker (RFC 3551 section 4.1 and RFC 7741 section
    /// 4.1).
    ended: bool,
    unknown: bool,
}

/// The frames of a direction, stream by stream in the order of their timestamps. Frames with a packet of unknown fate
/// or without a last packet are left out.
#[must_use]
pub fn frames(direction: &Direction) -> Vec<Frame> {
    let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
    for packet in &direction.packets {
        if !matches!(packet.kind, Kind::Video | Kind::Audio) {
            continue;
        }
        let (rtp, video) = (packet.rtp, packet.kind == Kind::Video);
        let Stream { frames, .. } =
            streams.entry(rtp.ssrc).or_insert_with(|| Stream { video, ..Stream::default() });
        let near = frames.last_key_value().map_or(i64::from(rtp.timestamp), |(&last, _)| last);
        let timestamp = tidegate_core::wire::wrap::nearest(rtp.timestamp, 32, near);
        let frame = frames.entry(timestamp).or_insert(OpenFrame {
            timestamp,
            first: packet.sent,
            last: Some(packet.sent),
            size: 0,
            ended: !video,
            unknown: false,
        });
        frame.size += u64::from(rtp.size);
        frame.ended |= rtp.marker;
        match packet.fate {
            Fate::Arrived(arrival) => frame.last = frame.last.map(|last| last.max(arrival)),
            Fate::Lost => frame.last = None,
            Fate::Unknown => frame.unknown = true,
        }
    }
    let clock = |ssrc| direction.media.get(&ssrc).and_then(|media| media.clock);
    let frames = |(ssrc, stream)| Some(stream_frames(ssrc, &stream, clock(ssrc)?));
    streams.into_iter().filter_map(frames).flatten().collect()
}

fn stream_frames(ssrc: u32, stream: &Stream, clock: u32) -> Vec<Frame> {
    let Stream { video, frames } = stream;
    let clock = f64::from(clock);
    let Some(begin) = frames.values().next().map(|frame| frame.timestamp) else { return Vec::new() };
    let media_time = |frame: &OpenFrame| ((frame.timestamp - begin) as f64 * 1e9 / clock) as i64;
    // the origin of the timestamps is set so that the quickest frame was sent at its sampling instant
    let Some(origin) = frames.values().map(|frame| frame.first.saturating_sub(media_time(frame))).min()
    else {
        return Vec::new();
    };
    let usable = frames.values().enumerate().filter(|(_, frame)| frame.ended && !frame.unknown);
    let finish = |(number, frame): (usize, &OpenFrame)| Frame {
        ssrc,
        video: *video,
        number: number as u32,
        size: frame.size,
        captured: origin.saturating_add(media_time(frame)),
        complete: frame.last,
    };
    usable.map(finish).collect()
}

/// Metrics of the video frames: the number sent, the number complete, and their lateness. Lateness is how much later a
/// frame was complete than the quickest frame of its stream, by its timestamp and the receiver's clock; a percentile of
/// it is the delay that a playout buffer needs for that share of frames.
#[must_use]
pub fn metrics(frames: &[Frame]) -> Map<String, Value> {
    let video = || frames.iter().filter(|frame| frame.video);
    let mut metrics = Map::new();
    let count = video().count();
    if count == 0 {
        return metrics;
    }
    metrics.insert("frames_sent".to_owned(), count.into());
    let mut quickest: BTreeMap<u32, Nanos> = BTreeMap::new();
    for frame in video() {
        let Some(delay) = frame.delay() else { continue };
        quickest.entry(frame.ssrc).and_modify(|least| *least = delay.min(*least)).or_insert(delay);
    }
    let mut lateness: Vec<Nanos> = video()
        .filter_map(|frame| Some(frame.delay()?.saturating_sub(*quickest.get(&frame.ssrc)?)))
        .collect();
    lateness.sort_unstable();
    metrics.insert("frames_whole".to_owned(), lateness.len().into());
    let p95 = (lateness.len() * 95).div_ceil(100).saturating_sub(1);
    for (name, value) in
        [("frame_lateness_ms_p95", lateness.get(p95)), ("frame_lateness_ms_max", lateness.last())]
    {
        if let Some(&value) = value {
            metrics.insert(name.to_owned(), (value as f64 / MILLI as f64).into());
        }
    }
    metrics
}

/// The table of frames. Each frame comes with the index of its direction, `flows` are the names of the directions.
#[must_use]
pub fn table(frames: &[(u32, Frame)], flows: Vec<String>, clock: impl Fn(Nanos) -> Time) -> Table {
    let seconds = |time: Nanos| clock(time).as_secs_f64();
    let complete = |frame: &Frame| frame.complete.map_or(f64::NAN, seconds);
    Table::default()
        .with("flow", Column::Words { words: flows, codes: frames.iter().map(|(flow, _)| *flow).collect() })
        .with("video", Column::Bool(frames.iter().map(|(_, frame)| frame.video).collect()))
        .with("frame", Column::U32(frames.iter().map(|(_, frame)| frame.number).collect()))
        .with("size", Column::U64(frames.iter().map(|(_, frame)| frame.size).collect()))
        .with("captured_s", Column::F64(frames.iter().map(|(_, frame)| seconds(frame.captured)).collect()))
        .with("complete_s", Column::F64(frames.iter().map(|(_, frame)| complete(frame)).collect()))
        // a recording of packets does not say whether and when a frame was shown
        .with("rendered_s", Column::F64(vec![f64::NAN; frames.len()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{Media, Source};
    use crate::point::Rtp;
    use crate::session::{Coverage, Packet};
    use tidegate_core::Ecn;

    /// Frames of three packets every 33 1/3 ms with a delay of 20 ms. The middle packet of the frames in `lost` does
    /// not arrive, those in `late` wait 40 ms at their sender.
    fn direction(count: u32, lost: &[u32], late: &[u32]) -> Direction {
        let packets = (0..3 * count).map(|index| {
            let (frame, part) = (index / 3, index % 3);
            let wait = if late.contains(&frame) { 40 } else { 0 };
            let sent = i64::from(frame) * 100_000_000 / 3 + (i64::from(part) + wait) * MILLI;
            let gone = lost.contains(&frame) && part == 1;
            let rtp = Rtp {
                at: sent,
                ssrc: 7,
                timestamp: (frame * 3000).wrapping_sub(9000),
                size: 1000,
                abs_send_time: None,
                sequence: index as u16,
                transport_sequence: None,
                payload_type: 96,
                marker: part == 2,
                padding: false,
                path: 0,
            };
            let fate = if gone { Fate::Lost } else { Fate::Arrived(sent + 20 * MILLI) };
            Packet { rtp, kind: Kind::Video, sent, fate, ecn: Ecn::NotEct }
        });
        Direction {
            name: "outgoing".to_owned(),
            packets: packets.collect(),
            feedback: Vec::new(),
            reports: Vec::new(),
            coverage: Coverage {
                sent: true,
                arrived: true,
                delay: true,
                steady: true,
                feedback: true,
                rtcp: true,
            },
            history: crate::feedback::FeedbackHistory::default(),
            media: [(7, Media { kind: Kind::Video, clock: Some(90_000), source: Source::Pace })].into(),
        }
    }

    #[test]
    fn a_frame_is_whole_when_its_last_packet_is_there() {
        // timestamps wrap after three frames
        let frames = frames(&direction(90, &[5, 50], &[30]));
        assert_eq!(frames.len(), 90);
        let missing: Vec<u32> =
            frames.iter().filter(|frame| frame.complete.is_none()).map(|frame| frame.number).collect();
        assert_eq!(missing, [5, 50]);
        for frame in &frames {
            let expected = if frame.number == 30 { 62 } else { 22 };
            let delay = frame.delay().map(|delay| (delay + MILLI / 2) / MILLI);
            assert_eq!(delay, (![5, 50].contains(&frame.number)).then_some(expected));
            assert_eq!((frame.size, frame.video), (3000, true));
        }
        let metrics = metrics(&frames);
        assert_eq!((&metrics["frames_sent"], &metrics["frames_whole"]), (&90.into(), &88.into()));
        let max = metrics["frame_lateness_ms_max"].as_f64().unwrap();
        assert!((max - 40.0).abs() < 0.1 && metrics["frame_lateness_ms_p95"].as_f64().unwrap() < 0.1);
    }

    #[test]
    fn frames_without_an_end_or_with_an_unknown_fate_are_left_out() {
        let mut cut = direction(30, &[], &[]);
        cut.packets.pop();
        cut.packets[4].fate = Fate::Unknown;
        let frames = frames(&cut);
        assert_eq!(frames.len(), 28);
        assert!(frames.iter().all(|frame| ![1, 29].contains(&frame.number)));
    }
}
