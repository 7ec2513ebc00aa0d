//! Makers of the parts of a world that a scenario cannot hold as data: controllers, and encoders in the loop.

use crate::refusal::Refusal;
use crate::scenario::{ControllerSpec, EncoderSpec};
use tidegate_core::control::{Controller, ReceiverHalf};
use tidegate_endpoint::media::live;

/// The two halves of a congestion control scheme.
pub type Halves = (Box<dyn Controller>, Option<Box<dyn ReceiverHalf>>);

/// Makes controllers by name: from the registry, or objects that the caller hands over.
pub type Maker<'a> = dyn FnMut(&ControllerSpec) -> Result<Halves, Refusal> + 'a;

/// An encoder in the loop that a flow needs.
#[derive(Clone, Copy, Debug)]
pub struct EncoderRequest<'a> {
    /// The flow's name.
    pub flow: &'a str,
    /// The scenario's specification of the encoder.
    pub spec: &'a EncoderSpec,
    /// Pictures per second.
    pub fps: f64,
    /// Bytes of RTP payload of a full packet.
    pub payload: u32,
}

/// Finds the encoder of a flow: returns the function that makes one for each of the flow's streams, or the reason for
/// which there is none.
pub type EncoderMaker<'a> = dyn FnMut(&EncoderRequest<'_>) -> Result<live::EncoderFactory, String> + 'a;

/// Makers of the parts of a world that are not data.
pub struct Makers<'a> {
    /// Maker of controllers.
    pub controller: &'a mut Maker<'a>,
    /// Maker of encoders in the loop.
    pub encoder: &'a mut EncoderMaker<'a>,
}

/// Refuses to make any encoder.
///
/// # Errors
/// Always.
pub fn no_encoder(request: &EncoderRequest<'_>) -> Result<live::EncoderFactory, String> {
    Err(format!(
        "{}: no encoder runs in the loop here; it needs tidegate's Python package with the feature codec-openh264",
        request.spec.codec
    ))
}

/// Makes a controller of the registry, with the settings for a call.
///
/// # Errors
/// When there is none of that name or its settings are wrong.
pub fn from_registry(spec: &ControllerSpec) -> Result<Halves, Refusal> {
    let Some(entry) = tidegate_controllers::find(&spec.name) else {
        let names: Vec<&str> = tidegate_controllers::registry().iter().map(|entry| entry.name).collect();
        return Err(Refusal::new("media.controller", &spec.name, format!("one of {}", names.join(", "))));
    };
    let preset = if spec.preset.is_empty() { entry.default_preset() } else { &spec.preset };
    let mut overrides = (entry.in_call)(preset, spec.content);
    if let Some(settings) = overrides.as_object_mut() {
        settings.extend(spec.settings.clone());
    }
    let sender = (entry.build)(preset, &overrides)?;
    let receiver = match entry.receiver {
        Some(make) => Some(make(preset, &overrides)?),
        None => None,
    };
    Ok((sender, receiver))
}
