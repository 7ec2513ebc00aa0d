//! Lookup-table scheme of Lissah and Mbise (2019): the gap between two packets follows from receiver reports, by an
//! equation, and by a table that stores its results.
//!
//! ```text
//! receiver report: fraction lost --> in the table? --yes--> the stored gap
//!                                         | no
//!                                         +--> gap = delay * jitter * fraction / scale --> stored
//! ```
//!
//! A receiver report has no one-way delay. Half a round trip takes its place, or the receiver half sends the simulator's
//! delay, as the document's receiver does.

pub mod receiver;
pub mod settings;

use crate::Entry;
use receiver::Receiver;
use settings::{DelaySource, Mode, NAME, PRESETS, Settings, TABLE};
use tidegate_core::control::{
    Context, Controller, Decision, FeedbackKind, Limits, LossReport, Needs, Report,
};
use tidegate_core::{Size, Span, Time};

/// Registry entry for this controller.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "gap between packets from receiver reports, by an equation and a table of its results",
    presets: PRESETS,
    settings: |_| TABLE,
    in_call: Entry::NO_CALL_SETTINGS,
    defaults: Settings::defaults,
    build: |preset, overrides| Ok(Box::new(LookupTable::new(Settings::with(preset, overrides)?))),
    receiver: Some(|preset, overrides| Ok(Box::new(Receiver::new(&Settings::with(preset, overrides)?)))),
};

/// Longest gap if the session has no lowest rate (ours: the equation has no bound).
const MAX_GAP: Span = Span::from_secs(60);

/// Number of values of a fraction lost, which has 8 bits (RFC 3550 section 6.4.1).
const FRACTIONS: usize = 256;

/// Sending half.
pub struct LookupTable {
    settings: Settings,
    limits: Limits,
    /// Stored gap for each fraction lost.
    table: [Option<Span>; FRACTIONS],
    gap: Span,
}

impl LookupTable {
    /// Creates a sender with an empty table.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let mut controller =
            Self { settings, limits: Limits::default(), table: [None; FRACTIONS], gap: Span::ZERO };
        controller.gap = controller.gap_without_loss();
        controller
    }

    /// Gap before the first report and without loss; the default gap belongs to the table.
    fn gap_without_loss(&self) -> Span {
        match self.settings.mode {
            Mode::Table => gap_from_micros(self.settings.default_gap),
            Mode::Equation | Mode::None => Span::ZERO,
        }
    }

    /// Delay in the equation.
    fn delay(&self, report: &Report) -> Option<Span> {
        match self.settings.delay_source {
            DelaySource::HalfRtt => report.rtt().map(|rtt| rtt.scaled(0.5)),
            DelaySource::Simulator => report.messages.iter().find_map(receiver::parse_delay),
        }
    }

    /// Gap for a loss; `None` if the table has none and the delay is unknown.
    fn gap_for_loss(&mut self, loss: &LossReport, report: &Report, cx: &mut Context<'_>) -> Option<Span> {
        let key = usize::from(loss.fraction_lost);
        let has_table = self.settings.mode == Mode::Table;
        if let Some(gap) = self.table[key].filter(|_| has_table) {
            cx.note("looked_up", 1.0);
            return Some(gap);
        }
        let delay = self.delay(report)?;
        cx.note("looked_up", 0.0);
        cx.note("delay_ms", delay.as_millis_f64());
        let gap = gap_from_micros(self.settings.equation(delay, loss.jitter, loss.fraction_lost));
        if has_table {
            self.table[key] = Some(gap);
        }
        Some(gap)
    }

    /// Longest gap with which the session's lowest rate is kept.
    fn max_gap(&self) -> Span {
        self.limits.min.time_for(Size::from_bytes(self.settings.packet)).min(MAX_GAP)
    }

    fn decision(&self) -> Decision {
        let Limits { min, max, .. } = self.limits;
        let gap = self.gap.min(self.max_gap());
        let rate = match gap {
            Span::ZERO => max,
            gap => Size::from_bytes(self.settings.packet).per(gap).clamp(min, max),
        };
        // the gap paces; a second bound by rate would only hide it
        Decision { pacing: max, min_gap: (gap > Span::ZERO).then_some(gap), ..Decision::rate(rate) }
    }
}

/// Converts microseconds to a gap within its bounds.
fn gap_from_micros(micros: f64) -> Span {
    Span::from_millis_f64(micros / 1e3).max(Span::ZERO).min(MAX_GAP)
}

impl Controller for LookupTable {
    fn needs(&self) -> Needs {
        Needs::feedback(FeedbackKind::ReceiverReports)
    }

    fn on_report(&mut self, _now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        let Some(loss) = report.loss.as_ref().filter(|_| self.settings.mode != Mode::None) else {
            return cx.unchanged();
        };
        cx.note("fraction_lost", f64::from(loss.fraction_lost) / FRACTIONS as f64);
        cx.note("jitter_ms", loss.jitter.as_millis_f64());
        if loss.fraction_lost == 0 {
            self.gap = self.gap_without_loss();
        } else if let Some(gap) = self.gap_for_loss(loss, report, cx) {
            self.gap = gap;
        }
        cx.note("gap_us", self.gap.as_millis_f64() * 1e3);
        if cx.wants_notes() {
            cx.note("table_size", self.table.iter().flatten().count() as f64);
        }
        self.decision()
    }

    fn on_limits(&mut self, _now: Time, limits: &Limits, _cx: &mut Context<'_>) -> Decision {
        if limits.route_changed {
            // the stored gaps belong to another path (ours; the document has one path)
            self.table = [None; FRACTIONS];
            self.gap = self.gap_without_loss();
        }
        self.limits = *limits;
        self.decision()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tidegate_core::control::{Arrived, ReceiverHost, Urgency};
    use tidegate_core::wire::rtcp;
    use tidegate_core::{ControllerHost, Ecn, Rate, Stream};

    const LIMITS: Limits = Limits {
        min: Rate::from_kbps(10),
        max: Rate::from_mbps(100),
        start: Rate::from_kbps(300),
        wanted: None,
        app_limited: false,
        route_changed: false,
    };

    fn host(preset: &str, overrides: &Value, limits: &Limits) -> ControllerHost {
        let controller = (ENTRY.build)(preset, overrides).expect("valid");
        ControllerHost::new("test", controller, Stream::new(1, "test", "rng"), Time::ZERO, limits)
            .expect("the contract is kept")
    }

    /// A report with a round trip of twice `delay_us`.
    fn report(fraction_lost: u8, jitter_us: i64, delay_us: i64) -> Report {
        let loss = LossReport {
            fraction_lost,
            cumulative_lost: 0,
            highest_sequence: 0,
            jitter: Span::from_micros(jitter_us),
            expected: 100,
        };
        Report { loss: Some(loss), report_rtt: Some(Span::from_micros(2 * delay_us)), ..Report::default() }
    }

    /// Gap after a report, us.
    fn gap(host: &mut ControllerHost, report: &Report) -> Option<f64> {
        let decision = host.report(Time::from_secs(1), report).expect("fine");
        decision.min_gap.map(|gap| gap.as_nanos() as f64 / 1e3)
    }

    #[test]
    fn the_equation_by_hand() {
        let mut host = host("equation", &Value::Null, &LIMITS);
        assert_eq!(gap(&mut host, &report(0, 10_000, 50_000)), None, "no loss, no gap");
        // 5e7 ns * 1e7 ns * 13 / 1e13
        assert_eq!(gap(&mut host, &report(13, 10_000, 50_000)), Some(650.0));
        // 7.77e7 * 2.5e6 * 40 / 1e13
        assert_eq!(gap(&mut host, &report(40, 2_500, 77_700)), Some(777.0));
        // 1.2e8 * 2e7 * 255 / 1e13: 61.2 ms
        assert_eq!(gap(&mut host, &report(255, 20_000, 120_000)), Some(61_200.0));
        // 1e7 * 1e6 * 1 / 1e13: little loss makes a gap of a microsecond
        assert_eq!(gap(&mut host, &report(1, 1_000, 10_000)), Some(1.0));
        assert_eq!(gap(&mut host, &report(13, -10_000, 50_000)), None, "a jitter below zero is none");
    }

    #[test]
    fn what_the_formula_and_the_text_print() {
        let gap_with = |overrides| gap(&mut host("table", &overrides, &LIMITS), &report(13, 10_000, 50_000));
        assert_eq!(gap_with(json!({ "scale": 1e13 })), Some(650.0), "hundreds of microseconds");
        // 6.5 s, held by the least rate: 9600 bits at 10 kb/s
        assert_eq!(gap_with(json!({ "scale": 1e9 })), Some(960_000.0));
        // but 10 ms are 900 units of a 90 kHz clock: 5e7 * 900 * 13 / 1e9, a tenth less than the formula
        assert_eq!(gap_with(json!({ "scale": 1e9, "jitter_unit": "timestamp" })), Some(585.0));
    }

    #[test]
    fn the_table_remembers_and_the_equation_does_not() {
        let (first, second) = (report(13, 10_000, 50_000), report(13, 20_000, 90_000));
        let mut table = host("table", &json!({ "default_gap": 200 }), &LIMITS);
        assert_eq!(table.decision().min_gap, Some(Span::from_micros(200)), "before the first report");
        let gaps = [&first, &second, &report(0, 1, 1), &report(14, 20_000, 90_000), &second]
            .map(|report| gap(&mut table, report));
        assert_eq!(gaps, [650.0, 650.0, 200.0, 2520.0, 650.0].map(Some));
        let mut equation = host("equation", &json!({ "default_gap": 200 }), &LIMITS);
        assert_eq!(equation.decision().min_gap, None, "the default gap is the table's");
        let gaps = [&first, &second, &report(0, 1, 1)].map(|report| gap(&mut equation, report));
        assert_eq!(gaps, [Some(650.0), Some(2340.0), None]);
        let mut none = host("none", &json!({ "default_gap": 200 }), &LIMITS);
        assert_eq!(gap(&mut none, &first), None);
        assert_eq!(none.decision().target, LIMITS.max);
        // a new route is another path
        let anew = Limits { route_changed: true, ..LIMITS };
        let decision = table.limits(Time::from_secs(2), &anew).expect("fine");
        assert_eq!(decision.min_gap, Some(Span::from_micros(200)));
        assert_eq!(gap(&mut table, &second), Some(2340.0));
    }

    #[test]
    fn a_gap_makes_a_rate_and_keeps_the_limits() {
        let mut table = host("table", &Value::Null, &LIMITS);
        assert_eq!(table.decision().target, LIMITS.max);
        // 9600 bits every 2.4 ms
        let _ = gap(&mut table, &report(16, 20_000, 75_000));
        assert_eq!(table.decision().target, Rate::from_mbps(4));
        assert_eq!(table.decision().pacing, LIMITS.max, "the gap paces");
        assert_eq!(gap(&mut table, &report(200, 2_000_000, 9_000_000)), Some(960_000.0));
        assert_eq!(table.decision().target, LIMITS.min);
        let low = Limits { max: Rate::from_mbps(1), ..LIMITS };
        assert_eq!(table.limits(Time::ZERO, &low).expect("fine").target, LIMITS.min);
        let free = Limits { min: Rate::ZERO, ..LIMITS };
        assert_eq!(table.limits(Time::ZERO, &free).expect("fine").min_gap, Some(MAX_GAP));
    }

    #[test]
    fn without_a_delay_the_gap_stays() {
        let mut table = host("table", &Value::Null, &LIMITS);
        let unknown = |fraction| Report { report_rtt: None, ..report(fraction, 10_000, 50_000) };
        assert_eq!(gap(&mut table, &unknown(13)), None);
        assert_eq!(gap(&mut table, &report(13, 10_000, 50_000)), Some(650.0));
        assert_eq!(gap(&mut table, &unknown(14)), Some(650.0));
        assert_eq!(gap(&mut table, &unknown(0)), None);
        assert_eq!(gap(&mut table, &unknown(13)), Some(650.0), "no delay is needed to look it up");
        assert_eq!(gap(&mut table, &Report::default()), Some(650.0), "no receiver report");
    }

    #[test]
    fn the_simulators_delay_travels_in_the_report() {
        let simulator = json!({ "delay_source": "simulator" });
        let half = |overrides| {
            let half = ENTRY.receiver.expect("a half")("table", overrides).expect("valid");
            ReceiverHost::new("test", half, Stream::new(1, "test", "r"))
        };
        let arrived = |delay| Arrived {
            sequence: Some(1),
            size: Size::from_bytes(1200),
            header: Size::from_bytes(20),
            padding: Size::ZERO,
            payload_type: 96,
            abs_send_time: None,
            ssrc: 1,
            rtp_sequence: 1,
            timestamp: 0,
            marker: false,
            ecn: Ecn::default(),
            extension: None,
            true_delay: delay,
        };
        let mut silent = half(&Value::Null);
        assert!(!silent.needs_true_delay());
        assert_eq!(silent.packet(Time::ZERO, &arrived(None)), Ok(Urgency::None));
        assert_eq!(silent.message(Time::ZERO), Ok(vec![]));
        let mut half = half(&simulator);
        assert!(half.needs_true_delay());
        for micros in [90_000, 50_000] {
            let packet = arrived(Some(Span::from_micros(micros)));
            assert_eq!(half.packet(Time::ZERO, &packet), Ok(Urgency::Regular));
        }
        let messages = half.message(Time::ZERO).expect("fine");
        let mut bytes = vec![];
        rtcp::encode(&messages, &mut bytes).expect("fits");
        assert_eq!(bytes.len(), 20);
        let [rtcp::Packet::App(app)] = &rtcp::decode(&bytes).expect("complete")[..] else {
            panic!("{messages:?}")
        };
        let mut table = host("table", &simulator, &LIMITS);
        // the round trip would be 2 s
        let with_delay = Report { messages: vec![app.clone()], ..report(13, 10_000, 1_000_000) };
        assert_eq!(gap(&mut table, &with_delay), Some(650.0));
        let malformed = rtcp::App { data: vec![0; 4], ..app.clone() };
        assert_eq!(gap(&mut table, &Report { messages: vec![malformed], ..report(14, 1, 1) }), Some(650.0));
    }

    #[test]
    fn wrong_settings_are_refused_with_the_reason() {
        let refusal =
            |preset, value: Value| (ENTRY.build)(preset, &value).err().expect("refused").to_string();
        assert_eq!(
            refusal("fast", Value::Null),
            "lookup_table: `preset` is `fast`, expected one of `table`, `equation`, `none`"
        );
        assert_eq!(
            refusal("table", json!({"delay_source": "rtt"})),
            "lookup_table: `delay_source` is \"rtt\", expected one of `rtt/2`, `simulator`"
        );
        assert!(
            refusal("table", json!({"scale": 0}))
                .starts_with("lookup_table: `scale` is 0, expected a number")
        );
    }
}
