//! New facts of a recording, for an observer of a run under way.

use super::flow::Bin;
use super::viewing::Stretch;
use super::{FrameOpen, Recording};
use tidegate_core::{Span, Time};

/// The sections of [`Recording::news`], in order: name and names of columns. Flows and links are indices among those
/// of the recording, names of internals are indices into [`Recording::internal_names`].
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
    ("without_picture", &["t_s", "flow", "begin_s", "length_s"]),
];

/// The number of facts of each kind that an observer has already received.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewsCursor {
    bins: usize,
    decisions: usize,
    internals: usize,
    queues: usize,
    truth: usize,
    frames: usize,
    stretches: usize,
}

/// Appends a section: the number of rows, and then their values, row by row.
pub fn section<const N: usize>(out: &mut Vec<f64>, rows: impl Iterator<Item = [f64; N]>) {
    let count_index = out.len();
    out.push(0.0);
    for row in rows {
        out.extend(row);
        out[count_index] += 1.0;
    }
}

/// The new facts of a list; moves the cursor to its end.
fn fresh<'a, T>(list: &'a [T], cursor: &mut usize) -> std::slice::Iter<'a, T> {
    let before = std::mem::replace(cursor, list.len());
    list[before..].iter()
}

impl Recording {
    /// The names of the controllers' internals so far.
    #[must_use]
    pub fn internal_names(&self) -> &[String] {
        &self.internal_names
    }

    /// Appends the new facts of a run that has handled all events before `reached`, in the order of [`SECTIONS`], each
    /// as [`section`] writes it; a missing value is NaN. New bins of the series are those that have ended by then,
    /// including silent ones.
    pub fn news(&self, reached: Time, cursor: &mut NewsCursor, out: &mut Vec<f64>) {
        let seconds = |time: Time| time.as_secs_f64();
        let optional = |time: Option<Time>| time.map_or(f64::NAN, Time::as_secs_f64);
        let link = |node: u32| self.link_of[node as usize].map_or(f64::NAN, f64::from);
        let ended = (reached.as_nanos() / self.bin.as_nanos()) as usize;
        let bins = cursor.bins..ended.max(cursor.bins);
        cursor.bins = bins.end;
        let of_flows =
            |index| self.series.iter().enumerate().map(move |(flow, bins)| (index, flow, bins.get(index)));
        section(out, bins.flat_map(of_flows).map(|(index, flow, bin)| self.bin_row(index, flow, &bin)));
        section(
            out,
            fresh(&self.decisions, &mut cursor.decisions).map(|row| {
                let window = row.window.map_or(f64::NAN, |window| window.as_bytes() as f64);
                let (target, pacing) = (row.target.as_bps_f64(), row.pacing.as_bps_f64());
                [seconds(row.time), f64::from(row.flow), target, pacing, window]
            }),
        );
        section(
            out,
            fresh(&self.internals, &mut cursor.internals)
                .map(|&(time, flow, name, value)| [seconds(time), f64::from(flow), f64::from(name), value]),
        );
        section(
            out,
            fresh(&self.queues, &mut cursor.queues).map(|&(time, node, backlog)| {
                let bytes = backlog.bytes.as_bytes() as f64;
                [seconds(time), link(node), f64::from(backlog.packets), bytes]
            }),
        );
        section(
            out,
            fresh(&self.truth, &mut cursor.truth)
                .map(|&(time, node, rate)| [seconds(time), link(node), rate.as_bps_f64()]),
        );
        section(
            out,
            fresh(&self.frames, &mut cursor.frames).map(|FrameOpen { captured, sent, fate }| {
                [
                    f64::from(sent.flow.0),
                    f64::from(u8::from(sent.video)),
                    f64::from(sent.frame),
                    sent.size.as_bytes() as f64,
                    f64::from(u8::from(sent.key)),
                    seconds(*captured),
                    optional(fate.and_then(|fate| fate.complete)),
                    optional(fate.and_then(|fate| fate.rendered)),
                ]
            }),
        );
        section(
            out,
            fresh(&self.stretches, &mut cursor.stretches).map(|&(end, flow, Stretch { begin, length })| {
                [seconds(end), f64::from(flow.0), seconds(begin), length.as_secs_f64()]
            }),
        );
    }

    /// A row of the section `series`; the table of that name has the same numbers.
    fn bin_row(&self, index: usize, flow: usize, bin: &Bin) -> [f64; 12] {
        let width = self.bin.as_secs_f64();
        let rate = |bytes: u64| bytes as f64 * 8.0 / width;
        let arrived = f64::from(bin.packets_arrived);
        // NaN if no packet arrived
        let mean = |sum: Span| if arrived > 0.0 { sum.as_millis_f64() / arrived } else { f64::NAN };
        [
            index as f64 * width,
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
