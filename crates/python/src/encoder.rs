//! Encoders in the loop: pictures come from Python, and the encoded bits go to a tape of the run.

use std::sync::{Arc, Mutex, PoisonError};
use tidegate_sim::record::columns::{Column, Table};

/// The encoders in this build.
#[cfg(feature = "codec-openh264")]
pub(crate) const ENCODERS: &[&str] = &["openh264"];
#[cfg(not(feature = "codec-openh264"))]
pub(crate) const ENCODERS: &[&str] = &[];

/// The output of an encoder in a run.
#[derive(Default)]
pub(crate) struct Tape {
    pub(crate) flow: String,
    /// Parameter sets, then all slices.
    pub(crate) bits: Vec<u8>,
    /// Frame, picture, target and length of each slice; a picture that was left out has a row with length 0.
    slices: Vec<(u32, u32, f64, u32)>,
}

/// The tapes of a run, one for each flow.
pub(crate) type Tapes = Vec<Arc<Mutex<Tape>>>;

/// Calls a function with a locked tape.
pub(crate) fn on<R>(tape: &Mutex<Tape>, operation: impl FnOnce(&mut Tape) -> R) -> R {
    // a thread that panicked with the lock had not yet begun to write
    operation(&mut tape.lock().unwrap_or_else(PoisonError::into_inner))
}

/// All slices of all tapes.
pub(crate) fn slices(tapes: &Tapes) -> Table {
    let (mut words, mut codes) = (Vec::new(), Vec::new());
    let (mut frame, mut picture, mut target, mut length) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for tape in tapes {
        on(tape, |tape| {
            codes.resize(codes.len() + tape.slices.len(), words.len() as u32);
            words.push(tape.flow.clone());
            for &row in &tape.slices {
                frame.push(row.0);
                picture.push(row.1);
                target.push(row.2);
                length.push(row.3);
            }
        });
    }
    Table::default()
        .with("flow", Column::Words { words, codes })
        .with("frame", Column::U32(frame))
        .with("picture", Column::U32(picture))
        .with("target_bps", Column::F64(target))
        .with("length", Column::U32(length))
}

#[cfg(not(feature = "codec-openh264"))]
pub(crate) use absent::make;
#[cfg(feature = "codec-openh264")]
pub(crate) use openh264::make;

#[cfg(not(feature = "codec-openh264"))]
mod absent {
    use super::Tapes;
    use crate::control::half::Raised;
    use pyo3::prelude::*;
    use std::collections::BTreeMap;
    use tidegate_endpoint::media::live::EncoderFactory;
    use tidegate_sim::scenario::assemble::{EncoderRequest, no_encoder};

    /// Returns the error that this build has no encoder.
    pub(crate) fn make(
        request: &EncoderRequest<'_>,
        _objects: &BTreeMap<String, Py<PyAny>>,
        _raised: &Raised,
        _tapes: &mut Tapes,
    ) -> Result<EncoderFactory, String> {
        no_encoder(request)
    }
}

#[cfg(feature = "codec-openh264")]
mod openh264 {
    use super::{ENCODERS, Tape, Tapes, on};
    use crate::control::half::{Raised, exception_text};
    use numpy::PyReadonlyArray2;
    use pyo3::prelude::*;
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};
    use tidegate_codec::{Coded, Format, OpenH264};
    use tidegate_core::Rate;
    use tidegate_endpoint::media::live::{Encoded, Encoder, EncoderFactory};
    use tidegate_sim::scenario::assemble::EncoderRequest;

    /// Makes the factory of a flow's encoder; `objects` has a factory of iterators over the pictures of its clip.
    pub(crate) fn make(
        request: &EncoderRequest<'_>,
        objects: &BTreeMap<String, Py<PyAny>>,
        raised: &Raised,
        tapes: &mut Tapes,
    ) -> Result<EncoderFactory, String> {
        let EncoderRequest { flow, spec, fps, payload } = *request;
        if !ENCODERS.contains(&spec.codec.as_str()) {
            return Err(format!("codec: found {:?}; available: {}", spec.codec, ENCODERS.join(", ")));
        }
        let format = Format {
            width: spec.width as usize,
            height: spec.height as usize,
            fps,
            group: spec.group,
            payload: u16::try_from(payload)
                .map_err(|_| format!("payload: found {payload} bytes; expected at most 65535"))?,
        };
        let clip = objects
            .get(&spec.clip)
            .ok_or_else(|| format!("{}: the clip was not passed to the run", spec.clip))?;
        let clip = Python::attach(|py| clip.clone_ref(py));
        let tape = Arc::new(Mutex::new(Tape { flow: flow.to_owned(), ..Tape::default() }));
        tapes.push(tape.clone());
        let raised = raised.clone();
        Ok(EncoderFactory::new(move || {
            let camera = Camera::new(&clip, raised.clone())?;
            Ok(Box::new(InLoop { camera, encoder: OpenH264::new(format)?, frames: 0, tape: tape.clone() }))
        }))
    }

    /// Pictures from Python, one after the other.
    struct Camera {
        pictures: Py<PyAny>,
        /// Number of pictures taken from the iterator.
        taken: u64,
        planes: Vec<u8>,
        raised: Raised,
    }

    impl Camera {
        fn new(clip: &Py<PyAny>, raised: Raised) -> Result<Self, String> {
            let pictures = Python::attach(|py| {
                let pictures = clip.bind(py).call0().and_then(|pictures| pictures.try_iter());
                pictures
                    .map(|pictures| pictures.into_any().unbind())
                    .map_err(|error| keep(py, error, &raised))
            });
            Ok(Self { pictures: pictures?, taken: 0, planes: Vec::new(), raised })
        }

        /// Takes picture `number`, and skips those before it.
        fn picture(&mut self, number: u64) -> Result<&[u8], String> {
            Python::attach(|py| {
                let mut pictures = self.pictures.bind(py).try_iter().map_err(|error| error.to_string())?;
                while self.taken <= number {
                    let Some(next) = pictures.next() else {
                        return Err(format!("the clip ends before picture {}", self.taken));
                    };
                    let next = next.map_err(|error| keep(py, error, &self.raised))?;
                    self.taken += 1;
                    if self.taken > number {
                        let planes = next.extract::<PyReadonlyArray2<'_, u8>>();
                        let planes = planes
                            .map_err(|_| "a picture of the clip is not a 2-dimensional array of uint8")?;
                        let planes = planes
                            .as_slice()
                            .map_err(|error| format!("a picture of the clip cannot be read: {error}"))?;
                        self.planes.clear();
                        self.planes.extend_from_slice(planes);
                    }
                }
                Ok(())
            })?;
            Ok(&self.planes)
        }
    }

    /// Stores the first exception, which the error of the run carries, and returns its text.
    fn keep(py: Python<'_>, error: PyErr, raised: &Raised) -> String {
        let reason = exception_text(py, "the clip", &error);
        if let Ok(mut raised) = raised.lock() {
            raised.get_or_insert(error);
        }
        reason
    }

    /// An encoder in the simulation loop, with its picture source and the record of its output.
    struct InLoop {
        camera: Camera,
        encoder: OpenH264,
        frames: u32,
        tape: Arc<Mutex<Tape>>,
    }

    impl Encoder for InLoop {
        fn encode(&mut self, picture: u64, target: Rate, key: bool) -> Result<Option<Encoded>, String> {
            let coded = self.encoder.encode(self.camera.picture(picture)?, target, key)?;
            let frame = self.frames;
            let row = |length| (frame, picture as u32, target.as_bps_f64(), length);
            let Some(Coded { key, bits, slices }) = coded else {
                on(&self.tape, |tape| tape.slices.push(row(0)));
                return Ok(None);
            };
            self.frames += 1;
            on(&self.tape, |tape| {
                if tape.bits.is_empty() {
                    tape.bits.extend_from_slice(self.encoder.header());
                }
                tape.bits.extend_from_slice(&bits);
                tape.slices.extend(slices.iter().map(|&length| row(length)));
            });
            Ok(Some(Encoded { key, slices }))
        }
    }
}
