//! Recorded frame sizes of one clip that was encoded several times, each time at another rate.

use std::fmt;
use tidegate_core::{Frame, Rate};

/// Largest size of a frame in bytes (RFC 8593 section 6).
const FRAME_MAX: u32 = 1_000_000;

/// The frame sizes of one encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// The target rate of the encoder.
    pub rate: Rate,
    /// Bytes of each frame, in order.
    pub sizes: Vec<u32>,
}

/// Encodings of one clip at rising rates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    rungs: Vec<Rung>,
    length: usize,
    /// Frames to which no later one refers, in order: B frames.
    unreferenced: Vec<usize>,
}

/// A problem of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LadderError {
    /// A line that is no frame.
    Line {
        /// Name of the recording.
        source: String,
        /// Number of the line, from 1.
        line: usize,
        /// The text found there, and the text expected.
        problem: String,
    },
    /// A recording without any frame.
    Empty(String),
    /// Two rungs with one rate, a rate of zero, or no rung at all.
    Rates(String),
}

impl fmt::Display for LadderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { source, line, problem } => write!(f, "{source}:{line}: {problem}"),
            Self::Empty(source) => write!(f, "{source} has no frames"),
            Self::Rates(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for LadderError {}

impl Rung {
    /// Parses the text form of the syncodecs recordings: `%` comments, then one frame a line, either
    /// `number type X timestamp bytes` (Firefox) or `number type QP PSNR bytes` (x264). Only the sizes are kept.
    /// `source`: the name of the text in errors.
    ///
    /// # Errors
    /// When a line is no frame, or the text has no frames.
    pub fn parse(source: &str, text: &str, rate: Rate) -> Result<Self, LadderError> {
        let mut sizes = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('%') {
                continue;
            }
            let bytes = frame_bytes(line).map_err(|problem| LadderError::Line {
                source: source.to_owned(),
                line: index + 1,
                problem,
            })?;
            sizes.push(bytes);
        }
        if sizes.is_empty() {
            return Err(LadderError::Empty(source.to_owned()));
        }
        Ok(Self { rate, sizes })
    }
}

fn frame_bytes(line: &str) -> Result<u32, String> {
    let mut fields = line.split_whitespace();
    let (Some(number), Some(kind), Some(third), Some(fourth), Some(bytes), None) =
        (fields.next(), fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
    else {
        let count = line.split_whitespace().count();
        return Err(format!("found {count} fields, expected 5: number, type, QP or X, PSNR or time, bytes"));
    };
    if number.parse::<u64>().is_err() {
        return Err(format!("found {number:?} for the frame number, expected a whole number"));
    }
    if !kind.chars().all(char::is_alphabetic) {
        return Err(format!("found {kind:?} for the frame type, expected letters"));
    }
    for (name, field) in [("QP (or X)", third), ("PSNR (or time)", fourth)] {
        if !field.parse::<f64>().is_ok_and(f64::is_finite) {
            return Err(format!("found {field:?} for the {name}, expected a number"));
        }
    }
    bytes.parse().map_err(|_| format!("found {bytes:?} for the size, expected bytes as a whole number"))
}

impl Ladder {
    /// A ladder of `rungs` in any order. If their lengths differ, the shortest counts.
    ///
    /// # Errors
    /// When there is none, one is empty, or a rate is zero or comes twice.
    pub fn new(mut rungs: Vec<Rung>) -> Result<Self, LadderError> {
        rungs.sort_by_key(|rung| rung.rate);
        let Some(length) = rungs.iter().map(|rung| rung.sizes.len()).min() else {
            return Err(LadderError::Rates("a ladder needs at least one recording".to_owned()));
        };
        if length == 0 {
            return Err(LadderError::Empty("a rung".to_owned()));
        }
        if rungs[0].rate == Rate::ZERO {
            return Err(LadderError::Rates("a recording has a rate of zero".to_owned()));
        }
        if let Some(pair) = rungs.windows(2).find(|pair| pair[0].rate == pair[1].rate) {
            return Err(LadderError::Rates(format!("two recordings have the rate {:?}", pair[0].rate)));
        }
        Ok(Self { rungs, length, unreferenced: Vec::new() })
    }

    /// The ladder, with the frames of a group to which no later one refers, in order.
    ///
    /// # Errors
    /// When they are not in order, or more than [`Frame::BETWEEN_MAX`] come in a row.
    pub fn with_unreferenced(self, frames: Vec<usize>) -> Result<Self, String> {
        if !frames.is_sorted_by(|before, after| before < after) {
            return Err("frames without references are not in order".to_owned());
        }
        let ladder = Self { unreferenced: frames, ..self };
        if ladder.most_between() > usize::from(Frame::BETWEEN_MAX) {
            return Err(format!("more than {} frames without references in a row", Frame::BETWEEN_MAX));
        }
        Ok(ladder)
    }

    /// Whether a later frame may refer to frame `index`.
    pub(crate) fn is_reference(&self, index: usize) -> bool {
        self.unreferenced.binary_search(&index).is_err()
    }

    /// Largest number of frames in a row to which no later one refers.
    pub(crate) fn most_between(&self) -> usize {
        let runs = self.unreferenced.chunk_by(|before, after| before + 1 == *after);
        runs.map(<[usize]>::len).max().unwrap_or(0)
    }

    /// Number of its frames.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// The highest rung with a rate of at most `rate`; the lowest if all are above.
    #[must_use]
    pub fn rung(&self, rate: Rate) -> usize {
        self.rungs.partition_point(|rung| rung.rate <= rate).saturating_sub(1)
    }

    /// The recorded size of frame `index`, counted from 0, on a rung.
    ///
    /// # Panics
    /// When there is no such rung, or `index` is not less than [`Ladder::length`].
    #[must_use]
    pub fn recorded(&self, rung: usize, index: usize) -> u32 {
        self.rungs[rung].sizes[index]
    }

    /// The first recorded size that no frame can have: zero, or above the 1 MB of RFC 8593 section 6.
    pub(crate) fn odd_size(&self) -> Option<u32> {
        let mut sizes = self.rungs.iter().flat_map(|rung| &rung.sizes[..self.length]);
        sizes.find(|size| !(1..=FRAME_MAX).contains(*size)).copied()
    }

    /// The size of frame `index` at `rate`: linear between two rungs, in proportion to the rate below
    /// the lowest and above the highest one, and from 10 bytes to 1 MB (RFC 8593 section 6).
    ///
    /// # Panics
    /// When `index` is not less than [`Ladder::length`].
    #[must_use]
    pub fn size(&self, rate: Rate, index: usize) -> u32 {
        let bps = rate.as_bps_f64();
        let above = self.rungs.partition_point(|rung| rung.rate < rate);
        let scaled =
            |rung: &Rung, factor: f64| f64::from(rung.sizes[index]) * factor / rung.rate.as_bps_f64();
        let size = if above == 0 {
            scaled(&self.rungs[0], bps)
        } else if above == self.rungs.len() {
            scaled(&self.rungs[above - 1], bps)
        } else {
            let (low, high) = (&self.rungs[above - 1], &self.rungs[above]);
            let part = (bps - low.rate.as_bps_f64()) / (high.rate.as_bps_f64() - low.rate.as_bps_f64());
            f64::from(low.sizes[index]) * (1.0 - part) + f64::from(high.sizes[index]) * part
        };
        // RFC 8593 section 6: a frame is clipped to 10 bytes .. 1 MB
        tidegate_core::math::round(size).clamp(10.0, f64::from(FRAME_MAX)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIREFOX: &str =
        "% Nframe | type | X | timestamp | size (Bytes)\n0 U 0. 0.000000 9950\n1 U 0. 0.005229 3946\n";
    const X264: &str =
        "% Nframe | type | QP | PSNR | size (Bytes) \n0 I 26.20 39.14 5822\n\n1 P 27.16 38.74 275\n";

    #[test]
    fn both_text_forms_are_parsed() {
        let rung = |text| Rung::parse("clip", text, Rate::from_kbps(100)).map(|rung| rung.sizes);
        assert_eq!(rung(FIREFOX), Ok(vec![9950, 3946]));
        assert_eq!(rung(X264), Ok(vec![5822, 275]));
    }

    #[test]
    fn errors_name_the_line_and_its_problem() {
        for (text, line, excerpt) in [
            ("%\n0 I 26.20 39.14 5822\n1 P 27.16 38.74", 3, "4 fields"),
            ("0 I 26.20 39.14 58.22", 1, "\"58.22\""),
            ("x I 26.20 39.14 58", 1, "\"x\""),
            ("0 9 26.20 39.14 58", 1, "\"9\""),
            ("0 I QP 39.14 58", 1, "\"QP\""),
            ("0 I 1.0 NaN 58", 1, "\"NaN\""),
            ("0 I 1.0 1.0 -58", 1, "\"-58\""),
            ("0 I 1.0 1.0 58 59", 1, "6 fields"),
        ] {
            let error = Rung::parse("clip.txt", text, Rate::from_kbps(1)).expect_err(text).to_string();
            assert!(error.starts_with(&format!("clip.txt:{line}: ")) && error.contains(excerpt), "{error}");
        }
        assert_eq!(
            Rung::parse("clip.txt", "% nothing", Rate::from_kbps(1)),
            Err(LadderError::Empty("clip.txt".to_owned()))
        );
    }

    #[test]
    fn sizes_between_and_outside_the_rungs_are_as_by_hand() {
        let rung = |kbps, sizes: &[u32]| Rung { rate: Rate::from_kbps(kbps), sizes: sizes.to_vec() };
        let ladder = Ladder::new(vec![rung(400, &[900, 3_000_000, 9]), rung(200, &[500, 30, 20, 7])])
            .expect("two rungs");
        assert_eq!(ladder.length(), 3);
        let size = |kbps, index| ladder.size(Rate::from_kbps(kbps), index);
        assert_eq!(size(200, 0), 500);
        assert_eq!(size(400, 0), 900);
        assert_eq!(size(250, 0), 600, "500 + (900 - 500) / 4");
        assert_eq!(size(100, 0), 250, "half of the lowest rung");
        assert_eq!(size(800, 0), 1800, "twice the highest rung");
        assert_eq!(size(400, 1), 1_000_000, "at most 1 MB");
        assert_eq!(size(20, 1), 10, "at least 10 bytes");
    }

    #[test]
    fn a_rung_as_it_was_recorded_is_the_one_at_or_below_the_rate() {
        let rung = |kbps, sizes: &[u32]| Rung { rate: Rate::from_kbps(kbps), sizes: sizes.to_vec() };
        let ladder =
            Ladder::new(vec![rung(200, &[500, 30]), rung(400, &[900, 60, 7_000_000])]).expect("two rungs");
        let rung_at = |kbps| ladder.rung(Rate::from_kbps(kbps));
        assert_eq!(
            [rung_at(1), rung_at(199), rung_at(200), rung_at(399), rung_at(400), rung_at(9000)],
            [0, 0, 0, 0, 1, 1]
        );
        assert_eq!(ladder.recorded(1, 0), 900);
        assert_eq!(ladder.odd_size(), None, "frames beyond the common length do not count");
        assert_eq!(Ladder::new(vec![rung(1, &[5, 0])]).expect("a rung").odd_size(), Some(0));
    }

    #[test]
    fn a_ladder_needs_rungs_of_different_rates() {
        let rung = |kbps| Rung { rate: Rate::from_kbps(kbps), sizes: vec![1] };
        assert!(Ladder::new(Vec::new()).is_err());
        assert!(Ladder::new(vec![rung(1), rung(1)]).is_err());
        assert!(Ladder::new(vec![rung(0)]).is_err());
        assert!(Ladder::new(vec![Rung { rate: Rate::from_kbps(1), sizes: Vec::new() }]).is_err());
    }
}
