//! Discontinuous transmission (DTX): the packets that an audio encoder sends in silence.
//!
//! Of a silence Opus encodes one frame every 400 ms, from which its decoder makes comfort noise (RFC 6716 section 2.1.9;
//! libopus' `MAX_CONSECUTIVE_DTX`, 20 frames of 20 ms). libwebrtc sends the first frame of a silence, so that the decoder
//! learns of it, and leaves out the empty ones (`WebRtcOpus_Encode`, modules/audio_coding/codecs/opus/opus_interface.cc).
//! A muted track is silence to the encoder.

use super::{Bounds, Frame, Source, in_order};
use tidegate_core::rng::Draws;
use tidegate_core::{Rate, Span, Time};

/// Bytes of a packet in silence: the first byte of an Opus packet alone, as libopus returns a frame of DTX
/// (`opus_encode_native`, src/opus_encoder.c). libwebrtc takes packets of one or two bytes for silence.
pub const BYTES: u32 = 1;

/// Parameters of DTX.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Time from one packet of a silence to the next.
    pub interval: Span,
    /// Times at which the microphone is muted, in order: from the first instant up to the second.
    pub mutes: Vec<(Time, Time)>,
}

/// Audio that sends little in silence, where its source alone would send nothing, and goes on when muted.
pub(crate) struct Dtx {
    source: Box<dyn Source>,
    settings: Settings,
    /// Index of the current or next mute.
    mute: usize,
    /// When the last packet of this silence was sent; `None` in speech.
    last: Option<Time>,
}

impl Dtx {
    /// # Errors
    /// When the interval is not positive, or the mutes are not in order.
    pub(crate) fn new(source: Box<dyn Source>, settings: Settings) -> Result<Self, String> {
        let Settings { interval, mutes } = &settings;
        if *interval <= Span::ZERO {
            return Err(format!("the interval of packets in silence is {interval}; it must be positive"));
        }
        if !in_order(mutes) {
            return Err(format!("the times at which audio is muted are not in order: {mutes:?}"));
        }
        Ok(Self { source, settings, mute: 0, last: None })
    }

    /// Whether the microphone is muted at `now`; to be called in order of time.
    fn muted(&mut self, now: Time) -> bool {
        while self.settings.mutes.get(self.mute).is_some_and(|&(_, to)| to <= now) {
            self.mute += 1;
        }
        self.settings.mutes.get(self.mute).is_some_and(|&(from, _)| from <= now)
    }
}

impl Source for Dtx {
    fn begin(&mut self, now: Time) {
        self.source.begin(now);
    }

    fn start(&mut self, now: Time) {
        self.last = None;
        self.source.start(now);
    }

    fn due(&self) -> Time {
        self.source.due()
    }

    fn frame(&mut self, now: Time) -> Frame {
        let frame = self.source.frame(now);
        if frame.bytes > 0 && !self.muted(now) {
            self.last = None;
            return frame;
        }
        let due = self.last.is_none_or(|last| now - last >= self.settings.interval);
        if due {
            self.last = Some(now);
        }
        // comfort noise goes on from what the decoder has heard before
        Frame { bytes: if due { BYTES } else { 0 }, key: false }
    }

    fn set_target(&mut self, now: Time, target: Rate) {
        self.source.set_target(now, target);
    }

    fn bounds(&self) -> Bounds {
        self.source.bounds()
    }

    fn frame_rate(&self) -> Option<f64> {
        self.source.frame_rate()
    }

    fn adapts(&self) -> bool {
        self.source.adapts()
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.source.draws(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::super::cbr::Cbr;
    use super::super::spurts::{Means, Spurts};
    use super::*;
    use tidegate_core::Stream;

    const TICK: Span = Span::from_millis(20);

    fn audio(spurts: Option<Spurts>) -> Box<Cbr> {
        Box::new(Cbr::new(Rate::from_kbps(64), TICK, spurts).expect("an interval"))
    }

    fn dtx(source: Box<Cbr>, interval: i64, mutes: &[(i64, i64)]) -> Dtx {
        let mutes =
            mutes.iter().map(|&(from, to)| (Time::from_millis(from), Time::from_millis(to))).collect();
        Dtx::new(source, Settings { interval: Span::from_millis(interval), mutes }).expect("settings")
    }

    /// Frames that are sent in `count` intervals of 20 ms.
    fn sent(mut source: impl Source, count: usize) -> Vec<(Time, Frame)> {
        source.begin(Time::ZERO);
        source.start(Time::ZERO);
        let frames = (0..count).map(|_| {
            let due = source.due();
            (due, source.frame(due))
        });
        frames.filter(|(_, frame)| frame.bytes > 0).collect()
    }

    #[test]
    fn a_muted_microphone_sends_a_byte_at_once_and_each_400_ms() {
        let frames = sent(dtx(audio(None), 400, &[(1000, 3000), (4010, 4050)]), 300);
        let silent: Vec<Time> =
            frames.iter().filter(|(_, frame)| !frame.key).map(|&(time, _)| time).collect();
        // 2 s of 100 frames: at 0, 400, ..., 1600 ms of them; then a silence of the frames of 4020 and 4040 ms
        assert_eq!(silent, [1000, 1400, 1800, 2200, 2600, 4020].map(Time::from_millis));
        assert!(frames.iter().all(|&(_, Frame { bytes, key })| bytes == if key { 160 } else { 1 }));
        assert_eq!(frames.len() - silent.len(), 300 - 100 - 2, "speech goes on as if nothing had been");
    }

    #[test]
    fn packets_keep_the_clock_of_frames_and_come_no_sooner_than_the_interval() {
        let times = |interval| -> Vec<i64> {
            let frames = sent(dtx(audio(None), interval, &[(0, 10_000)]), 500);
            frames.iter().map(|(time, _)| time.as_nanos() / 1_000_000).collect()
        };
        assert_eq!(times(20).len(), 500);
        assert_eq!(times(10).len(), 500, "no more than a packet in each interval of the audio");
        assert_eq!(times(410)[..4], [0, 420, 840, 1260]);
    }

    #[test]
    fn in_pauses_of_speech_the_first_packet_says_so_and_speech_stays_as_it_is() {
        let spurts = || Spurts::new(Means::P59, Stream::new(5, "call/audio", "talk spurts")).expect("means");
        let speech = sent(*audio(Some(spurts())), 100_000);
        let frames = sent(dtx(audio(Some(spurts())), 400, &[]), 100_000);
        let heard: Vec<_> = frames.iter().filter(|(_, frame)| frame.key).copied().collect();
        assert_eq!(heard, speech);
        // a silence of n frames: one packet, and a further one each 20 frames
        let begin = Time::ZERO - TICK;
        let gaps = std::iter::once(begin).chain(speech.iter().map(|&(time, _)| time)).collect::<Vec<_>>();
        let ends = gaps[1..].iter().copied().chain([Time::ZERO + TICK * 100_000]);
        let expected: i64 = gaps
            .iter()
            .zip(ends)
            .map(|(&from, to)| ((to - from).as_nanos() / TICK.as_nanos() - 1 + 19) / 20)
            .sum();
        assert_eq!((frames.len() - heard.len()) as i64, expected);
        assert!(expected > 2000, "{expected}");
    }

    #[test]
    fn settings_that_make_no_sense_are_named() {
        let new = |interval, mutes| Dtx::new(audio(None), Settings { interval, mutes }).map(|_| ());
        let error = new(Span::ZERO, vec![]).expect_err("no interval");
        assert!(error.contains("it must be positive"), "{error}");
        for wrong in [vec![(2, 1)], vec![(1, 3), (2, 4)]] {
            let wrong =
                wrong.into_iter().map(|(from, to)| (Time::from_secs(from), Time::from_secs(to))).collect();
            let error = new(TICK, wrong).expect_err("no order");
            assert!(error.contains("not in order"), "{error}");
        }
    }
}
