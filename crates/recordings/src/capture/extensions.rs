//! Which header extensions packets carry. Their numbers are agreed on in session descriptions, which no capture has; so
//! they are told by how their values run.

use crate::point::Nanos;
use std::collections::BTreeMap;
use tidegate_core::wire::rtp::{self, Header};

/// The numbers of two extensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Ids {
    pub(super) transport_sequence: Option<u8>,
    pub(super) abs_send_time: Option<u8>,
}

/// Steps of a kind that are looked at: of two, how many were such as they would be.
#[derive(Clone, Copy, Default)]
struct Run {
    last: Option<(Nanos, u32)>,
    right: usize,
    all: usize,
}

impl Run {
    fn step(&mut self, at: Nanos, value: u32, right: impl Fn(Nanos, u32) -> bool) {
        if let Some((before, last)) = self.last.replace((at, value)) {
            self.all += 1;
            self.right += usize::from(right(at - before, value.wrapping_sub(last)));
        }
    }

    /// Whether so many were right that it can be no chance.
    fn holds(&self) -> bool {
        self.all >= 4 && self.right * 4 >= self.all * 3
    }
}

/// Finds them in the packets of one way, in the order of time.
pub(super) fn find<'a>(headers: impl Iterator<Item = (Nanos, &'a Header)>) -> Ids {
    let mut sequences: BTreeMap<u8, Run> = BTreeMap::new();
    let mut times: BTreeMap<u8, Run> = BTreeMap::new();
    for (at, header) in headers {
        for extension in &header.extensions {
            if let Some(number) = rtp::read_transport_sequence(&extension.data) {
                // one more with each packet; a few are lost
                let near = |_: Nanos, step: u32| (1..=3).contains(&(step & 0xffff));
                sequences.entry(extension.id).or_default().step(at, u32::from(number), near);
            }
            if let Some(stamp) = rtp::read_abs_send_time(&extension.data) {
                // runs as the clock does, to 20 ms
                let near = |passed: Nanos, step: u32| {
                    let step = (i64::from(step & 0xff_ffff) * 1_000_000_000) >> 18;
                    let apart = (step - passed).rem_euclid(64_000_000_000);
                    apart.min(64_000_000_000 - apart) < 20_000_000
                };
                times.entry(extension.id).or_default().step(at, stamp, near);
            }
        }
    }
    let best = |runs: &BTreeMap<u8, Run>| {
        let held = runs.iter().filter(|(_, run)| run.holds());
        held.max_by_key(|(_, run)| run.right).map(|(&id, _)| id)
    };
    Ids { transport_sequence: best(&sequences), abs_send_time: best(&times) }
}
