//! Checks of what a session reads from the network: handshake messages, with a correct tag as a holder of the key could
//! send them, and without; control messages; sealed datagrams.

use crate::session_inputs::{offer, sent_record};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write;
use tidegate_core::Time;
use tidegate_live::call::{Offer, Record, merge};
use tidegate_live::session::Ignored;
use tidegate_live::session::control::Control;
use tidegate_live::session::handshake::{Answerer, Caller};
use tidegate_live::session::keys::{Key, PresharedKey};
use tidegate_live::session::message::{MAGIC, Message};
use tidegate_live::session::seal::Opener;
use tidegate_live::session::transfer::Fetch;
use tidegate_sim::scenario::assemble::from_registry;

/// Checks one input; returns whether it was a message, a record or an offer.
///
/// # Panics
/// If a property does not hold.
pub fn check(input: &[u8]) -> bool {
    let Some((choice, input)) = input.split_first() else { return false };
    let psk = PresharedKey::new(&[7; 16]).expect("long enough");
    let key = psk.handshake();
    let mut ignored = Ignored::default();
    match choice % 6 {
        0 => {
            // the choice's high bits say whether the magic and the tag are made correct
            let mut bytes = if choice & 0x80 == 0 { MAGIC.to_vec() } else { Vec::new() };
            bytes.extend(input);
            if choice & 0x40 == 0 {
                let tag = key.tag(&[&bytes]);
                bytes.extend(tag);
            }
            let decoded = Message::decode(&bytes, &key);
            if let Ok((nonce, message)) = &decoded
                && !matches!(message, Message::OtherVersion(_) | Message::Hello)
            {
                assert_eq!(message.encode(nonce, &key), bytes);
            }
            let from = "192.0.2.1:5004".parse().expect("an address");
            let _ = Answerer::new(psk.clone(), &[1; 32]).receive(Time::ZERO, from, &bytes, &mut ignored);
            let mut caller = Caller::new(psk, [0; 32], Vec::new()).expect("short");
            let _ = caller.receive(Time::ZERO, &bytes, &mut ignored);
            decoded.is_ok()
        }
        1 => {
            let control = Control::decode(input);
            if let Some(control) = control {
                assert_eq!(control.encode(), input);
            }
            control.is_some()
        }
        2 => {
            let mut fetch = Fetch::new(Time::ZERO);
            for part in input.chunks(40) {
                if let Some(Control::Piece { number, total, bytes }) = Control::decode(part)
                    && total < 1 << 16
                {
                    fetch.piece(Time::ZERO, number, total, bytes);
                }
                fetch.advance(Time::ZERO);
            }
            fetch.share() > 0.0
        }
        3 => {
            // a record or an offer, which are compressed on the wire
            let mut packed = DeflateEncoder::new(Vec::new(), Compression::none());
            packed.write_all(input).expect("in memory");
            let bytes = packed.finish().expect("in memory");
            let offered = Offer::from_bytes(&bytes);
            if let Ok(offer) = &offered {
                _ = offer.endpoint(&mut from_registry);
            }
            let record = Record::from_bytes(&bytes);
            if let Ok(record) = &record {
                let encoded = record.to_bytes().expect("a decoded record can be encoded");
                match Record::from_bytes(&encoded) {
                    Ok(again) => assert_eq!(again.to_bytes(), Ok(encoded)),
                    // equal facts, which take less than a byte each once they are compressed
                    Err(reason) => assert!(reason.contains("facts in"), "{reason}"),
                }
                drop(merge(&offer(), Some(record), None));
                drop(merge(&offer(), Some(&sent_record()), Some(record)));
            }
            offered.is_ok() || record.is_ok()
        }
        4 => Offer::from_bytes(input).is_ok() | Record::from_bytes(input).is_ok(),
        _ => {
            let mut opener = Opener::new(Key::new(&[1; 32]), 1500);
            assert_eq!(opener.open(input, &mut ignored), None);
            assert_eq!(ignored.total(), 1);
            false
        }
    }
}
