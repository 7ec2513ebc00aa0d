//! `aiortc`: the Kalman filter, detector and AIMD of aiortc 1.16 `rate.py`, which has neither a loss part nor a
//! reaction to silence.

use super::libwebrtc_v1;
use super::{Placement, Preset};
use crate::gcc::delay::{Delay, Filter, Grouping, Parts};
use crate::gcc::detector::{self, Detector};
use crate::gcc::groups::{self, AdaptClock, Groups, SendClock};
use crate::gcc::kalman::{self, Form, Kalman};
use crate::gcc::loss::Loss;
use crate::gcc::rate::{self, Aimd, Start};
use crate::gcc::received::Received;
use crate::gcc::received::window::{Divisor, Window};
use crate::gcc::receiver::{self, Receiver};
use crate::gcc::sender::{self, Gcc};
use crate::gcc::threshold;
use crate::settings::{Kind, Setting, settings};
use Kind::{Flag, Number};
use tidegate_core::control::Controller;
use tidegate_core::units::Span;

settings! {
    // -- of gcc only: at the receiver it is as it is shipped --------------------------------------------------
    send_clock: SendClock, "", SendClock::KIND, [SendClock::Exact],
        "resolution of the send times: exact (`exact`), or 2^-18 s (`abs-send-time`)",
        "transport-wide feedback: exact; RemoteBitrateEstimator: abs-send-time";
    adapt_clock: AdaptClock, "", AdaptClock::KIND, [AdaptClock::Group],
        "arrival time of a group for the threshold: that of the group's last packet (`group`), or of the next \
         group's first (`packet`)",
        "RemoteBitrateEstimator: packet";
    // -- of both ------------------------------------------------------------------------------------------------
    k_up: f64, "1/ms", Number(0.0, 1.0), [0.0087],
        "speed of the threshold towards an estimate above the threshold",
        "OveruseDetector.k_up";
    k_down: f64, "1/ms", Number(0.0, 1.0), [0.039],
        "speed of the threshold towards an estimate below the threshold",
        "OveruseDetector.k_down";
    received_window: f64, "ms", Number(10.0, 60_000.0), [1000.0],
        "duration of the window in which the received rate is measured",
        "RateCounter(1000)";
    update_interval: f64, "ms", Number(0.0, 60_000.0), [500.0],
        "time that has to pass between two updates of the rate without over-use",
        "AimdRateControl.feedback_interval";
    beta: f64, "", Number(0.1, 1.0), [0.85],
        "rate after over-use, as a fraction of the received rate",
        "AimdRateControl.update";
    loss_part: bool, "", Flag, [false],
        "whether losses limit the rate, as in `libwebrtc-v1`",
        "aiortc has no loss part";
    silence_limit: f64, "ms", Number(0.0, 1e6), [0.0],
        "round-trip time, plus the time since the last feedback while sending, above which the rate is reduced; 0: no \
         limit",
        "aiortc has none; libwebrtc RttBasedBackoff limit: 3000";
}

/// Groups of unlimited duration, without skipping any (`InterArrival`). aiortc ignores clock jumps; libwebrtc's jump is
/// used, but not at the receiver.
pub const GROUPS: groups::Config = groups::Config {
    longest: f64::INFINITY,
    reordered: None,
    adapt_clock: AdaptClock::Group,
    ..groups::Config::LIBWEBRTC
};

/// Parameters of the filter (`OveruseEstimator`: process_noise, E, alpha).
pub const KALMAN: kalman::Config =
    kalman::Config { form: Form::Shipped, process_noise: 1e-3, initial_error: 0.1, noise_weight: 0.01 };

impl Default for Settings {
    fn default() -> Self {
        preset(0)
    }
}

impl Settings {
    fn groups(&self, placement: Placement) -> groups::Config {
        let Self { send_clock, adapt_clock, .. } = *self;
        match placement {
            Placement::Sender => groups::Config { send_clock, adapt_clock, ..GROUPS },
            // uint32_add and round(); the packet that completes a group gives the time
            Placement::Receiver => groups::Config {
                send_clock: placement.send_clock(),
                unsigned: true,
                adapt_clock: AdaptClock::Packet,
                jump: None,
                ..GROUPS
            },
        }
    }

    /// Parameters of the detector (`OveruseDetector`, MIN_NUM_DELTAS): libwebrtc's, for a Kalman filter.
    #[must_use]
    pub const fn detector(&self) -> detector::Config {
        let threshold =
            threshold::Config { k_up: self.k_up, k_down: self.k_down, ..threshold::Config::SHIPPED };
        detector::Config { gain: 1.0, threshold, ..detector::Config::LIBWEBRTC }
    }

    /// Parameters of the rate control (`AimdRateControl`).
    #[must_use]
    pub const fn rate(&self) -> rate::Config {
        rate::Config {
            form: rate::Form::Aiortc,
            // ms in which the received rate is measured before it becomes the rate (current_bitrate_initialized)
            start: Start::Received(3000.0),
            interval: self.update_interval,
            beta: self.beta,
            decrease_offset: 0.0,
            may_raise: true,
            eta: rate::ETA,
            bound: Some(rate::BOUND),
        }
    }

    fn delay(&self, placement: Placement) -> Delay {
        let window = Span::from_millis_f64(self.received_window);
        let parts = Parts {
            grouping: Grouping::Bursts(Groups::new(self.groups(placement))),
            filter: Filter::Kalman(Kalman::new(KALMAN)),
            detector: Detector::new(self.detector()),
            received: Received::Window(Window::new(window, Divisor::Elapsed)),
            rate: Aimd::new(self.rate(), rate::INITIAL_RATE),
        };
        Delay::new(parts, None)
    }
}

impl Preset for Settings {
    const NAME: &'static str = "aiortc";

    fn table(placement: Placement) -> &'static [Setting] {
        match placement {
            Placement::Sender => TABLE,
            Placement::Receiver => &TABLE[2..],
        }
    }

    fn sender(self, placement: Placement) -> Box<dyn Controller> {
        let delay = (placement == Placement::Sender).then(|| self.delay(placement));
        let loss = || Loss::new(libwebrtc_v1::Settings::default().loss(), rate::INITIAL_RATE);
        // aiortc never measures the round trip
        let config = sender::Config { measure_rtt: false, ..sender::Config::usual(self.silence_limit) };
        Box::new(Gcc::new(config, delay, self.loss_part.then(loss)))
    }

    fn receiver(self) -> Option<Receiver> {
        // a REMB with each update; a rate of zero would lift the limit
        let config = receiver::Config { interval: None, min_rate: 1.0, ..receiver::Config::DRAFT };
        Some(Receiver::new(config, self.delay(Placement::Receiver)))
    }
}
