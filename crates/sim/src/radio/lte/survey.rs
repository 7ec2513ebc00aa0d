//! An LTE network without packets: how well each user hears each cell, and what full buffers get.

use super::{Network, Settings};
use crate::link::trace::Trace;
use crate::radio::User;
use crate::refusal::Refusal;
use tidegate_core::record::Nothing;
use tidegate_core::{Node, Outbox, Time};

/// A network: its name, its settings, its users.
pub type Described<'a> = (&'a str, &'a Settings, &'a [User]);

/// What users were at the beginning, and what those with a full buffer got.
#[derive(Clone, Debug)]
pub struct Survey {
    /// For each user the cell that serves it at the beginning.
    pub serving: Vec<u32>,
    /// Its mean SINR in dB if all cells send, without fast fading.
    pub geometry_db: Vec<f64>,
    /// For each user and cell the share of the cell's power that reaches it, in dB; users follow each other.
    pub gains_db: Vec<f64>,
    /// Bytes of transport blocks that arrived after the warm-up, without headers.
    pub served_bytes: Vec<u64>,
}

/// Runs a network up to `end` and counts from `begin` on.
///
/// # Errors
/// When a setting is out of its range.
pub fn survey(
    (name, settings, users): Described<'_>,
    seed: u64,
    begin: Time,
    end: Time,
) -> Result<Survey, Refusal> {
    let mut network = Network::new(name, seed, settings.clone(), users.to_vec())?;
    let rows = network.survey(0);
    let gains_db = (0..rows.len()).flat_map(|user| network.gains(user)).collect();
    let mut out = Outbox::new(1, Box::new(Nothing));
    run(&mut network, begin, &mut out);
    let before: Vec<u64> = (0..rows.len()).map(|user| network.served(user)).collect();
    run(&mut network, end, &mut out);
    Ok(Survey {
        serving: rows.iter().map(|row| row.0 as u32).collect(),
        geometry_db: rows.iter().map(|row| row.1).collect(),
        gains_db,
        served_bytes: (0..rows.len()).map(|user| network.served(user) - before[user]).collect(),
    })
}

fn run(network: &mut Network, end: Time, out: &mut Outbox) {
    while let Some(at) = network.next_wakeup().filter(|&at| at < end) {
        network.advance(at, out);
    }
}

/// What the first user of a network, who needs a full buffer, gets from `begin` to `end`: opportunities of 1504 bytes,
/// as in a mahimahi file.
///
/// # Errors
/// When a setting is out of its range, or the user gets nothing at all.
pub fn trace(
    (name, settings, users): Described<'_>,
    seed: u64,
    begin: Time,
    end: Time,
) -> Result<Trace, Refusal> {
    const OPPORTUNITY: u64 = 1504;
    let mut network = Network::new(name, seed, settings.clone(), users.to_vec())?;
    let mut out = Outbox::new(1, Box::new(Nothing));
    run(&mut network, begin, &mut out);
    let mut counted = network.served(0);
    let mut millis = Vec::new();
    while let Some(at) = network.next_wakeup().filter(|&at| at < end) {
        network.advance(at, &mut out);
        while network.served(0) - counted >= OPPORTUNITY {
            counted += OPPORTUNITY;
            // what comes in during a millisecond can be used at its end
            millis.push(((at - begin).as_nanos() / 1_000_000) as u32 + 1);
        }
    }
    let whole = ((end - begin).as_nanos() / 1_000_000) as u32;
    let last = millis.last_mut();
    *last.ok_or_else(|| format!("the user gets nothing in {}", end - begin))? = whole;
    Trace::of_opportunities(format!("lte, seed {seed}"), millis, OPPORTUNITY as u32)
}
