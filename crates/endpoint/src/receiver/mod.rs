//! The receiving side: statistics, the arrival log, the controller's receiver half, and playout.

mod playout;
mod repair;

use crate::clock::Drift;
use crate::datagram::header_len;
use crate::reception::Reception;
use crate::repair::Repair;
use crate::rtcp::feedback::{FeedbackLog, LoggedPacket, TransportNumbers};
use crate::settings::{MediaKind, ReceiveSettings, Signalled};
use playout::PlayoutBuffer;
use repair::ReceiverRepair;
use tidegate_core::control::{Arrived, Failure, Feedback, ReceiverHost, Urgency};
use tidegate_core::datagram::RtpBody;
use tidegate_core::driver::Driver;
use tidegate_core::frame::Marks;
use tidegate_core::rng::Draws;
use tidegate_core::wire::rtcp::ReportBlock;
use tidegate_core::wire::wrap;
use tidegate_core::{Datagram, FlowId, Frame, Level, RemoteTime, Size, Span, Stream, Time};

struct InStream {
    signalled: Signalled,
    reception: Reception,
    playout: Option<PlayoutBuffer>,
    numbers: FrameNumbers,
    /// When its sender said goodbye, if it has.
    gone: Option<Time>,
}

/// Unwrapper of the frame numbers in the marks of a stream.
#[derive(Clone, Copy, Debug)]
struct FrameNumbers {
    /// The highest number of a frame so far.
    newest: i64,
    /// Whether the structure that defines the templates has arrived.
    structured: bool,
}

impl FrameNumbers {
    /// Before the first frame: any number of 16 bits may be the first.
    const NONE: Self = Self { newest: WRAP / 2 - 1, structured: false };

    /// The frame that a packet with these marks belongs to.
    fn frame(&mut self, marks: Marks) -> Frame {
        self.structured |= marks.has_structure();
        let number = wrap::nearest(u32::from(marks.frame), 16, self.newest);
        self.newest = self.newest.max(number);
        // without the structure, the meaning of a template is unknown
        let mut frame = marks.frame(number as u32);
        if !self.structured {
            frame.flags &= !Frame::KEY;
        }
        frame
    }
}

/// The abs-send-time of a packet, as a receiver sees it whose clock has gained so much: its receiver half measures arrivals
/// by the driver's time.
fn send_time([a, b, c]: [u8; 3], gained: Span) -> u32 {
    // 6.18 bits of seconds
    let ticks = (i128::from(gained.as_nanos()) << 18).div_euclid(1_000_000_000);
    u32::from_be_bytes([0, a, b, c]).wrapping_sub(ticks as u32) & 0xff_ffff
}

/// Number of 16-bit sequence numbers.
const WRAP: i64 = 1 << 16;

/// Index for payload types that no stream has.
const NO_STREAM: u8 = u8::MAX;

/// The receiving side of an endpoint.
pub(crate) struct Receiver {
    flow: FlowId,
    streams: Vec<InStream>,
    /// Index of the stream of each payload type.
    by_type: [u8; 128],
    half: Option<ReceiverHost>,
    /// Repair of video losses, if any is set and goes on.
    repair: Option<ReceiverRepair>,
    /// The repair that is set, and the index of the video that it is of.
    repairs: Option<(Repair, usize)>,
    pub(crate) feedback: FeedbackLog,
    transport: TransportNumbers,
    /// Drift of its clock.
    drift: Drift,
    wakeup: Time,
    /// Whether a packet has arrived.
    pub(crate) heard: bool,
}

impl Receiver {
    pub(crate) fn new(settings: ReceiveSettings, drift: Drift, name: &str, seed: u64) -> Self {
        let mut by_type = [NO_STREAM; 128];
        for (index, stream) in settings.streams.iter().enumerate() {
            by_type[usize::from(stream.payload_type & 127)] = index as u8;
        }
        let streams: Vec<InStream> = settings
            .streams
            .iter()
            .map(|&signalled| InStream {
                signalled,
                reception: Reception::new(signalled.ssrc, signalled.clock_rate),
                playout: signalled.frames.then(|| {
                    let video = signalled.kind == MediaKind::Video;
                    let clock_rate = signalled.clock_rate;
                    let mut playout = PlayoutBuffer::new(settings.flow, video, settings.playout, clock_rate);
                    playout.set_drift(drift);
                    if video {
                        playout.set_requests(settings.repair.nack.is_some(), settings.repair.pli.is_some());
                    }
                    playout
                }),
                numbers: FrameNumbers::NONE,
                gone: None,
            })
            .collect();
        let video = settings.streams.iter().position(|stream| stream.kind == MediaKind::Video);
        let ssrcs: Vec<u32> = settings.streams.iter().map(|stream| stream.ssrc).collect();
        let half = settings.half.map(|half| {
            let rng = Stream::new(seed, name, "receiver");
            ReceiverHost::new(format!("receiver half of {name}"), half, rng)
        });
        Self {
            flow: settings.flow,
            feedback: FeedbackLog::new(settings.feedback, &ssrcs),
            streams,
            by_type,
            half,
            repair: video.and_then(|video| ReceiverRepair::new(settings.repair, video, Time::ZERO)),
            repairs: video.map(|video| (settings.repair, video)),
            transport: TransportNumbers::default(),
            drift,
            wakeup: Time::MAX,
            heard: false,
        }
    }

    pub(crate) fn flow(&self) -> FlowId {
        self.flow
    }

    /// When the receiver half or a playout buffer has something to do.
    pub(crate) fn wakeup(&self) -> Time {
        self.wakeup
    }

    pub(super) fn update_wakeup(&mut self) {
        let alarm = self.half.as_ref().and_then(|half| half.alarm_at).unwrap_or(Time::MAX);
        let playout =
            self.streams.iter().filter_map(|stream| stream.playout.as_ref()).map(PlayoutBuffer::due);
        self.wakeup = playout.min().unwrap_or(Time::MAX).min(alarm).min(self.repair_expiry());
    }

    /// Processes an RTP packet; returns how urgently the receiver half wants to send a message.
    pub(crate) fn packet(
        &mut self,
        now: Time,
        packet: &Datagram,
        body: &RtpBody,
        overhead: u32,
        arrival: RemoteTime,
        out: &mut dyn Driver,
    ) -> Urgency {
        let index = usize::from(self.by_type[usize::from(body.payload_type & 127)]);
        // packets with a payload type that was not signalled are ignored (RFC 3550 section 5.1)
        let Some(stream) = self.streams.get_mut(index) else { return Urgency::None };
        self.heard = true;
        let placement = stream.reception.packet(now, body.sequence, body.timestamp);
        let transport_sequence = body.transport_sequence.map(|number| self.transport.unwrap(number));
        self.feedback.packet(
            now,
            LoggedPacket {
                stream: index,
                // shifted by a wrap, so that a packet before the first one to arrive has a number, too
                rtp_sequence: placement.sequence + WRAP,
                transport_sequence: transport_sequence.map(|number| number + WRAP),
                arrival,
                ecn: packet.ecn,
                first: placement.first,
                marker: body.marker,
            },
        );
        let rtp_size = packet.size.saturating_sub(overhead);
        if placement.first {
            let header = header_len(body, packet.extension());
            match stream.signalled.kind {
                MediaKind::Padding => {}
                MediaKind::Video | MediaKind::Audio => {
                    self.media(now, index, packet, body, (placement.sequence, rtp_size, header), out);
                }
                MediaKind::Retransmission | MediaKind::Parity => {
                    self.repair_arrived(now, index, packet, body, (rtp_size, header), out);
                }
            }
            self.give_up(now, out);
            self.update_wakeup();
        }
        let Some(half) = &mut self.half else { return Urgency::None };
        let arrived = Arrived {
            sequence: transport_sequence.map(|number| u64::try_from(number).unwrap_or(0)),
            size: Size::from_bytes(u64::from(rtp_size)),
            header: Size::from_bytes(u64::from(header_len(body, packet.extension()))),
            padding: Size::from_bytes(u64::from(body.padding)),
            payload_type: body.payload_type,
            abs_send_time: body.abs_send_time.map(|stamp| send_time(stamp, self.drift.of(now - Time::ZERO))),
            ssrc: self.streams[index].signalled.ssrc,
            rtp_sequence: u64::try_from(placement.sequence).unwrap_or(0),
            timestamp: body.timestamp,
            marker: body.marker,
            ecn: packet.ecn,
            extension: packet.extension(),
            true_delay: half.needs_true_delay().then(|| out.true_delay(now)),
        };
        let urgency = half.packet(now, &arrived);
        self.after_half_call(now, urgency, out)
    }

    /// The frame of a packet of the stream `index`, or of the packet that it retransmits.
    fn frame(&mut self, index: usize, body: &RtpBody, out: &mut dyn Driver) -> Frame {
        match body.marks {
            Some(marks) => self.streams[index].numbers.frame(marks),
            None => out.true_frame(),
        }
    }

    /// Processes the first copy of a packet of media.
    fn media(
        &mut self,
        now: Time,
        index: usize,
        packet: &Datagram,
        body: &RtpBody,
        (sequence, size, header): (i64, u32, u32),
        out: &mut dyn Driver,
    ) {
        let frame = self.frame(index, body, out);
        if self.media_arrived(now, index, (sequence, size), packet, body, frame) {
            return;
        }
        out.record().goodput(now, self.flow, Size::from_bytes(u64::from(size.saturating_sub(header))));
        if let Some(playout) = &mut self.streams[index].playout {
            playout.packet(now, frame, body.timestamp, sequence, out);
        }
        self.restore_by_parity(now, header, out);
    }

    /// Records the notes of the half's last call, and returns the urgency in its result.
    fn after_half_call(
        &mut self,
        now: Time,
        result: Result<Urgency, Failure>,
        out: &mut dyn Driver,
    ) -> Urgency {
        if let Some(half) = &mut self.half {
            for (name, value) in &half.notes.values {
                out.record().internal(now, self.flow, name, *value);
            }
            half.notes.wanted = out.record().level() >= Level::Series;
        }
        self.update_wakeup();
        result.unwrap_or_else(|failure| {
            out.fail(failure.reason);
            Urgency::None
        })
    }

    /// Does what is due; returns how urgently the receiver half wants to send a message.
    pub(crate) fn advance(&mut self, now: Time, out: &mut dyn Driver) -> Urgency {
        if now < self.wakeup {
            return Urgency::None;
        }
        for playout in self.streams.iter_mut().filter_map(|stream| stream.playout.as_mut()) {
            if playout.due() <= now {
                playout.run(now, out);
            }
        }
        self.give_up(now, out);
        match &mut self.half {
            Some(half) if half.alarm_at.is_some_and(|alarm| alarm <= now) => {
                let result = half.alarm(now);
                self.after_half_call(now, result, out)
            }
            _ => {
                self.update_wakeup();
                Urgency::None
            }
        }
    }

    /// The message of the receiver half.
    pub(crate) fn message(&mut self, now: Time, out: &mut dyn Driver) -> Feedback {
        let Some(half) = &mut self.half else { return Feedback::new() };
        match half.message(now) {
            Ok(feedback) => {
                self.after_half_call(now, Ok(Urgency::None), out);
                feedback
            }
            Err(failure) => {
                out.fail(failure.reason);
                Feedback::new()
            }
        }
    }

    /// Notes a sender report.
    pub(crate) fn sender_report(&mut self, now: Time, ssrc: u32, middle: u32) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.signalled.ssrc == ssrc) {
            stream.reception.sender_report(now, middle);
        }
    }

    /// Notes a goodbye.
    pub(crate) fn bye(&mut self, now: Time, ssrcs: &[u32]) {
        for stream in &mut self.streams {
            if ssrcs.contains(&stream.signalled.ssrc) {
                stream.gone.get_or_insert(now);
            }
        }
    }

    /// Whether the senders of all streams have said goodbye.
    pub(crate) fn is_deserted(&self) -> bool {
        self.streams.iter().all(|stream| stream.gone.is_some())
    }

    /// Reports on the sources heard since the last ones.
    pub(crate) fn blocks(&mut self, now: Time) -> Vec<ReportBlock> {
        self.streams.iter_mut().filter_map(|stream| stream.reception.block(now)).collect()
    }

    pub(crate) fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        if let Some(half) = &self.half {
            visit(half.rng().draws());
        }
    }

    pub(crate) fn finish(&mut self, now: Time, out: &mut dyn Driver) {
        for stream in &mut self.streams {
            if let Some(playout) = &mut stream.playout {
                playout.finish(now, out);
            }
        }
        self.update_wakeup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_unwrapped_and_mean_nothing_before_their_structure() {
        let mut numbers = FrameNumbers::NONE;
        let marks = |number: u32, flags: u8| Marks::of_frame(Frame { number, flags });
        // the first packet of the key frame is lost
        let frame = numbers.frame(marks(0, Frame::KEY | Frame::LAST));
        assert_eq!((frame.number, frame.flags), (0, Frame::LAST));
        let frame = numbers.frame(marks(0, Frame::KEY | Frame::FIRST));
        assert_eq!(frame.flags, Frame::KEY | Frame::FIRST);
        assert_eq!(numbers.frame(marks(0, Frame::KEY)).flags, Frame::KEY);
        for number in 1..200_000 {
            assert_eq!(numbers.frame(marks(number, 0)).number, number);
            let late = number.saturating_sub(1000);
            assert_eq!(numbers.frame(marks(late, Frame::LAST)).number, late);
        }
        let mut later = FrameNumbers::NONE;
        assert_eq!(later.frame(marks(60_000, 0)).number, 60_000, "a receiver that joins later");
    }
}
