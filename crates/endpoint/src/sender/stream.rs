//! One outgoing stream: its source, its sequence numbers and its share of the target.

use super::Source;
use super::ecn::ReportedEcn;
use super::floor;
use super::keys::Requests;
use super::pushback::CwndFrameDropper;
use crate::breaker::Traffic;
use crate::clock::Drift;
use crate::packetizer::{Extensions, Queued};
use crate::settings::{BelowMin, MediaKind, Signalled};
use tidegate_core::record::VideoStep;
use tidegate_core::rng::Draws;
use tidegate_core::wire::{ntp, rtcp};
use tidegate_core::{Frame, Rate, RemoteTime, Span, Stream, Time};

/// Sizes of packets, by which the headers' part of a target is computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Bytes below RTP that rates count on each packet.
    pub(super) below: u32,
    /// Bytes of header that rates count on each packet, those below RTP among them.
    pub(super) header: u32,
    /// The largest payload in bytes.
    pub(super) payload: u32,
}

impl Shape {
    /// The rate of packets that carry media of `media` in frames of equal size.
    fn gross(self, media: Rate, frame_rate: Option<f64>) -> Rate {
        let (header, payload) = (f64::from(self.header), f64::from(self.payload));
        let bytes = media.as_bps_f64() / 8.0;
        let packets = match frame_rate {
            None => bytes / payload,
            Some(fps) => fps * tidegate_core::math::ceil(bytes / fps / payload),
        };
        media + Rate::from_bps_f64(8.0 * packets * header)
    }

    /// The rate of media that packets of the rate `packets` can carry in frames of equal size.
    fn net(self, packets: Rate, frame_rate: Option<f64>) -> Rate {
        let (header, payload) = (f64::from(self.header), f64::from(self.payload));
        let bytes = packets.as_bps_f64() / 8.0;
        let headers = match frame_rate {
            None => bytes * header / (payload + header),
            Some(fps) => fps * tidegate_core::math::ceil(bytes / fps / (payload + header)) * header,
        };
        Rate::from_bps_f64(8.0 * (bytes - headers))
    }
}

/// A frame with its number, and the part that its packets have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbered {
    pub(super) number: u32,
    pub(super) bytes: u32,
    pub(super) first: Queued,
}

/// A stream that is sent.
pub(super) struct OutStream {
    pub(super) signalled: Signalled,
    /// Header extensions of its packets; marks only if it has frames.
    pub(super) extensions: Extensions,
    source: Option<(Box<dyn Source>, Shape)>,
    /// The largest rate of encoded media that the application allows.
    limit: Option<Rate>,
    frame_dropper: CwndFrameDropper,
    /// Pictures that the encoder left out.
    unencoded: u64,
    pauses: Vec<(Time, Time)>,
    /// Index of the current or next pause.
    pause: usize,
    on: bool,
    /// Its behaviour while its target is below its least rate, and whether it is suspended for that.
    below_min: BelowMin,
    suspended: bool,
    /// When the next picture is captured while video is suspended.
    camera_due: Time,
    /// Longest time between two key frames, and the time of the last one.
    key_interval: Option<Span>,
    last_key: Option<Time>,
    /// Requests of key frames from outside.
    requests: Option<Requests>,
    /// Unwrapped; starts at a random 16-bit number (RFC 3550 section 5.1).
    rtp_next: i64,
    timestamp_offset: u32,
    /// Drift of the clock of its timestamps.
    pub(super) drift: Drift,
    next_frame: u32,
    /// Number of the last frame to which a later one may refer; that before the first one, if there is none.
    reference: u32,
    packets: u32,
    octets: u32,
    /// Bytes of RTP packets, headers included.
    pub(super) bytes: u64,
    /// Packet counts at the last report and at the one before.
    reported: [u32; 2],
    /// The transport-wide number of each of the last packets, by RTP sequence number; only if feedback refers to RTP
    /// sequence numbers.
    transport: Option<Vec<u64>>,
    /// The highest sequence number in receiver reports.
    pub(super) reported_highest: Option<u32>,
    /// ECN counters in RFC 6679's reports.
    pub(super) ecn: ReportedEcn,
    draws: Draws,
}

/// RTP packets whose transport-wide number is remembered: half of the range of 16-bit sequence numbers.
const TRANSPORT_NUMBERS_MAX: usize = 1 << 15;

impl OutStream {
    pub(super) fn new(
        (signalled, extensions): (Signalled, Extensions),
        source: Option<(Box<dyn Source>, Shape)>,
        pauses: Vec<(Time, Time)>,
        by_rtp_sequence: bool,
        mut rng: Stream,
    ) -> Self {
        Self {
            signalled,
            extensions,
            source,
            limit: None,
            frame_dropper: CwndFrameDropper::default(),
            unencoded: 0,
            pauses,
            pause: 0,
            on: false,
            below_min: BelowMin::Wait,
            suspended: false,
            camera_due: Time::MAX,
            key_interval: None,
            last_key: None,
            requests: None,
            rtp_next: rng.below(1 << 16) as i64,
            timestamp_offset: rng.next_u64() as u32,
            drift: Drift::default(),
            next_frame: 0,
            reference: u32::MAX,
            packets: 0,
            octets: 0,
            bytes: 0,
            reported: [0; 2],
            transport: by_rtp_sequence.then(Vec::new),
            reported_highest: None,
            ecn: ReportedEcn::default(),
            draws: rng.draws(),
        }
    }

    /// The stream with a key frame each `interval`, and those that are requested.
    pub(super) fn with_keys(self, interval: Option<Span>, requests: Option<Requests>) -> Self {
        Self { key_interval: interval, requests, ..self }
    }

    /// The stream with this behaviour while its target is below its least rate.
    pub(super) fn with_below_min(self, below_min: BelowMin) -> Self {
        Self { below_min, ..self }
    }

    pub(super) fn below_min(&self) -> BelowMin {
        self.below_min
    }

    /// Whether it is on, and sends nothing because its target is below its least rate.
    pub(super) fn suspended(&self) -> bool {
        self.on && self.suspended
    }

    pub(super) fn begin(&mut self, now: Time) {
        self.requests.iter_mut().for_each(|requests| requests.begin(now));
        self.pause = self.pauses.partition_point(|&(_, to)| to <= now);
        self.on = self.source.is_some() && !self.paused(now);
        let Some((source, _)) = &mut self.source else { return };
        source.begin(now);
        if self.on {
            source.start(now);
        }
    }

    fn paused(&self, now: Time) -> bool {
        self.pauses.get(self.pause).is_some_and(|&(from, to)| from <= now && now < to)
    }

    /// Switches the source on or off if that is due; returns whether it did.
    pub(super) fn switch(&mut self, now: Time) -> bool {
        while self.pauses.get(self.pause).is_some_and(|&(_, to)| to <= now) {
            self.pause += 1;
        }
        let Some((source, _)) = &mut self.source else { return false };
        let on = self.pauses.get(self.pause).is_none_or(|&(from, _)| from > now);
        if on == self.on {
            return false;
        }
        self.on = on;
        if on {
            source.start(now);
            self.camera_due = now;
        }
        true
    }

    fn is_video(&self) -> bool {
        self.signalled.kind == MediaKind::Video
    }

    /// For video with frames: whether its source is on, as the nominal interval between frames.
    pub(super) fn video(&self) -> Option<Option<Span>> {
        let fps = self.source.as_ref()?.0.frame_rate()?;
        self.is_video().then(|| self.on.then(|| Span::from_secs_f64(1.0 / fps)))
    }

    /// Packets and bytes sent so far.
    pub(super) fn traffic(&self) -> Traffic {
        Traffic { packets: self.packets, bytes: self.bytes }
    }

    /// Whether it carries media of its own.
    pub(super) fn is_media(&self) -> bool {
        self.source.is_some()
    }

    pub(super) fn on(&self) -> bool {
        self.on
    }

    /// When a frame or a switch is due.
    pub(super) fn due(&self) -> Time {
        let Some((source, _)) = &self.source else { return Time::MAX };
        let pause = self.pauses.get(self.pause);
        if self.on {
            let pause = pause.map_or(Time::MAX, |&(from, _)| from);
            if self.suspended {
                return pause.min(self.camera_due);
            }
            let request = self.requests.as_ref().map_or(Time::MAX, Requests::due);
            source.due().min(pause).min(request)
        } else {
            pause.map_or(Time::MAX, |&(_, to)| to)
        }
    }

    /// The next frame, if one is due and the encoder is not paused. If the source fixes the size of packets, `header`
    /// is the size of their header without marks.
    pub(super) fn frame(&mut self, now: Time, header: u32, paused: bool) -> Option<Numbered> {
        if !self.on {
            return None;
        }
        if self.suspended {
            self.leave_out_pictures(now);
            return None;
        }
        let (source, _) = self.source.as_mut()?;
        while source.due() <= now {
            source.step(now);
            if source.due() > now {
                break;
            }
            if self.frame_dropper.next(paused && source.leaves_out()) {
                source.leave_out();
                continue;
            }
            let due = source.due();
            let since = self.last_key.map(|last| now - last);
            if self.key_interval.zip(since).is_some_and(|(interval, since)| since >= interval) {
                source.request_key();
            }
            let frame = source.frame(now);
            if frame.key {
                self.last_key = Some(now);
            }
            debug_assert!(source.due() >= due, "the frame after that of {due} was due at {}", source.due());
            if frame.bytes == 0 {
                self.unencoded += u64::from(self.signalled.kind == MediaKind::Video);
                continue;
            }
            let number = self.next_frame;
            self.next_frame = number.wrapping_add(1);
            let between = match frame.key {
                true => source.most_between(),
                false => {
                    number.wrapping_sub(self.reference).wrapping_sub(1).min(Frame::BETWEEN_MAX.into()) as u8
                }
            };
            if source.is_reference() {
                self.reference = number;
            }
            let first = Queued {
                since: now,
                timestamp: self
                    .drift
                    .rtp_timestamp(now, self.signalled.clock_rate)
                    .wrapping_add(self.timestamp_offset),
                frame: number,
                payload: 0,
                original: 0,
                stream: 0,
                flags: if frame.key { Frame::KEY } else { 0 } | Frame::flags_between(between),
                marks: 0,
            };
            // each packet of a source that fixes the size of packets is a frame
            let marks = Frame { flags: first.flags | Frame::FIRST | Frame::LAST, ..first.frame_position() };
            let header = source.packet_size().map_or(0, |_| header + self.extensions.marks_len(marks));
            return Some(Numbered { number, bytes: frame.bytes.saturating_sub(header).max(1), first });
        }
        None
    }

    /// Counts the pictures that the camera makes while video is suspended.
    fn leave_out_pictures(&mut self, now: Time) {
        let Some(Some(interval)) = self.video() else { return };
        while self.camera_due <= now {
            self.unencoded += 1;
            self.camera_due += interval;
        }
    }

    /// Bytes of each RTP packet, header included, if the source fixes them.
    pub(super) fn packet_size(&self) -> Option<u32> {
        self.source.as_ref().and_then(|(source, _)| source.packet_size())
    }

    /// Bytes of each slice of the last frame, if no packet may carry bytes of two slices.
    pub(super) fn slices(&self) -> Option<&[u32]> {
        self.source.as_ref().and_then(|(source, _)| source.slices())
    }

    /// The reason why its source has failed, if it has.
    pub(super) fn failure(&self) -> Option<&str> {
        self.source.as_ref().and_then(|(source, _)| source.failure())
    }

    pub(super) fn adapts(&self) -> bool {
        self.source.as_ref().is_some_and(|(source, _)| source.adapts())
    }

    /// The largest rate that it uses, as rates count bytes; `None`: unlimited.
    pub(super) fn max_rate(&self) -> Option<Rate> {
        let (source, shape) = self.source.as_ref()?;
        let max = [source.bounds().max, self.limit].into_iter().flatten().min()?;
        Some(match source.packet_size() {
            // its rate counts RTP packets
            Some(size) => max.scaled(f64::from(size + shape.below) / f64::from(size)),
            None => shape.gross(max, source.frame_rate_at(max)),
        })
    }

    /// The least rate that it uses, as rates count bytes: that of a source that does not adapt is its largest one.
    pub(super) fn least_rate(&self) -> Rate {
        match &self.source {
            Some((source, shape)) if source.adapts() => {
                let min = source.bounds().min;
                shape.gross(min, source.frame_rate_at(min))
            }
            _ => self.max_rate().unwrap_or(Rate::ZERO),
        }
    }

    /// Sets the bytes that rates count beyond the payload and the marks of a packet.
    pub(super) fn set_header(&mut self, header: u32) {
        if let Some((_, shape)) = &mut self.source {
            shape.header = header + self.extensions.marks_len(Frame::default());
        }
    }

    /// Sets the largest rate of encoded media, if it is video that follows a target.
    pub(super) fn limit(&mut self, rate: Rate) {
        if self.is_video() && self.adapts() {
            self.limit = Some(rate);
        }
    }

    /// Sets the rate that it may use, as rates count bytes, and the part of it that pushback takes. Returns whether that
    /// suspends it, or lets it go on.
    pub(super) fn set_target(&mut self, now: Time, target: Rate, pushback: f64) -> bool {
        let suspended = self.below_min == BelowMin::Suspend && self.adapts() && {
            let least = self.least_rate();
            target < if self.suspended { floor::resume_rate(least) } else { least }
        };
        let toggled = std::mem::replace(&mut self.suspended, suspended) != suspended;
        if let Some((source, shape)) = &mut self.source {
            let mut media = shape.net(target, source.frame_rate()).min(self.limit.unwrap_or(Rate::MAX));
            if pushback > 0.0 && source.leaves_out() {
                media = self.frame_dropper.set(media.min(source.uses()), pushback, source.bounds().min);
            } else {
                self.frame_dropper.stop();
            }
            source.set_target(now, media);
            if toggled && suspended && self.on {
                self.camera_due = source.due().max(now);
            }
            // as after a pause, with a key frame (`LibvpxVp8Encoder::SetStreamState`), which also answers the requests
            // of the time between
            if toggled && !suspended && self.on {
                source.start(now);
                while self.requests.as_mut().and_then(|requests| requests.take(now)).is_some() {}
            }
        }
        toggled
    }

    /// Takes the step of resolution and frame rate that began with the last frame, if one did.
    pub(super) fn take_step(&mut self) -> Option<VideoStep> {
        self.source.as_mut().and_then(|(source, _)| source.take_step())
    }

    /// Number of pictures left out so far.
    pub(super) fn left_out(&self) -> u64 {
        self.frame_dropper.count + self.unencoded
    }

    /// The next request from outside that is due.
    pub(super) fn take_request(&mut self, now: Time) -> Option<Time> {
        self.requests.as_mut().and_then(|requests| requests.take(now))
    }

    pub(super) fn request_key(&mut self) {
        if let Some((source, _)) = &mut self.source {
            source.request_key();
        }
    }

    pub(super) fn timestamp(&self, now: Time) -> u32 {
        self.drift.rtp_timestamp(now, self.signalled.clock_rate).wrapping_add(self.timestamp_offset)
    }

    /// Counts a packet that leaves with the transport-wide number `transport`; returns its RTP sequence number. Padding
    /// is no payload (RFC 3550 section 6.4.1).
    pub(super) fn sent(&mut self, transport: u64, padding: bool, payload: u16) -> u16 {
        let sequence = self.rtp_next;
        if let Some(ring) = &mut self.transport {
            let slot = self.packets as usize % TRANSPORT_NUMBERS_MAX;
            // it fills in order, whatever number the stream starts at
            if slot == ring.len() { ring.push(transport) } else { ring[slot] = transport }
        }
        self.rtp_next += 1;
        self.packets = self.packets.wrapping_add(1);
        if !padding {
            self.octets = self.octets.wrapping_add(u32::from(payload));
        }
        sequence as u16
    }

    /// The transport-wide number of the newest packet with the RTP sequence number `sequence`.
    pub(super) fn transport_of(&self, sequence: u16) -> Option<u64> {
        // how many packets ago: 1 for the newest
        let ago = usize::from((self.rtp_next as u16).wrapping_sub(sequence));
        let ring = self.transport.as_ref().filter(|ring| (1..=ring.len()).contains(&ago))?;
        let slot = (self.packets as usize).wrapping_sub(ago) % TRANSPORT_NUMBERS_MAX;
        ring.get(slot).copied()
    }

    /// Its sender report, if it has sent since the last report but one (RFC 3550 section 6.4).
    pub(super) fn report(&mut self, now: Time, clock: RemoteTime) -> Option<rtcp::SenderReport> {
        let [last, before] = self.reported;
        self.reported = [self.packets, last];
        (self.packets != last || last != before).then(|| rtcp::SenderReport {
            ssrc: self.signalled.ssrc,
            ntp: ntp::timestamp(clock),
            rtp_timestamp: self.timestamp(now),
            packet_count: self.packets,
            octet_count: self.octets,
            ..Default::default()
        })
    }

    pub(super) fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.draws.clone());
        self.requests.iter().for_each(|requests| visit(requests.draws()));
        if let Some((source, _)) = &self.source {
            source.draws(visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_taken_from_the_target_and_no_more() {
        let shape = Shape { below: 0, header: 24, payload: 1200 };
        // 1 Mb/s in frames at 25 fps: 5000 bytes, 5 packets, 120 bytes of headers
        assert_eq!(shape.net(Rate::from_mbps(1), Some(25.0)), Rate::from_bps(4880 * 8 * 25));
        assert_eq!(shape.gross(Rate::from_bps(4880 * 8 * 25), Some(25.0)), Rate::from_mbps(1));
        // full packets: 1200 of 1224 bytes
        assert_eq!(shape.net(Rate::from_bps(1_224_000), None), Rate::from_mbps(1) + Rate::from_kbps(200));
        assert_eq!(shape.gross(Rate::from_kbps(1200), None), Rate::from_bps(1_224_000));
        // not even the headers fit
        assert_eq!(shape.net(Rate::from_bps(100), Some(25.0)), Rate::ZERO);
    }

    #[test]
    fn transport_numbers_are_looked_up_by_rtp_sequence_number_across_wraps() {
        let signalled = Signalled {
            kind: crate::settings::MediaKind::Video,
            ssrc: 1,
            payload_type: 96,
            clock_rate: 90_000,
            frames: true,
        };
        let signalled = (signalled, Extensions::default());
        let mut stream = OutStream::new(signalled, None, Vec::new(), true, Stream::new(1, "x", "rtp"));
        let first = stream.rtp_next as u16;
        assert_eq!(stream.transport_of(first), None);
        for k in 0..100_000u64 {
            assert_eq!(stream.sent(2 * k, false, 10), first.wrapping_add(k as u16));
            assert_eq!(stream.transport_of(first.wrapping_add(k as u16)), Some(2 * k));
            let back = k.saturating_sub(32_767);
            assert_eq!(stream.transport_of(first.wrapping_add(back as u16)), Some(2 * back));
        }
        assert_eq!(stream.transport_of(first.wrapping_add(100_000u64 as u16)), None, "not sent yet");
    }
}
