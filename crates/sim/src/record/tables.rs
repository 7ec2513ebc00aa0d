//! The recording as tables.

use super::columns::{Column, Table};
use super::{Fate, FrameOpen, PacketRow, Recording};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::wire::rtcp::Contents;
use tidegate_core::{Cause, Kind, Level, NodeId, Span, Time};

impl Recording {
    /// The names of the tables that [`Recording::table`] gives at this level.
    #[must_use]
    pub fn table_names(&self) -> Vec<&'static str> {
        let mut names = vec!["flows", "links"];
        if self.level >= Level::Series {
            names.extend([
                "series",
                "quantiles",
                "decisions",
                "internals",
                "queues",
                "truth",
                "frames",
                "without_picture",
                "freezes",
                "rtcp",
            ]);
            if !self.parts.is_empty() {
                names.push("queue_parts");
            }
            if !self.members.is_empty() {
                names.push("losses");
            }
            if !self.radio.is_empty() || !self.cells.is_empty() {
                names.extend(["radio", "cells"]);
            }
        }
        if self.level == Level::Packets {
            names.push("packets");
            if !self.repairs.is_empty() {
                names.push("repairs");
            }
        }
        names
    }

    /// One table by name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Table> {
        if !self.table_names().contains(&name) {
            return None;
        }
        Some(match name {
            "flows" => self.flows_table(),
            "links" => self.links_table(),
            "series" => self.series_table(),
            "decisions" => self.decisions_table(),
            "quantiles" => self.quantiles_table(),
            "without_picture" => self.without_picture_table(),
            "freezes" => self.freezes_table(),
            "internals" => self.internals_table(),
            "queues" => self.queues_table(),
            "queue_parts" => self.queue_parts_table(),
            "truth" => self.truth_table(),
            "frames" => self.frames_table(),
            "rtcp" => self.rtcp_table(),
            "losses" => self.losses_table(),
            "radio" => self.radio_table(),
            "cells" => self.cells_table(),
            "repairs" => self.repairs_table(),
            _ => self.packets_table(),
        })
    }

    fn radio_table(&self) -> Table {
        let rows = &self.radio;
        let directions = |up: &mut dyn Iterator<Item = bool>| Column::Words {
            words: vec!["down".to_owned(), "up".to_owned()],
            codes: up.map(u32::from).collect(),
        };
        Table::default()
            .with("t_s", Column::F64(rows.iter().map(|r| r.0.as_secs_f64()).collect()))
            .with(
                "user",
                Column::Words {
                    words: self.radios.iter().flat_map(|radio| radio.users.iter().cloned()).collect(),
                    codes: rows.iter().map(|r| self.first_user(r.1.network) + r.1.user).collect(),
                },
            )
            .with("direction", directions(&mut rows.iter().map(|r| r.1.up)))
            .with("cell", Column::U32(rows.iter().map(|r| r.1.cell).collect()))
            .with("bytes", Column::U64(rows.iter().map(|r| r.1.bytes).collect()))
            .with("blocks", Column::U32(rows.iter().map(|r| r.1.blocks).collect()))
            .with("failed", Column::U32(rows.iter().map(|r| r.1.failed).collect()))
            .with("sinr_db", Column::F64(rows.iter().map(|r| r.1.sinr_db).collect()))
            .with("cqi", Column::F64(rows.iter().map(|r| r.1.rate_index).collect()))
    }

    /// Number of users in the radio networks before `network`.
    fn first_user(&self, network: NodeId) -> u32 {
        let before = self.radios.iter().take_while(|radio| radio.node != network);
        before.map(|radio| radio.users.len() as u32).sum()
    }

    fn cells_table(&self) -> Table {
        let rows = &self.cells;
        let table = Table::default()
            .with("t_s", Column::F64(rows.iter().map(|r| r.0.as_secs_f64()).collect()))
            .with("cell", Column::U32(rows.iter().map(|r| r.1.cell).collect()))
            .with(
                "direction",
                Column::Words {
                    words: vec!["down".to_owned(), "up".to_owned()],
                    codes: rows.iter().map(|r| u32::from(r.1.up)).collect(),
                },
            )
            .with("subbands", Column::U64(rows.iter().map(|r| r.1.resources).collect()))
            .with("bytes", Column::U64(rows.iter().map(|r| r.1.bytes).collect()));
        // cells are numbered in each network
        match self.radios.len() {
            0 | 1 => table,
            _ => table.with("network", self.nodes(rows.iter().map(|r| r.1.network.0))),
        }
    }

    fn flow_words(&self) -> Vec<String> {
        self.flows.iter().map(|flow| flow.name.clone()).collect()
    }

    pub(super) fn words(&self, codes: impl Iterator<Item = u32>) -> Column {
        Column::Words { words: self.flow_words(), codes: codes.collect() }
    }

    fn nodes(&self, codes: impl Iterator<Item = u32>) -> Column {
        Column::Words { words: self.node_names.clone(), codes: codes.collect() }
    }

    fn flows_table(&self) -> Table {
        let text = |words: Vec<String>| Column::Words { codes: (0..words.len() as u32).collect(), words };
        Table::default()
            .with("flow", text(self.flow_words()))
            .with("kind", text(self.flows.iter().map(|f| f.kind.to_owned()).collect()))
            .with("flow_controller", text(self.flows.iter().map(|f| f.controller.clone()).collect()))
            .with("start_s", Column::F64(self.flows.iter().map(|f| f.start.as_secs_f64()).collect()))
            .with("stop_s", Column::F64(self.flows.iter().map(|f| f.stop.as_secs_f64()).collect()))
    }

    fn links_table(&self) -> Table {
        let names: Vec<String> = self.links.iter().map(|l| l.name.clone()).collect();
        Table::default()
            .with("link", Column::Words { codes: (0..names.len() as u32).collect(), words: names })
            .with("node", Column::U32(self.links.iter().map(|l| l.node.0).collect()))
    }

    fn series_table(&self) -> Table {
        let rows = || {
            self.series
                .iter()
                .enumerate()
                .flat_map(|(flow, bins)| bins.iter().enumerate().map(move |(index, bin)| (flow, index, bin)))
        };
        let width = self.bin.as_secs_f64();
        let rate = |bytes: u64| bytes as f64 * 8.0 / width;
        let mean = |sum: Span, count: u32| {
            if count == 0 { f64::NAN } else { sum.as_millis_f64() / f64::from(count) }
        };
        Table::default()
            .with("t_s", Column::F64(rows().map(|(_, index, _)| index as f64 * width).collect()))
            .with("flow", self.words(rows().map(|(flow, ..)| flow as u32)))
            .with("sending_rate_bps", Column::F64(rows().map(|(.., b)| rate(b.sent)).collect()))
            .with("receive_rate_bps", Column::F64(rows().map(|(.., b)| rate(b.arrived)).collect()))
            .with("goodput_bps", Column::F64(rows().map(|(.., b)| rate(b.good)).collect()))
            .with(
                "one_way_delay_ms_mean",
                Column::F64(rows().map(|(.., b)| mean(b.delay_sum, b.packets_arrived)).collect()),
            )
            .with(
                "one_way_delay_ms_max",
                Column::F64(
                    rows()
                        .map(
                            |(.., b)| {
                                if b.packets_arrived == 0 { f64::NAN } else { b.delay_max.as_millis_f64() }
                            },
                        )
                        .collect(),
                ),
            )
            .with(
                "queueing_delay_ms_mean",
                Column::F64(rows().map(|(.., b)| mean(b.queued_sum, b.packets_arrived)).collect()),
            )
            .with("packets_sent", Column::U32(rows().map(|(.., b)| b.packets_sent).collect()))
            .with("packets_arrived", Column::U32(rows().map(|(.., b)| b.packets_arrived).collect()))
            .with("packets_lost", Column::U32(rows().map(|(.., b)| b.packets_lost).collect()))
            .with("packets_marked", Column::U32(rows().map(|(.., b)| b.packets_marked).collect()))
    }

    /// Quantiles of the one-way delay in steps of half a per cent, of which 95 % is one.
    fn quantiles_table(&self) -> Table {
        let shares: Vec<f64> = (0..=200).map(|step| f64::from(step) / 200.0).collect();
        let quantiles: Vec<Vec<f64>> =
            self.stats.iter().map(|stats| stats.delay.quantiles_ms(&shares)).collect();
        let rows = || {
            quantiles.iter().enumerate().flat_map(|(flow, values)| values.iter().map(move |&ms| (flow, ms)))
        };
        let with_values = quantiles.iter().filter(|values| !values.is_empty());
        Table::default()
            .with("flow", self.words(rows().map(|(flow, _)| flow as u32)))
            .with("share", Column::F64(with_values.flat_map(|_| shares.iter().copied()).collect()))
            .with("one_way_delay_ms", Column::F64(rows().map(|(_, ms)| ms).collect()))
    }

    fn without_picture_table(&self) -> Table {
        let rows = &self.stretches;
        Table::default()
            .with("t_s", Column::F64(rows.iter().map(|r| r.0.as_secs_f64()).collect()))
            .with("flow", self.words(rows.iter().map(|r| r.1.0)))
            .with("begin_s", Column::F64(rows.iter().map(|r| r.2.begin.as_secs_f64()).collect()))
            .with("length_s", Column::F64(rows.iter().map(|r| r.2.length.as_secs_f64()).collect()))
    }

    fn freezes_table(&self) -> Table {
        let rows = &self.freezes;
        Table::default()
            .with("t_s", Column::F64(rows.iter().map(|r| r.0.as_secs_f64()).collect()))
            .with("flow", self.words(rows.iter().map(|r| r.1.0)))
            .with("length_s", Column::F64(rows.iter().map(|r| r.2.as_secs_f64()).collect()))
    }

    fn decisions_table(&self) -> Table {
        let rows = &self.decisions;
        Table::default()
            .with("t_s", Column::F64(rows.iter().map(|r| r.time.as_secs_f64()).collect()))
            .with("flow", self.words(rows.iter().map(|r| r.flow)))
            .with("target_bps", Column::F64(rows.iter().map(|r| r.target.as_bps_f64()).collect()))
            .with("pacing_bps", Column::F64(rows.iter().map(|r| r.pacing.as_bps_f64()).collect()))
            .with(
                "window_bytes",
                Column::F64(
                    rows.iter().map(|r| r.window.map_or(f64::NAN, |w| w.as_bytes() as f64)).collect(),
                ),
            )
    }

    fn internals_table(&self) -> Table {
        let rows = &self.internals;
        Table::default()
            .with("t_s", Column::F64(rows.iter().map(|r| r.0.as_secs_f64()).collect()))
            .with("flow", self.words(rows.iter().map(|r| r.1)))
            .with(
                "name",
                Column::Words {
                    words: self.internal_names.clone(),
                    codes: rows.iter().map(|r| r.2).collect(),
                },
            )
            .with("value", Column::F64(rows.iter().map(|r| r.3).collect()))
    }

    fn queues_table(&self) -> Table {
        let rows = &self.queues;
        Table::default()
            .with("t_s", Column::F64(rows.iter().map(|r| r.0.as_secs_f64()).collect()))
            .with("link", self.nodes(rows.iter().map(|r| r.1)))
            .with("packets", Column::U32(rows.iter().map(|r| r.2.packets).collect()))
            .with("bytes", Column::U64(rows.iter().map(|r| r.2.bytes.as_bytes()).collect()))
    }

    fn queue_parts_table(&self) -> Table {
        let rows = &self.parts;
        let words: BTreeSet<&str> = rows.iter().map(|r| r.2).collect();
        let codes: BTreeMap<&str, u32> = words.iter().copied().zip(0..).collect();
        Table::default()
            .with("t_s", Column::F64(rows.iter().map(|r| r.0.as_secs_f64()).collect()))
            .with("link", self.nodes(rows.iter().map(|r| r.1)))
            .with(
                "part",
                Column::Words {
                    words: words.iter().map(|&part| part.to_owned()).collect(),
                    codes: rows.iter().map(|r| codes[r.2]).collect(),
                },
            )
            .with("packets", Column::U32(rows.iter().map(|r| r.3.packets).collect()))
            .with("bytes", Column::U64(rows.iter().map(|r| r.3.bytes.as_bytes()).collect()))
    }

    fn truth_table(&self) -> Table {
        // the rows of a link are consecutive
        let mut rows = self.truth.clone();
        rows.sort_by_key(|&(time, node, _)| (node, time));
        Table::default()
            .with("t_s", Column::F64(rows.iter().map(|r| r.0.as_secs_f64()).collect()))
            .with("link", self.nodes(rows.iter().map(|r| r.1)))
            .with("capacity_bps", Column::F64(rows.iter().map(|r| r.2.as_bps_f64()).collect()))
    }

    fn frames_table(&self) -> Table {
        let rows = &self.frames;
        let seconds = |time: Option<Time>| time.map_or(f64::NAN, Time::as_secs_f64);
        let complete = |r: &FrameOpen| seconds(r.fate.and_then(|fate| fate.complete));
        let rendered = |r: &FrameOpen| seconds(r.fate.and_then(|fate| fate.rendered));
        let due = |r: &FrameOpen| seconds(r.fate.and_then(|fate| fate.due));
        Table::default()
            .with("flow", self.words(rows.iter().map(|r| r.sent.flow.0)))
            .with("video", Column::Bool(rows.iter().map(|r| r.sent.video).collect()))
            .with("frame", Column::U32(rows.iter().map(|r| r.sent.frame).collect()))
            .with("size", Column::U64(rows.iter().map(|r| r.sent.size.as_bytes()).collect()))
            .with("key", Column::Bool(rows.iter().map(|r| r.sent.key).collect()))
            .with("captured_s", Column::F64(rows.iter().map(|r| r.captured.as_secs_f64()).collect()))
            .with("complete_s", Column::F64(rows.iter().map(complete).collect()))
            .with("rendered_s", Column::F64(rows.iter().map(rendered).collect()))
            .with("due_s", Column::F64(rows.iter().map(due).collect()))
    }

    fn rtcp_table(&self) -> Table {
        let rows = &self.rtcp;
        // the sets that occur, of 8192 that there are
        let sets: BTreeSet<u16> = rows.iter().map(|r| r.1.contents.bits()).collect();
        let words = sets.iter().map(|set| {
            let names = Contents::NAMES.iter().enumerate().filter(|(bit, _)| set & (1 << bit) != 0);
            names.map(|(_, &name)| name).collect::<Vec<_>>().join("+")
        });
        let codes: BTreeMap<u16, u32> = sets.iter().copied().zip(0..).collect();
        Table::default()
            .with("t_s", Column::F64(rows.iter().map(|r| r.0.as_secs_f64()).collect()))
            .with("flow", self.words(rows.iter().map(|r| r.1.flow.0)))
            .with("from_receiver", Column::Bool(rows.iter().map(|r| r.1.from_receiver).collect()))
            .with("size", Column::U64(rows.iter().map(|r| r.1.size.as_bytes()).collect()))
            .with(
                "contents",
                Column::Words {
                    words: words.collect(),
                    codes: rows.iter().map(|r| codes[&r.1.contents.bits()]).collect(),
                },
            )
            .with("waited_ms", Column::F64(rows.iter().map(|r| r.1.waited.as_millis_f64()).collect()))
    }

    fn repairs_table(&self) -> Table {
        let rows = &self.repairs;
        Table::default()
            .with("t_s", Column::F64(rows.iter().map(|r| r.0.as_secs_f64()).collect()))
            .with("flow", self.words(rows.iter().map(|r| r.1.flow.0)))
            .with("frame", Column::U32(rows.iter().map(|r| r.1.frame).collect()))
            .with("rtp_sequence", Column::U32(rows.iter().map(|r| u32::from(r.1.sequence)).collect()))
            .with(
                "by",
                Column::Words {
                    words: Kind::ALL.iter().map(|kind| kind.name().to_owned()).collect(),
                    codes: rows.iter().map(|r| r.1.by as u32).collect(),
                },
            )
            .with("in_time", Column::Bool(rows.iter().map(|r| r.1.in_time).collect()))
    }

    fn packets_table(&self) -> Table {
        let mut rows: Vec<&PacketRow> = self.packets.iter().collect();
        rows.sort_by_key(|r| (r.sent, r.flow, r.sequence, r.ended));
        let arrived = |r: &PacketRow| if r.fate == Fate::Arrived { r.ended.as_secs_f64() } else { f64::NAN };
        // the waiting time of a packet under way is not known yet
        let waited = |r: &PacketRow| match r.fate {
            Fate::UnderWay(_) => f64::NAN,
            _ => r.queued.as_millis_f64(),
        };
        let optional = |number: fn(&PacketRow) -> Option<u32>| {
            Column::F64(rows.iter().map(|r| number(r).map_or(f64::NAN, f64::from)).collect())
        };
        let mut fates = vec!["arrived".to_owned()];
        fates.extend(Cause::ALL.iter().map(|cause| cause.name().to_owned()));
        fates.push("under way".to_owned());
        let fate = |r: &PacketRow| match r.fate {
            Fate::Arrived => 0,
            Fate::Died(cause, _) => cause as u32 + 1,
            Fate::UnderWay(_) => Cause::ALL.len() as u32 + 1,
        };
        let mut node_names = self.node_names.clone();
        node_names.push(String::new());
        let no_node = node_names.len() as u32 - 1;
        let node_of = |r: &PacketRow| match r.fate {
            Fate::Arrived => no_node,
            Fate::Died(_, node) | Fate::UnderWay(node) => node,
        };
        Table::default()
            .with("flow", self.words(rows.iter().map(|r| r.flow)))
            .with(
                "kind",
                Column::Words {
                    words: Kind::ALL.iter().map(|kind| kind.name().to_owned()).collect(),
                    codes: rows.iter().map(|r| r.kind as u32).collect(),
                },
            )
            .with("sequence", Column::U32(rows.iter().map(|r| r.sequence).collect()))
            .with("size", Column::U32(rows.iter().map(|r| r.size).collect()))
            .with("sent_s", Column::F64(rows.iter().map(|r| r.sent.as_secs_f64()).collect()))
            .with("arrived_s", Column::F64(rows.iter().map(|r| arrived(r)).collect()))
            .with("fate", Column::Words { words: fates, codes: rows.iter().map(|r| fate(r)).collect() })
            .with(
                "where",
                Column::Words { words: node_names, codes: rows.iter().map(|r| node_of(r)).collect() },
            )
            .with(
                "ecn",
                Column::Words {
                    // the two bits of the IP header
                    words: ["not-ect", "ect1", "ect0", "ce"].map(str::to_owned).to_vec(),
                    codes: rows.iter().map(|r| r.ecn as u32).collect(),
                },
            )
            .with("queueing_delay_ms", Column::F64(rows.iter().map(|r| waited(r)).collect()))
            .with("frame", optional(|r| r.frame))
            .with("rtp_sequence", optional(|r| r.rtp_sequence.map(u32::from)))
    }
}
