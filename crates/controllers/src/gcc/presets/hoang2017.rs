//! `hoang2017`: RRTCC as T. Hoang's thesis of 2017 describes and configures it.
//!
//! Chapters 2.2.2 and 3.4.3, and table 6: the draft's equations as printed, without the draft's safeguards. Because the
//! reports come every 3 s, no state is reset after gaps, clock jumps or reordering.

use super::draft_02;
use super::{Placement, Preset};
use crate::gcc::delay::{Delay, Grouping, Parts};
use crate::gcc::detector::{self, Detector};
use crate::gcc::fraction::{self, LossOver};
use crate::gcc::loss::{self, Loss, Pace};
use crate::gcc::rate::{self, Aimd};
use crate::gcc::receiver::{self, Receiver};
use crate::gcc::sender::{self, Gcc};
use crate::gcc::singles::Singles;
use crate::gcc::threshold::Bounds;
use crate::settings::{Kind, Setting, settings};
use Kind::{Flag, Number, Whole};
use tidegate_core::control::Controller;

settings! {
    // -- of gcc only: the receiver half has no lost packets, and a receiver report names none -----------------
    lost_repeat: bool, "", Flag, [true],
        "whether a lost packet passes the last delay variation to filter and detector once more",
        "3.4.3.1: is assigned the value of the previous packet";
    loss_over: LossOver, "", LossOver::KIND, [LossOver::Packets],
        "packets in the fraction lost: the last `loss_packets` (`packets`), all sent in the last `loss_interval` \
         (`time`), or all since the last fraction, for at least `loss_interval` and `loss_packets` (`interval`)",
        "3.4.3.1: the last RTCP_limit packets; table 6: a time window T";
    late_after: f64, "ms", Number(0.0, 1e6), [0.0],
        "delay beyond the lowest so far above which a packet counts as lost; 0: no limit",
        "3.4.2: status 2, arriving late (neither threshold nor use is given)";
    // -- of both ------------------------------------------------------------------------------------------------
    threshold_start: f64, "ms", Number(0.01, 10_000.0), [12.5],
        "initial threshold of the over-use detector",
        "table 6";
    k_up: f64, "1/ms", Number(0.0, 1.0), [0.01],
        "speed of the threshold towards an estimate above the threshold",
        "table 6 (the text has the two the other way round)";
    k_down: f64, "1/ms", Number(0.0, 1.0), [0.00018],
        "speed of the threshold towards an estimate below the threshold",
        "table 6";
    received_window: f64, "ms", Number(10.0, 60_000.0), [500.0],
        "duration of the window in which the received rate is measured",
        "table 6: T";
    beta: f64, "", Number(0.1, 1.0), [0.95],
        "rate after over-use, as a fraction of the received rate",
        "table 6";
    loss_interval: f64, "ms", Number(0.0, 60_000.0), [500.0],
        "duration of the time window of the fraction lost, or minimum duration of the interval between two \
         fractions",
        "table 6: T";
    loss_packets: u64, "packets", Whole(1, 10_000), [100],
        "number of packets in the window of the fraction lost, or minimum number between two fractions",
        "RTCP_limit (no value is given)";
}

impl Default for Settings {
    fn default() -> Self {
        preset(0)
    }
}

impl Settings {
    /// Draft's settings with the thesis's changes: m(i) itself is compared with the threshold, and over-use needs no
    /// duration.
    fn draft(&self) -> draft_02::Settings {
        draft_02::Settings {
            num_deltas_cap: 1,
            overuse_time: 0.0,
            threshold_start: self.threshold_start,
            k_up: self.k_up,
            k_down: self.k_down,
            received_window: self.received_window,
            beta: self.beta,
            ..draft_02::Settings::default()
        }
    }

    /// Parameters of the detector: one group is enough for over-use, unless m(i) < m(i-1). The threshold is unbounded, but
    /// stays positive.
    #[must_use]
    pub fn detector(&self) -> detector::Config {
        let mut config = detector::Config { groups: 1, ..self.draft().detector() };
        config.threshold.bounds = Bounds { min: 0.01, max: 100_000.0, skip: 1e6, step: 1e9 };
        config
    }

    /// Parameters of the rate control: a decrease sets A = beta R whatever A was, and 1.5 R is no bound.
    #[must_use]
    pub fn rate(&self, placement: Placement) -> rate::Config {
        rate::Config { may_raise: true, bound: None, ..self.draft().rate(placement) }
    }

    /// Parameters of the loss part: p < 0.02 gives 1.05 As + 1000 with each feedback, p >= 0.02 holds (2.2.2.4). As and Ar
    /// are independent, and the target is the lower one (3.4.3.1).
    #[must_use]
    pub fn loss(&self, placement: Placement) -> loss::Config {
        let over = match placement {
            Placement::Sender => self.loss_over,
            Placement::Receiver => LossOver::Interval,
        };
        let (interval, packets) = (self.loss_interval, self.loss_packets);
        loss::Config {
            fraction: fraction::Config { over, interval, packets, in_256ths: false },
            pace: Pace::EachFraction,
            low_held: true,
            offset: 1000.0,
            bounded: false,
            ..self.draft().loss()
        }
    }

    fn delay(&self, placement: Placement) -> Delay {
        let parts = Parts {
            grouping: Grouping::Packets(Singles::new(placement.send_clock())),
            detector: Detector::new(self.detector()),
            rate: Aimd::new(self.rate(placement), rate::INITIAL_RATE),
            ..self.draft().parts(placement)
        };
        Delay::new(parts, None)
    }
}

impl Preset for Settings {
    const NAME: &'static str = "hoang2017";

    fn table(placement: Placement) -> &'static [Setting] {
        match placement {
            Placement::Sender => TABLE,
            Placement::Receiver => &TABLE[3..],
        }
    }

    fn sender(self, placement: Placement) -> Box<dyn Controller> {
        let delay = (placement == Placement::Sender).then(|| self.delay(placement));
        let loss = Loss::new(self.loss(placement), rate::INITIAL_RATE);
        let Self { late_after, lost_repeat, .. } = self;
        let config = sender::Config { late_after, lost_repeat, ..sender::Config::usual(0.0) };
        Box::new(Gcc::new(config, delay, Some(loss)))
    }

    fn receiver(self) -> Option<Receiver> {
        Some(Receiver::new(receiver::Config::DRAFT, self.delay(Placement::Receiver)))
    }
}
