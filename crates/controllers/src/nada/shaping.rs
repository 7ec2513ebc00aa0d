//! Rates of encoder and pacer while packets wait in the rate shaping buffer: RFC 8698 equations (11) to (14).

use super::settings::Settings;

/// Largest adjustment as a part of the reference rate (equations (11) and (12)).
const MAX_ADJUSTMENT: f64 = 0.05;

/// Target rate of the encoder (r_vin) and sending rate of the pacer (r_send), bit/s, with `waiting` bytes in the rate
/// shaping buffer.
#[must_use]
pub fn rates(r_ref: f64, waiting: f64, rmin: f64, rmax: f64, set: &Settings) -> (f64, f64) {
    let per_frame = 8.0 * waiting * set.fps;
    let [video, sending] =
        [set.beta_v, set.beta_s].map(|beta| (MAX_ADJUSTMENT * r_ref).min(beta * per_frame));
    ((r_ref - video).max(rmin), (r_ref + sending).min(rmax))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_buffer_of_2000_bytes_is_48_kbit() {
        // the example of section 5.2.2
        let set = Settings::with("rfc8698", &Value::Null).expect("a preset");
        assert_eq!(rates(1e6, 2000.0, 150e3, 1.5e6, &set), (952e3, 1048e3));
        assert_eq!(rates(1e6, 0.0, 150e3, 1.5e6, &set), (1e6, 1e6));
        // at most 5 %, and within the range
        assert_eq!(rates(1e6, 1e9, 150e3, 1.5e6, &set), (950e3, 1050e3));
        assert_eq!(rates(150e3, 1e9, 150e3, 150e3, &set), (150e3, 150e3));
        // encoder and pacer have separate factors
        let half_video = Settings { beta_v: 0.05, ..set };
        assert_eq!(rates(1e6, 2000.0, 150e3, 1.5e6, &half_video), (976e3, 1048e3));
        let off = Settings::with("ns3-rmcat", &Value::Null).expect("a preset");
        assert_eq!(rates(1e6, 2000.0, 150e3, 1.5e6, &off), (1e6, 1e6));
    }
}
