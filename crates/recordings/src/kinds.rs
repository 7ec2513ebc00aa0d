//! The kind of media of each stream of a call: as the recording says, or else guessed from the rate of its timestamps.

use crate::event_log::Stream;
use crate::point::Rtp;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::Kind;

/// Clock rates of RTP: audio (RFC 3551 and RFC 7587), and 90 kHz for all video (RFC 3551 section 5).
const CLOCKS: [f64; 4] = [8_000.0, 16_000.0, 48_000.0, VIDEO];
const VIDEO: f64 = 90_000.0;

/// Maps each SSRC to its kind of media.
#[must_use]
pub fn kinds(packets: &[Rtp], streams: &[Stream]) -> BTreeMap<u32, Kind> {
    let mut kinds = BTreeMap::new();
    for stream in streams {
        kinds.insert(stream.ssrc, if stream.video { Kind::Video } else { Kind::Audio });
        if let Some(rtx) = stream.rtx {
            kinds.insert(rtx, Kind::Retransmission);
        }
    }
    let mut unknown: BTreeMap<u32, Vec<&Rtp>> = BTreeMap::new();
    for packet in packets.iter().filter(|packet| !kinds.contains_key(&packet.ssrc)) {
        unknown.entry(packet.ssrc).or_default().push(packet);
    }
    let mut video: Vec<(u32, Vec<&Rtp>)> = Vec::new();
    for (ssrc, packets) in unknown {
        if clock_of(&packets).is_some_and(|clock| clock < VIDEO) {
            kinds.insert(ssrc, Kind::Audio);
        } else {
            video.push((ssrc, packets));
        }
    }
    // no call has that many; the comparison of each stream with each takes quadratic time
    const MAX_COMPARED: usize = 32;
    if video.len() > MAX_COMPARED {
        kinds.extend(video.iter().map(|(ssrc, _)| (*ssrc, Kind::Video)));
        return kinds;
    }
    // a retransmission stream has the timestamps of the stream that it repeats, but fewer packets (RFC 4588 section 4)
    let stamps: Vec<BTreeSet<u32>> =
        video.iter().map(|(_, packets)| packets.iter().map(|packet| packet.timestamp).collect()).collect();
    for (index, (ssrc, packets)) in video.iter().enumerate() {
        let repeats = video.iter().enumerate().any(|(original, (_, originals))| {
            let common = stamps[index].intersection(&stamps[original]).count();
            original != index && originals.len() > packets.len() && common * 2 > stamps[index].len()
        });
        kinds.insert(*ssrc, if repeats { Kind::Retransmission } else { Kind::Video });
    }
    kinds
}

/// The clock rate in `CLOCKS` that is nearest to the rate of a stream's timestamps; `None` for less than 0.1 s of
/// packets or if the timestamps do not increase.
pub(crate) fn clock_of(packets: &[&Rtp]) -> Option<f64> {
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
    let rate = ticks as f64 / seconds;
    let distance = |clock: f64| (rate / clock).max(clock / rate);
    CLOCKS.into_iter().min_by(|&a, &b| distance(a).total_cmp(&distance(b)))
}
