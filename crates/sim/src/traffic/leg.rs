//! A leg of a call's path over TCP: datagrams go through a connection, as between a client and its TURN relay.

use super::tcp::{TcpReceiver, TcpSender, TcpSettings, Variant, Workload};
use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use std::collections::VecDeque;
use tidegate_core::rng::Draws;
use tidegate_core::wire::ip::UDP_HEADERS;
use tidegate_core::{Cause, FlowId, Node, Outbox, Packet, Port, RouteId, Span, Time};

/// A connection that carries the datagrams of a call over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegSettings {
    /// Its congestion control.
    pub algorithm: Variant,
    /// Bytes that its socket holds: those written and not acknowledged.
    pub buffer: u64,
    /// The program that writes.
    pub writer: Writer,
    /// Bytes in front of each datagram, which is filled up to a multiple of four: 4 with TURN's ChannelData
    /// (RFC 8656 sections 12.4 and 12.5).
    pub framing: u32,
}

/// A program that writes datagrams into a connection, and what it does when the socket is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Writer {
    /// libwebrtc's: of the datagram that fills the socket the rest waits in the program, and until that has been written
    /// all other datagrams are dropped (`AsyncStunTCPSocket::Send`, `p2p/base/async_stun_tcp_socket.cc`). Linux lets it
    /// write again when the socket is two thirds full (`sk_stream_write_space`, `net/core/stream.c`).
    Client,
    /// A relay's, which drops a datagram that does not fit.
    Relay,
}

/// The longest delay of an acknowledgement in Linux (`TCP_DELACK_MIN`).
const DELAYED_ACK: Span = Span::from_millis(40);
/// Bytes of data in a segment of 1500 bytes with timestamps, as Linux sends them.
const SEGMENT: u16 = 1448;

impl LegSettings {
    fn tcp(&self) -> TcpSettings {
        TcpSettings {
            variant: self.algorithm,
            segment: SEGMENT,
            timestamps: true,
            delayed_ack: Some(DELAYED_ACK),
            // a call begins when its relay is reached
            handshake: false,
            workload: Workload::Stream,
            ..TcpSettings::default()
        }
    }
}

/// Both ends of a connection, and the datagrams in it.
///
/// Datagrams come in at [`TcpLeg::ENTRY`] and go on along their routes when all their bytes have arrived in order. The
/// connection's own segments come back to it at [`TcpLeg::DATA`], its acknowledgements at [`TcpLeg::ACKS`].
pub struct TcpLeg {
    name: String,
    settings: LegSettings,
    sender: TcpSender,
    receiver: TcpReceiver,
    /// The datagrams in order, each with the position of its end in the stream.
    inside: VecDeque<(u64, Box<Packet>)>,
    written: u64,
    /// Whether the rest of a datagram waits in the program, which then drops what comes.
    blocked: bool,
}

impl TcpLeg {
    /// Port of datagrams that go into the connection.
    pub const ENTRY: Port = Port::ZERO;
    /// Port of its segments at the far end.
    pub const DATA: Port = Port(1);
    /// Port of its acknowledgements at the near end.
    pub const ACKS: Port = Port(2);

    /// The connection called `name` in the run with `seed`; its segments are packets of `flow`, and take the first
    /// route, its acknowledgements the second.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn new(
        name: impl Into<String>,
        seed: u64,
        flow: FlowId,
        [data, acks]: [RouteId; 2],
        settings: LegSettings,
    ) -> Result<Self, Refusal> {
        let name = name.into();
        ensure(settings.buffer >= u64::from(SEGMENT), || {
            Refusal::new("via.buffer", settings.buffer, format!("at least a segment of {SEGMENT} bytes"))
        })?;
        ensure(settings.framing <= 1000, || {
            Refusal::new("via.framing", settings.framing, "at most 1000 bytes")
        })?;
        let tcp = settings.tcp();
        let receiver = TcpReceiver::new(format!("{name}.receiver"), flow, acks, &tcp)?;
        let sender = TcpSender::new(&name, seed, flow, data, tcp, None)?;
        Ok(Self { name, settings, sender, receiver, inside: VecDeque::new(), written: 0, blocked: false })
    }

    /// Bytes of a datagram in the stream: without its IP and UDP headers, framed, and filled up to a multiple of four.
    fn bytes(&self, packet: &Packet) -> u64 {
        let datagram = packet.size.saturating_sub(UDP_HEADERS) + self.settings.framing;
        u64::from(datagram.next_multiple_of(4))
    }

    /// Writes a datagram into the socket, or drops it.
    fn write(&mut self, now: Time, packet: Box<Packet>, out: &mut Outbox) {
        let (bytes, held) = (self.bytes(&packet), self.sender.held());
        let drops = match self.settings.writer {
            Writer::Client => self.blocked,
            Writer::Relay => held + bytes > self.settings.buffer,
        };
        if drops {
            out.discard(now, &packet, Cause::Queue);
            return out.recycle(packet);
        }
        self.blocked = held + bytes >= self.settings.buffer;
        self.written += bytes;
        self.inside.push_back((self.written, packet));
        self.sender.write(now, bytes, out);
    }

    /// Forwards the datagrams that have arrived.
    fn deliver(&mut self, out: &mut Outbox) {
        while self.inside.front().is_some_and(|(end, _)| *end <= self.receiver.in_order()) {
            let Some((_, packet)) = self.inside.pop_front() else { return };
            out.forward(Port::ZERO, packet);
        }
    }

    /// Notes that the socket may be written again.
    fn unblock(&mut self) {
        self.blocked &= self.sender.held() * 3 > self.settings.buffer * 2;
    }
}

impl Node for TcpLeg {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_wakeup(&self) -> Option<Time> {
        [self.sender.next_wakeup(), self.receiver.next_wakeup()].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Time, out: &mut Outbox) {
        self.sender.advance(now, out);
        self.receiver.advance(now, out);
    }

    fn receive(&mut self, now: Time, port: Port, packet: Box<Packet>, out: &mut Outbox) {
        match port {
            Self::DATA => {
                self.receiver.receive(now, port, packet, out);
                self.deliver(out);
            }
            Self::ACKS => {
                self.sender.receive(now, port, packet, out);
                self.unblock();
            }
            _ => {
                // the connection begins before the first datagram, also where both are due now
                self.sender.advance(now, out);
                self.write(now, packet, out);
            }
        }
    }

    fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        self.inside.iter().for_each(|(_, packet)| visit(packet));
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.sender.draws(visit);
    }
}
