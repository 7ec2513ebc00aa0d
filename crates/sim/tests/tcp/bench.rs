//! A test bench for one end of a connection: packets are put in by hand, and its packets are inspected.

use std::sync::Arc;
use tidegate_core::datagram::{Attachment, Opening, SackBlocks, TcpBody};
use tidegate_core::record::NullRecorder;
use tidegate_core::wire::tcp::{Options, Timestamps};
use tidegate_core::{Body, Datagram, Ecn, FlowId, Kind, Node, Outbox, Packet, Port, RouteId, Span, Time};
use tidegate_sim::traffic::tcp::{TcpReceiver, TcpSender, TcpSettings};

/// A segment size that is easy to count in.
pub(crate) const MSS: u32 = 1000;

/// The defaults without a handshake, so that the first packet is data.
pub(crate) fn established() -> TcpSettings {
    TcpSettings { handshake: false, ..TcpSettings::default() }
}

pub(crate) struct Bench<N> {
    pub(crate) end: N,
    pub(crate) now: Time,
    out: Outbox,
}

pub(crate) fn sender(settings: TcpSettings) -> Bench<TcpSender> {
    let settings = TcpSettings { segment: MSS as u16, ..settings };
    let end = TcpSender::new("sender", 1, FlowId(0), RouteId(0), settings, None).unwrap();
    Bench::new(end)
}

pub(crate) fn receiver(settings: &TcpSettings) -> Bench<TcpReceiver> {
    Bench::new(TcpReceiver::new("receiver", FlowId(0), RouteId(0), settings).unwrap())
}

impl<N: Node> Bench<N> {
    fn new(end: N) -> Self {
        let mut bench = Self { end, now: Time::ZERO, out: Outbox::new(1, Box::new(NullRecorder)) };
        bench.end.advance(bench.now, &mut bench.out);
        bench
    }

    /// Packets that it has sent since the last call.
    pub(crate) fn sent(&mut self) -> Vec<(TcpBody, Packet)> {
        self.out
            .packets
            .drain(..)
            .map(|(_, packet)| match packet.body {
                Body::Tcp(body) => (body, *packet),
                _ => panic!("not TCP: {packet:?}"),
            })
            .collect()
    }

    /// Sequence numbers of the segments it has sent, in segments.
    pub(crate) fn segments(&mut self) -> Vec<u32> {
        self.sent().iter().map(|(body, _)| body.sequence / MSS).collect()
    }

    /// Lets time pass until it sends a packet.
    pub(crate) fn wait_for_packet(&mut self) -> Time {
        self.wait_until_packet(Time::MAX);
        assert!(!self.out.packets.is_empty(), "it has something to do");
        self.now
    }

    /// Lets time pass up to `time`, and returns the time of its first packet.
    pub(crate) fn wait_until(&mut self, time: Time) -> Option<Time> {
        let mut first = None;
        while let Some(next) = self.end.next_wakeup().filter(|&next| next <= time) {
            self.now = next;
            self.end.advance(next, &mut self.out);
            if !self.out.packets.is_empty() {
                first.get_or_insert(next);
            }
        }
        self.now = time;
        first
    }

    /// Lets time pass until it sends a packet, at most up to `time`.
    pub(crate) fn wait_until_packet(&mut self, time: Time) {
        while self.out.packets.is_empty()
            && let Some(next) = self.end.next_wakeup().filter(|&next| next <= time)
        {
            self.now = next;
            self.end.advance(next, &mut self.out);
        }
        if self.out.packets.is_empty() {
            self.now = time;
        }
    }

    pub(crate) fn pass(&mut self, span: Span) -> Option<Time> {
        self.wait_until(self.now + span)
    }

    fn take(&mut self, kind: Kind, body: TcpBody, attachment: Option<Arc<Attachment>>) {
        let packet = Packet::new(
            self.now,
            FlowId(0),
            RouteId(0),
            0,
            kind,
            Datagram {
                size: 40 + u32::from(body.length),
                body: Body::Tcp(body),
                attachment,
                ..Datagram::default()
            },
        );
        self.end.receive(self.now, Port::ZERO, Box::new(packet), &mut self.out);
    }

    /// Passes an acknowledgement in.
    pub(crate) fn ack(&mut self, ack: u32) {
        self.ack_with(ack, &[]);
    }

    /// Passes an acknowledgement with SACK blocks in; all numbers are in segments.
    pub(crate) fn ack_with(&mut self, ack: u32, blocks: &[(u32, u32)]) {
        let mut sack = SackBlocks::default();
        sack.iter_mut().zip(blocks).for_each(|(block, &(s, e))| *block = (s * MSS, e * MSS));
        self.ack_of(ack, Options { sack, ..Options::default() });
    }

    /// Passes an acknowledgement with this header in.
    pub(crate) fn header(&mut self, body: TcpBody) {
        self.take(Kind::Ack, body, None);
    }

    /// Passes the answer to a SYN in, with this header and these options.
    pub(crate) fn opening(&mut self, body: TcpBody, opening: Opening) {
        self.answer(body, Options { opening, ..Options::default() });
    }

    /// Passes the answer to a SYN in, with this header and all its options.
    pub(crate) fn answer(&mut self, body: TcpBody, options: Options) {
        self.take(Kind::Ack, body, Some(Arc::new(Attachment::Options(options))));
    }

    /// Passes an acknowledgement in that returns a timestamp, or has none.
    pub(crate) fn stamped_ack(&mut self, ack: u32, echo: Option<u32>) {
        let timestamps = echo.map(|echo| Timestamps { value: 0, echo });
        self.ack_of(ack, Options { timestamps, ..Options::default() });
    }

    fn ack_of(&mut self, ack: u32, options: Options) {
        let body = TcpBody { ack: ack * MSS, window: u16::MAX, flags: TcpBody::ACK, ..TcpBody::default() };
        self.answer(body, options);
    }

    /// Passes a data segment with a timestamp in.
    pub(crate) fn stamped_data(&mut self, sequence: u32, value: u32) {
        let body = TcpBody { sequence, length: MSS as u16, flags: TcpBody::ACK, ..TcpBody::default() };
        let timestamps = Some(Timestamps { value, echo: 0 });
        let options = Options { timestamps, ..Options::default() };
        self.take(Kind::Data, body, Some(Arc::new(Attachment::Options(options))));
    }

    /// Passes a data segment in, with this ECN field and these flags beside ACK.
    pub(crate) fn marked_data(&mut self, sequence: u32, ecn: Ecn, flags: u8) {
        let body =
            TcpBody { sequence, length: MSS as u16, flags: TcpBody::ACK | flags, ..TcpBody::default() };
        let datagram = Datagram { size: 40 + MSS, ecn, body: Body::Tcp(body), ..Datagram::default() };
        let packet = Packet::new(self.now, FlowId(0), RouteId(0), 0, Kind::Data, datagram);
        self.end.receive(self.now, Port::ZERO, Box::new(packet), &mut self.out);
    }

    /// Passes a data segment in.
    pub(crate) fn data(&mut self, sequence: u32, length: u16) {
        self.take(Kind::Data, TcpBody { sequence, length, flags: TcpBody::ACK, ..TcpBody::default() }, None);
    }

    /// Passes a SYN in.
    pub(crate) fn syn(&mut self, sequence: u32) {
        let body = TcpBody { sequence, flags: TcpBody::SYN, ..TcpBody::default() };
        self.take(Kind::Data, body, None);
    }

    /// The reason of its failure, if it failed.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.out.failure.as_deref()
    }

    /// Passes a packet of another protocol in.
    pub(crate) fn stray(&mut self) {
        let packet = Packet::new(
            self.now,
            FlowId(7),
            RouteId(0),
            0,
            Kind::Datagram,
            Datagram { size: 100, ..Datagram::default() },
        );
        self.end.receive(self.now, Port::ZERO, Box::new(packet), &mut self.out);
    }
}
