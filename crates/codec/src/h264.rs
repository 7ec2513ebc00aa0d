//! OpenH264 as an encoder in the loop: one call encodes one picture.

use openh264::encoder::{
    BitRate, Complexity, Encoder, EncoderConfig, FrameRate, FrameType, IntraFramePeriod, Level,
    RateControlMode, UsageType,
};
use openh264::formats::YUVSlices;
use openh264::{OpenH264API, Timestamp};
use openh264_sys2::{
    ENCODER_OPTION, ENCODER_OPTION_BITRATE, ENCODER_OPTION_MAX_BITRATE, ENCODER_OPTION_TRACE_LEVEL,
    SBitrateInfo, SPATIAL_LAYER_0, SPATIAL_LAYER_ALL, WELS_LOG_QUIET,
};
use tidegate_core::Rate;

/// Largest number of frames per second in OpenH264's rate control (`wels_const.h`).
const MAX_FRAME_RATE: f64 = 60.0;
/// A limit above that of each level, so that only the target limits the rate (`WelsBitRateVerification`).
const NO_LIMIT: i32 = i32::MAX;
/// Lowest target in bit/s: rates below one bit a frame are refused (`WelsBitRateVerification`).
const BITRATE_MIN: u64 = 1_000;
/// Highest target in bit/s: the limit of level 5.2 (H.264 table A-1, with `CpbBrNalFactor` 1200).
const BITRATE_MAX: u64 = 288_000_000;

/// Parameters of the input and of the network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Format {
    /// Pixels of a line; even.
    pub width: usize,
    /// Lines; even.
    pub height: usize,
    /// Pictures per second.
    pub fps: f64,
    /// Frames from one key frame to the next; 0: key frames only on request.
    pub group: u32,
    /// Bytes of a packet's payload: no slice is larger.
    pub payload: u16,
}

/// One encoded picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coded {
    /// Whether it can be decoded without earlier ones.
    pub key: bool,
    /// Its slices as a byte stream (H.264 annex B).
    pub bits: Vec<u8>,
    /// Bytes of each slice, in order.
    pub slices: Vec<u32>,
}

/// An encoder that follows its target from picture to picture.
pub struct OpenH264 {
    format: Format,
    encoder: Encoder,
    header: Vec<u8>,
    /// Its current rate in bit/s; zero before the first picture.
    rate: u64,
    pictures: u64,
}

impl OpenH264 {
    /// # Errors
    /// When OpenH264 does not support the format.
    pub fn new(format: Format) -> Result<Self, String> {
        let Format { width, height, fps, payload, .. } = format;
        if width % 2 + height % 2 != 0 || width == 0 || height == 0 {
            return Err(format!("pictures of {width}x{height}: width and height must be even"));
        }
        if !(1.0..=MAX_FRAME_RATE).contains(&fps) {
            return Err(format!("{fps} pictures per second: OpenH264 supports 1 to {MAX_FRAME_RATE}"));
        }
        // with smaller packets, OpenH264 cannot keep the limit of a slice
        if payload < 200 {
            return Err(format!("packets of {payload} bytes: OpenH264 needs at least 200 bytes"));
        }
        let encoder = Self::encoder(format, BITRATE_MIN)?;
        Ok(Self { format, encoder, header: Vec::new(), rate: 0, pictures: 0 })
    }

    fn encoder(format: Format, bps: u64) -> Result<Encoder, String> {
        let config = EncoderConfig::new()
            .bitrate(BitRate::from_bps(bps as u32))
            .rate_control_mode(RateControlMode::Bitrate)
            .skip_frames(true)
            .max_frame_rate(FrameRate::from_hz(format.fps as f32))
            .usage_type(UsageType::CameraVideoRealTime)
            .complexity(Complexity::Low)
            // one level for all rates, so that parameter sets never change
            .level(Level::Level_5_2)
            .max_slice_len(format.payload.into())
            .intra_frame_period(IntraFramePeriod::from_num_frames(format.group))
            // a cut must not make a key frame without a request
            .scene_change_detect(false)
            .num_threads(1);
        let encoder = Encoder::with_api_config(OpenH264API::from_source(), config);
        let mut encoder = encoder.map_err(|error| error.to_string())?;
        // set before it begins, or it would write its settings to the standard error
        set(&mut encoder, ENCODER_OPTION_TRACE_LEVEL, WELS_LOG_QUIET)?;
        Ok(encoder)
    }

    /// Sequence and picture parameter sets, which a decoder gets out of band. Empty before the first picture.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// Encodes a picture (planes Y, U, V; colour at half the width and height) at `rate`; as a key frame if `key`.
    /// `None`: the encoder leaves the picture out to hold its rate.
    ///
    /// # Errors
    /// When the picture has another size, or OpenH264 fails.
    pub fn encode(&mut self, picture: &[u8], rate: Rate, key: bool) -> Result<Option<Coded>, String> {
        let Format { width, height, fps, .. } = self.format;
        let area = width * height;
        if picture.len() != area * 3 / 2 {
            return Err(format!(
                "a picture of {} bytes: {width}x{height} needs {} bytes",
                picture.len(),
                area * 3 / 2
            ));
        }
        self.set_rate(rate.as_bps().clamp(BITRATE_MIN, BITRATE_MAX))?;
        if key && self.pictures > 0 {
            self.encoder.force_intra_frame();
        }
        let (luma, colour) = picture.split_at(area);
        let (u, v) = colour.split_at(area / 4);
        let planes = YUVSlices::new((luma, u, v), (width, height), (width, width / 2, width / 2));
        let timestamp = Timestamp::from_millis((self.pictures as f64 * 1000.0 / fps) as u64);
        self.pictures += 1;
        let stream = self.encoder.encode_at(&planes, timestamp).map_err(|error| error.to_string())?;
        let key = match stream.frame_type() {
            FrameType::IDR => true,
            FrameType::P | FrameType::I => false,
            FrameType::Skip => return Ok(None),
            kind => return Err(format!("OpenH264 returned an unexpected frame type: {kind:?}")),
        };
        let layers = (0..stream.num_layers()).filter_map(|index| stream.layer(index));
        let (mut header, mut bits, mut slices) = (Vec::new(), Vec::new(), Vec::new());
        for layer in layers {
            for index in 0..layer.nal_count() {
                let Some(unit) = layer.nal_unit(index) else { continue };
                if layer.is_video() {
                    bits.extend_from_slice(unit);
                    slices.push(unit.len() as u32);
                } else {
                    header.extend_from_slice(unit);
                }
            }
        }
        if self.header.is_empty() {
            self.header = header;
        } else if !header.is_empty() && header != self.header {
            return Err("OpenH264 changed its parameter sets; the decoder has only the first ones".to_owned());
        }
        Ok(Some(Coded { key, bits, slices }))
    }

    fn set_rate(&mut self, bps: u64) -> Result<(), String> {
        let limit = |layer, bps| SBitrateInfo { iLayer: layer, iBitrate: bps };
        if self.pictures == 1 {
            // OpenH264 has taken its first rate as its limit
            set(&mut self.encoder, ENCODER_OPTION_MAX_BITRATE, limit(SPATIAL_LAYER_0, NO_LIMIT))?;
        }
        if bps == self.rate {
            return Ok(());
        }
        if self.pictures == 0 {
            // the encoder takes its size, and begins, with its first picture
            self.encoder = Self::encoder(self.format, bps)?;
        } else {
            set(&mut self.encoder, ENCODER_OPTION_BITRATE, limit(SPATIAL_LAYER_ALL, bps as i32))?;
        }
        self.rate = bps;
        Ok(())
    }
}

/// Sets an option to a value of the type `T`.
#[allow(unsafe_code)]
fn set<T>(encoder: &mut Encoder, option: ENCODER_OPTION, mut value: T) -> Result<(), String> {
    // SAFETY: SetOption (`welsEncoderExt.cpp`) reads the value behind the pointer and does not keep it. It reads the
    // options set here as an `int` and as `SBitrateInfo`, the types that callers give, and nothing in the crate relies
    // on them once an encoder has begun.
    let code = unsafe { encoder.raw_api().set_option(option, (&raw mut value).cast()) };
    if code == 0 { Ok(()) } else { Err(format!("OpenH264 refuses option {option} (code {code})")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format { width: 320, height: 192, fps: 25.0, group: 0, payload: 1200 };

    /// A picture of coarse moving waves and noise, in whole numbers.
    fn picture(number: u64) -> Vec<u8> {
        let Format { width, height, .. } = FORMAT;
        let mut noise = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut picture = vec![128; width * height * 3 / 2];
        for (index, pixel) in picture[..width * height].iter_mut().enumerate() {
            let (x, y) = (index as u64 % width as u64, index as u64 / width as u64);
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let wave = (x * 3 + number * 5) % 128 + (y * 2 + number * 2) % 96;
            *pixel = (wave + (noise >> 62)) as u8;
        }
        picture
    }

    fn encoder(format: Format) -> OpenH264 {
        OpenH264::new(format).expect("a format")
    }

    #[test]
    fn the_rate_follows_its_target_within_a_second() {
        let mut encoder = encoder(FORMAT);
        let targets = [1500, 300, 900, 400];
        let mut keys = 0;
        for (step, kbps) in targets.into_iter().enumerate() {
            let mut bits = 0;
            for frame in 0..100 {
                let number = (step * 100 + frame) as u64;
                let coded = encoder.encode(&picture(number), Rate::from_kbps(kbps), false).expect("a frame");
                let Some(coded) = coded else { continue };
                keys += u32::from(coded.key);
                bits += if frame < 25 { 0 } else { 8 * coded.bits.len() };
                assert_eq!(coded.slices.iter().sum::<u32>() as usize, coded.bits.len());
            }
            // three seconds from the second one on; a frame has some 4 % of their bits
            let share = bits as f64 / 3000.0 / kbps as f64;
            assert!((0.9..1.1).contains(&share), "{share} of {kbps} kbit/s");
        }
        assert_eq!(keys, 1, "the first, and none at a change of rate or picture");
        assert_eq!(encoder.header()[..5], [0, 0, 0, 1, 0x67], "a sequence parameter set");
    }

    #[test]
    fn a_slice_fits_in_a_packet() {
        for payload in [500, 1200] {
            let mut encoder = encoder(Format { payload, ..FORMAT });
            for number in 0..20 {
                let coded = encoder.encode(&picture(number), Rate::from_mbps(4), false).expect("a frame");
                let coded = coded.expect("no reason to leave it out");
                let largest = coded.slices.iter().max().copied().unwrap_or_default();
                assert!(largest <= u32::from(payload), "{largest} bytes");
                // OpenH264 keeps 148 bytes free, and the last slice may be short
                let full = coded.bits.len() as f64 / (f64::from(payload) - 148.0);
                assert!(coded.slices.len() as f64 <= 1.25 * full + 1.0, "{full} of {:?}", coded.slices);
            }
        }
    }

    #[test]
    fn key_frames_come_on_request_and_by_group() {
        let keys = |group, requested: &[u64]| {
            let mut encoder = encoder(Format { group, ..FORMAT });
            let is_key = |number: &u64| {
                let coded = encoder.encode(&picture(*number), Rate::from_mbps(2), requested.contains(number));
                coded.expect("a frame").is_some_and(|coded| coded.key)
            };
            (0..25).filter(is_key).collect::<Vec<u64>>()
        };
        assert_eq!(keys(0, &[7, 8]), [0, 7, 8]);
        assert_eq!(keys(10, &[]), [0, 10, 20]);
        assert_eq!(keys(10, &[7]), [0, 7, 17], "a group begins with any key frame");
    }

    #[test]
    fn the_same_pictures_and_rates_give_the_same_bits() {
        let bits = || {
            let mut encoder = encoder(Format { group: 12, ..FORMAT });
            let code = |number: u64| {
                let rate = Rate::from_kbps(200 + 37 * (number % 11));
                encoder.encode(&picture(number), rate, number % 17 == 3).expect("a frame")
            };
            (0..60).map(code).collect::<Vec<_>>()
        };
        assert_eq!(bits(), bits());
    }

    #[test]
    fn pictures_are_left_out_where_the_rate_is_too_low_for_all() {
        let mut encoder = encoder(FORMAT);
        let left_out = |number: &u64| {
            encoder.encode(&picture(*number), Rate::from_kbps(20), false).expect("a frame").is_none()
        };
        let count = (0..100).filter(left_out).count();
        assert!((20..95).contains(&count), "{count}");
    }

    #[test]
    fn unsupported_formats_and_pictures_are_refused() {
        let error_of = |format: Format| OpenH264::new(format).err().expect("refused");
        assert!(error_of(Format { width: 31, ..FORMAT }).contains("width and height must be even"));
        assert!(error_of(Format { fps: 61.0, ..FORMAT }).contains("supports 1 to 60"));
        assert!(error_of(Format { fps: f64::NAN, ..FORMAT }).contains("supports 1 to 60"));
        assert!(error_of(Format { payload: 100, ..FORMAT }).contains("at least 200"));
        let error = encoder(FORMAT).encode(&[0; 5], Rate::from_mbps(1), false).expect_err("too short");
        assert_eq!(error, "a picture of 5 bytes: 320x192 needs 92160 bytes");
    }
}
