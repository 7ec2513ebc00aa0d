//! `libwebrtc-v1`: libwebrtc's `goog_cc` of 2023, the last with the first loss part, without probing and
//! application-limited region.
//!
//! Its settings are libwebrtc's field trials and constructor arguments, and the values that distinguish it from the
//! versions of 2018 to 2020.

use super::{Placement, Preset};
use crate::gcc::delay::{Delay, Filter, Grouping, Parts};
use crate::gcc::detector::{self, Detector};
use crate::gcc::fraction::{self, LossOver};
use crate::gcc::groups::{self, Groups};
use crate::gcc::loss::{self, Loss, Pace};
use crate::gcc::rate::{self, Aimd, Start};
use crate::gcc::received::Received;
use crate::gcc::received::bayes::Bayes;
use crate::gcc::received::robust::Robust;
use crate::gcc::sender::{self, Gcc};
use crate::gcc::threshold;
use crate::gcc::trendline::{self, Trendline};
use crate::settings::{Kind, Setting, settings, words};
use Kind::{Flag, Number, Whole};
use tidegate_core::control::Controller;
use tidegate_core::units::Span;

words! {
    /// Estimator of the received rate.
    ReceivedRate:
    /// Rate over a window of 20 to 500 packets without its largest gap, at most the send rate.
    Robust = "robust",
    /// Bayesian estimate over windows of 150 ms (libwebrtc until 2022).
    Bayesian = "bayesian",
}

settings! {
    trend_window: u64, "groups", Whole(2, 1000), [trendline::DEFAULT_TRENDLINE_WINDOW_SIZE],
        "number of groups of packets to which the trend line is fitted; no trend with fewer groups",
        "WebRTC-BweWindowSizeInPackets; kDefaultTrendlineWindowSize";
    k_up: f64, "1/ms", Number(0.0, 1.0), [0.0087],
        "speed of the threshold towards a trend above the threshold",
        "TrendlineEstimator k_up_";
    k_down: f64, "1/ms", Number(0.0, 1.0), [0.039],
        "speed of the threshold towards a trend below the threshold",
        "TrendlineEstimator k_down_";
    received_rate: ReceivedRate, "", ReceivedRate::KIND, [ReceivedRate::Robust],
        "estimator of the received rate",
        "RobustThroughputEstimator (2023 and later), BitrateEstimator (bayesian, before)";
    beta: f64, "", Number(0.1, 1.0), [0.85],
        "rate after over-use, as a fraction of the received rate",
        "WebRTC-BweBackOffFactor; kDefaultBackoffFactor";
    decrease_offset: f64, "bit/s", Number(0.0, 1e6), [5000.0],
        "rate subtracted from `beta` times the received rate after over-use, where it is less than the product",
        "AimdRateControl, 2023 and later; 0 before";
    loss_part: bool, "", Flag, [true],
        "whether losses limit the rate",
        "SendSideBandwidthEstimation";
    loss_low: f64, "", Number(0.0, 1.0), [0.02],
        "fraction lost up to which the loss-based rate grows",
        "WebRTC-BweLossExperiment; kDefaultLowLossThreshold";
    loss_high: f64, "", Number(0.0, 1.0), [0.1],
        "fraction lost above which the loss-based rate falls",
        "WebRTC-BweLossExperiment; kDefaultHighLossThreshold";
    silence_limit: f64, "ms", Number(0.0, 1e6), [3000.0],
        "round-trip time, plus the time since the last feedback while sending, above which the rate is reduced; 0: no \
         limit",
        "WebRTC-Bwe-MaxRttLimit limit";
    pacing_factor: f64, "", Number(1.0, 100.0), [2.5],
        "pacing rate as a multiple of the target bit rate",
        "kDefaultPaceMultiplier; StreamsConfig::pacing_factor";
}

impl Default for Settings {
    fn default() -> Self {
        preset(0)
    }
}

impl Settings {
    /// Parameters of the rate control (`aimd_rate_control.cc`).
    #[must_use]
    pub const fn rate(&self) -> rate::Config {
        rate::Config {
            form: rate::Form::Libwebrtc,
            start: Start::Limits,
            interval: 0.0,
            beta: self.beta,
            decrease_offset: self.decrease_offset,
            may_raise: false,
            eta: rate::ETA,
            bound: Some(rate::BOUND),
        }
    }

    /// Parameters of the loss part (`send_side_bandwidth_estimation.cc`: kLossUpdateInterval, kLimitNumPackets,
    /// last_fraction_loss_; 1.08 and 1000 bit/s, so that the rate does not get stuck at low values).
    #[must_use]
    pub const fn loss(&self) -> loss::Config {
        loss::Config {
            fraction: fraction::Config {
                over: LossOver::Interval,
                interval: 1000.0,
                packets: 20,
                in_256ths: true,
            },
            pace: Pace::FromLowest,
            low: self.loss_low,
            low_held: false,
            high: self.loss_high,
            increase: 1.08,
            offset: 1000.0,
            bounded: true,
        }
    }

    fn delay(&self) -> Delay {
        let threshold =
            threshold::Config { k_up: self.k_up, k_down: self.k_down, ..threshold::Config::SHIPPED };
        let parts = Parts {
            grouping: Grouping::Bursts(Groups::new(groups::Config::LIBWEBRTC)),
            filter: Filter::Trendline(Trendline::new(self.trend_window)),
            detector: Detector::new(detector::Config { threshold, ..detector::Config::LIBWEBRTC }),
            received: match self.received_rate {
                ReceivedRate::Robust => Received::Robust(Robust::default()),
                ReceivedRate::Bayesian => Received::Bayesian(Bayes::default()),
            },
            rate: Aimd::new(self.rate(), rate::INITIAL_RATE),
        };
        // kStreamTimeOut
        Delay::new(parts, Some(Span::from_secs(2)))
    }
}

impl Preset for Settings {
    const NAME: &'static str = "libwebrtc-v1";

    fn table(placement: Placement) -> &'static [Setting] {
        match placement {
            Placement::Sender => TABLE,
            Placement::Receiver => &[],
        }
    }

    fn contradiction(&self) -> Option<(&'static str, f64, String)> {
        loss::out_of_order(self.loss_low, self.loss_high)
    }

    fn sender(self, _placement: Placement) -> Box<dyn Controller> {
        let Self { silence_limit, pacing_factor, .. } = self;
        let config = sender::Config { pacing_factor, ..sender::Config::usual(silence_limit) };
        let loss = self.loss_part.then(|| Loss::new(self.loss(), rate::INITIAL_RATE));
        Box::new(Gcc::new(config, Some(self.delay()), loss))
    }
}
