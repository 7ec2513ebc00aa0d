//! CUBIC (RFC 9438).

use super::hystart::HyStart;
use super::window::{CongestionControl, Window};
use tidegate_core::{Span, Time, math};

/// Aggressiveness of the curve, in segments/s^3 (RFC 9438 section 5).
const C: f64 = 0.4;
/// Share of the window that is kept after a loss (RFC 9438 section 4.6).
const BETA_CUBIC: f64 = 0.7;
/// The Reno-friendly increase, which is smaller because of the smaller decrease (RFC 9438 section 4.3).
const ALPHA_CUBIC: f64 = 3.0 * (1.0 - BETA_CUBIC) / (1.0 + BETA_CUBIC);

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// t_epoch, moved on by the times in which the window was not in use.
    start: Time,
    /// K in seconds: the time at which the curve reaches `plateau` again.
    k: f64,
    /// W_max of the curve.
    plateau: f64,
    /// W_est: the window that Reno would have.
    w_est: f64,
}

/// CUBIC's window, with the end of slow start by HyStart.
#[derive(Debug)]
pub(super) struct Cubic {
    curve: Curve,
    fast_convergence: bool,
    hystart: Option<HyStart>,
}

impl Cubic {
    pub(super) fn new(fast_convergence: bool, hystart: bool) -> Self {
        Self { curve: Curve::default(), fast_convergence, hystart: hystart.then(HyStart::default) }
    }
}

impl CongestionControl for Cubic {
    fn beta(&self) -> f64 {
        BETA_CUBIC
    }

    fn avoid(&mut self, window: &mut Window, now: Time, acked: f64, srtt: Option<Span>) {
        let rtt = srtt.map_or(0.0, Span::as_secs_f64);
        let (segments, acked) = (window.segments(), acked / window.segment);
        window.cwnd = window.segment * self.curve.avoid(now, segments, acked, rtt);
    }

    fn not_in_use(&mut self) {
        self.curve.not_in_use();
    }

    fn measured(&mut self, window: &mut Window, now: Time, rtt: Span, una: u64, max: u64) {
        let Some(hystart) = &mut self.hystart else { return };
        let (slow_start, segments) = (window.is_in_slow_start(), window.segments());
        if !self.curve.has_just_begun(now) && hystart.measured(now, rtt, segments, una, max, slow_start) {
            window.ssthresh = window.cwnd;
        }
    }

    fn reduced(&mut self, window: &Window) {
        self.curve.reduce(window.segments(), self.fast_convergence);
    }

    fn timer(&mut self, now: Time, max: u64) {
        if let Some(hystart) = &mut self.hystart {
            hystart.timeout(now, max);
        }
    }

    fn collapsed(&mut self, window: &Window) {
        self.curve.timeout(window.segments());
    }

    fn restart(&mut self, window: &mut Window) {
        self.curve.restart();
        window.cwnd = window.cwnd.min(window.initial);
    }
}

/// The state of RFC 9438, in segments.
#[derive(Clone, Debug, Default)]
struct Curve {
    /// W_max, with fast convergence applied; `None` if there was no loss since the start or a timeout.
    w_max: Option<f64>,
    /// cwnd_prior: the window before the last reduction.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    /// The last time at which the window grew, and the time since which it is not in use.
    last: Time,
    idle_since: Option<Time>,
}

impl Curve {
    /// The window after an acknowledgement of `acked` segments in congestion avoidance.
    ///
    /// RFC 9438 counts acknowledgements; counting segments makes delayed ones follow the same curve.
    fn avoid(&mut self, now: Time, cwnd: f64, acked: f64, rtt: f64) -> f64 {
        let idle = self.idle_since.take().map(|since| now.saturating_since(since));
        self.last = now;
        let w_max = &mut self.w_max;
        let epoch = self.epoch.get_or_insert_with(|| {
            // a stage without a loss before it starts at the plateau: K = 0 (sections 4.8 and 4.10)
            let plateau = w_max.get_or_insert(cwnd).max(cwnd);
            Epoch { start: now, k: math::cbrt((plateau - cwnd) / C), plateau, w_est: cwnd }
        });
        if let Some(idle) = idle {
            epoch.start = if epoch.start + idle > now { now } else { epoch.start + idle };
        }
        let t = (now - epoch.start).as_secs_f64();
        // equation 4; above the window of the last loss it grows like Reno
        let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { ALPHA_CUBIC };
        epoch.w_est += alpha * acked / cwnd;
        if epoch.curve(t) < epoch.w_est {
            return cwnd.max(epoch.w_est);
        }
        let target = epoch.curve(t + rtt).min(1.5 * cwnd).max(cwnd);
        cwnd + (target - cwnd) / cwnd * acked
    }

    /// Whether a congestion avoidance stage began less than a second ago: Linux's HyStart does not count round trips
    /// measured then ("right after fast recovery", `cubictcp_acked`).
    fn has_just_begun(&self, now: Time) -> bool {
        self.epoch.is_some_and(|epoch| now.saturating_since(epoch.start) < Span::from_secs(1))
    }

    /// Ends the stage at a loss: the next one aims for the present window, or lower if it keeps falling
    /// (fast convergence, section 4.7).
    fn reduce(&mut self, cwnd: f64, fast_convergence: bool) {
        let falling =
            fast_convergence && self.w_max.is_some_and(|w_max| math::floor(cwnd) < math::floor(w_max));
        self.w_max = Some(if falling { cwnd * (1.0 + BETA_CUBIC) / 2.0 } else { cwnd });
        self.cwnd_prior = cwnd;
        self.epoch = None;
    }

    /// Ends the stage at a timeout: the next one starts at its plateau (section 4.8).
    fn timeout(&mut self, cwnd: f64) {
        self.cwnd_prior = cwnd;
        self.w_max = None;
        self.epoch = None;
    }

    /// Ends the stage after idle time: the next one begins after slow start.
    fn restart(&mut self) {
        self.epoch = None;
    }

    /// Stops the clock of the stage while the window is not in use (section 5.8).
    fn not_in_use(&mut self) {
        self.idle_since.get_or_insert(self.last);
    }
}

impl Epoch {
    /// W_cubic(t), equation 1.
    fn curve(&self, t: f64) -> f64 {
        let d = t - self.k;
        C * d * d * d + self.plateau
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One acknowledgement per segment and round trip: the window stays within one round trip's growth
    /// of the closed form W(t) = C (t - K)^3 + W_max, K = cbrt(W_max (1 - beta) / C).
    #[test]
    fn the_window_follows_the_closed_form() {
        let (w_max, rtt) = (1000.0, 0.1);
        let mut cubic = Curve::default();
        cubic.reduce(w_max, true);
        let k = math::cbrt(w_max * (1.0 - BETA_CUBIC) / C);
        assert!((k - 9.0856).abs() < 1e-4, "{k}");
        let form = |t: f64| C * (t - k) * (t - k) * (t - k) + w_max;
        let (mut cwnd, mut now) = (w_max * BETA_CUBIC, Time::from_secs(5));
        let begin = now;
        while now - begin < Span::from_secs(15) {
            let acks = math::floor(cwnd) as i64;
            for _ in 0..acks {
                cwnd = cubic.avoid(now, cwnd, 1.0, rtt);
                now += Span::from_secs_f64(rtt) / acks;
            }
            let t = (now - begin).as_secs_f64();
            assert!(
                cwnd > form(t - 1.5 * rtt) - 0.5 && cwnd < form(t + rtt) + 0.5,
                "{t}: {cwnd} {}",
                form(t)
            );
        }
        assert!((cwnd / form(15.0) - 1.0).abs() < 0.01, "{cwnd} {}", form(15.0));
    }

    /// Delayed acknowledgements of two segments each give the same curve.
    #[test]
    fn delayed_acknowledgements_follow_the_same_curve() {
        let after = |step: f64| {
            let mut cubic = Curve::default();
            cubic.reduce(400.0, true);
            let (mut cwnd, mut now) = (280.0, Time::ZERO);
            while now < Time::from_secs(10) {
                let acks = math::floor(cwnd / step) as i64;
                for _ in 0..acks {
                    cwnd = cubic.avoid(now, cwnd, step, 0.05);
                    now += Span::from_millis(50) / acks;
                }
            }
            cwnd
        };
        let (per_segment, per_two) = (after(1.0), after(2.0));
        assert!((per_segment / per_two - 1.0).abs() < 0.01, "{per_segment} {per_two}");
    }

    /// On a short path with a small window Reno would be faster, and CUBIC grows as it does: by alpha a
    /// round trip up to the last maximum, by one beyond.
    #[test]
    fn in_the_reno_friendly_region_it_grows_by_alpha() {
        let mut cubic = Curve::default();
        cubic.reduce(20.0, true);
        let (mut cwnd, mut now) = (14.0, Time::ZERO);
        let mut windows = vec![cwnd];
        for _ in 0..15 {
            let acks = math::floor(cwnd) as i64;
            for _ in 0..acks {
                cwnd = cubic.avoid(now, cwnd, 1.0, 0.01);
                now += Span::from_millis(10) / acks;
            }
            windows.push(cwnd);
        }
        let growth = |from: usize, to: usize| (windows[to] - windows[from]) / (to - from) as f64;
        assert!((growth(1, 10) / ALPHA_CUBIC - 1.0).abs() < 0.05, "{windows:?}");
        assert!((growth(13, 15) - 1.0).abs() < 0.06, "{windows:?}");
    }

    #[test]
    fn fast_convergence_gives_way() {
        let mut cubic = Curve::default();
        cubic.reduce(100.0, true);
        assert_eq!(cubic.w_max, Some(100.0));
        cubic.reduce(80.0, true);
        assert_eq!(cubic.w_max, Some(80.0 * 1.7 / 2.0));
        cubic.reduce(90.0, true);
        assert_eq!(cubic.w_max, Some(90.0));
        cubic.reduce(80.0, false);
        assert_eq!(cubic.w_max, Some(80.0));
        cubic.reduce(79.9, true);
        cubic.reduce(79.1, true);
        assert_eq!(cubic.w_max, Some(79.1), "less than a segment lower is not lower");
    }

    #[test]
    fn time_without_use_does_not_count() {
        let grown = |unused: bool, now: Time| {
            let mut cubic = Curve::default();
            cubic.reduce(1000.0, true);
            let mut cwnd = cubic.avoid(Time::ZERO, 700.0, 1.0, 0.1);
            if unused {
                cubic.not_in_use();
            }
            for _ in 0..100 {
                cwnd = cubic.avoid(now, cwnd, 1.0, 0.1);
            }
            cwnd
        };
        let soon = grown(false, Time::from_millis(100));
        let late = grown(false, Time::from_secs(8));
        let unused = grown(true, Time::from_secs(8));
        // eight seconds of use lift the curve by nearly 300 segments, and 100 acknowledgements reach a
        // part of that; eight seconds without use do not lift it
        assert!(unused > 700.0 && unused <= soon && late > soon + 20.0, "{unused} {soon} {late}");
    }
}
