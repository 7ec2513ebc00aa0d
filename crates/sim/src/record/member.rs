//! Statistics of the members of sessions: their RTCP, and the reports of the losses that they detected.

use super::Recording;
use super::columns::{Column, Table};
use super::histogram::Histogram;
pub use super::metrics::MemberSummary;
use tidegate_core::record::{LossRecord, Reporting};
use tidegate_core::{FlowId, Rate, Span, Time};

/// Description of a member for the recording.
#[derive(Clone, Debug)]
pub struct MemberInfo {
    /// The flow of all its packets.
    pub flow: FlowId,
    /// Number of its session.
    pub session: u32,
    /// Its name in the session.
    pub name: String,
    /// The session's bandwidth.
    pub bandwidth: Rate,
}

/// Statistics of a member at level `summary`.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberStats {
    /// Losses by the fate of the report, in the order of [`Reporting::ALL`].
    reporting: [u64; Reporting::ALL.len()],
    /// Time from detection to sending, of the reports that were sent.
    waited: Histogram,
    /// Time from sending a packet to the first report of its loss.
    report_delay: Histogram,
    /// Time from detection to recovery.
    recovery: Histogram,
}

impl Recording {
    /// Sets the members of sessions; they are the last flows of the run, in order.
    #[must_use]
    pub fn with_members(mut self, members: Vec<MemberInfo>) -> Self {
        self.member_stats = vec![MemberStats::default(); members.len()];
        self.members = members;
        self
    }

    /// The statistics of the member with this flow, if there is one.
    fn member(&mut self, flow: FlowId) -> Option<&mut MemberStats> {
        let first = self.members.first()?.flow.0;
        self.member_stats.get_mut(flow.0.checked_sub(first)? as usize)
    }

    pub(super) fn add_loss(&mut self, now: Time, loss: &LossRecord) {
        if self.stats[loss.flow.0 as usize].counts(loss.detected)
            && let Some(stats) = self.member(loss.flow)
        {
            stats.reporting[loss.reporting as usize] += 1;
            if loss.reporting.is_sent() {
                stats.waited.add(now - loss.detected);
            }
        }
    }

    pub(super) fn add_loss_reported(&mut self, now: Time, source: FlowId, delay: Span) {
        if self.stats[source.0 as usize].counts(now - delay)
            && let Some(stats) = self.member(source)
        {
            stats.report_delay.add(delay);
        }
    }

    pub(super) fn add_recovery(&mut self, now: Time, flow: FlowId, delay: Span) {
        if self.stats[flow.0 as usize].counts(now - delay)
            && let Some(stats) = self.member(flow)
        {
            stats.recovery.add(delay);
        }
    }

    /// The metrics of the members of a run whose statistics began at `begin`.
    pub(super) fn member_summaries(&self, begin: Time) -> Vec<MemberSummary> {
        let summary = |(info, stats): (&MemberInfo, &MemberStats)| {
            let flow = &self.flows[info.flow.0 as usize];
            let length = (flow.stop - begin.max(flow.start)).as_secs_f64();
            let feedback = self.stats[info.flow.0 as usize].feedback;
            let rate = (length > 0.0).then(|| feedback.bytes as f64 * 8.0 / length);
            let [early, regular, suppressed, not_allowed] = stats.reporting;
            MemberSummary {
                flow: flow.name.clone(),
                member: info.name.clone(),
                profile: flow.controller.clone(),
                rtcp_packets: feedback.packets,
                rtcp_bps: rate,
                rtcp_share: rate.map(|rate| rate / info.bandwidth.as_bps_f64()),
                losses: stats.reporting.iter().sum(),
                reported_early: early,
                reported_regular: regular,
                suppressed,
                not_allowed,
                waiting_ms_mean: stats.waited.mean_ms(),
                waiting_ms_p95: stats.waited.quantile_ms(0.95),
                waiting_ms_max: stats.waited.max_ms(),
                losses_heard: stats.report_delay.count(),
                loss_report_delay_ms_mean: stats.report_delay.mean_ms(),
                loss_report_delay_ms_p95: stats.report_delay.quantile_ms(0.95),
                recovered: stats.recovery.count(),
                recovery_ms_mean: stats.recovery.mean_ms(),
                recovery_ms_p95: stats.recovery.quantile_ms(0.95),
            }
        };
        self.members.iter().zip(&self.member_stats).map(summary).collect()
    }

    pub(super) fn losses_table(&self) -> Table {
        let rows = &self.losses;
        let names = Reporting::ALL.iter().map(|reporting| reporting.name().to_owned()).collect();
        Table::default()
            .with("t_s", Column::F64(rows.iter().map(|r| r.0.as_secs_f64()).collect()))
            .with("flow", self.words(rows.iter().map(|r| r.1.flow.0)))
            .with("source", self.words(rows.iter().map(|r| r.1.source.0)))
            .with("sequence", Column::U32(rows.iter().map(|r| u32::from(r.1.sequence)).collect()))
            .with("detected_s", Column::F64(rows.iter().map(|r| r.1.detected.as_secs_f64()).collect()))
            .with(
                "reporting",
                Column::Words { words: names, codes: rows.iter().map(|r| r.1.reporting as u32).collect() },
            )
            .with(
                "waited_ms",
                Column::F64(rows.iter().map(|r| (r.0 - r.1.detected).as_millis_f64()).collect()),
            )
    }
}
