//! Well-formed inputs of the target `session`, and how they change in their shape.

use crate::json;
use crate::mutations::Rng;
use flate2::read::DeflateDecoder;
use serde_json::json;
use std::io::Read;
use tidegate_core::record::{Breaker, EcnCheck, FrameRecord, FrameSent, RepairRecord, RtcpRecord};
use tidegate_core::wire::rtcp::Contents;
use tidegate_core::{FlowId, Kind, Level, Rate, Size, Span, Time};
use tidegate_endpoint::{FeedbackSettings, Playout, Repair, RtcpSettings};
use tidegate_live::call::{Fact, Offer, Record};
use tidegate_live::session::control::Control;
use tidegate_live::session::keys::PresharedKey;
use tidegate_live::session::message::{MAGIC, Message};
use tidegate_live::session::{OVERHEAD, TAG};

/// An offer of a call of two seconds.
pub fn offer() -> Offer {
    Offer {
        flow: "call".to_owned(),
        controller: "gcc".to_owned(),
        seed: 1,
        duration: Span::from_secs(2),
        warmup: Span::ZERO,
        start: Time::ZERO,
        stop: None,
        bin: Span::from_millis(200),
        level: Level::Packets,
        overhead: 28 + OVERHEAD as u32,
        payload: 1200,
        end: ("call.receiver".to_owned(), 1),
        streams: Vec::new(),
        feedback: FeedbackSettings::default(),
        playout: Playout::default(),
        pictures: Time::ZERO,
        repair: Repair::default(),
        rtcp: RtcpSettings::default(),
        half: None,
    }
}

/// A fact that a packet was sent.
fn sent(number: u64) -> Fact {
    let packet = json!({"sequence": number, "kind": Kind::Video, "size": 1252, "frame": number / 2, "flags": 0,
        "ecn": 1, "dscp": 46, "rtp": [3000 * number, number, 96]});
    serde_json::from_value(json!({"Sent": [number, packet]})).expect("a fact")
}

/// The record of the side that sends, with a packet every 10 ms.
pub fn sent_record() -> Record {
    let facts = (0..20).map(|number| (10_000_000 * number, sent(number as u64))).collect();
    Record { facts, lasted: Span::from_secs(2), ..Record::default() }
}

/// A record with a fact of every kind.
fn full_record() -> Record {
    let (flow, size) = (FlowId(0), Size::from_bytes(1200));
    let time = Some(Time::from_millis(80));
    let facts = [
        Fact::EcnChecked(EcnCheck::Verified),
        sent(0),
        sent(1),
        Fact::Arrived(1, 1),
        Fact::Late(2),
        Fact::Tripped(Breaker::Congestion, true),
        Fact::Refused(1),
        Fact::Goodput(size),
        Fact::Repaired(RepairRecord { flow, frame: 1, sequence: 2, by: Kind::Retransmission, in_time: true }),
        Fact::Paced(Span::from_millis(5)),
        Fact::Skipped(3, size),
        Fact::LeftOut,
        Fact::VideoSwitched(Some(Span::from_millis(33))),
        Fact::Decision(Rate::from_mbps(1), Rate::from_mbps(2), Some(size)),
        Fact::Internal("trend".to_owned(), 0.5),
        Fact::FrameSent(FrameSent { flow, video: true, frame: 1, size, key: true }),
        Fact::Frame(FrameRecord { flow, video: true, frame: 1, complete: time, rendered: time, due: time }),
        Fact::Freeze(Span::from_millis(200)),
        Fact::Rtcp(RtcpRecord {
            flow,
            from_receiver: true,
            size,
            contents: Contents::of(&[]),
            waited: Span::ZERO,
        }),
        Fact::Ended,
    ];
    let facts = facts.into_iter().enumerate().map(|(at, fact)| (50_000_000 * at as i64, fact)).collect();
    Record { facts, lasted: Span::from_secs(1), about: "a side".to_owned(), ..Record::default() }
}

fn inflated(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    DeflateDecoder::new(bytes).read_to_end(&mut out).expect("what was compressed");
    out
}

/// Inputs of each choice of [`check`](crate::session::check).
pub fn inputs() -> Vec<Vec<u8>> {
    let key = PresharedKey::new(&[7; 16]).expect("long enough").handshake();
    let (offer, records) = (offer().to_bytes().expect("short"), [sent_record(), full_record()]);
    let messages = [
        Message::Hello,
        Message::Retry([3; 16]),
        Message::Offer([3; 16], offer.clone()),
        Message::Accept([4; 32]),
        Message::Refuse("no room".to_owned()),
        Message::OtherVersion(2),
    ];
    // magic and tag are put there again
    let messages = messages.map(|message| {
        let bytes = message.encode(&[0; 32], &key);
        (0, bytes[MAGIC.len()..bytes.len() - TAG].to_vec())
    });
    let piece = |number| Control::Piece { number, total: 2200, bytes: &[5; 31] };
    let controls =
        [Control::Alive, Control::End, Control::Ask { from: 1, count: 64 }, piece(0), Control::Done];
    let pieces = [piece(0), piece(1)].map(|piece| piece.encode()).concat();
    let records = records.map(|record| record.to_bytes().expect("written"));
    let mut inputs = messages.to_vec();
    inputs.extend(controls.map(|control| (1, control.encode())));
    inputs.extend([(2, pieces), (3, inflated(&offer)), (4, offer), (5, vec![1; 80])]);
    for record in records {
        inputs.extend([(3, inflated(&record)), (4, record)]);
    }
    inputs.into_iter().map(|(choice, bytes)| [vec![choice], bytes].concat()).collect()
}

/// Changes a field of an input: a value of JSON, a number of a record, a number of one to eight bytes, a text's end.
pub fn change(input: &mut Vec<u8>, rng: &mut Rng) {
    let mut body = input.split_off(input.len().min(1));
    let is_record = input.first().is_some_and(|choice| choice % 6 == 3);
    let at = rng.below(body.len());
    match rng.below(8) {
        _ if is_record && body.first() == Some(&b'{') => json::change(&mut body, rng),
        // a record's numbers are varints, its counts and kinds among them
        _ if is_record && !body.is_empty() => {
            let length =
                body[at..].iter().position(|byte| byte & 0x80 == 0).map_or(body.len() - at, |last| last + 1);
            let mut value = rng.number(u64::from(body[at]));
            let mut varint = Vec::new();
            while value > 0x7f {
                varint.push(value as u8 | 0x80);
                value >>= 7;
            }
            varint.push(value as u8);
            body.splice(at..at + length, varint);
        }
        0 => body.truncate(at),
        1 => body.extend((0..rng.below(40)).map(|_| rng.byte())),
        2 if !body.is_empty() => body[at] = rng.byte(),
        _ => {
            let width = [1, 2, 4, 8][rng.below(4)];
            if let Some(field) = body.get_mut(at..at + width) {
                let value = field.iter().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
                field.copy_from_slice(&rng.number(value).to_be_bytes()[8 - width..]);
            }
        }
    }
    input.extend(body);
}
