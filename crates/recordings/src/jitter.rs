//! Interarrival jitter of a direction by RTP timestamps, stream by stream (RFC 3550 section 6.4.1).

use crate::kinds::assigned;
use crate::point::Rtp;
use crate::session::{Direction, Fate};
use std::collections::BTreeMap;
use tidegate_core::Kind;
use tidegate_sim::record::jitter::Jitter;

/// The last packet of a stream.
#[derive(Clone, Copy)]
struct Last {
    at: i64,
    timestamp: u32,
}

/// Difference of two transit times from which on the sender began anew, with timestamps of another origin.
const ANEW_MS: f64 = 10_000.0;

/// Mean and largest jitter of audio and video in ms; `None` where no stream has two packets and a clock rate that is known.
#[must_use]
pub(crate) fn media_jitter(direction: &Direction) -> (Option<f64>, Option<f64>) {
    let mut arrivals: Vec<(i64, Rtp)> = Vec::new();
    for packet in direction.packets.iter().filter(|packet| matches!(packet.kind, Kind::Audio | Kind::Video)) {
        if let Fate::Arrived(at) = packet.fate {
            arrivals.push((at, packet.rtp));
        }
    }
    arrivals.sort_by_key(|&(at, ..)| at);
    let mut streams: BTreeMap<(u32, u16), (Last, Jitter)> = BTreeMap::new();
    for (at, rtp) in arrivals {
        let usual = direction.media.get(&rtp.ssrc).and_then(|media| media.clock);
        // comfort noise and tones have clocks of their own
        let Some(clock) = assigned(rtp.payload_type).map(|(clock, _)| clock).or(usual) else { continue };
        let next = Last { at, timestamp: rtp.timestamp };
        streams
            .entry((rtp.ssrc, rtp.path))
            .and_modify(|(last, jitter)| {
                // not rounded to units of the clock, which are as long as much of the jitter of G.711
                let ticks = rtp.timestamp.wrapping_sub(last.timestamp) as i32;
                let difference = (at - last.at) as f64 / 1e6 - f64::from(ticks) * 1e3 / f64::from(clock);
                if difference.abs() < ANEW_MS {
                    jitter.add(difference.abs());
                }
                *last = next;
            })
            .or_insert((next, Jitter::default()));
    }
    let jitters: Vec<Jitter> = streams.into_values().map(|(_, jitter)| jitter).collect();
    Jitter::of(&jitters)
}
