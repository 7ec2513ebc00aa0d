//! What a recording has that somebody who looks on has not seen yet.

use super::flow::Bin;
use super::{FrameOpen, Recording};
use tidegate_core::{Span, Time};

/// What comes in each section of [`Recording::news`], in order: its name, and those of its columns. Flows and links are
/// told by their place among those of the recording, names of internals by theirs in [`Recording::internal_names`].
pub const SECTIONS: [(&str, &[&str]); 7] = [
    (
        "series",
        &[
            "t_s",
            "flow",
            "sending_rate_bps",
            "receive_rate_bps",
            "goodput_bps",
            "one_way_delay_ms_mean",
            "one_way_delay_ms_max",
            "queueing_delay_ms_mean",
            "packets_sent",
            "packets_arrived",
            "packets_lost",
            "packets_marked",
        ],
    ),
    ("decisions", &["t_s", "flow", "target_bps", "pacing_bps", "window_bytes"]),
    ("internals", &["t_s", "flow", "name", "value"]),
    ("queues", &["t_s", "link", "packets", "bytes"]),
    ("truth", &["t_s", "link", "capacity_bps"]),
    ("frames", &["flow", "video", "frame", "size", "key", "captured_s", "complete_s", "rendered_s"]),
    ("freezes", &["t_s", "flow", "length_s"]),
];

/// How much has been seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    bins: usize,
    decisions: usize,
    internals: usize,
    queues: usize,
    truth: usize,
    frames: usize,
    freezes: usize,
}

/// Appends a section: how many rows, and then their values, row by row.
pub fn section<const N: usize>(out: &mut Vec<f64>, rows: impl Iterator<Item = [f64; N]>) {
    let place = out.len();
    out.push(0.0);
    for row in rows {
        out.extend(row);
        out[place] += 1.0;
    }
}

/// What has not been seen of a list, which then has been.
fn fresh<'a, T>(list: &'a [T], seen: &mut usize) -> std::slice::Iter<'a, T> {
    let before = std::mem::replace(seen, list.len());
    list[before..].iter()
}

impl Recording {
    /// The names of what controllers told of themselves so far.
    #[must_use]
    pub fn internal_names(&self) -> &[String] {
        &self.internal_names
    }

    /// Appends what is new in a run that has done all before `reached`, in the order of [`SECTIONS`], each as
    /// [`section`] writes it; what there is not is NaN. Of the series these are the bins that have ended by then, silent
    /// ones, too.
    pub fn news(&self, reached: Time, seen: &mut Seen, out: &mut Vec<f64>) {
        let seconds = |at: Time| at.as_secs_f64();
        let maybe = |at: Option<Time>| at.map_or(f64::NAN, Time::as_secs_f64);
        let link = |node: u32| self.link_of[node as usize].map_or(f64::NAN, f64::from);
        let ended = (reached.as_nanos() / self.bin.as_nanos()) as usize;
        let bins = seen.bins..ended.max(seen.bins);
        seen.bins = bins.end;
        let of_flows = |at| self.series.iter().enumerate().map(move |(flow, bins)| (at, flow, bins.get(at)));
        section(out, bins.flat_map(of_flows).map(|(at, flow, bin)| self.bin_row(at, flow, &bin)));
        section(
            out,
            fresh(&self.decisions, &mut seen.decisions).map(|row| {
                let window = row.window.map_or(f64::NAN, |window| window.as_bytes() as f64);
                let (target, pacing) = (row.target.as_bps_f64(), row.pacing.as_bps_f64());
                [seconds(row.at), f64::from(row.flow), target, pacing, window]
            }),
        );
        section(
            out,
            fresh(&self.internals, &mut seen.internals)
                .map(|&(at, flow, name, value)| [seconds(at), f64::from(flow), f64::from(name), value]),
        );
        section(
            out,
            fresh(&self.queues, &mut seen.queues).map(|&(at, node, backlog)| {
                let bytes = backlog.bytes.as_bytes() as f64;
                [seconds(at), link(node), f64::from(backlog.packets), bytes]
            }),
        );
        section(
            out,
            fresh(&self.truth, &mut seen.truth)
                .map(|&(at, node, rate)| [seconds(at), link(node), rate.as_bps_f64()]),
        );
        section(
            out,
            fresh(&self.frames, &mut seen.frames).map(|FrameOpen { captured, sent, fate }| {
                [
                    f64::from(sent.flow.0),
                    f64::from(u8::from(sent.video)),
                    f64::from(sent.frame),
                    sent.size.as_bytes() as f64,
                    f64::from(u8::from(sent.key)),
                    seconds(*captured),
                    maybe(fate.and_then(|fate| fate.complete)),
                    maybe(fate.and_then(|fate| fate.rendered)),
                ]
            }),
        );
        section(
            out,
            fresh(&self.freezes, &mut seen.freezes)
                .map(|&(at, flow, length)| [seconds(at), f64::from(flow.0), length.as_secs_f64()]),
        );
    }

    /// A row of the section `series`; the table of that name has the same numbers.
    fn bin_row(&self, at: usize, flow: usize, bin: &Bin) -> [f64; 12] {
        let width = self.bin.as_secs_f64();
        let rate = |bytes: u64| bytes as f64 * 8.0 / width;
        let arrived = f64::from(bin.packets_arrived);
        // NaN without any
        let mean = |sum: Span| if arrived > 0.0 { sum.as_millis_f64() / arrived } else { f64::NAN };
        [
            at as f64 * width,
            flow as f64,
            rate(bin.sent),
            rate(bin.arrived),
            rate(bin.good),
            mean(bin.delay_sum),
            if arrived > 0.0 { bin.delay_max.as_millis_f64() } else { f64::NAN },
            mean(bin.queued_sum),
            f64::from(bin.packets_sent),
            arrived,
            f64::from(bin.packets_lost),
            f64::from(bin.packets_marked),
        ]
    }
}
