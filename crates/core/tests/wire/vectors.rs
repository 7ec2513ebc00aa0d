//! Vectors written by pion/rtcp 1.2.20: hexadecimal bytes and what they mean. A few rows are kept in
//! tests/data/wire; all of them are read where the shared folder is.
#![allow(clippy::disallowed_methods, reason = "a test may read files and where they are")]

use crate::{bytes_of, decoded_one, encoded};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tidegate_core::wire::rtcp::{self, Packet, Status, TwccArrival};

fn number<T: TryFrom<i64>>(value: &Value) -> T {
    let number = value.as_i64().unwrap_or_else(|| panic!("{value} is no number"));
    T::try_from(number).unwrap_or_else(|_| panic!("{number} is out of range"))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no list {key} in {value}"))
}

fn block(value: &Value) -> rtcp::ReportBlock {
    let lost: i32 = number(&value["cumulative_lost_i24"]);
    assert_eq!(lost & 0xff_ffff, number::<i32>(&value["cumulative_lost_u24"]));
    rtcp::ReportBlock {
        ssrc: number(&value["ssrc"]),
        fraction_lost: number(&value["fraction_lost"]),
        cumulative_lost: lost,
        highest_sequence: number(&value["ext_highest_seq"]),
        jitter: number(&value["jitter"]),
        last_sr: number(&value["lsr"]),
        delay_since_last_sr: number(&value["dlsr"]),
    }
}

/// The packet that the fields of a vector describe.
fn described(kind: &str, fields: &Value) -> Packet {
    let sender_ssrc = || number(&fields["sender_ssrc"]);
    let media_ssrc = || number(&fields["media_ssrc"]);
    match kind {
        "sr" => Packet::SenderReport(rtcp::SenderReport {
            ssrc: number(&fields["ssrc"]),
            ntp: fields["ntp"].as_str().expect("ntp").parse().expect("64 bits"),
            rtp_timestamp: number(&fields["rtp_ts"]),
            packet_count: number(&fields["packet_count"]),
            octet_count: number(&fields["octet_count"]),
            blocks: list(fields, "reports").iter().map(block).collect(),
            extension: Vec::new(),
        }),
        "rr" => Packet::ReceiverReport(rtcp::ReceiverReport {
            ssrc: number(&fields["ssrc"]),
            blocks: list(fields, "reports").iter().map(block).collect(),
            extension: Vec::new(),
        }),
        "nack" => {
            let lost: Vec<u16> = list(fields, "lost").iter().map(number).collect();
            let nack = rtcp::Nack::new(sender_ssrc(), media_ssrc(), &lost);
            let pair = |pair: &Value| rtcp::NackPair { pid: number(&pair["pid"]), blp: number(&pair["blp"]) };
            assert!(nack.pairs.iter().copied().eq(list(fields, "pairs").iter().map(pair)), "{nack:?}");
            assert!(nack.lost().eq(lost), "{nack:?}");
            Packet::Nack(nack)
        }
        "pli" => Packet::Pli(rtcp::Pli { sender_ssrc: sender_ssrc(), media_ssrc: media_ssrc() }),
        "fir" => {
            assert_eq!(media_ssrc(), 0);
            let entry = |entry: &Value| rtcp::FirEntry {
                ssrc: number(&entry["ssrc"]),
                sequence: number(&entry["seq"]),
            };
            let entries = list(fields, "entries").iter().map(entry).collect();
            Packet::Fir(rtcp::Fir { sender_ssrc: sender_ssrc(), entries })
        }
        "sli" => {
            let entry = |entry: &Value| rtcp::SliEntry {
                first: number(&entry["first"]),
                number: number(&entry["number"]),
                picture: number(&entry["picture"]),
            };
            let entries = list(fields, "entries").iter().map(entry).collect();
            Packet::Sli(rtcp::Sli { sender_ssrc: sender_ssrc(), media_ssrc: media_ssrc(), entries })
        }
        _ => panic!("unknown kind {kind}"),
    }
}

/// Decodes to what is described, and is written as the very bytes.
fn check_exact(vector: &Value) {
    let bytes = bytes_of(vector["hex"].as_str().expect("hex"));
    let packet = decoded_one(&bytes);
    let kind = vector["kind"].as_str().expect("kind");
    assert_eq!(packet, described(kind, &vector["fields"]), "{}", vector["id"]);
    assert_eq!(encoded(std::slice::from_ref(&packet)), bytes, "{}", vector["id"]);
    if let Packet::SenderReport(report) = packet {
        let fields = &vector["fields"];
        assert_eq!(report.middle(), number::<u32>(&fields["ntp_middle32"]), "{}", vector["id"]);
    }
}

/// Decodes to what is described, and again after being written, be the chunks as they may.
fn check_twcc(vector: &Value) {
    let (id, decoded) = (&vector["id"], &vector["decoded"]);
    let bytes = bytes_of(vector["hex"].as_str().expect("hex"));
    if vector["ok"] == Value::Bool(false) {
        assert!(rtcp::decode(&bytes).is_err(), "{id}");
        return;
    }
    let packet = decoded_one(&bytes);
    assert_eq!(decoded_one(&encoded(std::slice::from_ref(&packet))), packet, "{id}");
    let Packet::Twcc(twcc) = packet else { panic!("{id}: {packet:?}") };
    assert_eq!(twcc.sender_ssrc, number::<u32>(&decoded["sender_ssrc"]), "{id}");
    assert_eq!(twcc.media_ssrc, number::<u32>(&decoded["media_ssrc"]), "{id}");
    assert_eq!(twcc.base_sequence, number::<u16>(&decoded["base_seq"]), "{id}");
    assert_eq!(twcc.reference_time, number::<u32>(&decoded["reference_time_64ms"]), "{id}");
    assert_eq!(twcc.feedback_count, number::<u8>(&decoded["fb_pkt_count"]), "{id}");
    let packets = list(decoded, "packets");
    assert_eq!(twcc.packets.len(), packets.len(), "{id}");
    assert_eq!(twcc.packets.len(), number::<usize>(&decoded["status_count"]), "{id}");
    let read = twcc.arrivals().zip(&twcc.packets);
    for (((sequence, arrival), status), described) in read.zip(packets) {
        assert_eq!(sequence, number::<u16>(&described[0]), "{id}");
        match number::<u8>(&described[1]) {
            0 => assert_eq!((*status, arrival), (Status::NotReceived, TwccArrival::NotReceived), "{id}"),
            1 | 2 => {
                // delta and arrival time since the clock's origin, both in us
                let Status::Received { delta } = *status else { panic!("{id} {sequence}: {status:?}") };
                assert_eq!(i64::from(delta) * 250, number::<i64>(&described[2]), "{id} {sequence}");
                let TwccArrival::At(ticks) = arrival else { panic!("{id} {sequence}: {arrival:?}") };
                let instant = rtcp::Twcc::instant(i64::from(twcc.reference_time), ticks);
                assert_eq!(instant.as_nanos() / 1000, number::<i64>(&described[3]), "{id} {sequence}");
            }
            3 => assert_eq!(*status, Status::ReceivedWithoutDelta, "{id}"),
            other => panic!("{id} {sequence}: symbol {other}"),
        }
    }
}

fn shared() -> Option<PathBuf> {
    let folder = match std::env::var_os("TIDEGATE_SHARED") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
    };
    folder.is_dir().then_some(folder)
}

fn check_file(path: &Path, check: fn(&Value)) -> usize {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let vectors: Vec<Value> =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    vectors.iter().for_each(check);
    vectors.len()
}

type Check = (&'static str, fn(&Value));
const FILES: [Check; 4] = [
    ("rtcp_reports.json", check_exact),
    ("rtcp_nack.json", check_exact),
    ("rtcp_psfb.json", check_exact),
    ("rtcp_twcc_manual.json", check_twcc),
];

#[test]
fn the_rows_kept_here_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/wire");
    for (file, check) in FILES {
        assert!(check_file(&folder.join(file), check) >= 4, "{file}");
    }
}

#[test]
fn all_shared_vectors_hold() {
    let Some(shared) = shared() else {
        eprintln!("skipped: there is no shared folder (TIDEGATE_SHARED, or `shared` beside the checkout)");
        return;
    };
    for (file, check) in FILES {
        let count = check_file(&shared.join("vectors").join(file), check);
        eprintln!("{file}: {count} vectors");
        assert!(count >= 4, "{file}");
    }
}
