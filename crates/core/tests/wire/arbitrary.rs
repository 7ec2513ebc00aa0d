//! Random packets that can be written.

use tidegate_core::datagram::Extension;
use tidegate_core::rng::Stream;
use tidegate_core::wire::{rtcp, rtp};
use tidegate_core::{Ecn, Rate};

pub(crate) fn u32_(rng: &mut Stream) -> u32 {
    rng.next_u64() as u32
}

pub(crate) fn many<T>(
    rng: &mut Stream,
    least: u64,
    most: u64,
    mut one: impl FnMut(&mut Stream) -> T,
) -> Vec<T> {
    let count = least + rng.below(most - least + 1);
    (0..count).map(|_| one(rng)).collect()
}

fn byte(rng: &mut Stream) -> u8 {
    rng.below(256) as u8
}

fn words(rng: &mut Stream, most: u64) -> Vec<u8> {
    many(rng, 0, most, |rng| u32_(rng).to_be_bytes()).concat()
}

fn block(rng: &mut Stream) -> rtcp::ReportBlock {
    rtcp::ReportBlock {
        ssrc: u32_(rng),
        fraction_lost: byte(rng),
        cumulative_lost: rng.below(1 << 24) as i32 - (1 << 23),
        highest_sequence: u32_(rng),
        jitter: u32_(rng),
        last_sr: u32_(rng),
        delay_since_last_sr: u32_(rng),
    }
}

/// Statuses as they come in life: runs and mixtures, up to `most` of them.
pub(crate) fn statuses(rng: &mut Stream, most: usize, untimed: bool) -> Vec<rtcp::Status> {
    let mut statuses = Vec::new();
    let wanted = 1 + rng.below(most as u64) as usize;
    while statuses.len() < wanted {
        let longest = if rng.chance(0.2) { 300 } else { 12 };
        let length = 1 + rng.below(longest);
        let kind = rng.below(if untimed { 5 } else { 4 });
        for _ in 0..length {
            statuses.push(match kind {
                0 => rtcp::Status::NotReceived,
                1 => rtcp::Status::Received { delta: rng.below(256) as i16 },
                2 => rtcp::Status::Received { delta: rng.next_u64() as i16 },
                3 if rng.chance(0.5) => rtcp::Status::NotReceived,
                3 => rtcp::Status::Received { delta: rng.below(256) as i16 },
                _ => rtcp::Status::ReceivedWithoutDelta,
            });
        }
    }
    statuses.truncate(wanted);
    statuses
}

pub(crate) fn metric(rng: &mut Stream) -> rtcp::Metric {
    if rng.chance(0.3) {
        return rtcp::Metric::NotReceived;
    }
    rtcp::Metric::Received { ecn: Ecn::from_bits(byte(rng)), offset: rng.below(0x2000) as u16 }
}

fn counters(rng: &mut Stream) -> rtcp::EcnCounters {
    let mut short = || u32_(rng) as u16;
    let (ce, not_ect, lost, duplicated) = (short(), short(), short(), short());
    rtcp::EcnCounters { ect0: u32_(rng), ect1: u32_(rng), ce, not_ect, lost, duplicated }
}

/// One of the fourteen kinds of packet, or an unknown one.
pub(crate) fn packet(rng: &mut Stream, kind: u64) -> rtcp::Packet {
    let sender_ssrc = u32_(rng);
    let media_ssrc = u32_(rng);
    match kind {
        0 => rtcp::Packet::SenderReport(rtcp::SenderReport {
            ssrc: sender_ssrc,
            ntp: rng.next_u64(),
            rtp_timestamp: u32_(rng),
            packet_count: u32_(rng),
            octet_count: u32_(rng),
            blocks: many(rng, 0, 31, block),
            extension: words(rng, 2),
        }),
        1 => rtcp::Packet::ReceiverReport(rtcp::ReceiverReport {
            ssrc: sender_ssrc,
            blocks: many(rng, 0, 31, block),
            extension: words(rng, 2),
        }),
        2 => rtcp::Packet::Sdes(rtcp::Sdes {
            chunks: many(rng, 0, 5, |rng| rtcp::SdesChunk {
                ssrc: u32_(rng),
                items: many(rng, 0, 4, |rng| rtcp::SdesItem {
                    kind: 1 + rng.below(8) as u8,
                    text: many(rng, 0, 20, |rng| b'a' + rng.below(26) as u8),
                }),
            }),
        }),
        3 => rtcp::Packet::Bye(rtcp::Bye {
            ssrcs: many(rng, 0, 31, u32_),
            reason: rng.chance(0.5).then(|| many(rng, 0, 40, |rng| b'a' + rng.below(26) as u8)),
        }),
        4 => rtcp::Packet::App(rtcp::App {
            subtype: rng.below(32) as u8,
            ssrc: sender_ssrc,
            name: *b"TIDE",
            data: words(rng, 10),
        }),
        5 => rtcp::Packet::Nack(rtcp::Nack {
            sender_ssrc,
            media_ssrc,
            pairs: many(rng, 1, 20, |rng| rtcp::NackPair { pid: u32_(rng) as u16, blp: u32_(rng) as u16 }),
        }),
        6 => rtcp::Packet::Pli(rtcp::Pli { sender_ssrc, media_ssrc }),
        7 => rtcp::Packet::Sli(rtcp::Sli {
            sender_ssrc,
            media_ssrc,
            entries: many(rng, 1, 5, |rng| rtcp::SliEntry {
                first: rng.below(1 << 13) as u16,
                number: rng.below(1 << 13) as u16,
                picture: rng.below(1 << 6) as u8,
            }),
        }),
        8 => rtcp::Packet::Fir(rtcp::Fir {
            sender_ssrc,
            entries: many(rng, 1, 5, |rng| rtcp::FirEntry { ssrc: u32_(rng), sequence: byte(rng) }),
        }),
        9 => {
            let shift = rng.below(64);
            let bitrate = rtcp::Remb::carried(Rate::from_bps(rng.next_u64() >> shift));
            rtcp::Packet::Remb(rtcp::Remb { sender_ssrc, bitrate, ssrcs: many(rng, 0, 8, u32_) })
        }
        10 => rtcp::Packet::Twcc(rtcp::Twcc {
            sender_ssrc,
            media_ssrc,
            base_sequence: u32_(rng) as u16,
            reference_time: u32_(rng) >> 8,
            feedback_count: byte(rng),
            packets: statuses(rng, 400, true),
        }),
        11 => rtcp::Packet::Ccfb(rtcp::Ccfb {
            sender_ssrc,
            streams: many(rng, 0, 4, |rng| rtcp::StreamMetrics {
                ssrc: u32_(rng),
                begin: u32_(rng) as u16,
                metrics: many(rng, 0, 40, metric),
            }),
            report_timestamp: u32_(rng),
        }),
        12 => rtcp::Packet::EcnFeedback(rtcp::EcnFeedback {
            sender_ssrc,
            media_ssrc,
            highest_sequence: u32_(rng),
            counters: counters(rng),
        }),
        13 => rtcp::Packet::ExtendedReport(rtcp::ExtendedReport {
            ssrc: sender_ssrc,
            blocks: many(rng, 0, 4, |rng| {
                if rng.chance(0.5) {
                    let summary = many(rng, 0, 6, |rng| (u32_(rng), counters(rng)));
                    return rtcp::ReportExtension::EcnSummary(summary);
                }
                let block_type = rng.below(13) as u8;
                rtcp::ReportExtension::Unknown { block_type, specific: byte(rng), data: words(rng, 10) }
            }),
        }),
        _ => rtcp::Packet::Unknown(rtcp::Unknown {
            padding: false,
            count: 16 + rng.below(16) as u8,
            packet_type: 205,
            body: words(rng, 10),
        }),
    }
}

/// Number of kinds that [`packet`] can make.
pub(crate) const KINDS: u64 = 15;

pub(crate) fn header(rng: &mut Stream) -> rtp::Header {
    let (most_id, most_bytes) = if rng.chance(0.7) { (14, 16) } else { (255, 40) };
    rtp::Header {
        padding: if rng.chance(0.2) { 1 + rng.below(255) as u8 } else { 0 },
        marker: rng.chance(0.5),
        payload_type: rng.below(128) as u8,
        sequence: u32_(rng) as u16,
        timestamp: u32_(rng),
        ssrc: u32_(rng),
        csrcs: if rng.chance(0.2) { many(rng, 0, 15, u32_) } else { Vec::new() },
        extensions: many(rng, 0, 4, |rng| Extension {
            id: 1 + rng.below(most_id) as u8,
            data: many(rng, 1, most_bytes, byte),
        }),
    }
}
