//! TCP's throughput as a function of loss, its inverse, and related formulas.
//!
//! Pure functions of numbers in s, bytes and bytes/s. Python has them as `tidegate.tfrc`.

use tidegate_core::math;

/// Throughput of TCP at the loss event rate `p`, bytes/s (RFC 5348 section 3.1).
///
/// `segment` in bytes, `rtt` and `t_rto` in s, `b` segments per ACK. Infinite without loss (`p` of 0); a `p` above 1 counts
/// as 1.
#[must_use]
pub fn throughput(segment: f64, rtt: f64, p: f64, b: f64, t_rto: f64) -> f64 {
    let p = p.min(1.0);
    if p <= 0.0 {
        return f64::INFINITY;
    }
    let waiting = rtt * math::sqrt(2.0 * b * p / 3.0);
    let timeouts = t_rto * (3.0 * math::sqrt(3.0 * b * p / 8.0) * p * (1.0 + 32.0 * p * p));
    segment / (waiting + timeouts)
}

/// Loss event rate at which [`throughput`] is `rate`, from [`P_MIN`] to 1.
///
/// The throughput falls with p, so bisection in the logarithm finds p to the last bits. RFC 5348 section 6.3.1 requires
/// only 5 %.
#[must_use]
pub fn loss_event_rate(segment: f64, rtt: f64, rate: f64, b: f64, t_rto: f64) -> f64 {
    let too_fast = |p: f64| throughput(segment, rtt, p, b, t_rto) > rate;
    let (mut low, mut high) = (P_MIN, 1.0);
    if too_fast(high) {
        return high;
    }
    if !too_fast(low) {
        return low;
    }
    // 42 units of the logarithm, halved 64 times, are below the spacing of doubles
    for _ in 0..64 {
        let middle = math::sqrt(low * high);
        if too_fast(middle) { low = middle } else { high = middle }
    }
    math::sqrt(low * high)
}

/// Lowest loss event rate of the inverse: one event in 10^18 packets.
pub const P_MIN: f64 = 1e-18;

/// Initial window, bytes (RFC 5348 section 4.2, after RFC 3390); `mss` in bytes.
#[must_use]
pub fn initial_window(mss: f64) -> f64 {
    (4.0 * mss).min((2.0 * mss).max(4380.0))
}

/// Part of the allowed rate that may be payload, if each packet of `size` bytes counts `header` bytes more (RFC 4828
/// section 3).
#[must_use]
pub fn small_packet_share(size: f64, header: f64) -> f64 {
    size / (size + header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a / b - 1.0).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn the_throughput_by_hand() {
        // p = 2/3 with R = 1, t_RTO = 0 leaves s / sqrt(4/9)
        near(throughput(1000.0, 1.0, 2.0 / 3.0, 1.0, 0.0), 1500.0);
        // p = 1, R = 0, t_RTO = 1: s / (3 sqrt(3/8) 33)
        near(throughput(1000.0, 0.0, 1.0, 1.0, 1.0), 1000.0 / (99.0 * 0.375f64.sqrt()));
        assert_eq!(throughput(1000.0, 0.1, 0.0, 1.0, 0.4), f64::INFINITY);
        assert_eq!(throughput(1000.0, 0.1, 7.0, 1.0, 0.4), throughput(1000.0, 0.1, 1.0, 1.0, 0.4));
    }

    #[test]
    fn the_inverse_undoes_it_over_twelve_decades() {
        for exponent in 0..48 {
            let p = math::pow(10.0, -0.25 * f64::from(exponent));
            for (segment, rtt, b) in [(100.0, 0.005, 1.0), (1460.0, 0.3, 2.0)] {
                let rate = throughput(segment, rtt, p, b, 4.0 * rtt);
                near(loss_event_rate(segment, rtt, rate, b, 4.0 * rtt), p);
            }
        }
    }

    #[test]
    fn the_inverse_ends_where_the_equation_does() {
        assert_eq!(loss_event_rate(1460.0, 0.1, 1e-3, 1.0, 0.4), 1.0, "not so slow with any p");
        assert_eq!(loss_event_rate(1460.0, 0.1, f64::INFINITY, 1.0, 0.4), P_MIN);
    }

    #[test]
    fn windows_and_headers_by_hand() {
        assert_eq!(initial_window(1460.0), 4380.0);
        assert_eq!(initial_window(536.0), 2144.0, "four segments");
        assert_eq!(initial_window(4000.0), 8000.0, "two segments");
        assert_eq!(initial_window(1095.0), 4380.0);
        assert_eq!(small_packet_share(160.0, 40.0), 0.8);
    }
}
