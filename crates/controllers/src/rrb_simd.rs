//! RRB-SIMD of Lusilao-Zodi, Dlodlo, de Jager and Ferguson (CNSR 2011), from its published abstract: the rate grows with
//! the square of the time without congestion and falls by a part on congestion.
//!
//! Only the abstract of the article was available. It states the two laws, that they work on RTCP reports, that losses and
//! the cumulative jitter are signs of congestion, and that a delay factor, which measures the occupancy of the
//! bottleneck's buffer in each round, has to confirm the second sign. The increase is that of SIMD (Jin, Guo, Matta,
//! Bestavros: TCP-friendly SIMD congestion control and its convergence behavior, BUCS-TR-2001-006), to which the name
//! refers. Inferred parts are marked at their places, and in `docs/controllers/rrb-simd.md`.

use crate::Entry;
use crate::settings::{Kind, SettingsError, resolve, settings, unknown_preset};
use Kind::{Number, Whole};
use tidegate_core::control::{Context, Controller, Decision, FeedbackKind, Limits, Needs, Report};
use tidegate_core::{Rate, Span, Time};

const NAME: &str = "rrb-simd";
const PRESETS: &[&str] = &["default"];

/// Registry entry for this controller.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "square increase and multiplicative decrease, from loss, jitter and delay in receiver reports",
    presets: PRESETS,
    settings: |_| TABLE,
    in_call: Entry::NO_CALL_SETTINGS,
    defaults: |preset| {
        check_preset(preset)?;
        Ok(serde_json::to_value(DEFAULT).unwrap_or_default())
    },
    build: |preset, overrides| {
        check_preset(preset)?;
        Ok(Box::new(RrbSimd::new(resolve(NAME, TABLE, &DEFAULT, overrides)?)))
    },
    receiver: None,
};

// Each block is a setting: name, type, unit, allowed values, [default], meaning, source.
settings! {
    decrease: f64, "", Number(0.001, 0.999), [0.5],
        "fraction by which congestion reduces the rate (beta)",
        "not in the abstract; ours: TCP's half (RFC 5681 section 3.1)";
    packet: u64, "bytes", Whole(1, 65_535), [1200],
        "packet size in which SIMD counts a window",
        "ours: a full payload";
    jitter_rise: f64, "ms", Number(0.0, 1e6), [0.0],
        "cumulative jitter above which congestion may be near (it is if `delay_factor` is exceeded, too)",
        "not in the abstract; ours: any rise, for the delay factor has to confirm it";
    delay_factor: f64, "", Number(0.0, 1.0), [0.5],
        "share of the round trip spent in buffers above which congestion is near, if the jitter has risen \
         (`jitter_rise`); 1: never",
        "not in the abstract; ours: a half, a buffer that holds what the path holds";
}

const DEFAULT: Settings = preset(0);

fn check_preset(preset: &str) -> Result<(), SettingsError> {
    if PRESETS.contains(&preset) { Ok(()) } else { Err(unknown_preset(NAME, preset, PRESETS)) }
}

/// Growth of the rate from one decrease to the next.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Epoch {
    /// Rate at congestion, bit/s.
    peak: f64,
    /// Rate after the decrease, bit/s.
    base: f64,
    /// Growth in the first round, bit/s; none before the first round-trip time.
    step: Option<f64>,
    /// Reports without congestion since.
    rounds: f64,
    /// Lowest jitter so far, relative to which the cumulative jitter is the present jitter. None before the first report.
    min_jitter: Option<Span>,
}

impl Epoch {
    fn new(peak: f64, base: f64, min_jitter: Option<Span>) -> Self {
        Self { peak, base, step: None, rounds: 0.0, min_jitter }
    }

    /// SIMD's window as a rate, bit/s: w = w0 + alpha^2 / 4 n^2.
    fn rate(&self) -> f64 {
        self.base + self.step.unwrap_or(0.0) * self.rounds * self.rounds
    }
}

/// Sending half.
pub struct RrbSimd {
    settings: Settings,
    limits: Limits,
    /// Present epoch; none before the first limits.
    epoch: Option<Epoch>,
    min_rtt: Option<Span>,
}

impl RrbSimd {
    fn new(settings: Settings) -> Self {
        Self { settings, limits: Limits::default(), epoch: None, min_rtt: None }
    }

    fn decision(&self) -> Decision {
        let rate = self.epoch.map_or(0.0, |epoch| epoch.rate());
        Decision::rate(Rate::from_bps_f64(rate).clamp(self.limits.min, self.limits.max))
    }
}

impl Settings {
    /// Growth alpha^2 / 4 for windows of `peak` packets at congestion, with which SIMD has TCP's throughput at the same
    /// loss: alpha = 3 sqrt(beta) / ((1 - 2/3 beta) sqrt(peak)). An epoch of T = 2 sqrt(beta peak) / alpha round trips
    /// carries (1 - 2/3 beta) peak T packets and ends with one loss, which gives TCP's sqrt(3/2 / p) packets per round
    /// trip.
    #[must_use]
    pub fn growth(&self, peak: f64) -> f64 {
        let beta = self.decrease;
        let mean_part = 1.0 - 2.0 / 3.0 * beta;
        9.0 * beta / (4.0 * mean_part * mean_part * peak)
    }

    /// Growth of the first round after congestion at `peak` bit/s with a round trip of `rtt`, bit/s.
    fn step(&self, peak: f64, rtt: Span) -> f64 {
        let packet = self.packet as f64 * 8.0 / rtt.as_secs_f64();
        // a window is at least one packet (TCP's minimum)
        self.growth((peak / packet).max(1.0)) * packet
    }
}

impl Controller for RrbSimd {
    fn needs(&self) -> Needs {
        Needs::feedback(FeedbackKind::ReceiverReports)
    }

    fn on_report(&mut self, _now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        let (Some(loss), Some(epoch)) = (&report.loss, &mut self.epoch) else { return cx.unchanged() };
        let rtt = report.rtt().filter(|&rtt| rtt > Span::ZERO);
        self.min_rtt = [self.min_rtt, rtt].into_iter().flatten().min();
        let factor = match (rtt, self.min_rtt) {
            (Some(rtt), Some(min_rtt)) => 1.0 - min_rtt.as_secs_f64() / rtt.as_secs_f64(),
            _ => 0.0,
        };
        let jitter = loss.jitter.max(Span::ZERO);
        let min_jitter = epoch.min_jitter.map_or(jitter, |min_jitter| min_jitter.min(jitter));
        epoch.min_jitter = Some(min_jitter);
        let rise = jitter.as_millis_f64() - min_jitter.as_millis_f64();
        let is_near_congestion = rise > self.settings.jitter_rise && factor > self.settings.delay_factor;
        if loss.fraction_lost > 0 || is_near_congestion {
            let (low, high) = (self.limits.min.as_bps_f64(), self.limits.max.as_bps_f64());
            let rate = epoch.rate().min(high).max(low);
            *epoch = Epoch::new(rate, rate * (1.0 - self.settings.decrease), Some(jitter));
        } else {
            let step = rtt.map(|rtt| self.settings.step(epoch.peak, rtt));
            epoch.step = epoch.step.or(step);
            if epoch.step.is_some() && epoch.rate() < self.limits.max.as_bps_f64() {
                epoch.rounds += 1.0;
            }
        }
        cx.note("delay_factor", factor);
        cx.note("cumulative_jitter_ms", rise);
        cx.note("rounds", epoch.rounds);
        self.decision()
    }

    fn on_limits(&mut self, _now: Time, limits: &Limits, _cx: &mut Context<'_>) -> Decision {
        let start = limits.start.as_bps_f64();
        if self.epoch.is_none() || limits.route_changed {
            // no congestion precedes the first epoch: it grows as if there had been some at its start
            self.epoch = Some(Epoch::new(start, start, None));
            self.min_rtt = None;
        }
        self.limits = *limits;
        self.decision()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tidegate_core::control::LossReport;
    use tidegate_core::{ControllerHost, Stream};

    fn host(overrides: &Value, limits: &Limits) -> ControllerHost {
        let controller = (ENTRY.build)("default", overrides).expect("valid");
        ControllerHost::new("test", controller, Stream::new(1, "test", "rng"), Time::ZERO, limits)
            .expect("the contract is kept")
    }

    fn report(fraction_lost: u8, jitter_ms: i64, rtt_ms: i64) -> Report {
        let loss = LossReport {
            fraction_lost,
            cumulative_lost: 0,
            highest_sequence: 0,
            jitter: Span::from_millis(jitter_ms),
            expected: 100,
        };
        let rtt = (rtt_ms > 0).then(|| Span::from_millis(rtt_ms));
        Report { loss: Some(loss), report_rtt: rtt, ..Report::default() }
    }

    fn bps(host: &mut ControllerHost, second: i64, report: &Report) -> u64 {
        host.report(Time::from_secs(second), report).expect("fine").target.as_bps()
    }

    const LIMITS: Limits = Limits {
        min: Rate::from_kbps(10),
        max: Rate::from_mbps(100),
        start: Rate::from_kbps(960),
        wanted: None,
        app_limited: false,
        route_changed: false,
    };

    #[test]
    fn it_grows_with_the_square_of_the_rounds_and_falls_by_a_part() {
        let mut host = host(&Value::Null, &LIMITS);
        // 100 ms and 1200 bytes: 96 kb/s per packet; windows of 10 at the start: 9 / 2 / (4 * 4/9 * 10) = 81/320 packets
        for round in 1..=6 {
            let expected = 960_000 + 96_000 * 81 * round * round / 320;
            assert_eq!(bps(&mut host, round as i64, &report(0, 5, 100)), expected, "round {round}");
        }
        let peak = 960_000 + 96_000 * 81 * 36 / 320;
        assert_eq!(bps(&mut host, 7, &report(1, 5, 100)), peak / 2);
        // again from half of it, more slowly: the window was larger
        let step = 96_000.0 * 81.0 / 32.0 / (peak as f64 / 96_000.0);
        for round in 1..=4 {
            let now = bps(&mut host, 7 + round, &report(0, 5, 100));
            let expected = peak as f64 / 2.0 + step * (round * round) as f64;
            assert!((now as f64 - expected).abs() <= 1.0, "round {round}: {now} {expected}");
        }
    }

    #[test]
    fn the_growth_is_that_with_tcps_throughput() {
        for (decrease, peak) in [(0.5, 10.0), (0.125, 40.0), (0.0625, 7.0)] {
            let settings = Settings { decrease, ..DEFAULT };
            // from (1 - beta) w to w in T rounds, the packets of all rounds added up
            let rounds = (decrease * peak / settings.growth(peak)).sqrt();
            let packets =
                (1.0 - decrease) * peak * rounds + settings.growth(peak) * rounds * rounds * rounds / 3.0;
            let tcp = (1.5 * packets).sqrt();
            assert!((packets / rounds / tcp - 1.0).abs() < 1e-12, "{decrease}: {} {tcp}", packets / rounds);
        }
    }

    #[test]
    fn jitter_alone_and_delay_alone_are_no_congestion() {
        let mut host = host(&json!({ "jitter_rise": 2.0 }), &LIMITS);
        let mut last = bps(&mut host, 1, &report(0, 5, 50));
        for (second, (jitter, rtt)) in [(9, 50), (9, 100), (5, 400), (7, 400)].into_iter().enumerate() {
            let now = bps(&mut host, 2 + second as i64, &report(0, jitter, rtt));
            assert!(now > last, "{jitter} {rtt}: {now} {last}");
            last = now;
        }
        // 8 ms are more than 2 above 5, and 101 ms have more than half of them in buffers
        assert_eq!(bps(&mut host, 7, &report(0, 8, 101)), last / 2);
        // from now on rises are relative to 8 ms, and later to 4 ms
        for (second, jitter) in [9, 4, 6].into_iter().enumerate() {
            assert!(bps(&mut host, 8 + second as i64, &report(0, jitter, 101)) > last / 2);
        }
        assert!(bps(&mut host, 11, &report(0, 7, 101)) < last / 2);
    }

    #[test]
    fn without_a_round_trip_it_waits_and_limits_hold_it() {
        let mut host = host(&Value::Null, &Limits { max: Rate::from_mbps(1), ..LIMITS });
        assert_eq!(bps(&mut host, 1, &report(0, 5, 0)), 960_000);
        for second in 2..50 {
            assert!(bps(&mut host, second, &report(0, 5, 100)) <= 1_000_000);
        }
        // congestion is at the sent rate, not at the unlimited one
        assert_eq!(bps(&mut host, 50, &report(1, 5, 100)), 500_000);
        for second in 51..80 {
            let _ = bps(&mut host, second, &report(255, 5, 100));
        }
        assert_eq!(host.decision().target, Rate::from_kbps(10));
        // a new route starts anew
        let anew = Limits { route_changed: true, ..LIMITS };
        assert_eq!(host.limits(Time::from_secs(80), &anew).expect("fine").target, LIMITS.start);
    }

    #[test]
    fn wrong_settings_are_refused_with_the_reason() {
        let refusal = |value: Value| (ENTRY.build)("default", &value).err().expect("refused").to_string();
        assert_eq!(
            refusal(json!({"decrease": 1.0})),
            "rrb-simd: `decrease` is 1.0, expected a number from 0.001 to 0.999"
        );
        let error = (ENTRY.build)("fast", &Value::Null).err().expect("refused");
        assert_eq!(error.to_string(), "rrb-simd: `preset` is `fast`, expected one of `default`");
    }
}
