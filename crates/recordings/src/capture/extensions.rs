//! Guesses the ids of header extensions. Ids are negotiated in session descriptions, which captures do not contain, so
//! they are recognised by how the values proceed from packet to packet.

use crate::point::Nanos;
use std::collections::BTreeMap;
use tidegate_core::wire::rtp::{self, Header};

/// Ids of the two extensions that are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Ids {
    pub(super) transport_sequence: Option<u8>,
    pub(super) abs_send_time: Option<u8>,
}

/// Counts how often the step from one value of an extension to the next is plausible.
#[derive(Clone, Copy, Default)]
struct StepCount {
    last: Option<(Nanos, u32)>,
    plausible: usize,
    total: usize,
}

impl StepCount {
    fn add(&mut self, time: Nanos, value: u32, is_plausible: impl Fn(Nanos, u32) -> bool) {
        if let Some((last_time, last_value)) = self.last.replace((time, value)) {
            self.total += 1;
            self.plausible += usize::from(is_plausible(time - last_time, value.wrapping_sub(last_value)));
        }
    }

    /// Whether so many steps were plausible (three of four) that it cannot be chance.
    fn is_significant(&self) -> bool {
        self.total >= 4 && self.plausible * 4 >= self.total * 3
    }
}

/// Finds the ids in the headers of one direction, which are in the order of time.
pub(super) fn find<'a>(headers: impl Iterator<Item = (Nanos, &'a Header)>) -> Ids {
    let mut sequences: BTreeMap<u8, StepCount> = BTreeMap::new();
    let mut times: BTreeMap<u8, StepCount> = BTreeMap::new();
    for (time, header) in headers {
        for extension in &header.extensions {
            if let Some(number) = rtp::read_transport_sequence(&extension.data) {
                // one more with each packet, a few more after losses
                let is_plausible = |_: Nanos, step: u32| (1..=3).contains(&(step & 0xffff));
                sequences.entry(extension.id).or_default().add(time, u32::from(number), is_plausible);
            }
            if let Some(stamp) = rtp::read_abs_send_time(&extension.data) {
                // as much as the clock has advanced, to within 20 ms
                let is_plausible = |elapsed: Nanos, step: u32| {
                    let step = (i64::from(step & 0xff_ffff) * 1_000_000_000) >> 18;
                    let difference = (step - elapsed).rem_euclid(64_000_000_000);
                    difference.min(64_000_000_000 - difference) < 20_000_000
                };
                times.entry(extension.id).or_default().add(time, stamp, is_plausible);
            }
        }
    }
    let best = |counts: &BTreeMap<u8, StepCount>| {
        let significant = counts.iter().filter(|(_, count)| count.is_significant());
        significant.max_by_key(|(_, count)| count.plausible).map(|(&id, _)| id)
    };
    Ids { transport_sequence: best(&sequences), abs_send_time: best(&times) }
}
