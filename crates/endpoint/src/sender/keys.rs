//! Key frames that are requested, by the receiver or from outside, and the least time between two of them.

use super::Sender;
use crate::settings::SendSettings;
use tidegate_core::rng::Draws;
use tidegate_core::{Span, Stream, Time};

/// The limit of key frames on request: libwebrtc's `kMinKeyframeSendIntervalMs` (`video/encoder_rtcp_feedback.cc`). The
/// interval of the receiver's requests (PLI) replaces it.
const KEY_INTERVAL_MIN: Span = Span::from_millis(300);

/// The limit of key frames on request: a request that comes too soon after the last one that was heeded is ignored.
#[derive(Debug)]
pub(super) struct KeyLimit {
    interval: Span,
    /// When a request was heeded last.
    heeded: Option<Time>,
}

impl KeyLimit {
    pub(super) fn new(settings: &SendSettings) -> Self {
        Self { interval: settings.repair.pli.map_or(KEY_INTERVAL_MIN, |pli| pli.interval), heeded: None }
    }

    /// Whether a request at `now` is heeded.
    pub(super) fn heeds(&mut self, now: Time) -> bool {
        let heeds = self.heeded.is_none_or(|last| now - last >= self.interval);
        if heeds {
            self.heeded = Some(now);
        }
        heeds
    }
}

/// Requests of key frames from outside, such as those of other receivers of an SFU: a Poisson process, because many
/// receivers that do not know of each other join, lose and switch. Their times depend on the seed alone.
#[derive(Debug)]
pub(super) struct Requests {
    rng: Stream,
    /// Mean time between two requests in seconds.
    mean: f64,
    next: Time,
}

impl Requests {
    /// Requests of a mean of `rate` a second.
    pub(super) fn new(rate: f64, rng: Stream) -> Self {
        Self { rng, mean: 1.0 / rate, next: Time::MAX }
    }

    /// Begins at `now`.
    pub(super) fn begin(&mut self, now: Time) {
        self.next = now + self.gap();
    }

    /// When the next request comes.
    pub(super) fn due(&self) -> Time {
        self.next
    }

    /// The next request that has come by `now`.
    pub(super) fn take(&mut self, now: Time) -> Option<Time> {
        let request = self.next;
        (request <= now).then(|| {
            self.next = request + self.gap();
            request
        })
    }

    /// At least a nanosecond, so that time passes.
    fn gap(&mut self) -> Span {
        Span::from_secs_f64(self.rng.exponential(self.mean)).max(Span::from_nanos(1))
    }

    pub(super) fn draws(&self) -> Draws {
        self.rng.draws()
    }
}

impl Sender {
    /// Heeds a request of the receiver for a key frame of the stream `ssrc`.
    pub(super) fn request_key(&mut self, now: Time, ssrc: u32) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.signalled.ssrc == ssrc)
            && self.key_limit.heeds(now)
        {
            stream.request_key();
        }
    }

    /// Heeds the requests from outside that are due.
    pub(super) fn take_requests(&mut self, now: Time) {
        for stream in &mut self.streams {
            while let Some(time) = stream.take_request(now) {
                if self.key_limit.heeds(time) {
                    stream.request_key();
                }
            }
        }
    }
}
