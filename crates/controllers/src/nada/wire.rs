//! Wire format between the two halves, for the placement in which the receiver computes the congestion signal.
//!
//! A data packet carries its departure and its sequence number in the flow as one RFC 8285 element; "the NADA sender can
//! generate its own timestamp" (RFC 8698 section 5.1.1):
//!
//! ```text
//! 0           4     6
//! | timestamp | seq |     32 bits in us, and the low 16 bits of the transport-wide sequence number
//! ```
//!
//! Feedback has the 48 bits of RFC 8698 section 5.3, padded to a multiple of 32 bits, in an APP packet (RFC 3550 section
//! 6.7) with the name `NADA`:
//!
//! ```text
//! 0               2               6     8
//! | rmode, x_curr | r_recv        | 0   |     1 bit and 15 bits in 100 us, 32 bits in bit/s
//! ```

use super::rate::Mode;
use tidegate_core::datagram::Extension;
use tidegate_core::wire::rtcp;
use tidegate_core::{Time, math};

/// RFC 8285 identifier of the stamp; the endpoint uses 3 and 5, TFRC 7, Sprout 8.
pub const STAMP_ID: u8 = 9;

/// Name of the feedback's APP packet.
pub const NAME: [u8; 4] = *b"NADA";

/// Largest signal that fits, in units of 100 us.
const MAX_SIGNAL: u16 = 0x7fff;

/// Header extension of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// Departure by the sender's clock, us; wraps after 71 minutes.
    pub timestamp: u32,
    /// Low bits of the transport-wide sequence number.
    pub sequence: u16,
}

impl Stamp {
    /// Creates the stamp of the packet `sequence`, which leaves at `departure`.
    #[must_use]
    pub fn new(departure: Time, sequence: u64) -> Self {
        Self { timestamp: (departure.as_nanos() / 1000) as u32, sequence: sequence as u16 }
    }

    /// Encodes the stamp as an extension element.
    #[must_use]
    pub fn write(&self) -> Extension {
        let mut data = Vec::with_capacity(6);
        data.extend_from_slice(&self.timestamp.to_be_bytes());
        data.extend_from_slice(&self.sequence.to_be_bytes());
        Extension { id: STAMP_ID, data }
    }

    /// Parses an extension element; none if it is not a stamp.
    #[must_use]
    pub fn parse(extension: &Extension) -> Option<Self> {
        let &[a, b, c, d, e, f] = &extension.data[..] else { return None };
        (extension.id == STAMP_ID).then(|| Self {
            timestamp: u32::from_be_bytes([a, b, c, d]),
            sequence: u16::from_be_bytes([e, f]),
        })
    }
}

/// Message of the receiver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Feedback {
    /// Rule that the sender has to follow.
    pub mode: Mode,
    /// Congestion signal, ms.
    pub x: f64,
    /// Receive rate, bit/s.
    pub receive_rate: f64,
}

impl Feedback {
    /// Encodes the message as an APP packet; the endpoint fills in its SSRC. Values too large for their fields saturate.
    #[must_use]
    pub fn write(&self) -> rtcp::Packet {
        // `as` saturates
        let x = (math::round(self.x * 10.0) as u16).min(MAX_SIGNAL);
        let gradual = u16::from(self.mode == Mode::Gradual) << 15;
        let mut data = Vec::with_capacity(8);
        data.extend_from_slice(&(gradual | x).to_be_bytes());
        data.extend_from_slice(&(math::round(self.receive_rate) as u32).to_be_bytes());
        data.extend_from_slice(&[0, 0]);
        rtcp::Packet::App(rtcp::App { subtype: 0, ssrc: 0, name: NAME, data })
    }

    /// Parses an APP packet; none if it is not a message of NADA.
    #[must_use]
    pub fn parse(app: &rtcp::App) -> Option<Self> {
        let &[a, b, c, d, e, f, _, _] = &app.data[..] else { return None };
        let signal = u16::from_be_bytes([a, b]);
        (app.name == NAME && app.subtype == 0).then(|| Self {
            mode: if signal > MAX_SIGNAL { Mode::Gradual } else { Mode::RampUp },
            x: f64::from(signal & MAX_SIGNAL) / 10.0,
            receive_rate: f64::from(u32::from_be_bytes([c, d, e, f])),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_by_hand() {
        let stamp = Stamp::new(Time::from_micros((1 << 32) + 0x0102_0304), 0x00ab_fedc);
        let written = stamp.write();
        assert_eq!(written.data, [1, 2, 3, 4, 0xfe, 0xdc]);
        assert_eq!(Stamp::parse(&written), Some(stamp));
        assert_eq!(Stamp::parse(&Extension { id: 8, ..written.clone() }), None);
        assert_eq!(Stamp::parse(&Extension { data: vec![0; 7], ..written }), None);
    }

    #[test]
    fn feedback_by_hand() {
        let feedback = Feedback { mode: Mode::Gradual, x: 25.6, receive_rate: 1_000_000.0 };
        let mut bytes = Vec::new();
        rtcp::encode(&[feedback.write()], &mut bytes).expect("fits");
        assert_eq!(bytes.len(), 20);
        assert_eq!(bytes[8..], [b'N', b'A', b'D', b'A', 0x81, 0x00, 0, 0x0f, 0x42, 0x40, 0, 0]);
        let rtcp::Packet::App(app) = &rtcp::decode(&bytes).expect("complete")[0] else { panic!("an APP") };
        assert_eq!(Feedback::parse(app), Some(feedback));
        let with = |name, data| rtcp::App { subtype: 0, ssrc: 1, name, data };
        assert_eq!(Feedback::parse(&with(*b"NADB", vec![0; 8])), None);
        assert_eq!(Feedback::parse(&with(NAME, vec![0; 4])), None);
    }

    #[test]
    fn the_ends_of_the_fields() {
        let round_trip = |mode, x, receive_rate| {
            let rtcp::Packet::App(app) = (Feedback { mode, x, receive_rate }).write() else {
                panic!("an APP")
            };
            Feedback::parse(&app).expect("feedback")
        };
        // section 5.3: approximately 3.27 s, approximately 4.3 Gb/s
        let largest = Feedback { mode: Mode::RampUp, x: 3276.7, receive_rate: 4_294_967_295.0 };
        assert_eq!(round_trip(Mode::RampUp, 1e6, 1e12), largest);
        let smallest = Feedback { mode: Mode::Gradual, x: 0.0, receive_rate: 0.0 };
        assert_eq!(round_trip(Mode::Gradual, 0.04, 0.4), smallest);
        assert_eq!(round_trip(Mode::Gradual, 0.06, 0.4).x, 0.1);
    }
}
