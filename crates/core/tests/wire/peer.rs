//! Against rtc-rtcp 0.21, in both directions: what we write it reads, what it writes we read, and where
//! the form is canonical the bytes are the same.

use crate::arbitrary::{self, KINDS};
use crate::{decoded_one, encoded};
use rtc_rtcp::goodbye::Goodbye;
use rtc_rtcp::payload_feedbacks::full_intra_request::FullIntraRequest;
use rtc_rtcp::payload_feedbacks::picture_loss_indication::PictureLossIndication;
use rtc_rtcp::payload_feedbacks::receiver_estimated_maximum_bitrate::ReceiverEstimatedMaximumBitrate;
use rtc_rtcp::raw_packet::RawPacket;
use rtc_rtcp::receiver_report::ReceiverReport;
use rtc_rtcp::reception_report::ReceptionReport;
use rtc_rtcp::sender_report::SenderReport;
use rtc_rtcp::source_description::SourceDescription;
use rtc_rtcp::transport_feedbacks::cc_feedback_report::CcFeedbackReport;
use rtc_rtcp::transport_feedbacks::transport_layer_cc::{PacketStatusChunk, SymbolTypeTcc, TransportLayerCc};
use rtc_rtcp::transport_feedbacks::transport_layer_nack::TransportLayerNack;
use tidegate_core::Rate;
use tidegate_core::rng::Stream;
use tidegate_core::wire::rtcp::{self, Metric, Packet, Status};

type Theirs = Box<dyn rtc_rtcp::Packet>;

fn read_by_them(mut bytes: &[u8]) -> Theirs {
    let mut packets =
        rtc_rtcp::packet::unmarshal(&mut bytes).unwrap_or_else(|error| panic!("{error}: {bytes:02x?}"));
    assert_eq!(packets.len(), 1);
    packets.remove(0)
}

fn as_theirs<T: 'static>(packet: &Theirs) -> &T {
    packet.as_any().downcast_ref().unwrap_or_else(|| panic!("{packet:?}"))
}

fn same_block(ours: &rtcp::ReportBlock, theirs: &ReceptionReport) {
    assert_eq!(ours.ssrc, theirs.ssrc);
    assert_eq!(ours.fraction_lost, theirs.fraction_lost);
    assert_eq!(ours.cumulative_lost as u32 & 0xff_ffff, theirs.total_lost);
    assert_eq!(ours.highest_sequence, theirs.last_sequence_number);
    assert_eq!(ours.jitter, theirs.jitter);
    assert_eq!(ours.last_sr, theirs.last_sender_report);
    assert_eq!(ours.delay_since_last_sr, theirs.delay);
}

fn same_blocks(ours: &[rtcp::ReportBlock], theirs: &[ReceptionReport]) {
    assert_eq!(ours.len(), theirs.len());
    ours.iter().zip(theirs).for_each(|(ours, theirs)| same_block(ours, theirs));
}

/// The statuses that their chunks and deltas tell.
fn statuses(theirs: &TransportLayerCc) -> Vec<Status> {
    let symbols = theirs.packet_chunks.iter().flat_map(|chunk| match chunk {
        PacketStatusChunk::RunLengthChunk(run) => {
            vec![run.packet_status_symbol; usize::from(run.run_length)]
        }
        PacketStatusChunk::StatusVectorChunk(vector) => vector.symbol_list.clone(),
    });
    let mut deltas = theirs.recv_deltas.iter();
    symbols
        .take(usize::from(theirs.packet_status_count))
        .map(|symbol| match symbol {
            SymbolTypeTcc::PacketNotReceived => Status::NotReceived,
            SymbolTypeTcc::PacketReceivedSmallDelta | SymbolTypeTcc::PacketReceivedLargeDelta => {
                let micros = deltas.next().expect("a delta for each").delta;
                assert_eq!(micros % 250, 0);
                Status::Received { delta: i16::try_from(micros / 250).expect("16 bits") }
            }
            SymbolTypeTcc::PacketReceivedWithoutDelta => Status::ReceivedWithoutDelta,
        })
        .collect()
}

/// Whether their value says what ours says.
fn same(ours: &Packet, theirs: &Theirs) {
    match ours {
        Packet::SenderReport(ours) => {
            let theirs: &SenderReport = as_theirs(theirs);
            assert_eq!((ours.ssrc, ours.ntp), (theirs.ssrc, theirs.ntp_time));
            assert_eq!(ours.rtp_timestamp, theirs.rtp_time);
            assert_eq!((ours.packet_count, ours.octet_count), (theirs.packet_count, theirs.octet_count));
            same_blocks(&ours.blocks, &theirs.reports);
            assert_eq!(ours.extension, theirs.profile_extensions);
        }
        Packet::ReceiverReport(ours) => {
            let theirs: &ReceiverReport = as_theirs(theirs);
            assert_eq!(ours.ssrc, theirs.ssrc);
            same_blocks(&ours.blocks, &theirs.reports);
            assert_eq!(ours.extension, theirs.profile_extensions);
        }
        Packet::Sdes(ours) => {
            let theirs: &SourceDescription = as_theirs(theirs);
            assert_eq!(ours.chunks.len(), theirs.chunks.len());
            for (ours, theirs) in ours.chunks.iter().zip(&theirs.chunks) {
                assert_eq!((ours.ssrc, ours.items.len()), (theirs.source, theirs.items.len()));
                for (ours, theirs) in ours.items.iter().zip(&theirs.items) {
                    assert_eq!(ours.kind, theirs.sdes_type as u8);
                    assert_eq!(ours.text, theirs.text);
                }
            }
        }
        Packet::Bye(ours) => {
            let theirs: &Goodbye = as_theirs(theirs);
            assert_eq!(ours.ssrcs, theirs.sources);
            assert_eq!(ours.reason.clone().unwrap_or_default(), theirs.reason);
        }
        Packet::Nack(ours) => {
            let theirs: &TransportLayerNack = as_theirs(theirs);
            assert_eq!((ours.sender_ssrc, ours.media_ssrc), (theirs.sender_ssrc, theirs.media_ssrc));
            let pairs = theirs.nacks.iter();
            assert!(
                pairs
                    .map(|pair| (pair.packet_id, pair.lost_packets))
                    .eq(ours.pairs.iter().map(|pair| (pair.pid, pair.blp)))
            );
            assert!(ours.lost().eq(theirs.nacks.iter().flat_map(|pair| pair.packet_list())));
        }
        Packet::Pli(ours) => {
            let theirs: &PictureLossIndication = as_theirs(theirs);
            assert_eq!((ours.sender_ssrc, ours.media_ssrc), (theirs.sender_ssrc, theirs.media_ssrc));
        }
        Packet::Fir(ours) => {
            let theirs: &FullIntraRequest = as_theirs(theirs);
            assert_eq!((ours.sender_ssrc, 0), (theirs.sender_ssrc, theirs.media_ssrc));
            let entries = theirs.fir.iter().map(|e| (e.ssrc, e.sequence_number));
            assert!(entries.eq(ours.entries.iter().map(|e| (e.ssrc, e.sequence))));
        }
        Packet::Remb(ours) => {
            let theirs: &ReceiverEstimatedMaximumBitrate = as_theirs(theirs);
            assert_eq!((ours.sender_ssrc, &ours.ssrcs), (theirs.sender_ssrc, &theirs.ssrcs));
            // 18 bits of mantissa are exact in their 24
            assert_eq!(ours.bitrate.as_bps() as f32, theirs.bitrate);
        }
        Packet::Twcc(ours) => {
            let theirs: &TransportLayerCc = as_theirs(theirs);
            assert_eq!((ours.sender_ssrc, ours.media_ssrc), (theirs.sender_ssrc, theirs.media_ssrc));
            assert_eq!(ours.base_sequence, theirs.base_sequence_number);
            assert_eq!(
                (ours.reference_time, ours.feedback_count),
                (theirs.reference_time, theirs.fb_pkt_count)
            );
            assert_eq!(ours.packets, statuses(theirs));
        }
        Packet::Ccfb(ours) => {
            let theirs: &CcFeedbackReport = as_theirs(theirs);
            assert_eq!(ours.sender_ssrc, theirs.sender_ssrc);
            assert_eq!(ours.report_timestamp, theirs.report_timestamp);
            assert_eq!(ours.streams.len(), theirs.report_blocks.len());
            for (ours, theirs) in ours.streams.iter().zip(&theirs.report_blocks) {
                assert_eq!((ours.ssrc, ours.begin), (theirs.media_ssrc, theirs.begin_sequence));
                let metrics = theirs.metric_blocks.iter().map(|block| match block.received {
                    false => Metric::NotReceived,
                    true => Metric::Received {
                        ecn: tidegate_core::Ecn::from_bits(block.ecn as u8),
                        offset: block.arrival_time_offset,
                    },
                });
                assert!(metrics.eq(ours.metrics.iter().copied()));
            }
        }
        // raw bytes for them, which are compared when they come back
        Packet::App(_)
        | Packet::Sli(_)
        | Packet::EcnFeedback(_)
        | Packet::ExtendedReport(_)
        | Packet::Unknown(_) => {
            assert_eq!(as_theirs::<RawPacket>(theirs).0, encoded(std::slice::from_ref(ours)))
        }
    }
}

#[test]
fn both_read_what_the_other_writes() {
    let mut rng = Stream::new(1, "peer", "packets");
    let (mut same_bytes, mut other_bytes) = (0, 0);
    for round in 0..7_000 {
        let kind = round % KINDS;
        let mut ours = arbitrary::packet(&mut rng, kind);
        if matches!(ours, Packet::ExtendedReport(_)) {
            // they keep no block that they do not know
            continue;
        }
        if matches!(ours, Packet::Sli(_)) {
            // they look for packet type 205 in it, but RFC 4585 section 6.3.2 and pion's vectors have 206
            continue;
        }
        if matches!(&ours, Packet::Remb(remb) if remb.bitrate == Rate::ZERO) {
            // they read a mantissa of zero as 2^23
            continue;
        }
        if let Packet::Twcc(twcc) = &mut ours {
            // they want a delta behind the chunks
            twcc.packets.push(Status::Received { delta: 1 });
        }
        let bytes = encoded(std::slice::from_ref(&ours));
        let theirs = read_by_them(&bytes);
        same(&ours, &theirs);
        let written = rtc_rtcp::packet::marshal(&[theirs]).expect("they write it");
        let mut read = decoded_one(&written);
        if let (Packet::Bye(read), Packet::Bye(ours)) = (&mut read, &ours) {
            // they write an empty reason for none
            assert!(read.reason.is_some());
            read.reason = read.reason.take().filter(|_| ours.reason.is_some());
        }
        assert_eq!(read, ours);
        if matches!(ours, Packet::Bye(_) | Packet::Sdes(_)) {
            // they put a count at the end of the filling, where RFC 3550 has null octets
            other_bytes += 1;
        } else {
            assert_eq!(written, bytes, "{ours:?}");
            same_bytes += 1;
        }
    }
    assert!(same_bytes > 4_500 && other_bytes > 900, "{same_bytes} {other_bytes}");
}

#[test]
fn both_refuse_cut_packets() {
    let mut rng = Stream::new(2, "peer", "cut");
    for round in 0..1_000 {
        let bytes = encoded(&[arbitrary::packet(&mut rng, round % 4)]);
        for cut in 0..bytes.len() {
            assert!(rtcp::decode(&bytes[..cut]).is_err());
            assert!(rtc_rtcp::packet::unmarshal(&mut &bytes[..cut]).is_err());
        }
    }
}
