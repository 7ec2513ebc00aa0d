//! The driver of an endpoint on a socket: seals and sends at once, and records everything.

use super::record::{Fact, Record, Sent};
use super::socket::Socket;
use crate::session::Ignored;
use crate::session::seal::Sealer;
use std::io;
use tidegate_core::{Datagram, DatagramInfo, Driver, Ecn, FlowId, Frame, Rate, Recorder, Span, Time};
use tidegate_endpoint::datagram::encode_payload;

/// Burst that the rate cap lets pass: a key frame at five times the rate, sent in a twentieth of a second.
const BURST: Span = Span::from_millis(250);

/// A token bucket. Tokens are nanoseconds times bit/s, as in the buckets of links, so that nothing is rounded.
#[derive(Debug)]
struct Bucket {
    rate: Rate,
    tokens: u128,
    updated: Time,
}

impl Bucket {
    const TOKENS_PER_BYTE: u128 = 8_000_000_000;

    fn new(rate: Rate) -> Self {
        Self { rate, tokens: Self::max_tokens(rate), updated: Time::ZERO }
    }

    fn max_tokens(rate: Rate) -> u128 {
        u128::from(rate.as_bps()) * BURST.as_nanos() as u128
    }

    /// Whether `size` bytes may be sent at `now`; takes their tokens if so.
    fn take(&mut self, now: Time, size: u32) -> bool {
        let elapsed = now.saturating_since(self.updated).as_nanos() as u128;
        self.updated = self.updated.max(now);
        self.tokens =
            (self.tokens + u128::from(self.rate.as_bps()) * elapsed).min(Self::max_tokens(self.rate));
        let needed = u128::from(size) * Self::TOKENS_PER_BYTE;
        let enough = self.tokens >= needed;
        if enough {
            self.tokens -= needed;
        }
        enough
    }
}

/// Runs an endpoint over a UDP socket.
pub(super) struct SocketDriver {
    pub(super) socket: Socket,
    pub(super) record: Record,
    pub(super) ignored: Ignored,
    sealer: Sealer,
    overhead: u32,
    bucket: Bucket,
    sequence: u32,
    /// Time of the last datagram sent.
    pub(super) last_sent: Time,
    /// Sequence number and media frame of the datagram that the endpoint is receiving.
    pub(super) arrived: Option<(u64, Frame)>,
    pub(super) failure: Option<String>,
    buffer: Vec<u8>,
}

impl SocketDriver {
    pub(super) fn new(socket: Socket, sealer: Sealer, overhead: u32, max_rate: Rate) -> Self {
        Self {
            socket,
            record: Record::default(),
            ignored: Ignored::default(),
            sealer,
            overhead,
            bucket: Bucket::new(max_rate),
            sequence: 0,
            last_sent: Time::ZERO,
            arrived: None,
            failure: None,
            buffer: Vec::with_capacity(2048),
        }
    }

    /// Seals and sends the buffer; returns the datagram's number.
    fn send_buffer(&mut self, now: Time, ecn: Ecn, dscp: u8) -> u64 {
        let number = self.sealer.seal(&mut self.buffer);
        self.last_sent = now;
        match self.socket.send(&self.buffer, ecn, dscp, None) {
            Ok(true) => {}
            Ok(false) => self.record.health.unsent += 1,
            Err(error) => self.set_broken("send", &error),
        }
        number
    }

    /// Sends a control message.
    pub(super) fn send_control(&mut self, now: Time, message: &[u8]) {
        self.buffer.clear();
        self.buffer.extend(message);
        self.send_buffer(now, Ecn::NotEct, 0);
    }

    /// Marks the socket as unusable. `operation` is a verb for the message.
    pub(super) fn set_broken(&mut self, operation: &str, error: &io::Error) {
        self.failure.get_or_insert_with(|| format!("the socket cannot {operation}: {error}"));
    }
}

impl Driver for SocketDriver {
    fn record(&mut self) -> &mut dyn Recorder {
        &mut self.record
    }

    fn send(&mut self, now: Time, datagram: Datagram, info: DatagramInfo) {
        self.buffer.clear();
        if let Err(error) = encode_payload(&datagram, self.overhead, &mut self.buffer) {
            self.fail(format!("a packet cannot be encoded: {error}"));
            return;
        }
        let sent = Sent::new(self.sequence, info.kind, info.frame, &datagram);
        self.sequence = self.sequence.wrapping_add(1);
        let number = if self.bucket.take(now, datagram.size) {
            self.send_buffer(now, datagram.ecn, datagram.dscp)
        } else {
            self.record.health.capped += 1;
            // it gets a number, so that the record has it as a lost packet
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
        // not known over a socket; schemes that need it are refused before a call begins
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
        let burst = (0..1000).take_while(|_| bucket.take(Time::ZERO, 1250)).count();
        assert_eq!(burst, 25, "a quarter of a second of 1 Mb/s in packets of 10 kbit");
        let mut sent = 0;
        for micros in 0..10_000_000 / 500 {
            sent += u32::from(bucket.take(Time::from_micros(micros * 500), 1250));
        }
        assert!((998..=1000).contains(&sent), "{sent} packets of 10 kbit in ten seconds");
        // after a silence there is the burst again, and no more
        let later = Time::from_secs(100);
        assert_eq!((0..1000).take_while(|_| bucket.take(later, 1250)).count(), 25);
    }
}
