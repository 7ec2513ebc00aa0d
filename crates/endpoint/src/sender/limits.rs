//! Limits of rates, and repair, as the application sets them while a call goes on.

use super::{Path, Sender};
use serde::Deserialize;
use tidegate_core::control::Limits;
use tidegate_core::driver::Driver;
use tidegate_core::{Rate, Time};

/// New limits of a call; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitChange {
    /// The controller's smallest target.
    pub min_rate: Option<Rate>,
    /// The controller's largest target.
    pub max_rate: Option<Rate>,
    /// The largest rate of encoded video.
    pub video_max: Option<Rate>,
    /// Whether the repair that the call has goes on.
    pub repair: Option<bool>,
}

impl LimitChange {
    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Sender {
    /// Sets limits, and tells the controller of them (`PeerConnection::SetBitrate` and `RtpSender::SetParameters` of
    /// libwebrtc).
    pub(crate) fn limit(&mut self, now: Time, change: &LimitChange, path: &Path, out: &mut dyn Driver) {
        if let (Some(on), Some(repair)) = (change.repair, &mut self.repair) {
            repair.switch(on);
        }
        if let Some(max) = change.video_max {
            self.streams.iter_mut().for_each(|stream| stream.limit(max));
        }
        let mut limits = Limits {
            min: change.min_rate.unwrap_or(self.limits.min),
            max: change.max_rate.unwrap_or(self.limits.max),
            ..self.limits
        };
        if !self.is_running() {
            self.limits = limits;
            return;
        }
        limits.wanted = self.wanted();
        self.update_least(now);
        self.share_target(now);
        self.note_least(now, out);
        self.set_limits(now, limits, out);
        self.work(now, path, out);
    }
}
