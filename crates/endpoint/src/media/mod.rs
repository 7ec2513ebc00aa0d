//! Media sources: models of encoders, an encoder in the loop, and audio at a constant rate.
//!
//! A source determines when its next frame is due and how large it is; the sender packetizes it. Each source has a
//! lowest and a highest rate, so that a call can be limited by its application. Random numbers of a source are drawn
//! once per frame whatever the rate, so that two controllers on the same seed meet the same ones.

pub mod adaptation;
pub mod cbr;
pub mod dtx;
pub mod frames;
pub mod greedy;
pub mod ideal;
mod key_debt;
pub mod ladder;
pub mod live;
pub mod packets;
mod scheduled;
pub mod spurts;
pub mod statistical;

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tidegate_core::record::VideoStep;
use tidegate_core::rng::Draws;
use tidegate_core::{Rate, Span, Stream, Time};

/// One encoded frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Encoded bytes; zero if the encoder left the frame out.
    pub bytes: u32,
    /// Whether it can be decoded without earlier frames.
    pub key: bool,
}

/// Range of rates in which a source can work: rates of encoded media, without any header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// Lowest rate, whatever the target.
    pub min: Rate,
    /// Highest rate; `None`: unlimited.
    pub max: Option<Rate>,
}

impl Bounds {
    /// From `min` to `max`.
    #[must_use]
    pub const fn new(min: Rate, max: Rate) -> Self {
        Self { min, max: Some(max) }
    }

    /// `rate` limited to the bounds.
    #[must_use]
    pub fn clamp(&self, rate: Rate) -> Rate {
        rate.clamp(self.min, self.max.unwrap_or(Rate::MAX))
    }
}

impl Default for Bounds {
    /// No bounds.
    fn default() -> Self {
        Self { min: Rate::ZERO, max: None }
    }
}

/// A model of an encoder.
pub trait Source: Send {
    /// Notes the start of its flow, from which the times of a schedule count, whether the source is on or paused.
    fn begin(&mut self, _now: Time) {}

    /// Begins, or goes on after a pause: the next frame is due at `now`.
    fn start(&mut self, now: Time);

    /// When the next frame is due; [`Time::MAX`]: not before the target changes.
    fn due(&self) -> Time;

    /// Does what is due at `now` except pictures, such as a step of a schedule.
    fn step(&mut self, _now: Time) {}

    /// The frame that is due at `now`; afterwards [`Source::due`] is the time of the next one.
    fn frame(&mut self, now: Time) -> Frame;

    /// Whether it can leave a picture out before it is encoded, so that later ones can be decoded without it.
    fn leaves_out(&self) -> bool {
        false
    }

    /// Leaves out the picture that is due; afterwards [`Source::due`] is the time of the next one. Only called if
    /// [`Source::leaves_out`].
    fn leave_out(&mut self) {}

    /// Whether later frames may refer to the one that it made last; none does to a B frame.
    fn is_reference(&self) -> bool {
        true
    }

    /// Largest number of frames in a row to which no later one refers; at most `Frame::BETWEEN_MAX` of
    /// [`tidegate_core::Frame`].
    fn most_between(&self) -> u8 {
        0
    }

    /// Sets the rate that the encoder may use from now on, excluding headers.
    fn set_target(&mut self, now: Time, target: Rate);

    /// Highest rate that it can use at present; [`Rate::MAX`] if unlimited.
    fn uses(&self) -> Rate {
        self.bounds().max.unwrap_or(Rate::MAX)
    }

    /// Makes the next frame a key frame, if the model has key frames.
    fn request_key(&mut self) {}

    /// Range of rates in which it works.
    fn bounds(&self) -> Bounds;

    /// Nominal frames per second; `None` for a source that sends full-size packets and has no frames.
    fn frame_rate(&self) -> Option<f64>;

    /// Nominal frames per second while it works at `rate`, where these follow the rate.
    fn frame_rate_at(&self, _rate: Rate) -> Option<f64> {
        self.frame_rate()
    }

    /// Sets the nominal frames per second from the next frame on.
    ///
    /// # Errors
    /// When they are out of range, or the source does not let them be set.
    fn set_frame_rate(&mut self, _fps: f64) -> Result<(), String> {
        Err("the frame rate of this source cannot be changed".to_owned())
    }

    /// Takes the step of resolution and frame rate that began with the last frame, if one did.
    fn take_step(&mut self) -> Option<VideoStep> {
        None
    }

    /// Whether it follows its target; a source that does not is served first when a target is shared.
    fn adapts(&self) -> bool {
        true
    }

    /// Bytes of each RTP packet, header included, if the source fixes them: then each of its frames is a packet, and
    /// its bounds count these bytes.
    fn packet_size(&self) -> Option<u32> {
        None
    }

    /// Bytes of each slice of its last frame, if no packet may carry bytes of two slices.
    fn slices(&self) -> Option<&[u32]> {
        None
    }

    /// The reason why it has failed, if it has.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// Passes the draws of each of its random substreams to `visit`.
    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        let _ = visit;
    }
}

/// Kind of a source, with its parameters.
#[derive(Clone, Debug)]
pub enum SourceSettings {
    /// Full packets, evenly spaced at the target rate, without end.
    Greedy(Bounds),
    /// Video of frames that are exactly target / fps.
    Ideal {
        /// Frames per second.
        fps: f64,
        /// Its rates.
        bounds: Bounds,
    },
    /// The statistical model of RFC 8593 section 5.
    Statistical(statistical::Settings),
    /// Recorded frame sizes, RFC 8593 section 6.
    Frames {
        /// The recordings, one for each rate.
        ladder: Arc<ladder::Ladder>,
        /// Frames per second.
        fps: f64,
        /// Frame with which the sequence goes on after its end (RFC 8593: 20).
        skip: u32,
        /// Frames from one key frame to the next. Then frames have their recorded sizes, and the recording changes at
        /// key frames only; `None`: sizes are interpolated, as in the RFC.
        group: Option<u32>,
        /// Its rates.
        bounds: Bounds,
    },
    /// An encoder in the loop, which encodes each frame when it is due.
    Live {
        /// The function that makes the encoder.
        encoder: live::EncoderFactory,
        /// Frames per second.
        fps: f64,
        /// Its rates.
        bounds: Bounds,
    },
    /// Audio at a constant rate.
    Cbr {
        /// The rate of the encoded audio.
        rate: Rate,
        /// Time between two packets.
        interval: Span,
        /// Mean times of speech and silence, of which only speech is sent; `None`: all is sent.
        spurts: Option<spurts::Means>,
    },
    /// Audio that sends little in silence.
    Dtx {
        /// The audio, which leaves silence out.
        source: Box<Self>,
        /// Parameters of DTX.
        settings: dtx::Settings,
    },
    /// Packets of one size at a fixed rate, whatever the target.
    Packets(packets::Settings),
    /// Video whose resolution and frame rate follow its rate.
    Adapted {
        /// A model of an encoder.
        source: Box<Self>,
        /// The steps of resolution and frame rate.
        settings: adaptation::Settings,
    },
    /// A source whose application limits its rate over time.
    Scheduled {
        /// The source.
        source: Box<Self>,
        /// Pairs of a time since the start and the largest rate from then on, in order.
        steps: Vec<(Span, Rate)>,
    },
}

impl SourceSettings {
    /// 20 kb/s in packets of 20 ms: the audio of RFC 8867 section 4.
    pub const AUDIO: Self =
        Self::Cbr { rate: Rate::from_kbps(20), interval: Span::from_millis(20), spurts: None };

    /// Whether it makes frames, and not only packets.
    #[must_use]
    pub fn frames(&self) -> bool {
        match self {
            Self::Greedy(_) | Self::Packets(_) => false,
            Self::Scheduled { source, .. } | Self::Adapted { source, .. } | Self::Dtx { source, .. } => {
                source.frames()
            }
            Self::Ideal { .. }
            | Self::Statistical(_)
            | Self::Frames { .. }
            | Self::Live { .. }
            | Self::Cbr { .. } => true,
        }
    }

    /// Largest number of frames in a row to which no later one refers.
    pub(crate) fn most_between(&self) -> u8 {
        match self {
            Self::Frames { ladder, group: Some(_), .. } => ladder.most_between() as u8,
            Self::Scheduled { source, .. } => source.most_between(),
            _ => 0,
        }
    }

    /// Builds the source. `component`: the first part of its substreams' names; `payload`: the largest RTP payload in
    /// bytes.
    ///
    /// # Errors
    /// The problem of a parameter.
    pub fn build(&self, seed: u64, component: &str, payload: u32) -> Result<Box<dyn Source>, String> {
        Ok(match self {
            Self::Greedy(bounds) => Box::new(greedy::Greedy::new(*bounds, payload)),
            Self::Ideal { fps, bounds } => Box::new(ideal::Ideal::new(Ticker::new(*fps)?, *bounds)),
            Self::Statistical(settings) => {
                Box::new(statistical::Statistical::new(settings.clone(), seed, component)?)
            }
            Self::Frames { ladder, fps, skip, group, bounds } => {
                Box::new(frames::Frames::new(ladder.clone(), Ticker::new(*fps)?, *skip, *group, *bounds)?)
            }
            Self::Live { encoder, fps, bounds } => {
                Box::new(live::Live::new(encoder.make()?, Ticker::new(*fps)?, *bounds))
            }
            Self::Cbr { rate, interval, spurts } => {
                let rng = || Stream::new(seed, component, "talk spurts");
                let spurts = spurts.map(|means| spurts::Spurts::new(means, rng())).transpose()?;
                Box::new(cbr::Cbr::new(*rate, *interval, spurts)?)
            }
            Self::Dtx { source, settings } => {
                let source = source.build(seed, component, payload)?;
                Box::new(dtx::Dtx::new(source, settings.clone())?)
            }
            Self::Packets(settings) => Box::new(packets::Packets::new(settings.clone())?),
            Self::Adapted { source, settings } => {
                let source = source.build(seed, component, payload)?;
                Box::new(adaptation::Adapted::new(source, settings.clone())?)
            }
            Self::Scheduled { source, steps } => {
                let source = source.build(seed, component, payload)?;
                Box::new(scheduled::Scheduled::new(source, steps.clone())?)
            }
        })
    }
}

/// The frame clock, with ticks at `start + k / fps` without drift.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticker {
    millihertz: u64,
    start: Time,
    ticks: u64,
    next: Time,
}

impl Ticker {
    /// A clock of `fps` ticks a second, rounded to the nearest thousandth.
    pub(crate) fn new(fps: f64) -> Result<Self, String> {
        if !(0.001..=100_000.0).contains(&fps) {
            return Err(format!("fps is {fps}; it must be between 0.001 and 100000"));
        }
        let millihertz = tidegate_core::math::round(fps * 1000.0) as u64;
        Ok(Self { millihertz, start: Time::MAX, ticks: 0, next: Time::MAX })
    }

    pub(crate) fn start(&mut self, now: Time) {
        (self.start, self.ticks, self.next) = (now, 0, now);
    }

    pub(crate) fn due(&self) -> Time {
        self.next
    }

    /// Moves on by one tick and returns its length.
    pub(crate) fn advance(&mut self) -> Span {
        let before = self.next;
        self.ticks += 1;
        let nanos = u128::from(self.ticks) * 1_000_000_000_000 / u128::from(self.millihertz);
        self.next = self.start + Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        self.next - before
    }

    /// Changes the rate from the next tick on, which comes when it was to come.
    pub(crate) fn set_fps(&mut self, fps: f64) -> Result<(), String> {
        let next = self.next;
        *self = Self { start: next, next, ..Self::new(fps)? };
        Ok(())
    }

    /// Number of ticks in `[0, span)`.
    pub(crate) fn ticks_in(&self, span: Span) -> u64 {
        let millihertz_nanos = u128::from(self.millihertz) * span.as_nanos().max(0) as u128;
        u64::try_from(millihertz_nanos.div_ceil(1_000_000_000_000)).unwrap_or(u64::MAX)
    }

    pub(crate) fn fps(&self) -> f64 {
        self.millihertz as f64 / 1000.0
    }
}

/// Converter of a rate over time into whole bytes, which carries the remainder over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carry {
    /// The remainder in bit-nanoseconds per second.
    remainder: u128,
}

impl Carry {
    /// One byte in bit-nanoseconds per second.
    const BYTE: u128 = 8_000_000_000;

    pub(crate) fn bytes(&mut self, rate: Rate, span: Span) -> u32 {
        let total = self.remainder + u128::from(rate.as_bps()) * span.as_nanos().max(0) as u128;
        self.remainder = total % Self::BYTE;
        u32::try_from(total / Self::BYTE).unwrap_or(u32::MAX)
    }
}

/// Whether these stretches of time, each up to its second instant, are in order and apart.
pub(crate) fn in_order(stretches: &[(Time, Time)]) -> bool {
    stretches.iter().all(|&(from, to)| from < to) && stretches.windows(2).all(|pair| pair[0].1 <= pair[1].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_clock_does_not_drift() {
        let mut ticker = Ticker::new(29.97).expect("a frame rate");
        ticker.start(Time::from_secs(1));
        let total: Span = (0..2_997).map(|_| ticker.advance()).sum();
        assert_eq!(total, Span::from_secs(100));
        assert_eq!(ticker.due(), Time::from_secs(101));
        assert!(Ticker::new(0.0).is_err() && Ticker::new(f64::NAN).is_err());
        // at another rate the next tick comes as it was to come, and the ones after it do not drift either
        ticker.set_fps(7.0).expect("a frame rate");
        assert_eq!(ticker.due(), Time::from_secs(101));
        assert_eq!((0..70).map(|_| ticker.advance()).sum::<Span>(), Span::from_secs(10));
        assert!(ticker.set_fps(0.0).is_err());
        assert_eq!((ticker.fps(), ticker.due()), (7.0, Time::from_secs(111)));
    }

    #[test]
    fn carried_bytes_add_up_to_the_rate() {
        let mut carry = Carry::default();
        let bytes: u64 = (0..3000)
            .map(|_| u64::from(carry.bytes(Rate::from_bps(1_000_001), Span::from_nanos(33_333_333))))
            .sum();
        // 1 000 001 bit/s over 99.999999 s are 12 500 012.37 bytes
        assert_eq!(bytes, 12_500_012);
    }
}
