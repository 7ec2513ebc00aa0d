//! Properties of the engine's form of runs: any JSON is refused, or makes a world in which time passes.

use tidegate_core::Time;
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Run, Scenario};

/// Largest number of links, flows and members in a run: more of them reach no further code, and are slower.
const PARTS_MAX: usize = 12;
const EVENTS: u64 = 2000;

/// Checks one input.
///
/// # Panics
/// When a property does not hold.
pub fn check(input: &[u8]) {
    let Ok(scenario) = serde_json::from_slice::<Scenario>(input) else { return };
    let members: usize = scenario.sessions.iter().map(|session| session.members.len()).sum();
    if !scenario.radios.is_empty() || scenario.links.len() + scenario.flows.len() + members > PARTS_MAX {
        return;
    }
    let Ok(mut run) = Run::new(&scenario, &[], &mut from_registry) else { return };
    let end = Time::ZERO + run.duration();
    if let Ok(true) = run.run_events(end, EVENTS) {
        _ = run.finish();
    }
}
