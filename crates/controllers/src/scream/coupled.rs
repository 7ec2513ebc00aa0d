//! What coupling (RFC 8699) makes of a window. The RFC knows no scheme with one: this is ours.

/// How many times what carries the rate a window may be: targets are below what their windows carry, by headers and margins.
const ROOM: f64 = 2.0;

/// By what a window of so many `bytes` is multiplied where the rate becomes `factor` times as much and is `rate` then, bit/s.
///
/// A window grows no further than carries twice the new rate over a smoothed round trip. Otherwise it would grow without
/// bounds where it is not what limits the rate: the controller takes its target down, coupling takes it up again with the
/// window, and so on.
#[must_use]
pub fn window_factor(bytes: f64, factor: f64, rate: f64, s_rtt: f64) -> f64 {
    factor.min((ROOM * rate / 8.0 * s_rtt / bytes).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_grows_to_twice_what_carries_the_rate_and_falls_freely() {
        // 1 Mbit/s over 100 ms are 12.5 kB
        assert_eq!(window_factor(10_000.0, 2.0, 1e6, 0.1), 2.0);
        assert_eq!(window_factor(10_000.0, 8.0, 1e6, 0.1), 2.5);
        assert_eq!(window_factor(90_000.0, 8.0, 1e6, 0.1), 1.0, "it is wide enough");
        assert_eq!(window_factor(90_000.0, 0.1, 1e6, 0.1), 0.1);
    }
}
