//! What an endpoint sees of the socket: a driver that seals and sends at once, and takes note of everything.

use super::record::{Fact, Record, Sent};
use super::socket::Socket;
use crate::session::Ignored;
use crate::session::seal::Sealer;
use std::io;
use tidegate_core::{About, Datagram, Driver, Ecn, FlowId, Frame, Rate, Recorder, Span, Time};
use tidegate_endpoint::datagram::encode_payload;

/// How long a burst the cap on the rate lets pass: a key frame at five times the rate, sent in a twentieth of a second.
const BURST: Span = Span::from_millis(250);

/// A token bucket, in nanoseconds times bit/s as those of links are, so that nothing is rounded.
#[derive(Debug)]
struct Bucket {
    rate: Rate,
    tokens: u128,
    at: Time,
}

impl Bucket {
    const BITS: u128 = 8_000_000_000;

    fn new(rate: Rate) -> Self {
        Self { rate, tokens: Self::most(rate), at: Time::ZERO }
    }

    fn most(rate: Rate) -> u128 {
        u128::from(rate.as_bps()) * BURST.as_nanos() as u128
    }

    /// Whether `size` bytes may go at `now`.
    fn takes(&mut self, now: Time, size: u32) -> bool {
        let passed = now.saturating_since(self.at).as_nanos() as u128;
        self.at = self.at.max(now);
        self.tokens = (self.tokens + u128::from(self.rate.as_bps()) * passed).min(Self::most(self.rate));
        let needed = u128::from(size) * Self::BITS;
        let enough = self.tokens >= needed;
        if enough {
            self.tokens -= needed;
        }
        enough
    }
}

/// The driver of an endpoint on a socket.
pub(super) struct Line {
    pub(super) socket: Socket,
    pub(super) record: Record,
    pub(super) ignored: Ignored,
    sealer: Sealer,
    overhead: u32,
    bucket: Bucket,
    sequence: u32,
    /// When something was sent last.
    pub(super) spoke: Time,
    /// The datagram that the endpoint is being handed: its number, and of which frame it is where it does not say so.
    pub(super) arrived: Option<(u64, Frame)>,
    pub(super) failure: Option<String>,
    buffer: Vec<u8>,
}

impl Line {
    pub(super) fn new(socket: Socket, sealer: Sealer, overhead: u32, most: Rate) -> Self {
        Self {
            socket,
            record: Record::default(),
            ignored: Ignored::default(),
            sealer,
            overhead,
            bucket: Bucket::new(most),
            sequence: 0,
            spoke: Time::ZERO,
            arrived: None,
            failure: None,
            buffer: Vec::with_capacity(2048),
        }
    }

    /// Seals and sends what is in the buffer; gives its number.
    fn put(&mut self, now: Time, ecn: Ecn, dscp: u8) -> u64 {
        let number = self.sealer.seal(&mut self.buffer);
        self.spoke = now;
        match self.socket.send(&self.buffer, ecn, dscp, None) {
            Ok(true) => {}
            Ok(false) => self.record.health.unsent += 1,
            Err(error) => self.broken("send", &error),
        }
        number
    }

    /// Sends a control message.
    pub(super) fn say(&mut self, now: Time, message: &[u8]) {
        self.buffer.clear();
        self.buffer.extend(message);
        self.put(now, Ecn::NotEct, 0);
    }

    /// Takes note that the socket is of no more use.
    pub(super) fn broken(&mut self, what: &str, error: &io::Error) {
        self.failure.get_or_insert_with(|| format!("the socket cannot {what}: {error}"));
    }
}

impl Driver for Line {
    fn record(&mut self) -> &mut dyn Recorder {
        &mut self.record
    }

    fn send(&mut self, now: Time, datagram: Datagram, about: About) {
        self.buffer.clear();
        if let Err(error) = encode_payload(&datagram, self.overhead, &mut self.buffer) {
            self.fail(format!("a packet that cannot be written: {error}"));
            return;
        }
        let sent = Sent::new(self.sequence, about.kind, about.frame, &datagram);
        self.sequence = self.sequence.wrapping_add(1);
        let number = if self.bucket.takes(now, datagram.size) {
            self.put(now, datagram.ecn, datagram.dscp)
        } else {
            self.record.health.capped += 1;
            // it has a number all the same: to the record it is a packet that was lost
            self.sealer.seal(&mut self.buffer)
        };
        self.record.add(now, Fact::Sent(number, sent));
    }

    fn late(&mut self, now: Time, _: FlowId) {
        if let Some((number, _)) = self.arrived {
            self.record.add(now, Fact::Late(number));
        }
    }

    fn true_delay(&self, _: Time) -> Span {
        // nobody knows; schemes that ask are refused before a call begins
        Span::ZERO
    }

    fn true_frame(&self) -> Frame {
        self.arrived.map_or(Frame::default(), |(_, frame)| frame)
    }

    fn fail(&mut self, reason: String) {
        self.failure.get_or_insert(reason);
    }

    fn has_failed(&self) -> bool {
        self.failure.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_is_the_rate_and_a_burst() {
        let mut bucket = Bucket::new(Rate::from_mbps(1));
        let burst = (0..1000).take_while(|_| bucket.takes(Time::ZERO, 1250)).count();
        assert_eq!(burst, 25, "a quarter of a second of 1 Mb/s in packets of 10 kbit");
        let mut passed = 0;
        for micros in 0..10_000_000 / 500 {
            passed += u32::from(bucket.takes(Time::from_micros(micros * 500), 1250));
        }
        assert!((998..=1000).contains(&passed), "{passed} packets of 10 kbit in ten seconds");
        // who was silent has the burst again, and no more
        let later = Time::from_secs(100);
        assert_eq!((0..1000).take_while(|_| bucket.takes(later, 1250)).count(), 25);
    }
}
