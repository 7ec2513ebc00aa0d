//! Frames of a way that was seen at both ends: by RTP timestamp and marker, when each left and when all of it was there.
//!
//! A retransmission is a packet of its own, encrypted as a rule, so that nobody sees what it repeats: a frame is whole when
//! all of its packets arrived the first time.

use crate::kinds::clock_of;
use crate::point::{MILLI, Nanos, Rtp};
use crate::session::{Fate, Way};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tidegate_core::{Kind, Time};
use tidegate_sim::record::columns::{Column, Table};

/// A frame of video, or of audio.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frame {
    /// Its stream.
    pub ssrc: u32,
    /// Whether it is video.
    pub video: bool,
    /// Its number in its stream, by timestamp.
    pub number: u32,
    /// Bytes of its IP packets.
    pub size: u64,
    /// When it was sampled, by its timestamp: so late that no frame of the stream left before.
    pub captured: Nanos,
    /// When the last of its packets arrived; `None` if one was lost.
    pub complete: Option<Nanos>,
}

impl Frame {
    /// How long after its sampling instant it was whole.
    #[must_use]
    pub fn delay(&self) -> Option<Nanos> {
        self.complete.map(|complete| complete.saturating_sub(self.captured))
    }
}

/// A stream while its packets are read: them, by when they were sent, and its frames by timestamp.
#[derive(Default)]
struct Stream {
    video: bool,
    seen: Vec<Rtp>,
    open: BTreeMap<i64, Open>,
}

/// What is summed up of a frame while packets are read.
struct Open {
    timestamp: i64,
    first: Nanos,
    last: Option<Nanos>,
    size: u64,
    /// Whether all of it was seen to leave: of video the marker (RFC 3551 section 4.1 and RFC 7741 section 4.1).
    ended: bool,
    unknown: bool,
}

/// The frames of a way, stream by stream in the order of their timestamps. Frames of which a packet's fate is not known,
/// and those without an end, are left out.
#[must_use]
pub fn frames(way: &Way) -> Vec<Frame> {
    let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
    for packet in &way.packets {
        if !matches!(packet.kind, Kind::Video | Kind::Audio) {
            continue;
        }
        let (rtp, video) = (packet.rtp, packet.kind == Kind::Video);
        let Stream { seen, open, .. } =
            streams.entry(rtp.ssrc).or_insert_with(|| Stream { video, ..Stream::default() });
        let near = open.last_key_value().map_or(i64::from(rtp.timestamp), |(&last, _)| last);
        let timestamp = tidegate_core::wire::wrap::nearest(rtp.timestamp, 32, near);
        seen.push(Rtp { at: packet.sent, ..rtp });
        let one = open.entry(timestamp).or_insert(Open {
            timestamp,
            first: packet.sent,
            last: Some(packet.sent),
            size: 0,
            ended: !video,
            unknown: false,
        });
        one.size += u64::from(rtp.size);
        one.ended |= rtp.marker;
        match packet.fate {
            Fate::Arrived(at) => one.last = one.last.map(|last| last.max(at)),
            Fate::Lost => one.last = None,
            Fate::Unknown => one.unknown = true,
        }
    }
    streams.into_iter().flat_map(|(ssrc, stream)| of_stream(ssrc, &stream)).collect()
}

fn of_stream(ssrc: u32, stream: &Stream) -> Vec<Frame> {
    let Stream { video, seen, open } = stream;
    let packets: Vec<&Rtp> = seen.iter().collect();
    let Some(clock) = clock_of(&packets) else { return Vec::new() };
    let Some(begin) = open.values().next().map(|one| one.timestamp) else { return Vec::new() };
    let ticks = |one: &Open| ((one.timestamp - begin) as f64 * 1e9 / clock) as i64;
    // the sender's clock and that of its timestamps stand so that the quickest frame left at once
    let Some(least) = open.values().map(|one| one.first.saturating_sub(ticks(one))).min() else {
        return Vec::new();
    };
    let whole = open.values().enumerate().filter(|(_, one)| one.ended && !one.unknown);
    let frame = |(number, one): (usize, &Open)| Frame {
        ssrc,
        video: *video,
        number: number as u32,
        size: one.size,
        captured: least.saturating_add(ticks(one)),
        complete: one.last,
    };
    whole.map(frame).collect()
}

/// What the frames of video come to: how many left, how many were whole, and how much later than the quickest of its stream
/// a frame was whole, by its timestamp and the receiver's clock: what a buffer for playout had to wait for that many.
#[must_use]
pub fn metrics(frames: &[Frame]) -> Map<String, Value> {
    let video = || frames.iter().filter(|frame| frame.video);
    let mut found = Map::new();
    let count = video().count();
    if count == 0 {
        return found;
    }
    found.insert("frames_sent".to_owned(), count.into());
    let mut quickest: BTreeMap<u32, Nanos> = BTreeMap::new();
    for frame in video() {
        let Some(delay) = frame.delay() else { continue };
        quickest.entry(frame.ssrc).and_modify(|least| *least = delay.min(*least)).or_insert(delay);
    }
    let mut late: Vec<Nanos> = video()
        .filter_map(|frame| Some(frame.delay()?.saturating_sub(*quickest.get(&frame.ssrc)?)))
        .collect();
    late.sort_unstable();
    found.insert("frames_whole".to_owned(), late.len().into());
    let at = (late.len() * 95).div_ceil(100).saturating_sub(1);
    for (name, value) in [("frame_lateness_ms_p95", late.get(at)), ("frame_lateness_ms_max", late.last())] {
        if let Some(&value) = value {
            found.insert(name.to_owned(), (value as f64 / MILLI as f64).into());
        }
    }
    found
}

/// The table of frames; `flows` are the names of the ways, each frame is with the number of its own.
#[must_use]
pub fn table(frames: &[(u32, Frame)], flows: Vec<String>, clock: impl Fn(Nanos) -> Time) -> Table {
    let seconds = |at: Nanos| clock(at).as_secs_f64();
    let complete = |frame: &Frame| frame.complete.map_or(f64::NAN, seconds);
    Table::default()
        .with("flow", Column::Words { words: flows, codes: frames.iter().map(|one| one.0).collect() })
        .with("video", Column::Bool(frames.iter().map(|one| one.1.video).collect()))
        .with("frame", Column::U32(frames.iter().map(|one| one.1.number).collect()))
        .with("size", Column::U64(frames.iter().map(|one| one.1.size).collect()))
        .with("captured_s", Column::F64(frames.iter().map(|one| seconds(one.1.captured)).collect()))
        .with("complete_s", Column::F64(frames.iter().map(|one| complete(&one.1)).collect()))
        // what was shown, and when, nobody saw
        .with("rendered_s", Column::F64(vec![f64::NAN; frames.len()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Known, Packet};
    use tidegate_core::Ecn;

    /// Frames of three packets every 33 1/3 ms over 20 ms; of those in `lost` the middle packet does not arrive, those in
    /// `late` wait 40 ms at their sender.
    fn way(count: u32, lost: &[u32], late: &[u32]) -> Way {
        let packets = (0..3 * count).map(|at| {
            let (frame, part) = (at / 3, at % 3);
            let wait = if late.contains(&frame) { 40 } else { 0 };
            let sent = i64::from(frame) * 100_000_000 / 3 + (i64::from(part) + wait) * MILLI;
            let gone = lost.contains(&frame) && part == 1;
            let rtp = Rtp {
                at: sent,
                ssrc: 7,
                timestamp: (frame * 3000).wrapping_sub(9000),
                size: 1000,
                abs_send_time: None,
                sequence: at as u16,
                transport_sequence: None,
                payload_type: 96,
                marker: part == 2,
                padding: false,
            };
            let fate = if gone { Fate::Lost } else { Fate::Arrived(sent + 20 * MILLI) };
            Packet { rtp, kind: Kind::Video, sent, fate, ecn: Ecn::NotEct }
        });
        Way {
            name: "outgoing".to_owned(),
            packets: packets.collect(),
            feedback: Vec::new(),
            reports: Vec::new(),
            known: Known { sent: true, arrived: true, delay: true, feedback: true, rtcp: true },
            said: crate::feedback::Said::default(),
        }
    }

    #[test]
    fn a_frame_is_whole_when_its_last_packet_is_there() {
        // timestamps wrap after three frames
        let found = frames(&way(90, &[5, 50], &[30]));
        assert_eq!(found.len(), 90);
        let missing: Vec<u32> =
            found.iter().filter(|one| one.complete.is_none()).map(|one| one.number).collect();
        assert_eq!(missing, [5, 50]);
        for one in &found {
            let expected = if one.number == 30 { 62 } else { 22 };
            let delay = one.delay().map(|delay| (delay + MILLI / 2) / MILLI);
            assert_eq!(delay, (![5, 50].contains(&one.number)).then_some(expected));
            assert_eq!((one.size, one.video), (3000, true));
        }
        let told = metrics(&found);
        assert_eq!((&told["frames_sent"], &told["frames_whole"]), (&90.into(), &88.into()));
        let most = told["frame_lateness_ms_max"].as_f64().unwrap();
        assert!((most - 40.0).abs() < 0.1 && told["frame_lateness_ms_p95"].as_f64().unwrap() < 0.1);
    }

    #[test]
    fn what_has_no_end_or_an_unknown_one_is_left_out() {
        let mut cut = way(30, &[], &[]);
        cut.packets.pop();
        cut.packets[4].fate = Fate::Unknown;
        let found = frames(&cut);
        assert_eq!(found.len(), 28);
        assert!(found.iter().all(|one| ![1, 29].contains(&one.number)));
    }
}
