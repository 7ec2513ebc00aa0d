//! The record of one side of a call: facts with times of its own clock. The other side fetches it at the end.

use serde::{Deserialize, Serialize};
use tidegate_core::datagram::RtpBody;
use tidegate_core::record::{
    Breaker, EcnCheck, FrameRecord, FrameSent, LeastRate, RepairRecord, RtcpRecord, VideoStep,
};
use tidegate_core::{
    Body, Datagram, Decision, Ecn, FlowId, Frame, Kind, Level, Packet, Rate, Recorder, RouteId, Size, Span,
    Time,
};

use super::compression::{deflate, inflate};
use crate::session::Ignored;
use crate::session::transfer::MAX_RECORD;

/// Fields of a sent datagram that the record of a run needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Running number of its sender's packets.
    sequence: u32,
    kind: Kind,
    /// Bytes on the wire.
    size: u32,
    frame: u32,
    flags: u8,
    ecn: u8,
    dscp: u8,
    /// RTP timestamp, sequence number and payload type.
    rtp: Option<(u32, u16, u8)>,
}

impl Sent {
    /// Takes the fields from a datagram.
    pub(super) fn new(sequence: u32, kind: Kind, frame: Frame, datagram: &Datagram) -> Self {
        Self {
            sequence,
            kind,
            size: datagram.size,
            frame: frame.number,
            flags: frame.flags,
            ecn: datagram.ecn as u8,
            dscp: datagram.dscp,
            rtp: datagram.rtp().map(|body| (body.timestamp, body.sequence, body.payload_type)),
        }
    }

    /// The number of its frame, if it is audio.
    pub(super) fn audio_frame(&self) -> Option<u32> {
        (self.kind == Kind::Audio).then_some(self.frame)
    }

    /// Converts to a packet of the run, sent at `time`.
    pub(super) fn packet(&self, time: Time) -> Packet {
        let body = match self.rtp {
            Some((timestamp, sequence, payload_type)) => {
                Body::Rtp(RtpBody { timestamp, sequence, payload_type, ..RtpBody::default() })
            }
            None => Body::Rtcp,
        };
        let (size, ecn, dscp) = (self.size, Ecn::from_bits(self.ecn), self.dscp);
        let datagram = Datagram { size, ecn, dscp, body, ..Datagram::default() };
        let packet = Packet::new(time, FlowId(0), RouteId(0), self.sequence, self.kind, datagram);
        Packet { frame: Frame { number: self.frame, flags: self.flags }, ..packet }
    }
}

/// An event of a call. The packet numbers are sequence numbers of the session's sealed datagrams, in the packet's
/// direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    /// Its side sent a packet.
    Sent(u64, Sent),
    /// A packet of the other side arrived, with this ECN field.
    Arrived(u64, u8),
    /// A packet arrived too late for playout.
    Late(u64),
    /// A flow has ended, see [`Recorder`], as for all following variants.
    Ended,
    /// The path was checked for ECN.
    EcnChecked(EcnCheck),
    /// A circuit breaker has tripped, and whether it stops the sender.
    Tripped(Breaker, bool),
    /// Number of impossible statements in feedback.
    Refused(u32),
    /// Useful bytes.
    Goodput(Size),
    /// A packet was restored.
    Repaired(RepairRecord),
    /// Time that a packet of media waited in the pacer.
    Paced(Span),
    /// A frame was not sent.
    Skipped(u32, Size),
    /// The encoder left a picture out.
    LeftOut,
    /// Target, pacing rate and window.
    Decision(Rate, Rate, Option<Size>),
    /// A value with a name.
    Internal(String, f64),
    /// The video source is on, with its interval between frames, or off.
    VideoSwitched(Option<Span>),
    /// A frame left its encoder.
    FrameSent(FrameSent),
    /// The fate of a frame.
    Frame(FrameRecord),
    /// Length of a freeze.
    Freeze(Span),
    /// RTCP was sent.
    Rtcp(RtcpRecord),
    /// The target fell below this least rate of the sources, or no longer is below one.
    BelowLeast(Option<LeastRate>),
    /// Resolution and frame rate of the video from its next frame on.
    VideoStep(VideoStep),
}

/// Health of one side of a call: counts that are not in the tables of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Number of wakeups for which something was due.
    pub wakeups: u64,
    /// Lateness of wakeups in milliseconds: median, 99th percentile and maximum.
    pub late_ms: (f64, f64, f64),
    /// Datagrams whose kernel stamp could not be used, or contradicted the time already reached.
    pub clamped: u64,
    /// Datagrams that the cap on the rate held back.
    pub capped: u64,
    /// Datagrams that the kernel did not take.
    pub unsent: u64,
    /// Datagrams that arrived and were ignored.
    #[serde(default)]
    pub ignored: Ignored,
}

/// The record of one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Events with their times in nanoseconds of this side's clock since its beginning.
    pub facts: Vec<(i64, Fact)>,
    /// Time that this side took part.
    pub lasted: Span,
    /// Counts of problems.
    pub health: Health,
    /// Text of the user of this side, for the other side's record.
    pub about: String,
    /// Packets received, as this side read them; they replace the sender's record if that does not arrive.
    #[serde(skip)]
    pub received: Vec<(u64, Sent)>,
}

impl Record {
    /// The record as bytes, compressed.
    ///
    /// # Errors
    /// With the reason, when it cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let uncompressed = postcard::to_stdvec(self).map_err(|error| error.to_string())?;
        deflate(&uncompressed, flate2::Compression::default())
    }

    /// Reads the bytes that [`Record::to_bytes`] writes.
    ///
    /// # Errors
    /// With the reason, if the bytes are no record, or the record is too long: the memory that it takes is in proportion
    /// to the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        /// Largest size of the uncompressed record in bytes.
        const MAX_UNCOMPRESSED: u64 = 8 * MAX_RECORD as u64;
        let uncompressed = inflate(bytes, MAX_UNCOMPRESSED, "bytes")?;
        // times in nanoseconds are irregular: even compressed, a fact takes a byte
        let (facts, _) =
            postcard::take_from_bytes::<u64>(&uncompressed).map_err(|error| error.to_string())?;
        if facts > bytes.len() as u64 {
            return Err(format!("{facts} facts in {} bytes", bytes.len()));
        }
        postcard::from_bytes(&uncompressed).map_err(|error| error.to_string())
    }
}

impl Recorder for Record {
    fn level(&self) -> Level {
        Level::Series
    }
    fn ended(&mut self, now: Time, _: FlowId) {
        self.add(now, Fact::Ended);
    }
    fn ecn_checked(&mut self, now: Time, _: FlowId, check: EcnCheck) {
        self.add(now, Fact::EcnChecked(check));
    }
    fn tripped(&mut self, now: Time, _: FlowId, breaker: Breaker, stops: bool) {
        self.add(now, Fact::Tripped(breaker, stops));
    }
    fn refused(&mut self, now: Time, _: FlowId, count: u32) {
        self.add(now, Fact::Refused(count));
    }
    fn goodput(&mut self, now: Time, _: FlowId, bytes: Size) {
        self.add(now, Fact::Goodput(bytes));
    }
    fn repaired(&mut self, now: Time, repair: &RepairRecord) {
        self.add(now, Fact::Repaired(*repair));
    }
    fn paced(&mut self, now: Time, _: FlowId, waited: Span) {
        self.add(now, Fact::Paced(waited));
    }
    fn skipped(&mut self, now: Time, _: FlowId, packets: u32, bytes: Size) {
        self.add(now, Fact::Skipped(packets, bytes));
    }
    fn left_out(&mut self, now: Time, _: FlowId) {
        self.add(now, Fact::LeftOut);
    }
    fn below_least(&mut self, now: Time, _: FlowId, least: Option<LeastRate>) {
        self.add(now, Fact::BelowLeast(least));
    }
    fn decision(&mut self, now: Time, _: FlowId, decision: &Decision) {
        self.add(now, Fact::Decision(decision.target, decision.pacing, decision.window));
    }
    fn internal(&mut self, now: Time, _: FlowId, name: &str, value: f64) {
        self.add(now, Fact::Internal(name.to_owned(), value));
    }
    fn video_switched(&mut self, now: Time, _: FlowId, interval: Option<Span>) {
        self.add(now, Fact::VideoSwitched(interval));
    }
    fn video_step(&mut self, now: Time, _: FlowId, step: &VideoStep) {
        self.add(now, Fact::VideoStep(*step));
    }
    fn frame_sent(&mut self, now: Time, frame: &FrameSent) {
        self.add(now, Fact::FrameSent(*frame));
    }
    fn frame(&mut self, now: Time, frame: &FrameRecord) {
        self.add(now, Fact::Frame(*frame));
    }
    fn freeze(&mut self, now: Time, _: FlowId, length: Span) {
        self.add(now, Fact::Freeze(length));
    }
    fn rtcp(&mut self, now: Time, rtcp: &RtcpRecord) {
        self.add(now, Fact::Rtcp(*rtcp));
    }
}

impl Record {
    /// Adds a fact.
    pub(super) fn add(&mut self, now: Time, fact: Fact) {
        self.facts.push((now.as_nanos(), fact));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_encoding_and_damaged_bytes_are_errors() {
        let body = RtpBody { timestamp: 9, sequence: 7, payload_type: 96, ..RtpBody::default() };
        let datagram =
            Datagram { size: 1252, ecn: Ecn::Ect1, dscp: 46, body: Body::Rtp(body), ..Datagram::default() };
        let sent = Sent::new(3, Kind::Video, Frame { number: 5, flags: Frame::KEY }, &datagram);
        let packet = sent.packet(Time::from_millis(4));
        assert_eq!((packet.size, packet.ecn, packet.dscp, packet.sequence), (1252, Ecn::Ect1, 46, 3));
        assert_eq!((packet.frame.number, packet.kind, packet.sent), (5, Kind::Video, Time::from_millis(4)));
        assert_eq!(packet.rtp(), Some(&body));
        let mut record = Record { lasted: Span::from_secs(3), about: "x".to_owned(), ..Record::default() };
        for number in 0..1000_i64 {
            // as irregular as the times of a clock
            let time = Time::from_nanos(number * 1_000_000 + number * number * 7_919 % 100_003);
            record.add(time, Fact::Sent(number as u64, sent));
            record.internal(time, FlowId(0), "threshold", f64::INFINITY);
        }
        let bytes = record.to_bytes().expect("written");
        assert!(bytes.len() < 20_000, "{} bytes", bytes.len());
        assert_eq!(Record::from_bytes(&bytes), Ok(record));
        for length in (0..bytes.len()).step_by(bytes.len() / 50) {
            assert!(Record::from_bytes(&bytes[..length]).is_err(), "cut to {length}");
        }
    }

    #[test]
    fn a_fact_takes_some_hundred_bytes() {
        // twice as much while the list grows, and again for what an answerer notes of the packet itself
        assert!(size_of::<(i64, Fact)>() <= 104, "{}", size_of::<(i64, Fact)>());
        assert!(size_of::<(u64, Sent)>() <= 48, "{}", size_of::<(u64, Sent)>());
    }

    #[test]
    fn a_few_bytes_do_not_become_gigabytes() {
        use std::io::Write;

        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        for _ in 0..600 {
            encoder.write_all(&[0; 1 << 20]).expect("in memory");
        }
        let bytes = encoder.finish().expect("in memory");
        assert!(bytes.len() < 1 << 20);
        assert!(Record::from_bytes(&bytes).is_err());
        // ten million facts of two bytes, each of which takes many times as much in memory
        let mut facts = postcard::to_stdvec(&10_000_000_u64).expect("a number");
        facts.resize(facts.len() + 20_000_000, 3);
        let bytes = deflate(&facts, flate2::Compression::best()).expect("in memory");
        let reason = Record::from_bytes(&bytes).expect_err("a bomb");
        assert!(reason.starts_with("10000000 facts in "), "{reason}");
    }
}
