//! Interarrival jitter of a direction by RTP timestamps, stream by stream (RFC 3550 section 6.4.1).

use crate::session::{Direction, Fate};
use std::collections::BTreeMap;
use tidegate_core::Kind;
use tidegate_sim::record::jitter::Jitter;

/// Mean and largest jitter of audio and video in ms; `None` where no stream has two packets and a clock rate that is known.
#[must_use]
pub(crate) fn media_jitter(direction: &Direction) -> (Option<f64>, Option<f64>) {
    let mut arrivals: Vec<(i64, (u32, u16), u32)> = Vec::new();
    for packet in direction.packets.iter().filter(|packet| matches!(packet.kind, Kind::Audio | Kind::Video)) {
        if let Fate::Arrived(at) = packet.fate {
            arrivals.push((at, (packet.rtp.ssrc, packet.rtp.path), packet.rtp.timestamp));
        }
    }
    arrivals.sort_by_key(|&(at, ..)| at);
    let mut streams: BTreeMap<(u32, u16), ((i64, u32), Jitter)> = BTreeMap::new();
    for (at, stream, timestamp) in arrivals {
        let Some(clock) = direction.media.get(&stream.0).and_then(|media| media.clock) else { continue };
        streams
            .entry(stream)
            .and_modify(|((last_at, last_timestamp), jitter)| {
                // not rounded to units of the clock, which are as long as much of the jitter of G.711
                let ticks = timestamp.wrapping_sub(*last_timestamp) as i32;
                let difference = (at - *last_at) as f64 / 1e6 - f64::from(ticks) * 1e3 / f64::from(clock);
                (*last_at, *last_timestamp) = (at, timestamp);
                jitter.add(difference.abs());
            })
            .or_insert(((at, timestamp), Jitter::default()));
    }
    let jitters: Vec<Jitter> = streams.into_values().map(|(_, jitter)| jitter).collect();
    Jitter::of(&jitters)
}
