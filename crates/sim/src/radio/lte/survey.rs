//! Surveys of an LTE network without packets: gains between users and cells, and throughput of full buffers.

use super::{Network, Settings};
use crate::link::trace::Trace;
use crate::radio::User;
use crate::refusal::Refusal;
use tidegate_core::record::NullRecorder;
use tidegate_core::{Node, Outbox, Time};

/// A network: name, settings, users.
pub type NetworkDescription<'a> = (&'a str, &'a Settings, &'a [User]);

/// The state of users at the beginning, and the throughput of those with a full buffer.
#[derive(Clone, Debug)]
pub struct Survey {
    /// For each user its serving cell at the beginning.
    pub serving: Vec<u32>,
    /// For each user its mean SINR in dB if all cells send, without fast fading.
    pub geometry_db: Vec<f64>,
    /// For each user and cell the share of the cell's power that reaches the user, in dB, user by user.
    pub gains_db: Vec<f64>,
    /// Bytes of transport blocks that arrived after the warm-up, without headers.
    pub served_bytes: Vec<u64>,
}

/// Runs a network up to `end` and counts from `begin` on.
///
/// # Errors
/// When a setting is out of its range.
pub fn survey(
    (name, settings, users): NetworkDescription<'_>,
    seed: u64,
    begin: Time,
    end: Time,
) -> Result<Survey, Refusal> {
    let mut network = Network::new(name, seed, settings.clone(), users.to_vec())?;
    let rows = network.survey(0);
    let gains_db = (0..rows.len()).flat_map(|user| network.gains(user)).collect();
    let mut out = Outbox::new(1, Box::new(NullRecorder));
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
    while let Some(time) = network.next_wakeup().filter(|&time| time < end) {
        network.advance(time, out);
    }
}

/// The throughput of the first user of a network from `begin` to `end`, as a mahimahi trace (delivery opportunities of
/// 1504 bytes). The user must have full-buffer traffic.
///
/// # Errors
/// When a setting is out of its range, or the user gets no data at all.
pub fn trace(
    (name, settings, users): NetworkDescription<'_>,
    seed: u64,
    begin: Time,
    end: Time,
) -> Result<Trace, Refusal> {
    const OPPORTUNITY: u64 = 1504;
    let mut network = Network::new(name, seed, settings.clone(), users.to_vec())?;
    let mut out = Outbox::new(1, Box::new(NullRecorder));
    run(&mut network, begin, &mut out);
    let mut counted_bytes = network.served(0);
    let mut millis = Vec::new();
    while let Some(time) = network.next_wakeup().filter(|&time| time < end) {
        network.advance(time, &mut out);
        while network.served(0) - counted_bytes >= OPPORTUNITY {
            counted_bytes += OPPORTUNITY;
            // bytes that come in during a millisecond can be used at its end
            millis.push(((time - begin).as_nanos() / 1_000_000) as u32 + 1);
        }
    }
    let duration_ms = ((end - begin).as_nanos() / 1_000_000) as u32;
    let last = millis.last_mut();
    *last.ok_or_else(|| format!("the user receives no data in {}", end - begin))? = duration_ms;
    Trace::of_opportunities(format!("lte, seed {seed}"), millis, OPPORTUNITY as u32)
}
