//! An encoder in the loop: each frame is encoded when it is due, at the current target.
//!
//! The driver supplies the encoder and its pictures. This source only calls it, with the rate and whether a key frame
//! was requested.

use super::{Bounds, Frame, Source, Ticker};
use std::fmt;
use std::sync::Arc;
use tidegate_core::{Rate, Time};

/// An encoder of successive pictures.
pub trait Encoder: Send {
    /// Encodes the picture with the number `picture`, which grows from call to call, at the rate `target`; as a key
    /// frame if `key`. `None`: it leaves the picture out to hold its rate.
    ///
    /// # Errors
    /// The reason why it cannot; it is not called again.
    fn encode(&mut self, picture: u64, target: Rate, key: bool) -> Result<Option<Encoded>, String>;
}

/// An encoded picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// Whether it can be decoded without earlier ones.
    pub key: bool,
    /// Bytes of each slice: no packet carries bytes of two slices.
    pub slices: Vec<u32>,
}

/// Factory of encoders, one for each stream that needs one.
#[derive(Clone)]
pub struct EncoderFactory(Arc<dyn Fn() -> Result<Box<dyn Encoder>, String> + Send + Sync>);

impl EncoderFactory {
    /// Factory that calls `make`, which returns the encoder, or the reason why there is none.
    pub fn new(make: impl Fn() -> Result<Box<dyn Encoder>, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    pub(crate) fn make(&self) -> Result<Box<dyn Encoder>, String> {
        (self.0)()
    }
}

impl fmt::Debug for EncoderFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an encoder")
    }
}

/// A camera in front of an encoder.
pub(crate) struct Live {
    encoder: Box<dyn Encoder>,
    ticker: Ticker,
    bounds: Bounds,
    target: Rate,
    /// When the camera took its first picture.
    first_picture: Option<Time>,
    /// Number of the next picture.
    picture: u64,
    /// Whether the next frame is to be a key frame.
    key: bool,
    /// Bytes of each slice of the last frame.
    slices: Vec<u32>,
    failure: Option<String>,
}

impl Live {
    pub(crate) fn new(encoder: Box<dyn Encoder>, ticker: Ticker, bounds: Bounds) -> Self {
        let (first_picture, failure, slices) = (None, None, Vec::new());
        Self {
            encoder,
            ticker,
            bounds,
            target: Rate::ZERO,
            first_picture,
            picture: 0,
            key: true,
            slices,
            failure,
        }
    }
}

impl Source for Live {
    fn start(&mut self, now: Time) {
        // the camera has gone on through the pause, and the receiver has no earlier pictures to decode from
        let first_picture = *self.first_picture.get_or_insert(now);
        self.picture = self.picture.max(self.ticker.ticks_in(now - first_picture));
        self.key = true;
        self.ticker.start(now);
    }

    fn due(&self) -> Time {
        if self.failure.is_some() { Time::MAX } else { self.ticker.due() }
    }

    fn frame(&mut self, _now: Time) -> Frame {
        self.ticker.advance();
        let picture = self.picture;
        self.picture += 1;
        let empty = Frame { bytes: 0, key: false };
        match self.encoder.encode(picture, self.bounds.clamp(self.target), self.key) {
            Ok(Some(Encoded { key, slices })) => {
                self.key &= !key;
                self.slices = slices;
                Frame { bytes: self.slices.iter().sum(), key }
            }
            Ok(None) => empty,
            Err(reason) => {
                self.failure = Some(reason);
                empty
            }
        }
    }

    fn leaves_out(&self) -> bool {
        true
    }

    fn leave_out(&mut self) {
        self.ticker.advance();
        self.picture += 1;
    }

    fn set_target(&mut self, _now: Time, target: Rate) {
        self.target = target;
    }

    fn request_key(&mut self) {
        self.key = true;
    }

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn frame_rate(&self) -> Option<f64> {
        Some(self.ticker.fps())
    }

    fn slices(&self) -> Option<&[u32]> {
        Some(&self.slices)
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    type Calls = Arc<Mutex<Vec<(u64, u64, bool)>>>;

    /// Leaves out every fourth picture, and breaks at number 40.
    struct Noting(Calls);

    impl Encoder for Noting {
        fn encode(&mut self, picture: u64, target: Rate, key: bool) -> Result<Option<Encoded>, String> {
            self.0.lock().expect("one thread").push((picture, target.as_bps(), key));
            match picture {
                40 => Err("out of film".to_owned()),
                _ => Ok((picture % 4 != 3).then_some(Encoded { key, slices: vec![70, 30] })),
            }
        }
    }

    fn live() -> (Live, Calls) {
        let calls = Calls::default();
        let bounds = Bounds::new(Rate::from_bps(100), Rate::from_bps(500));
        (Live::new(Box::new(Noting(calls.clone())), Ticker::new(10.0).expect("a rate"), bounds), calls)
    }

    #[test]
    fn it_encodes_each_picture_at_the_current_rate() {
        let (mut source, calls) = live();
        source.start(Time::from_secs(1));
        let mut sizes = Vec::new();
        for bps in [200, 1, 900, 300, 400] {
            source.set_target(Time::ZERO, Rate::from_bps(bps));
            sizes.push(source.frame(source.due()).bytes);
        }
        assert_eq!(sizes, [100, 100, 100, 0, 100]);
        assert_eq!(source.slices(), Some(&[70, 30][..]));
        let expected = [(0, 200, true), (1, 100, false), (2, 500, false), (3, 300, false), (4, 400, false)];
        assert_eq!(*calls.lock().expect("one thread"), expected);
        assert_eq!(source.due(), Time::from_millis(1500));
    }

    #[test]
    fn a_key_frame_is_requested_until_there_is_one() {
        let (mut source, calls) = live();
        source.start(Time::ZERO);
        for number in 0..6 {
            if number == 3 {
                source.request_key();
            }
            source.frame(source.due());
        }
        let keys: Vec<bool> = calls.lock().expect("one thread").iter().map(|&(_, _, key)| key).collect();
        assert_eq!(keys, [true, false, false, true, true, false], "number 3 was left out");
    }

    #[test]
    fn a_picture_that_is_left_out_is_not_encoded() {
        let (mut source, calls) = live();
        source.start(Time::ZERO);
        source.leave_out();
        source.frame(source.due());
        source.leave_out();
        source.frame(source.due());
        let calls = calls.lock().expect("one thread");
        let pictures: Vec<_> = calls.iter().map(|&(picture, _, key)| (picture, key)).collect();
        assert_eq!(pictures, [(1, true), (3, false)]);
        assert_eq!(source.due(), Time::from_millis(400));
    }

    #[test]
    fn the_camera_goes_on_through_a_pause() {
        let (mut source, calls) = live();
        source.start(Time::ZERO);
        source.frame(source.due());
        // 1.25 s is behind picture 12, so that number 13 is the next one
        source.start(Time::from_millis(1250));
        source.frame(source.due());
        let calls = calls.lock().expect("one thread");
        assert_eq!((calls[1].0, calls[1].2), (13, true));
    }

    #[test]
    fn an_encoders_error_is_kept_and_it_is_not_called_again() {
        let (mut source, calls) = live();
        source.start(Time::ZERO);
        while source.due() < Time::MAX {
            assert_eq!(source.failure(), None);
            source.frame(source.due());
        }
        assert_eq!(source.failure(), Some("out of film"));
        assert_eq!(calls.lock().expect("one thread").len(), 41);
    }
}
