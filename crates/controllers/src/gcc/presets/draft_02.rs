//! `draft-02`: draft-ietf-rmcat-gcc-02 as it is printed.
//!
//! It has the draft's filter, gains and formulas. Where the draft is silent or does not work as printed, the comments
//! below give the reading. The settings are its table 1 and the few recommended values of its text.

use super::{Placement, Preset};
use crate::gcc::delay::{Delay, Filter, Grouping, Parts};
use crate::gcc::detector::{self, Detector};
use crate::gcc::fraction::{self, LossOver};
use crate::gcc::groups::{self, AdaptClock, Groups};
use crate::gcc::kalman::{self, Form, Kalman};
use crate::gcc::loss::{self, Loss, Pace};
use crate::gcc::rate::{self, Aimd, Start};
use crate::gcc::received::Received;
use crate::gcc::received::window::{Divisor, Window};
use crate::gcc::receiver::{self, Receiver};
use crate::gcc::sender::{self, Gcc};
use crate::gcc::threshold::{self, Bounds};
use crate::settings::{Kind, Setting, settings};
use Kind::{Flag, Number, Whole};
use tidegate_core::control::Controller;
use tidegate_core::units::Span;

settings! {
    group_length: f64, "ms", Number(0.0, 1000.0), [5.0],
        "duration of a group: packets sent within this time of the group's first packet belong to it",
        "table 1, burst_time";
    process_noise: f64, "ms^2", Number(1e-12, 1e3), [1e-3],
        "state noise variance of the Kalman filter",
        "table 1, q";
    initial_error: f64, "ms^2", Number(1e-12, 1e6), [0.1],
        "initial error variance of the Kalman filter",
        "table 1, e(0)";
    noise_weight: f64, "", Number(1e-6, 0.5), [0.01],
        "weight of a new sample in the measurement noise at 30 groups per second",
        "table 1, chi in 0.001 to 0.1";
    num_deltas_cap: u64, "groups", Whole(1, 1000), [60],
        "upper bound of the number of groups by which the estimate is multiplied before it is compared with the \
         threshold; 1: no factor",
        "libwebrtc kMinNumDeltas, aiortc MIN_NUM_DELTAS; 5.4 as printed is 1, which needs 12.5 ms a group";
    overuse_time: f64, "ms", Number(0.0, 10_000.0), [10.0],
        "send time during which the threshold has to be exceeded before over-use is signalled; 0: none",
        "table 1, overuse_time_th";
    threshold_start: f64, "ms", Number(0.01, 10_000.0), [12.5],
        "initial threshold of the over-use detector",
        "table 1, del_var_th(0)";
    k_up: f64, "1/ms", Number(0.0, 1.0), [0.01],
        "speed of the threshold towards an estimate above the threshold",
        "table 1, K_u";
    k_down: f64, "1/ms", Number(0.0, 1.0), [0.00018],
        "speed of the threshold towards an estimate below the threshold",
        "table 1, K_d";
    received_window: f64, "ms", Number(10.0, 60_000.0), [500.0],
        "duration of the window in which the received rate is measured",
        "table 1, T in 0.5 to 1 s";
    beta: f64, "", Number(0.1, 1.0), [0.85],
        "rate after over-use, as a fraction of the received rate",
        "table 1 (5.5: 0.8 to 0.95)";
    increase_per_second: f64, "", Number(1.0, 4.0), [1.08],
        "factor of the multiplicative increase per second, far from the link capacity",
        "5.5, eta";
    loss_part: bool, "", Flag, [true],
        "whether losses limit the rate",
        "6";
    loss_low: f64, "", Number(0.0, 1.0), [0.02],
        "fraction lost up to which the loss-based rate grows",
        "6 (less than 2 %; libwebrtc's reading is taken: up to)";
    loss_high: f64, "", Number(0.0, 1.0), [0.1],
        "fraction lost above which the loss-based rate falls",
        "6";
    silence_limit: f64, "ms", Number(0.0, 1e6), [3000.0],
        "round-trip time, plus the time since the last feedback while sending, above which the rate is reduced; 0: no \
         limit",
        "not in the draft; libwebrtc RttBasedBackoff limit";
    // -- of gcc-remb only ------------------------------------------------------------------------------------
    remb_interval: f64, "ms", Number(0.0, 60_000.0), [1000.0],
        "maximum time between two REMBs while packets arrive; 0: a REMB with each update of the rate",
        "3 (b): at least once every second";
    remb_drop: f64, "", Number(0.0, 1.0), [0.03],
        "fall of the rate since the last REMB, as a fraction, above which the next REMB is sent at once",
        "3 (b): as soon as congestion is detected; libwebrtc vie_remb kSendThresholdPercent 97, RembThrottler 103";
}

/// Groups of unlimited duration, timed by their own last packet (5.2, 5.4 t(i)). The draft says nothing of reordering and
/// clock jumps; libwebrtc's values are used.
pub const GROUPS: groups::Config =
    groups::Config { longest: f64::INFINITY, adapt_clock: AdaptClock::Group, ..groups::Config::LIBWEBRTC };

impl Default for Settings {
    fn default() -> Self {
        preset(0)
    }
}

impl Settings {
    /// Parameters of the filter (5.3).
    #[must_use]
    pub const fn kalman(&self) -> kalman::Config {
        kalman::Config {
            form: Form::Draft,
            process_noise: self.process_noise,
            initial_error: self.initial_error,
            noise_weight: self.noise_weight,
        }
    }

    /// Parameters of the detector (5.4). Two groups in a row are libwebrtc's value, since the draft is silent; a falling
    /// estimate ends over-use ("when m(i) < m(i-1), over-use will not be signaled").
    #[must_use]
    pub const fn detector(&self) -> detector::Config {
        detector::Config {
            gain: 1.0,
            num_deltas_cap: self.num_deltas_cap,
            time: self.overuse_time,
            groups: 2,
            latched: false,
            threshold: threshold::Config {
                start: self.threshold_start,
                k_up: self.k_up,
                k_down: self.k_down,
                bounds: Bounds::USUAL,
            },
        }
    }

    /// Parameters of the rate control (5.5). A decrease never raises the rate, as in libwebrtc; as printed, it may.
    #[must_use]
    pub fn rate(&self, placement: Placement) -> rate::Config {
        let (start, interval) = match placement {
            Placement::Sender => (Start::Limits, 0.0),
            // a receiver does not know the session's start rate, and takes the received rate of one window. An update
            // adds at least 1000 bit/s, which would be too much per packet: 50 ms are in the range of the feedback
            // intervals of 3 (a), so that both placements grow alike
            Placement::Receiver => (Start::Received(self.received_window), 50.0),
        };
        rate::Config {
            form: rate::Form::Draft,
            start,
            interval,
            beta: self.beta,
            decrease_offset: 0.0,
            may_raise: false,
            eta: self.increase_per_second,
            bound: Some(rate::BOUND),
        }
    }

    /// Parameters of the loss part (6), with a fraction at least once a second (3 (b)).
    #[must_use]
    pub fn loss(&self) -> loss::Config {
        loss::Config {
            fraction: fraction::Config {
                over: LossOver::Interval,
                interval: 1000.0,
                packets: 1,
                in_256ths: false,
            },
            pace: Pace::EachSecond,
            low: self.loss_low,
            low_held: false,
            high: self.loss_high,
            increase: 1.05,
            offset: 0.0,
            bounded: true,
        }
    }

    /// Components of the delay-based part.
    #[must_use]
    pub fn parts(&self, placement: Placement) -> Parts {
        let send_clock = placement.send_clock();
        let groups = groups::Config { length: self.group_length, send_clock, ..GROUPS };
        Parts {
            grouping: Grouping::Bursts(Groups::new(groups)),
            filter: Filter::Kalman(Kalman::new(self.kalman())),
            detector: Detector::new(self.detector()),
            received: Received::Window(Window::new(
                Span::from_millis_f64(self.received_window),
                Divisor::Length,
            )),
            rate: Aimd::new(self.rate(placement), rate::INITIAL_RATE),
        }
    }

    fn delay(&self, placement: Placement) -> Delay {
        // libwebrtc kStreamTimeOut; the draft is silent
        Delay::new(self.parts(placement), Some(Span::from_secs(2)))
    }
}

impl Preset for Settings {
    const NAME: &'static str = "draft-02";

    fn table(placement: Placement) -> &'static [Setting] {
        match placement {
            Placement::Sender => &TABLE[..TABLE.len() - 2],
            Placement::Receiver => TABLE,
        }
    }

    fn contradiction(&self) -> Option<(&'static str, f64, String)> {
        loss::out_of_order(self.loss_low, self.loss_high)
    }

    fn sender(self, placement: Placement) -> Box<dyn Controller> {
        let delay = (placement == Placement::Sender).then(|| self.delay(placement));
        let loss = self.loss_part.then(|| Loss::new(self.loss(), rate::INITIAL_RATE));
        Box::new(Gcc::new(sender::Config::usual(self.silence_limit), delay, loss))
    }

    fn receiver(self) -> Option<Receiver> {
        let interval = (self.remb_interval > 0.0).then(|| Span::from_millis_f64(self.remb_interval));
        let config = receiver::Config {
            interval,
            drop: self.remb_drop,
            max_jump: GROUPS.jump,
            ..receiver::Config::DRAFT
        };
        Some(Receiver::new(config, self.delay(Placement::Receiver)))
    }
}
