//! The media of each stream of a call: its kind and its clock rate, as the recording says, or else by its payload type or
//! the pace of its timestamps.

use crate::event_log::Stream;
use crate::frequent::most_frequent;
use crate::point::{Nanos, Rtp};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::Kind;

/// Clock rate of all video (RFC 3551 section 5).
const VIDEO: u32 = 90_000;

/// The kind and the clock of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Media {
    /// Its kind of media.
    pub kind: Kind,
    /// The clock rate of its timestamps in Hz, if it is known.
    pub clock: Option<u32>,
    /// The origin of the clock rate.
    pub source: Source,
}

/// The origin of a clock rate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Source {
    /// A session description in the recording, or its list of streams.
    Description,
    /// The payload type, which RFC 3551 assigns.
    PayloadType,
    /// The pace of the timestamps.
    Pace,
    /// It is not known.
    Unknown,
}

/// The format of a payload type in a session description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Clock rate in Hz.
    pub clock: u32,
    /// Whether it is audio.
    pub is_audio: bool,
}

/// Longest gap in sequence numbers; a longer one means that the stream began anew.
pub(crate) const MAX_GAP: u16 = 3000;

/// Largest clock rate in Hz.
pub(crate) const MAX_CLOCK: f64 = 192_000.0;

/// Whether a timestamp can follow another one `ticks` behind it, `seconds` later: it is no further ahead than the fastest
/// clock allows, and back by no more than frames that refer to later ones are.
pub(crate) fn follows(ticks: i32, seconds: f64) -> bool {
    /// Seconds by which stamps may be off.
    const SLACK: f64 = 1.0;
    (-MAX_CLOCK * SLACK..=MAX_CLOCK * (seconds.max(0.0) + SLACK)).contains(&f64::from(ticks))
}

/// The formats of session descriptions by port and payload type.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Formats {
    /// Formats with the times from which on they hold: a later call may give a port's types other formats.
    by_port: BTreeMap<(u16, u8), Vec<(Nanos, Format)>>,
    /// `None` where descriptions contradict each other.
    by_type: BTreeMap<u8, Option<Format>>,
    /// Number of formats of ports.
    count: usize,
}

impl Formats {
    /// Adds the format of a payload type at a port, from a description at a time; descriptions come in the order of time.
    pub(crate) fn add(&mut self, at: Nanos, port: u16, payload_type: u8, format: Format) {
        /// Largest number of formats; a forged file could describe many.
        const MAX_FORMATS: usize = 4096;
        if self.count >= MAX_FORMATS {
            return;
        }
        let formats = self.by_port.entry((port, payload_type)).or_default();
        if formats.last().is_none_or(|&(_, last)| last != format) {
            formats.push((at, format));
            self.count += 1;
        }
        let by_type = self.by_type.entry(payload_type).or_insert(Some(format));
        *by_type = by_type.filter(|known| *known == format);
    }

    /// The format of a payload type that goes to a port at a time, or else to any port.
    #[must_use]
    pub fn get(&self, at: Nanos, port: u16, payload_type: u8) -> Option<Format> {
        let of_port = self.by_port.get(&(port, payload_type)).and_then(|formats| {
            let before = formats.partition_point(|&(since, _)| since <= at);
            Some(formats.get(before.saturating_sub(1))?.1)
        });
        of_port.or_else(|| self.by_type.get(&payload_type).copied().flatten())
    }
}

/// The clock rate of a payload type that RFC 3551 assigns (tables 4 and 5), and whether it is audio.
pub(crate) const fn assigned(payload_type: u8) -> Option<(u32, bool)> {
    match payload_type {
        0 | 3..=5 | 7..=9 | 12 | 13 | 15 | 18 => Some((8_000, true)),
        6 => Some((16_000, true)),
        10 | 11 => Some((44_100, true)),
        14 => Some((VIDEO, true)),
        16 => Some((11_025, true)),
        17 => Some((22_050, true)),
        25 | 26 | 28 | 31..=34 => Some((VIDEO, false)),
        _ => None,
    }
}

/// Maps each SSRC to its media. `formats` are those of the streams whose packets a session description explains.
#[must_use]
pub fn media(packets: &[Rtp], streams: &[Stream], formats: &BTreeMap<u32, Format>) -> BTreeMap<u32, Media> {
    let mut by_ssrc: BTreeMap<u32, Vec<&Rtp>> = BTreeMap::new();
    for packet in packets {
        by_ssrc.entry(packet.ssrc).or_default().push(packet);
    }
    let mut media = BTreeMap::new();
    let mut video: Vec<(u32, Vec<&Rtp>)> = Vec::new();
    for (ssrc, packets) in by_ssrc {
        let (clock, source, mut is_audio) = clock(ssrc, &packets, formats);
        let logged = streams.iter().find(|stream| stream.ssrc == ssrc || stream.rtx == Some(ssrc));
        if let Some(stream) = logged {
            is_audio = !stream.video;
        }
        let kind = match logged {
            Some(stream) if stream.rtx == Some(ssrc) => Kind::Retransmission,
            _ if is_audio => Kind::Audio,
            _ => Kind::Video,
        };
        // video has but one rate
        let (clock, source) = match logged {
            Some(stream) if stream.video => (Some(VIDEO), Source::Description),
            _ => (clock, source),
        };
        media.insert(ssrc, Media { kind, clock, source });
        if logged.is_none() && !is_audio {
            video.push((ssrc, packets));
        }
    }
    // no call has that many; the comparison of each stream with each takes quadratic time
    const MAX_COMPARED: usize = 32;
    if video.len() > MAX_COMPARED {
        return media;
    }
    // a retransmission stream has the timestamps of the stream that it repeats, but fewer packets (RFC 4588 section 4)
    let stamps: Vec<BTreeSet<u32>> =
        video.iter().map(|(_, packets)| packets.iter().map(|packet| packet.timestamp).collect()).collect();
    for (index, (ssrc, packets)) in video.iter().enumerate() {
        let repeats = video.iter().enumerate().any(|(original, (_, originals))| {
            let common = stamps[index].intersection(&stamps[original]).count();
            original != index && originals.len() > packets.len() && common * 2 > stamps[index].len()
        });
        if repeats && let Some(media) = media.get_mut(ssrc) {
            media.kind = Kind::Retransmission;
        }
    }
    media
}

/// The clock rate of a stream, how it is known, and whether the stream is audio.
fn clock(ssrc: u32, packets: &[&Rtp], formats: &BTreeMap<u32, Format>) -> (Option<u32>, Source, bool) {
    /// Factor between two clock rates that no pause and no short recording explains.
    const UNLIKE: f64 = 1.5;
    if let Some(format) = formats.get(&ssrc) {
        // a description of another call, or one that was changed in a message that is not in the recording
        let paced = pace(packets).filter(|&pace| {
            let factor = f64::from(pace) / f64::from(format.clock);
            factor.max(1.0 / factor) > UNLIKE
        });
        return match paced {
            Some(clock) => (Some(clock), Source::Pace, format.is_audio),
            None => (Some(format.clock), Source::Description, format.is_audio),
        };
    }
    // tones and comfort noise have types of their own beside the speech
    let usual = most_frequent(packets.iter().map(|packet| packet.payload_type));
    if let Some((clock, is_audio)) = usual.and_then(assigned) {
        return (Some(clock), Source::PayloadType, is_audio);
    }
    match pace(packets) {
        Some(clock) => (Some(clock), Source::Pace, clock < VIDEO),
        None => (None, Source::Unknown, false),
    }
}

/// The clock rate that the pace of a stream's timestamps shows; `None` for less than 0.1 s of packets, if the timestamps do
/// not increase, or if no rate is near.
fn pace(packets: &[&Rtp]) -> Option<u32> {
    const MIN_SECONDS: f64 = 0.1;
    let (first, last) = (packets.first()?, packets.last()?);
    let seconds = (last.at - first.at) as f64 / 1e9;
    let mut ticks = 0i64;
    for pair in packets.windows(2) {
        ticks += i64::from(pair[1].timestamp.wrapping_sub(pair[0].timestamp) as i32);
    }
    if seconds < MIN_SECONDS || ticks <= 0 {
        return None;
    }
    nearest_clock(ticks as f64 / seconds)
}

/// The clock rate of some payload that is near a pace in Hz.
fn nearest_clock(pace: f64) -> Option<u32> {
    /// Rates of most payloads, and how far a short recording may be from them.
    const USUAL: ([u32; 4], f64) = ([8_000, 16_000, 48_000, VIDEO], 1.25);
    /// Rates of few payloads (RFC 3551 table 4, RFC 3640), which only a steady pace shows.
    const RARE: ([u32; 6], f64) = ([11_025, 12_000, 22_050, 24_000, 32_000, 44_100], 1.02);
    let distance = |clock: u32| (pace / f64::from(clock)).max(f64::from(clock) / pace);
    let within = |(clocks, limit): (&[u32], f64)| {
        let near = clocks.iter().copied().filter(|&clock| distance(clock) <= limit);
        near.min_by(|&a, &b| distance(a).total_cmp(&distance(b)))
    };
    within((&RARE.0, RARE.1)).or_else(|| within((&USUAL.0, USUAL.1)))
}
