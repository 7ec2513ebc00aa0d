//! Metrics of a run: those of RFC 8868 section 3, and those that matter to users of calls.

use super::bins::Bins;
use super::flow::FlowStats;
use super::metrics::Metric;
pub use super::metrics::{Fairness, FlowSummary, LinkSummary, MemberSummary};
use super::quality::Quality;
use super::target::{BAND, HOLD_S};
use super::{FlowInfo, Recording};
use serde::Serialize;
use tidegate_core::{Cause, Span, Time, math};

/// The metrics of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Simulated seconds, warm-up included.
    pub duration_s: f64,
    /// Seconds at the beginning that the metrics leave out.
    pub warmup_s: f64,
    /// Hash of the recording, in hex.
    pub digest: String,
    /// Each flow.
    pub flows: Vec<FlowSummary>,
    /// Each link.
    pub links: Vec<LinkSummary>,
    /// Each member of a session; left out where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberSummary>,
    /// Fairness of the flows' shares; null for a single flow.
    pub fairness: Fairness,
    /// Warnings for readers of the metrics; left out where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Recorded networks that were played; left out where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recordings: Vec<PlayedTrace>,
}

/// The part of a recorded network that a link played.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlayedTrace {
    /// The link's name.
    pub link: String,
    /// The recording's file, without folders.
    pub trace: String,
    /// Time in the recording at which the run began, in seconds.
    pub from_s: f64,
    /// Seconds of the recording that were played, each counted once.
    pub used_s: f64,
    /// Seconds of the whole recording.
    pub length_s: f64,
}

/// A warning about a setting, for readers of the metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The dotted key of the setting.
    pub key: String,
    /// The warning: a sentence without its full stop.
    pub says: String,
}

/// Jain's fairness index (Jain, Chiu, Hawe 1984): 1 for equal shares, 1/n if one flow of n has everything.
#[must_use]
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

impl Summary {
    /// The summary with these warnings before its own.
    #[must_use]
    pub fn warned(mut self, warnings: impl IntoIterator<Item = Warning>) -> Self {
        self.warnings.splice(..0, warnings);
        self
    }
}

impl Recording {
    /// The metrics of a run of `duration` whose statistics began at `warmup`.
    #[must_use]
    pub fn summary(&self, duration: Span, warmup: Span) -> Summary {
        let end = Time::ZERO + duration;
        let begin = Time::ZERO + warmup;
        let length = (end - begin).as_secs_f64();
        Summary {
            duration_s: duration.as_secs_f64(),
            warmup_s: warmup.as_secs_f64(),
            digest: format!("{:016x}", self.digest()),
            flows: (0..self.flows.len()).map(|flow| self.flow_summary(flow, begin)).collect(),
            links: self
                .links
                .iter()
                .zip(self.link_stats())
                .map(|(info, stats)| {
                    let carried = if length > 0.0 { stats.carried as f64 * 8.0 / length } else { 0.0 };
                    let capacity = info.capacity.map(tidegate_core::Rate::as_bps_f64);
                    LinkSummary {
                        link: info.name.clone(),
                        capacity_bps: capacity,
                        carried_bps: carried,
                        utilisation: capacity.filter(|&c| c > 0.0).map(|c| carried / c),
                        dropped_queue: stats.dropped[Cause::Queue as usize].packets,
                        dropped_wire: stats.dropped.iter().map(|d| d.packets).sum::<u64>()
                            - stats.dropped[Cause::Queue as usize].packets,
                        marked: stats.marked,
                        bleached: stats.bleached,
                    }
                })
                .collect(),
            members: self.member_summaries(begin),
            fairness: self.fairness(begin, end),
            warnings: self.least_warnings(begin),
            recordings: Vec::new(),
        }
    }

    /// The flows whose media stood at the sender because the target was below the least rate.
    fn least_warnings(&self, begin: Time) -> Vec<Warning> {
        let warning = |(info, stats): (&FlowInfo, &FlowStats)| {
            stats.below_least.warning(&info.name, begin.max(info.start), info.stop)
        };
        self.flows.iter().zip(self.stats()).filter_map(warning).collect()
    }

    fn flow_summary(&self, flow: usize, begin: Time) -> FlowSummary {
        let (info, stats) = (&self.flows[flow], &self.stats()[flow]);
        let (from, to) = (begin.max(info.start), info.stop);
        let length = (to - from).as_secs_f64();
        let rate = |bytes: u64| (length > 0.0).then(|| bytes as f64 * 8.0 / length);
        let lost = stats.lost();
        let queue = stats.dropped[Cause::Queue as usize];
        let decided = lost.packets + stats.arrived.packets;
        let tightest = info.tightest.map(tidegate_core::Rate::as_bps_f64).filter(|&capacity| capacity > 0.0);
        let media = info.kind == "media";
        let seconds = window(&stats.seconds, from, to);
        let quality = Quality::of(stats, info.kind);
        let target = self.targets.metrics(flow, info);
        FlowSummary {
            flow: info.name.clone(),
            kind: info.kind,
            controller: info.controller.clone(),
            start_s: info.start.as_secs_f64(),
            stop_s: info.stop.as_secs_f64(),
            sending_rate_bps: rate(stats.sent.bytes),
            receive_rate_bps: rate(stats.received.bytes),
            goodput_bps: rate(stats.good),
            packets_sent: stats.sent.packets,
            packets_received: stats.received.packets,
            bytes_sent: stats.sent.bytes,
            bytes_received: stats.received.bytes,
            loss_fraction: (decided > 0).then(|| lost.packets as f64 / decided as f64),
            residual_loss_fraction: stats.repair.residual().filter(|_| media),
            repair_overhead: stats.repair.overhead().filter(|_| media),
            nacks: media.then_some(stats.repair.nacks),
            retransmissions: media.then_some(stats.repair.resent.packets),
            repaired_resent: media.then_some(stats.repair.by_resent),
            repaired_parity: media.then_some(stats.repair.by_parity),
            plis: media.then_some(stats.repair.plis),
            key_frames: media.then_some(stats.key_frames),
            video_switches: stats.resolution.map(|resolution| resolution.switches),
            video_height_mean: stats.resolution.and_then(|resolution| resolution.mean_height()),
            lost_queue: queue.packets,
            lost_wire: lost.packets - queue.packets,
            marked: stats.marked,
            discarded_late: stats.late,
            sender_delay_ms_mean: stats.paced.mean_ms(),
            sender_delay_ms_p50: stats.paced.quantile_ms(0.50),
            sender_delay_ms_p95: stats.paced.quantile_ms(0.95),
            sender_delay_ms_p99: stats.paced.quantile_ms(0.99),
            sender_delay_ms_max: stats.paced.max_ms(),
            sender_skipped_frames: media.then_some(stats.skipped_frames),
            sender_skipped_bytes: media.then_some(stats.skipped_bytes),
            left_out_frames: media.then_some(stats.left_out_frames),
            below_least_s: media.then(|| stats.below_least.time(from, to).as_secs_f64()),
            below_least_wait_ms_max: stats.below_least.waited_ms_max().filter(|_| media),
            ecn_check: stats.ecn_check.map(|check| check.name().to_owned()),
            feedback_refused: media.then_some(stats.refused),
            circuit_breaker: stats.tripped.map(|(_, breaker, _)| breaker.name().to_owned()),
            circuit_breaker_s: stats.tripped.map(|(time, ..)| time.as_secs_f64()),
            circuit_breaker_stopped: stats.tripped.map(|(.., stops)| stops),
            one_way_delay_ms_mean: stats.delay.mean_ms(),
            one_way_delay_ms_std: stats.delay.std_ms(),
            one_way_delay_ms_min: stats.delay.min_ms(),
            one_way_delay_ms_p50: stats.delay.quantile_ms(0.50),
            one_way_delay_ms_p95: stats.delay.quantile_ms(0.95),
            one_way_delay_ms_p99: stats.delay.quantile_ms(0.99),
            one_way_delay_ms_max: stats.delay.max_ms(),
            jitter_ms_mean: quality.jitter.0,
            jitter_ms_max: quality.jitter.1,
            media_jitter_ms_mean: quality.media_jitter.0,
            media_jitter_ms_max: quality.media_jitter.1,
            quality: quality.end_to_end,
            quality_network: quality.network,
            r_factor: quality.speech.map(|(r, ..)| r),
            mos: quality.speech.map(|(_, mos, _)| mos),
            mos_without_plc: quality.speech.map(|(.., mos)| mos),
            queueing_delay_ms_mean: stats.queued.mean_ms(),
            queueing_delay_ms_p50: stats.queued.quantile_ms(0.50),
            queueing_delay_ms_p95: stats.queued.quantile_ms(0.95),
            queueing_delay_ms_p99: stats.queued.quantile_ms(0.99),
            queueing_delay_ms_max: stats.queued.max_ms(),
            frame_delay_ms_mean: stats.viewing.delay.mean_ms(),
            frame_delay_ms_p50: stats.viewing.delay.quantile_ms(0.50),
            frame_delay_ms_p95: stats.viewing.delay.quantile_ms(0.95),
            frame_delay_ms_p99: stats.viewing.delay.quantile_ms(0.99),
            frame_delay_ms_max: stats.viewing.delay.max_ms(),
            whole_frame_delay_ms_p50: stats.whole.delay.quantile_ms(0.50),
            frames_sent: media.then_some(stats.frames_sent),
            frames_rendered: media.then_some(stats.frames_rendered),
            without_picture_s: stats.viewing.without().map(Span::as_secs_f64),
            freezes: media.then_some(stats.freezes),
            freeze_time_s: media.then(|| stats.freeze_time.as_secs_f64()),
            feedback_rate_bps: rate(stats.feedback.bytes),
            feedback_overhead: (stats.received.bytes > 0)
                .then(|| stats.feedback.bytes as f64 / stats.received.bytes as f64),
            utilisation: tightest.and_then(|c| rate(stats.received.bytes).map(|r| r / c)),
            convergence_time_s: convergence(stats, info),
            oscillation_hz: oscillation(&seconds),
            target_rate_bps: target.target,
            available_rate_bps: target.available,
            target_excess_fraction: target.excess,
            target_shortfall_fraction: target.shortfall,
            target_over_fraction: target.over,
            target_under_fraction: target.under,
            available_rate_changes: target.changes,
            target_unconverged: target.unconverged,
            target_convergence_s: target.convergence,
        }
    }

    /// The media and TCP flows on the link that is crossed by the largest number of them.
    fn competitors(&self) -> Vec<usize> {
        let crossing = |link| -> Vec<usize> {
            (0..self.flows.len())
                .filter(|&f| {
                    !matches!(self.flows[f].kind, "udp" | "external") && self.flows[f].path.crosses(link)
                })
                .collect()
        };
        let mut competitors = Vec::new();
        for link in &self.links {
            let flows = crossing(link.node);
            if flows.len() > competitors.len() {
                competitors = flows;
            }
        }
        competitors
    }

    fn fairness(&self, begin: Time, end: Time) -> Fairness {
        let flows = self.competitors();
        if flows.len() < 2 {
            return Fairness::default();
        }
        let from = flows.iter().map(|&f| self.flows[f].start).fold(begin, Time::max);
        let to = flows.iter().map(|&f| self.flows[f].stop).fold(end, Ord::min);
        let shares: Vec<Vec<f64>> =
            flows.iter().map(|&f| window(&self.stats()[f].seconds, from, to)).collect();
        let seconds = shares.iter().map(Vec::len).min().unwrap_or(0);
        let over = |width: usize| -> (Metric, Metric) {
            let (mut jains, mut ratios) = (Vec::new(), Vec::new());
            for second in (0..seconds).step_by(width).filter(|second| second + width <= seconds) {
                let sums: Vec<f64> = shares.iter().map(|s| s[second..second + width].iter().sum()).collect();
                let largest = sums.iter().copied().fold(0.0, f64::max);
                if let Some(index) = jain(&sums) {
                    jains.push(index);
                    ratios.push(sums.iter().copied().fold(largest, f64::min) / largest);
                }
            }
            (mean(&jains), mean(&ratios))
        };
        let ((jain_1s, ratio_1s), (jain_5s, ratio_5s), (jain_20s, ratio_20s)) = (over(1), over(5), over(20));
        Fairness {
            flows: flows.iter().map(|&f| self.flows[f].name.clone()).collect(),
            jain_1s,
            jain_5s,
            jain_20s,
            ratio_1s,
            ratio_5s,
            ratio_20s,
        }
    }
}

fn mean(values: &[f64]) -> Metric {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Bytes in each whole second between `from` and `to`; zero in silent seconds.
fn window(seconds: &Bins<u64>, from: Time, to: Time) -> Vec<f64> {
    let first = math::ceil(from.as_secs_f64()) as usize;
    let last = math::floor(to.as_secs_f64()) as usize;
    (first..last.max(first)).map(|s| seconds.get(s) as f64).collect()
}

/// Convergence time (RFC 8868 section 3, metric 8, which leaves the rule open). The final share is the mean over the
/// last fifth of the flow's life (at least 5 s); the flow has converged at the first second from which five in a row
/// are within 10 % of that share.
fn convergence(stats: &FlowStats, info: &FlowInfo) -> Metric {
    const HOLD: usize = HOLD_S as usize;
    let rates = window(&stats.seconds, info.start, info.stop);
    let tail = (rates.len() / 5).max(HOLD);
    let share = mean(rates.get(rates.len().checked_sub(tail)?..)?)?;
    if share <= 0.0 {
        return None;
    }
    let near = |rate: &f64| (rate - share).abs() <= BAND * share;
    rates.windows(HOLD).position(|w| w.iter().all(near)).map(|second| second as f64)
}

/// Oscillation (RFC 8868 section 3, metric 9) with watermarks at 20 % under and over the mean: full swings of the
/// rate from below the low one to above the high one and back, per second.
fn oscillation(rates: &[f64]) -> Metric {
    let middle = mean(rates)?;
    if middle <= 0.0 || rates.len() < 2 {
        return None;
    }
    let mut high = None;
    let mut crossings = 0u32;
    for &rate in rates {
        let now = if rate > 1.2 * middle {
            Some(true)
        } else if rate < 0.8 * middle {
            Some(false)
        } else {
            continue;
        };
        if high.is_some() && high != now {
            crossings += 1;
        }
        high = now;
    }
    Some(f64::from(crossings) / 2.0 / rates.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::target::Sharing;

    #[test]
    fn jain_by_hand() {
        assert_eq!(jain(&[1.0, 1.0, 1.0, 1.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[3.0, 1.0]), Some(0.8));
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn oscillation_counts_full_swings() {
        let square: Vec<f64> = (0..100).map(|s| if s / 10 % 2 == 0 { 1.5 } else { 0.5 }).collect();
        // nine changes of side are four and a half swings in 100 s
        assert_eq!(oscillation(&square), Some(0.045));
        assert_eq!(oscillation(&[1.0; 100]), Some(0.0));
        assert_eq!(oscillation(&[]), None);
    }

    #[test]
    fn convergence_by_hand() {
        let info = FlowInfo {
            name: "x".into(),
            kind: "media",
            controller: "y".into(),
            start: Time::from_secs(10),
            stop: Time::from_secs(70),
            tightest: None,
            path: crate::record::path::Path::default(),
            overhead: 28,
            sharing: Sharing::Unknown,
            pauses: vec![],
        };
        let mut stats = FlowStats::new(Time::ZERO);
        for second in 10..70 {
            // a ramp of 100 a second up to 1000, with one outlier on the way
            let rate = if second == 17 { 2000 } else { (100 * (second - 9)).min(1000) };
            *stats.seconds.at(Time::from_secs(second)) = rate as u64;
        }
        let seconds = convergence(&stats, &info);
        // 900 of 1000 is within 10 %, at second 18: eight seconds after the start
        assert_eq!(seconds, Some(8.0));
        assert_eq!(convergence(&FlowStats::new(Time::ZERO), &info), None);
    }
}
