//! Wire format of the data packets' extension, and of the receiver's message.
//!
//! A data packet carries the fields of Sprout's own header (keithw/sprout, `src/network/network.h`) as one RFC 8285
//! element:
//!
//! ```text
//! 0          4           6                  8
//! | sequence | throwaway | L | time to next |     32, 16, 1 and 15 bits
//! ```
//!
//! *sequence*: low bits of the number of the first byte, counted over all packets of the flow. *throwaway*: distance in
//! bytes before that beyond which missing bytes are lost. *L* (ours): the sender has nothing more. *time to next*: longest
//! silence of the sender after this packet, ms.
//!
//! A forecast is the message `DeliveryForecast` (`deliveryforecast.proto`) in an APP packet (RFC 3550 section 6.7) with the
//! name `SPRT` and 24 bytes of data: low 32 bits of the bytes received or lost, number of ticks that have passed, and
//! eight times 16 bits with the packets that will have been delivered.

use super::forecast::{Forecast, TICKS};
use tidegate_core::Span;
use tidegate_core::datagram::Extension;
use tidegate_core::wire::rtcp;

/// RFC 8285 identifier of the stamp; the endpoint uses 3 and 5, TFRC 7.
pub const STAMP_ID: u8 = 8;

/// Name of the forecast's APP packet.
pub const NAME: [u8; 4] = *b"SPRT";

const LIMITED: u16 = 1 << 15;

/// Header extension of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// Low bits of the number of the packet's first byte.
    pub sequence: u32,
    /// Distance in bytes beyond which missing bytes are lost.
    pub throwaway: u16,
    /// Longest silence of the sender after this packet, in whole milliseconds.
    pub time_to_next: Span,
    /// Whether the sender has nothing more to send.
    pub limited: bool,
}

impl Stamp {
    /// Encodes the stamp as an extension element. Silences beyond 32.767 s saturate.
    #[must_use]
    pub fn write(&self) -> Extension {
        let millis = (self.time_to_next.as_nanos() / 1_000_000).clamp(0, i64::from(LIMITED - 1)) as u16;
        let last = millis | if self.limited { LIMITED } else { 0 };
        let mut data = Vec::with_capacity(8);
        data.extend_from_slice(&self.sequence.to_be_bytes());
        data.extend_from_slice(&self.throwaway.to_be_bytes());
        data.extend_from_slice(&last.to_be_bytes());
        Extension { id: STAMP_ID, data }
    }

    /// Parses an extension element; none if it is not a stamp.
    #[must_use]
    pub fn parse(extension: &Extension) -> Option<Self> {
        let &[a, b, c, d, e, f, g, h] = &extension.data[..] else { return None };
        let last = u16::from_be_bytes([g, h]);
        (extension.id == STAMP_ID).then(|| Self {
            sequence: u32::from_be_bytes([a, b, c, d]),
            throwaway: u16::from_be_bytes([e, f]),
            time_to_next: Span::from_millis(i64::from(last & !LIMITED)),
            limited: last & LIMITED != 0,
        })
    }
}

/// Message of the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Low bits of the number of bytes received or lost.
    pub received_or_lost: u32,
    /// Ticks since the first packet; wraps after 2.7 years.
    pub tick: u32,
    /// Cumulated number of packets delivered by the end of each tick.
    pub forecast: Forecast,
}

impl Message {
    /// Encodes the message as an APP packet; the endpoint fills in its SSRC. Counts beyond 65535 saturate.
    #[must_use]
    pub fn write(&self) -> rtcp::Packet {
        let mut data = Vec::with_capacity(8 + 2 * TICKS);
        data.extend_from_slice(&self.received_or_lost.to_be_bytes());
        data.extend_from_slice(&self.tick.to_be_bytes());
        for count in self.forecast {
            data.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
        }
        rtcp::Packet::App(rtcp::App { subtype: 0, ssrc: 0, name: NAME, data })
    }

    /// Parses an APP packet; none if it is not a message of Sprout, or if the cumulated deliveries fall, which is impossible.
    #[must_use]
    pub fn parse(app: &rtcp::App) -> Option<Self> {
        let (words, remainder) = app.data.as_chunks::<4>();
        let &[received_or_lost, tick, ref counts @ ..] = words else { return None };
        let mut forecast = [0; TICKS];
        let (pairs, _) = counts.as_flattened().as_chunks::<2>();
        if app.name != NAME || app.subtype != 0 || !remainder.is_empty() || pairs.len() != TICKS {
            return None;
        }
        for (count, &pair) in forecast.iter_mut().zip(pairs) {
            *count = u32::from(u16::from_be_bytes(pair));
        }
        forecast.is_sorted().then(|| Self {
            received_or_lost: u32::from_be_bytes(received_or_lost),
            tick: u32::from_be_bytes(tick),
            forecast,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_by_hand() {
        let stamp = Stamp {
            sequence: 0x0102_0304,
            throwaway: 0x0506,
            time_to_next: Span::from_millis(50),
            limited: true,
        };
        let written = stamp.write();
        assert_eq!(written.data, [1, 2, 3, 4, 5, 6, 0x80, 50]);
        assert_eq!(Stamp::parse(&written), Some(stamp));
        assert_eq!(Stamp::parse(&Extension { id: 7, ..written.clone() }), None);
        assert_eq!(Stamp::parse(&Extension { data: vec![0; 9], ..written }), None);
        let long = Stamp { time_to_next: Span::from_secs(100), limited: false, ..stamp };
        assert_eq!(Stamp::parse(&long.write()).expect("parsed").time_to_next, Span::from_millis(32_767));
    }

    #[test]
    fn a_forecast_is_36_bytes_and_keeps_its_values() {
        let message =
            Message { received_or_lost: 7, tick: 0x0102, forecast: [3, 9, 15, 21, 27, 33, 39, 0x012d] };
        let mut bytes = Vec::new();
        rtcp::encode(&[message.write()], &mut bytes).expect("fits");
        assert_eq!(bytes.len(), 36);
        assert_eq!(bytes[12..24], [0, 0, 0, 7, 0, 0, 1, 2, 0, 3, 0, 9]);
        assert_eq!(bytes[34..], [1, 0x2d]);
        let rtcp::Packet::App(app) = &rtcp::decode(&bytes).expect("complete")[0] else { panic!("an APP") };
        assert_eq!(Message::parse(app), Some(message));
        for wrong in [
            rtcp::App { name: *b"SPRU", ..app.clone() },
            rtcp::App { subtype: 1, ..app.clone() },
            rtcp::App { data: app.data[..20].to_vec(), ..app.clone() },
            rtcp::App { data: [&app.data[..], &[0; 4]].concat(), ..app.clone() },
            rtcp::App { data: vec![], ..app.clone() },
            // 3 packets after the first tick and 2 after the second
            rtcp::App { data: [&app.data[..11], &[2], &app.data[12..]].concat(), ..app.clone() },
        ] {
            assert_eq!(Message::parse(&wrong), None, "{wrong:?}");
        }
    }
}
