//! What the encoder and the pacer make of the reference rate while something waits: RFC 8698 equations (11) to (14).

use super::settings::Settings;

/// The adjustment is at most this part of the reference rate (equations (11) and (12)).
const MOST: f64 = 0.05;

/// Target rate of the encoder (r_vin) and sending rate of the pacer (r_send), in bit/s, while `waiting` bytes are in the rate
/// shaping buffer.
#[must_use]
pub fn rates(r_ref: f64, waiting: f64, least: f64, most: f64, set: &Settings) -> (f64, f64) {
    let within_a_frame = 8.0 * waiting * set.fps;
    let [video, sending] = [set.beta_v, set.beta_s].map(|beta| (MOST * r_ref).min(beta * within_a_frame));
    ((r_ref - video).max(least), (r_ref + sending).min(most))
}
