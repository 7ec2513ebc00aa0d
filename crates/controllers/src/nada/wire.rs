//! What the two halves say to each other, as bytes, where the receiver computes the congestion signal.
//!
//! A data packet carries the time of sending and its number in the flow as one RFC 8285 element; "the NADA sender can
//! generate its own timestamp" (RFC 8698 section 5.1.1):
//!
//! ```text
//! 0           4     6
//! | timestamp | seq |     32 bits in us, and the low 16 bits of the transport-wide sequence number
//! ```
//!
//! Feedback has the 48 bits of RFC 8698 section 5.3, in an APP packet (RFC 3550 section 6.7) of the name `NADA`, which is
//! filled up to a multiple of 32 bits:
//!
//! ```text
//! 0               2               6     8
//! | rmode, x_curr | r_recv        | 0   |     1 bit and 15 bits in 100 us, 32 bits in bit/s
//! ```

use super::rate::Mode;
use tidegate_core::datagram::Extension;
use tidegate_core::wire::rtcp;
use tidegate_core::{Time, math};

/// RFC 8285 identifier of the stamp; 3 and 5 are the endpoint's, 7 TFRC's, 8 Sprout's.
pub const STAMP_ID: u8 = 9;

/// The name of the feedback's APP packet.
pub const NAME: [u8; 4] = *b"NADA";

/// The largest signal that fits, in units of 100 us.
const MOST: u16 = 0x7fff;

/// What rides on a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// When it was sent, in us of the sender's clock; wraps after 71 minutes.
    pub timestamp: u32,
    /// The low bits of its transport-wide sequence number.
    pub sequence: u16,
}

impl Stamp {
    /// Of packet number `sequence`, sent `at`.
    #[must_use]
    pub fn new(at: Time, sequence: u64) -> Self {
        Self { timestamp: (at.as_nanos() / 1000) as u32, sequence: sequence as u16 }
    }

    /// As an extension element.
    #[must_use]
    pub fn write(&self) -> Extension {
        let mut data = Vec::with_capacity(6);
        data.extend_from_slice(&self.timestamp.to_be_bytes());
        data.extend_from_slice(&self.sequence.to_be_bytes());
        Extension { id: STAMP_ID, data }
    }

    /// From an extension element; nothing if it is another one.
    #[must_use]
    pub fn read(extension: &Extension) -> Option<Self> {
        let &[a, b, c, d, e, f] = &extension.data[..] else { return None };
        (extension.id == STAMP_ID).then(|| Self {
            timestamp: u32::from_be_bytes([a, b, c, d]),
            sequence: u16::from_be_bytes([e, f]),
        })
    }
}

/// What the receiver says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Feedback {
    /// Which rule the sender is to follow.
    pub mode: Mode,
    /// The congestion signal in ms.
    pub x: f64,
    /// The receive rate in bit/s.
    pub receive_rate: f64,
}

impl Feedback {
    /// As an APP packet under the endpoint's own SSRC. What is too large for its field is the largest that fits.
    #[must_use]
    pub fn write(&self) -> rtcp::Packet {
        // `as` ends at the ends of the type
        let x = (math::round(self.x * 10.0) as u16).min(MOST);
        let gradual = u16::from(self.mode == Mode::Gradual) << 15;
        let mut data = Vec::with_capacity(8);
        data.extend_from_slice(&(gradual | x).to_be_bytes());
        data.extend_from_slice(&(math::round(self.receive_rate) as u32).to_be_bytes());
        data.extend_from_slice(&[0, 0]);
        rtcp::Packet::App(rtcp::App { subtype: 0, ssrc: 0, name: NAME, data })
    }

    /// From an APP packet; nothing if it is another one.
    #[must_use]
    pub fn read(app: &rtcp::App) -> Option<Self> {
        let &[a, b, c, d, e, f, _, _] = &app.data[..] else { return None };
        let signal = u16::from_be_bytes([a, b]);
        (app.name == NAME && app.subtype == 0).then(|| Self {
            mode: if signal > MOST { Mode::Gradual } else { Mode::RampUp },
            x: f64::from(signal & MOST) / 10.0,
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
        assert_eq!(Stamp::read(&written), Some(stamp));
        assert_eq!(Stamp::read(&Extension { id: 8, ..written.clone() }), None);
        assert_eq!(Stamp::read(&Extension { data: vec![0; 7], ..written }), None);
    }

    #[test]
    fn feedback_by_hand() {
        let said = Feedback { mode: Mode::Gradual, x: 25.6, receive_rate: 1_000_000.0 };
        let mut bytes = Vec::new();
        rtcp::encode(&[said.write()], &mut bytes).expect("fits");
        assert_eq!(bytes.len(), 20);
        assert_eq!(bytes[8..], [b'N', b'A', b'D', b'A', 0x81, 0x00, 0, 0x0f, 0x42, 0x40, 0, 0]);
        let rtcp::Packet::App(app) = &rtcp::decode(&bytes).expect("whole")[0] else { panic!("an APP") };
        assert_eq!(Feedback::read(app), Some(said));
        let with = |name, data| rtcp::App { subtype: 0, ssrc: 1, name, data };
        assert_eq!(Feedback::read(&with(*b"NADB", vec![0; 8])), None);
        assert_eq!(Feedback::read(&with(NAME, vec![0; 4])), None);
    }

    #[test]
    fn the_ends_of_the_fields() {
        let through = |mode, x, receive_rate| {
            let rtcp::Packet::App(app) = (Feedback { mode, x, receive_rate }).write() else {
                panic!("an APP")
            };
            Feedback::read(&app).expect("one")
        };
        // section 5.3: approximately 3.27 s, approximately 4.3 Gb/s
        let most = Feedback { mode: Mode::RampUp, x: 3276.7, receive_rate: 4_294_967_295.0 };
        assert_eq!(through(Mode::RampUp, 1e6, 1e12), most);
        let none = Feedback { mode: Mode::Gradual, x: 0.0, receive_rate: 0.0 };
        assert_eq!(through(Mode::Gradual, 0.04, 0.4), none);
        assert_eq!(through(Mode::Gradual, 0.06, 0.4).x, 0.1);
    }
}
