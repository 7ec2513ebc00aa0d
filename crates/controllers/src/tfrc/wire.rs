//! Wire format between the two halves: draft-ietf-avt-tfrc-profile-10.
//!
//! A data packet carries the sender's round-trip time and the departure as one RFC 8285 element:
//!
//! ```text
//! 0       3           7     9
//! | RTT   | timestamp | seq |     RTT 24 bits, timestamp 32 bits, both in us
//! ```
//!
//! The first seven bytes are the draft's (its section 5); the transport-wide sequence number is ours. The draft controls
//! one RTP stream and detects losses by that stream's sequence numbers; here audio, video and padding are one flow with
//! one rate.
//!
//! Feedback is the draft's sixteen bytes of FCI: the timestamp of the last packet, the time since its arrival (us), the
//! receive rate in bytes/s, and the loss event rate with the binary point at the left edge. The draft puts them into
//! transport-layer feedback (PT 205, FMT 2), but FMT 2 was never assigned to it. Here they are an APP packet (RFC 3550
//! section 6.7) with the name `TFRC`, which has the same 28 bytes and needs no number from a registry.

use tidegate_core::datagram::Extension;
use tidegate_core::wire::rtcp;
use tidegate_core::{Span, Time};

/// RFC 8285 identifier of the stamp; the endpoint uses 3 and 5.
pub const STAMP_ID: u8 = 7;

/// Name of the feedback's APP packet.
pub const NAME: [u8; 4] = *b"TFRC";

/// Header extension of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// Sender's estimate of the round-trip time; zero before the first.
    pub rtt: Span,
    /// Departure by the sender's clock, us; wraps after 71 minutes.
    pub timestamp: u32,
    /// Low bits of the transport-wide sequence number.
    pub sequence: u16,
}

/// Converts a time of the sender's clock to the us of stamps.
#[must_use]
pub fn micros(time: Time) -> u32 {
    (time.as_nanos() / 1000) as u32
}

impl Stamp {
    /// Encodes the stamp as an extension element. Round-trip times above 16.8 s saturate; those below a microsecond become a
    /// microsecond, because zero stands for none.
    #[must_use]
    pub fn write(&self) -> Extension {
        let min = i64::from(self.rtt > Span::ZERO);
        let rtt = (self.rtt.as_nanos() / 1000).clamp(min, 0xff_ffff) as u32;
        let mut data = Vec::with_capacity(9);
        data.extend_from_slice(&rtt.to_be_bytes()[1..]);
        data.extend_from_slice(&self.timestamp.to_be_bytes());
        data.extend_from_slice(&self.sequence.to_be_bytes());
        Extension { id: STAMP_ID, data }
    }

    /// Parses an extension element; none if it is not a stamp.
    #[must_use]
    pub fn parse(extension: &Extension) -> Option<Self> {
        let &[a, b, c, d, e, f, g, h, i] = &extension.data[..] else { return None };
        (extension.id == STAMP_ID).then(|| Self {
            rtt: Span::from_micros(i64::from(u32::from_be_bytes([0, a, b, c]))),
            timestamp: u32::from_be_bytes([d, e, f, g]),
            sequence: u16::from_be_bytes([h, i]),
        })
    }
}

/// Message of the receiver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Feedback {
    /// Timestamp of the last packet (t_recvdata).
    pub timestamp: u32,
    /// Time since its arrival, us (t_delay).
    pub delay: u32,
    /// Receive rate, bytes/s (X_recv).
    pub receive_rate: f64,
    /// Loss event rate, from 0 to 1 (p).
    pub loss_event_rate: f64,
}

/// Loss event rate of 1 in fixed-point form: 2^32.
const FIXED_POINT_ONE: f64 = 4_294_967_296.0;

impl Feedback {
    /// Encodes the message as an APP packet; the endpoint fills in its SSRC. A loss event rate above zero is not rounded to
    /// zero.
    #[must_use]
    pub fn write(&self) -> rtcp::Packet {
        // `as` saturates
        let loss = (self.loss_event_rate * FIXED_POINT_ONE)
            .max(f64::from(u8::from(self.loss_event_rate > 0.0))) as u32;
        let words = [self.timestamp, self.delay, self.receive_rate as u32, loss];
        let data = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        rtcp::Packet::App(rtcp::App { subtype: 0, ssrc: 0, name: NAME, data })
    }

    /// Parses an APP packet; none if it is not a message of TFRC.
    #[must_use]
    pub fn parse(app: &rtcp::App) -> Option<Self> {
        let (words, rest) = app.data.as_chunks::<4>();
        let &[timestamp, delay, rate, loss] = words else { return None };
        (app.name == NAME && app.subtype == 0 && rest.is_empty()).then(|| Self {
            timestamp: u32::from_be_bytes(timestamp),
            delay: u32::from_be_bytes(delay),
            receive_rate: f64::from(u32::from_be_bytes(rate)),
            loss_event_rate: f64::from(u32::from_be_bytes(loss)) / FIXED_POINT_ONE,
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
        assert_eq!(Stamp::parse(&written), Some(stamp));
        assert_eq!(Stamp::parse(&Extension { id: 8, ..written.clone() }), None);
        assert_eq!(Stamp::parse(&Extension { data: vec![0; 7], ..written }), None);
    }

    #[test]
    fn round_trip_times_stay_within_their_field() {
        let rtt = |rtt| Stamp::parse(&Stamp { rtt, timestamp: 0, sequence: 0 }.write()).expect("parsed").rtt;
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
        let feedback =
            Feedback { timestamp: 1, delay: 2, receive_rate: 150_000.0, loss_event_rate: 0.015_625 };
        let mut bytes = Vec::new();
        rtcp::encode(&[feedback.write()], &mut bytes).expect("fits");
        assert_eq!(bytes.len(), 28);
        assert_eq!(bytes[12..], [0, 0, 0, 1, 0, 0, 0, 2, 0, 2, 0x49, 0xf0, 4, 0, 0, 0]);
        let rtcp::Packet::App(app) = &rtcp::decode(&bytes).expect("complete")[0] else { panic!("an APP") };
        assert_eq!(Feedback::parse(app), Some(feedback));
        let with = |name, data| rtcp::App { subtype: 0, ssrc: 1, name, data };
        assert_eq!(Feedback::parse(&with(*b"TFRD", vec![0; 16])), None);
        assert_eq!(Feedback::parse(&with(NAME, vec![0; 12])), None);
    }

    #[test]
    fn the_ends_of_the_loss_event_rate() {
        let round_trip = |loss_event_rate| {
            let feedback = Feedback { timestamp: 0, delay: 0, receive_rate: 0.0, loss_event_rate };
            let rtcp::Packet::App(app) = feedback.write() else { panic!("an APP") };
            Feedback::parse(&app).expect("parsed").loss_event_rate
        };
        assert_eq!(round_trip(0.0), 0.0);
        assert_eq!(round_trip(1e-18), 1.0 / FIXED_POINT_ONE, "something is lost");
        assert_eq!(round_trip(1.0), 1.0 - 1.0 / FIXED_POINT_ONE, "the largest that the field holds");
    }
}
