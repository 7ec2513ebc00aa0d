//! Doubts about the times of one capture point: a clock that was set during the call, and files whose times are not those of
//! the call, because they were made up or changed afterwards.

use super::{Direction, Fate, Packet, Session, millis};
use crate::kinds::{MAX_CLOCK, Source, follows};
use crate::point::{MILLI, Nanos};
use std::collections::BTreeMap;

/// A packet as it passed the capture point: its time there, and the ticks of its stream's clock since the first packet.
type Passage = (Nanos, i64);

/// Passages of the packets of each stream, by SSRC and path.
type Streams = BTreeMap<(u32, u16), Vec<Passage>>;

/// The packets of each stream of a direction that passed the capture point, in the order of time, as far as the stream's
/// timestamps go on.
fn streams(direction: &Direction) -> Streams {
    let mut streams: BTreeMap<(u32, u16), (u32, Vec<Passage>)> = BTreeMap::new();
    let at = |packet: &Packet| match packet.fate {
        _ if direction.coverage.sent => Some(packet.sent),
        Fate::Arrived(at) => Some(at),
        _ => None,
    };
    let mut packets: Vec<(Nanos, &Packet)> =
        direction.packets.iter().filter_map(|packet| Some((at(packet)?, packet))).collect();
    packets.sort_by_key(|&(at, _)| at);
    for (at, packet) in packets {
        let timestamp = packet.rtp.timestamp;
        let (last, passages) =
            streams.entry((packet.rtp.ssrc, packet.rtp.path)).or_insert_with(|| (timestamp, vec![(at, 0)]));
        let ticks = timestamp.wrapping_sub(*last) as i32;
        let &(last_at, sum) = passages.last().expect("a stream has its first packet");
        if follows(ticks, (at - last_at) as f64 / 1e9) {
            *last = timestamp;
            passages.push((at, sum + i64::from(ticks)));
        }
    }
    streams.into_iter().map(|(key, (_, passages))| (key, passages)).collect()
}

/// Windows of the time of the capture point. Times without any packet are left out, so that a clock that was set by an hour
/// leaves as few windows between as one that was set by a second.
struct Windows {
    /// Beginnings of windows that have packets.
    begins: Vec<Nanos>,
}

impl Windows {
    /// Length of a window, and the largest number of them.
    const LENGTH: Nanos = 500 * MILLI;
    const COUNT: i64 = 2000;

    fn of(mut times: Vec<Nanos>) -> Self {
        times.sort_unstable();
        let busy: Nanos = times.windows(2).map(|pair| (pair[1] - pair[0]).min(Self::LENGTH)).sum();
        let length = Self::LENGTH.max(busy / Self::COUNT);
        let mut begins: Vec<Nanos> = Vec::new();
        for at in times {
            if begins.last().is_none_or(|&begin| at >= begin.saturating_add(length)) {
                begins.push(at);
            }
        }
        Self { begins }
    }

    /// Least time in each window between passing the capture point and the timestamp, less an unknown constant; `Nanos::MAX`
    /// for a window without packets of the stream.
    fn transits(&self, passages: &[Passage], clock: u32) -> Vec<Nanos> {
        let mut least = vec![Nanos::MAX; self.begins.len()];
        for &(at, ticks) in passages {
            let index = self.begins.partition_point(|&begin| begin <= at).saturating_sub(1);
            let sampled = (i128::from(ticks) * 1_000_000_000 / i128::from(clock)) as i64;
            least[index] = least[index].min(at.saturating_sub(sampled));
        }
        least
    }
}

/// The time at which the clock of the capture point was set, and by how much, from the streams of each direction. Nothing but
/// this clock changes the transit of the streams of both directions by the same time at once.
fn set_clock(directions: &[(&Direction, Streams)]) -> Option<(Nanos, Nanos)> {
    /// Largest and smallest number of windows before and after a step.
    const COMPARED: (usize, usize) = (4, 2);
    /// Least step, above what a queue or a pacer does to one stream.
    const MIN_STEP: Nanos = 50 * MILLI;
    let times = directions.iter().flat_map(|(_, streams)| streams.values()).flatten().map(|&(at, _)| at);
    let windows = Windows::of(times.collect());
    let by_direction: Vec<Vec<Vec<Nanos>>> = directions
        .iter()
        .map(|(direction, streams)| {
            let known = streams.iter().filter_map(|(&(ssrc, _), passages)| {
                Some(windows.transits(passages, direction.media.get(&ssrc)?.clock?))
            });
            known.collect()
        })
        .collect();
    let least = |transits: &[Nanos]| transits.iter().copied().min().filter(|&least| least < Nanos::MAX);
    let count = windows.begins.len();
    let mut largest: Option<(Nanos, Nanos)> = None;
    for index in COMPARED.1..count.saturating_sub(COMPARED.1) {
        // packets of the window itself may be from before and after the step
        let change = |transits: &Vec<Nanos>| {
            let before = least(&transits[index.saturating_sub(COMPARED.0)..index])?;
            Some(least(&transits[index + 1..count.min(index + 1 + COMPARED.0)])?.saturating_sub(before))
        };
        let changes: Vec<Vec<Nanos>> =
            by_direction.iter().map(|streams| streams.iter().filter_map(change).collect()).collect();
        if changes.len() < 2 || changes.iter().any(Vec::is_empty) {
            continue;
        }
        let all = || changes.iter().flatten().copied();
        let (Some(low), Some(high)) = (all().min(), all().max()) else { continue };
        let step = i64::midpoint(low, high);
        let agree = high.saturating_sub(low) <= (step.saturating_abs() / 5).max(10 * MILLI);
        if agree
            && step.saturating_abs() >= MIN_STEP
            && largest.is_none_or(|(_, size)| step.abs() > size.abs())
        {
            largest = Some((windows.begins[index], step));
        }
    }
    largest
}

/// Pace of a stream's timestamps, in multiples of that of the file's times, with its SSRC; the farthest from 1. Nothing if
/// all are as fast as their clocks, or as some clock where theirs is not known.
fn odd_pace(directions: &[(&Direction, Streams)]) -> Option<(u32, f64)> {
    /// Fewest packets that tell a pace, and the factor from which on it is odd.
    const LEAST: usize = 20;
    const ODD: f64 = 3.0;
    let paces = directions.iter().flat_map(|(direction, streams)| {
        streams.iter().filter_map(|(&(ssrc, _), passages)| {
            let (&(from, _), &(to, ticks)) = (passages.first()?, passages.last()?);
            let media = direction.media.get(&ssrc)?;
            let clock = media.clock.filter(|_| media.source <= Source::PayloadType).map(f64::from);
            // within a second timestamps may be ahead of the times
            let seconds = (to - from) as f64 / 1e9;
            let sampled = ticks as f64 / clock.unwrap_or(MAX_CLOCK);
            let factor = sampled / seconds.max(1e-9);
            let is_fast = factor > ODD && sampled > 2.0;
            let is_slow = clock.is_some() && ticks > 0 && factor < 1.0 / ODD && seconds > 2.0;
            (passages.len() >= LEAST && (is_fast || is_slow)).then_some((ssrc, factor))
        })
    });
    let oddness = |pace: &(u32, f64)| pace.1.max(1.0 / pace.1);
    paces.max_by(|a, b| oddness(a).total_cmp(&oddness(b)))
}

impl Session {
    /// Adds doubts about the times of the only capture point, whose delays and jitter are then not known. `set_back` is where
    /// times step back in the order of the file, and by how much.
    pub(super) fn doubt_times(&mut self, set_back: &[(Nanos, Nanos)]) {
        let directions: Vec<(&Direction, Streams)> =
            self.directions.iter().map(|direction| (direction, streams(direction))).collect();
        let odd_pace = odd_pace(&directions);
        let seconds = |at: Nanos| at.saturating_sub(self.span.0) as f64 / 1e9;
        let step = set_clock(&directions).map(|(at, step)| {
            let size = millis(step);
            format!(
                "the clock of the capture was set by {size:+.1} ms at about {:.0} s, as both directions show",
                seconds(at)
            )
        });
        let step = step.or_else(|| {
            // other packets of the file may be from another day
            let (begin, end) = self.span;
            let is_within = |&&(at, step): &&(Nanos, Nanos)| {
                (begin..=end).contains(&at) || (at - step > begin && at - step <= end)
            };
            let &(at, step) = set_back.iter().find(is_within)?;
            let size = millis(step);
            Some(format!(
                "the times of the capture step back by {size:.1} ms at {:.1} s: its clock was set, or files were put one \
                 behind the other",
                seconds(at)
            ))
        });
        if let Some(step) = step {
            self.doubts.push(format!("{step}: delays and jitter are not known"));
            self.forget_times();
        }
        if let Some((ssrc, factor)) = odd_pace {
            let (times, pace) = if factor > 1.0 { (factor, "fast") } else { (1.0 / factor, "slowly") };
            self.doubts.push(format!(
                "the RTP timestamps of SSRC {ssrc:#010x} go about {times:.0} times as {pace} as the times in the file: these \
                 are not the times of the call, and rates are those of the file"
            ));
            self.forget_times();
        }
    }

    fn forget_times(&mut self) {
        for direction in &mut self.directions {
            direction.coverage.delay = false;
            direction.coverage.steady = false;
        }
    }
}
