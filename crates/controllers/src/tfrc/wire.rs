//! What the two halves say to each other, as bytes: draft-ietf-avt-tfrc-profile-10.
//!
//! A data packet carries the sender's round-trip time and the time of sending as one RFC 8285 element:
//!
//! ```text
//! 0       3           7     9
//! | RTT   | timestamp | seq |     RTT 24 bits, timestamp 32 bits, both in us
//! ```
//!
//! The first seven bytes are the draft's (its section 5); the transport-wide sequence number is ours. The
//! draft controls one RTP stream and finds losses by that stream's numbers; here audio, video and padding
//! are one flow with one rate.
//!
//! Feedback is the draft's sixteen bytes of FCI: the timestamp of the last packet, how long ago it came (us), the
//! receive rate in bytes/s, and the loss event rate with the binary point at the left edge. The draft puts
//! them into transport-layer feedback (PT 205, FMT 2); here they are an APP packet (RFC 3550 section 6.7)
//! of the name `TFRC`, which has the same 28 bytes and needs no number from a registry: 2 is TMMBR's
//! neighbour and was never assigned.

use tidegate_core::datagram::Extension;
use tidegate_core::wire::rtcp;
use tidegate_core::{Span, Time};

/// RFC 8285 identifier of the stamp; 3 and 5 are taken by the endpoint.
pub const STAMP_ID: u8 = 7;

/// The name of the feedback's APP packet.
pub const NAME: [u8; 4] = *b"TFRC";

/// What rides on a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// The sender's estimate of the round-trip time; zero while it has none.
    pub rtt: Span,
    /// When it was sent, in us of the sender's clock; wraps after 71 minutes.
    pub timestamp: u32,
    /// The low bits of its transport-wide sequence number.
    pub sequence: u16,
}

/// `at` in us of the sender's clock, as stamps have it.
#[must_use]
pub fn micros(at: Time) -> u32 {
    (at.as_nanos() / 1000) as u32
}

impl Stamp {
    /// As an extension element. Round-trip times beyond 16.8 s are cut; one below a microsecond is a
    /// microsecond, because zero says that there is none.
    #[must_use]
    pub fn write(&self) -> Extension {
        let least = i64::from(self.rtt > Span::ZERO);
        let rtt = (self.rtt.as_nanos() / 1000).clamp(least, 0xff_ffff) as u32;
        let mut data = Vec::with_capacity(9);
        data.extend_from_slice(&rtt.to_be_bytes()[1..]);
        data.extend_from_slice(&self.timestamp.to_be_bytes());
        data.extend_from_slice(&self.sequence.to_be_bytes());
        Extension { id: STAMP_ID, data }
    }

    /// From an extension element; nothing if it is another one.
    #[must_use]
    pub fn read(extension: &Extension) -> Option<Self> {
        let &[a, b, c, d, e, f, g, h, i] = &extension.data[..] else { return None };
        (extension.id == STAMP_ID).then(|| Self {
            rtt: Span::from_micros(i64::from(u32::from_be_bytes([0, a, b, c]))),
            timestamp: u32::from_be_bytes([d, e, f, g]),
            sequence: u16::from_be_bytes([h, i]),
        })
    }
}

/// What the receiver says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Feedback {
    /// The timestamp of the last packet (t_recvdata).
    pub timestamp: u32,
    /// How long ago it came, in us (t_delay).
    pub delay: u32,
    /// The receive rate in bytes/s (X_recv).
    pub receive_rate: f64,
    /// The loss event rate (p), 0 to 1.
    pub loss_event_rate: f64,
}

/// 2^32: where the binary point is.
const ONE: f64 = 4_294_967_296.0;

impl Feedback {
    /// As an APP packet under the endpoint's own SSRC. Whatever is lost stays lost: a rate above zero is
    /// not rounded to zero.
    #[must_use]
    pub fn write(&self) -> rtcp::Packet {
        // `as` ends at the field's largest value
        let loss = (self.loss_event_rate * ONE).max(f64::from(u8::from(self.loss_event_rate > 0.0))) as u32;
        let words = [self.timestamp, self.delay, self.receive_rate as u32, loss];
        let data = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        rtcp::Packet::App(rtcp::App { subtype: 0, ssrc: 0, name: NAME, data })
    }

    /// From an APP packet; nothing if it is another one.
    #[must_use]
    pub fn read(app: &rtcp::App) -> Option<Self> {
        let (words, rest) = app.data.as_chunks::<4>();
        let &[timestamp, delay, rate, loss] = words else { return None };
        (app.name == NAME && app.subtype == 0 && rest.is_empty()).then(|| Self {
            timestamp: u32::from_be_bytes(timestamp),
            delay: u32::from_be_bytes(delay),
            receive_rate: f64::from(u32::from_be_bytes(rate)),
            loss_event_rate: f64::from(u32::from_be_bytes(loss)) / ONE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_by_hand() {
        let stamp = Stamp { rtt: Span::from_micros(0x01_0203), timestamp: 0x0a0b_0c0d, sequence: 0xfedc };
        let written = stamp.write();
        assert_eq!(written.data, [1, 2, 3, 10, 11, 12, 13, 0xfe, 0xdc]);
        assert_eq!(Stamp::read(&written), Some(stamp));
        assert_eq!(Stamp::read(&Extension { id: 8, ..written.clone() }), None);
        assert_eq!(Stamp::read(&Extension { data: vec![0; 7], ..written }), None);
    }

    #[test]
    fn round_trip_times_stay_within_their_field() {
        let rtt = |rtt| Stamp::read(&Stamp { rtt, timestamp: 0, sequence: 0 }.write()).expect("one").rtt;
        assert_eq!(rtt(Span::ZERO), Span::ZERO);
        assert_eq!(rtt(Span::from_nanos(1)), Span::from_micros(1));
        assert_eq!(rtt(Span::from_secs(100)), Span::from_micros(0xff_ffff));
    }

    #[test]
    fn timestamps_wrap() {
        assert_eq!(micros(Time::from_micros(7)), 7);
        assert_eq!(micros(Time::from_micros((1 << 32) + 7)), 7);
    }

    #[test]
    fn feedback_is_28_bytes_and_keeps_its_values() {
        let said = Feedback { timestamp: 1, delay: 2, receive_rate: 150_000.0, loss_event_rate: 0.015_625 };
        let mut bytes = Vec::new();
        rtcp::encode(&[said.write()], &mut bytes).expect("fits");
        assert_eq!(bytes.len(), 28);
        assert_eq!(bytes[12..], [0, 0, 0, 1, 0, 0, 0, 2, 0, 2, 0x49, 0xf0, 4, 0, 0, 0]);
        let rtcp::Packet::App(app) = &rtcp::decode(&bytes).expect("whole")[0] else { panic!("an APP") };
        assert_eq!(Feedback::read(app), Some(said));
        let with = |name, data| rtcp::App { subtype: 0, ssrc: 1, name, data };
        assert_eq!(Feedback::read(&with(*b"TFRD", vec![0; 16])), None);
        assert_eq!(Feedback::read(&with(NAME, vec![0; 12])), None);
    }

    #[test]
    fn the_ends_of_the_loss_event_rate() {
        let through = |loss_event_rate| {
            let said = Feedback { timestamp: 0, delay: 0, receive_rate: 0.0, loss_event_rate };
            let rtcp::Packet::App(app) = said.write() else { panic!("an APP") };
            Feedback::read(&app).expect("one").loss_event_rate
        };
        assert_eq!(through(0.0), 0.0);
        assert_eq!(through(1e-18), 1.0 / ONE, "something is lost");
        assert_eq!(through(1.0), 1.0 - 1.0 / ONE, "the largest that the field holds");
    }
}
