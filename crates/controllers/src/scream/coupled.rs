//! Change of a window by coupling (RFC 8699). This is ours, since the RFC has no scheme for controllers with a window.

/// Largest window as a multiple of the bytes that the rate needs. Targets are lower than the rates of their windows, by
/// headers and margins.
const MAX_WINDOW_MULTIPLE: f64 = 2.0;

/// Factor of a window of `bytes` bytes, when coupling multiplies the rate by `factor` to `rate` bit/s.
///
/// A window grows at most to the bytes of twice the new rate over a smoothed round trip. Without this bound, a window
/// that does not limit the rate would grow without limit: the controller lowers its target, coupling raises target and
/// window again, and so on.
#[must_use]
pub fn window_factor(bytes: f64, factor: f64, rate: f64, s_rtt: f64) -> f64 {
    factor.min((MAX_WINDOW_MULTIPLE * rate / 8.0 * s_rtt / bytes).max(1.0))
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
