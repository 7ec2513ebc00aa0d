//! The times at which libwebrtc's receiver requests a key frame beside requests for packets.
//!
//! `OnDecodableFrameTimeout` of `video/video_receive_stream2.cc` and `OnAssembledFrame` of
//! `video/rtp_video_stream_receiver2.cc`.

use super::freeze::{INACTIVE_DURATION, MAX_WAIT_FOR_FRAME};
use tidegate_core::{Span, Time};

/// Time without a decodable frame before the first one was decoded, after which a key frame is requested
/// (`kMaxWaitForKeyFrame`); while packets of a key frame came within this time, none is requested.
const MAX_WAIT_FOR_KEY_FRAME: Span = Span::from_millis(200);

/// Times of packets and decoded frames, which say when a key frame is requested.
#[derive(Debug)]
pub(super) struct KeyTimer {
    /// When the receiver looks next whether a frame was decodable.
    pub(super) timeout: Time,
    /// Whether a key frame is to be requested.
    pub(super) wanted: bool,
    last_packet: Option<Time>,
    last_key_packet: Option<Time>,
    has_complete: bool,
    has_decoded: bool,
}

impl Default for KeyTimer {
    /// A timer that begins with the first packet.
    fn default() -> Self {
        Self {
            timeout: Time::MAX,
            wanted: false,
            last_packet: None,
            last_key_packet: None,
            has_complete: false,
            has_decoded: false,
        }
    }
}

impl KeyTimer {
    fn wait(&self) -> Span {
        if self.has_decoded { MAX_WAIT_FOR_FRAME } else { MAX_WAIT_FOR_KEY_FRAME }
    }

    /// Notes a packet, of a key frame or another.
    pub(super) fn packet(&mut self, now: Time, key: bool) {
        if self.last_packet.replace(now).is_none() {
            self.timeout = now + self.wait();
        }
        if key {
            self.last_key_packet = Some(now);
        }
    }

    /// Notes that a frame is complete: if the first one is no key frame, one is requested.
    pub(super) fn complete(&mut self, key: bool) {
        let is_first = !std::mem::replace(&mut self.has_complete, true);
        self.wanted |= is_first && !key;
    }

    /// Notes that a frame was decoded.
    pub(super) fn decoded(&mut self, now: Time) {
        self.has_decoded = true;
        self.timeout = now + self.wait();
    }

    /// Looks whether a frame was decodable in time. None is requested of a stream that is inactive, nor while a key
    /// frame is coming.
    pub(super) fn run(&mut self, now: Time) {
        if self.timeout > now {
            return;
        }
        let within = |time: Option<Time>, span: Span| time.is_some_and(|time| now - time < span);
        self.wanted |= within(self.last_packet, INACTIVE_DURATION)
            && !within(self.last_key_packet, MAX_WAIT_FOR_KEY_FRAME);
        self.timeout = now + self.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    /// Times in ms at which a key frame is requested by `until`.
    fn requests(timer: &mut KeyTimer, until: i64) -> Vec<i64> {
        let mut times = Vec::new();
        while timer.timeout <= ms(until) {
            let now = timer.timeout;
            timer.run(now);
            if std::mem::take(&mut timer.wanted) {
                times.push(now.as_nanos() / 1_000_000);
            }
        }
        times
    }

    #[test]
    fn a_key_frame_is_requested_after_three_seconds_without_a_frame_while_packets_come() {
        let mut timer = KeyTimer::default();
        assert_eq!(requests(&mut timer, 60_000), [], "no packet yet");
        timer.packet(ms(1000), true);
        timer.complete(true);
        timer.decoded(ms(1100));
        // packets come until 6 s: at 4.1 and 7.1 and 10.1 s the last one is less than 5 s old, at 13.1 s it is not
        (1101..=6000).for_each(|millis| timer.packet(ms(millis), false));
        assert_eq!(requests(&mut timer, 60_000), [4100, 7100, 10_100]);
    }

    #[test]
    fn before_the_first_frame_a_key_frame_is_requested_each_200_ms_unless_one_is_coming() {
        let mut timer = KeyTimer::default();
        timer.packet(ms(0), false);
        timer.complete(false);
        assert!(std::mem::take(&mut timer.wanted), "the first frame is no key frame");
        assert_eq!(requests(&mut timer, 500), [200, 400]);
        timer.packet(ms(550), true);
        assert_eq!(requests(&mut timer, 900), [800], "at 600 ms a key frame is coming");
        timer.decoded(ms(900));
        assert_eq!(requests(&mut timer, 3899), []);
    }
}
