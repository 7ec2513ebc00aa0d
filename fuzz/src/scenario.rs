//! Properties of the engine's form of runs: any JSON is refused, or makes a world in which time passes.

use tidegate_core::{Span, Time};
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Capacity, FlowKind, MediaSpec, Run, Scenario, VideoSource};

/// Largest number of links, flows and members in a run: more of them reach no further code, and are slower.
const PARTS_MAX: usize = 12;
const EVENTS: u64 = 2000;
/// Time between changes of a generated cell's rate.
const BROWNIAN_STEP: Span = Span::from_millis(20);
/// Largest number of bins of the series, and of the changes of a link that are drawn for a run's mean: scenario files have a
/// larger one (`MAX_BINS` of `python/tidegate/scenario/_rules.py`).
const BINS_MAX: i64 = 100_000;

/// Largest frame in bytes: a larger one is no more than more packets, which are made at once. Scenario files have a larger
/// one (`LARGEST` of `python/tidegate/scenario/_frames.py`).
const FRAME_MAX: f64 = 1e6;

/// Bytes of the largest frame that media ask for by their rates.
fn largest_frame(media: &MediaSpec) -> f64 {
    let audio = media.audio.iter().map(|audio| audio.rate.bytes_in(audio.interval).as_bytes() as f64);
    let video = media.video.iter().map(|video| {
        let mean = video.max.as_bps_f64() / 8.0 / video.fps;
        match &video.source {
            VideoSource::Statistical { burst, key_factor, .. } => f64::from(*burst).max(key_factor * mean),
            VideoSource::Frames { rungs, .. } => {
                rungs.iter().flat_map(|(_, sizes)| sizes).copied().max().unwrap_or_default().into()
            }
            _ => mean,
        }
    });
    audio.chain(video).fold(0.0, f64::max)
}

/// Checks one input; returns whether time passes in its world.
///
/// # Panics
/// When a property does not hold.
pub fn check(input: &[u8]) -> bool {
    let Ok(scenario) = serde_json::from_slice::<Scenario>(input) else { return false };
    let members: usize = scenario.sessions.iter().map(|session| session.members.len()).sum();
    let bins = |interval: Span| scenario.duration.as_nanos() / interval.as_nanos().max(1);
    let statuses = scenario.links.iter().filter_map(|link| match &link.capacity {
        Capacity::Statuses(statuses) => Some(statuses.interval),
        Capacity::Brownian(_) => Some(BROWNIAN_STEP),
        _ => None,
    });
    if statuses.chain([scenario.record.bin]).any(|interval| bins(interval) > BINS_MAX) {
        return false;
    }
    let large = |kind: &FlowKind| matches!(kind, FlowKind::Media(media) if largest_frame(media) > FRAME_MAX);
    if scenario.flows.iter().any(|flow| large(&flow.kind)) {
        return false;
    }
    if !scenario.radios.is_empty() || scenario.links.len() + scenario.flows.len() + members > PARTS_MAX {
        return false;
    }
    let Ok(mut run) = Run::new(&scenario, &[], &mut from_registry) else { return false };
    let end = Time::ZERO + run.duration();
    if let Ok(true) = run.run_events(end, EVENTS) {
        _ = run.finish();
    }
    true
}
