//! The algorithms of congestion control.

use super::bbr::Bbr;
use super::bbr3::Bbr3;
use super::cubic::Cubic;
use super::reno::Reno;
use super::scalable::Scalable;
use super::window::CongestionControl;
use super::{TcpSettings, Variant};
use tidegate_core::{Ecn, Time};

/// A way to repair losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recovery {
    /// Slow start from one segment.
    Tahoe,
    /// Fast recovery that ends with the first new acknowledgement (RFC 5681).
    Reno,
    /// Fast recovery that lasts until all data then in flight is acknowledged (RFC 6582).
    NewReno,
    /// By selective acknowledgements and the times of departures (RACK-TLP), with proportional rate reduction (RFC 8985,
    /// RFC 6937).
    Rack,
    /// By selective acknowledgements, whose number tells what is lost (RFC 6675).
    Rfc6675,
}

impl Recovery {
    pub(super) fn uses_sack(self) -> bool {
        matches!(self, Self::Rack | Self::Rfc6675)
    }
}

/// Makes the congestion control of a connection that begins at a time.
pub(super) type Start = fn(&TcpSettings, Time) -> Box<dyn CongestionControl>;

/// An algorithm: its properties for the two ends, and its congestion control.
pub(super) struct Algorithm {
    /// Its way to repair losses if the settings ask for none.
    pub(super) recovery: Recovery,
    /// The ECN field of its data, for an algorithm that responds to the share of marks; the receiver has to echo each
    /// mark.
    pub(super) scalable: Option<Ecn>,
    /// The reason for which its data cannot be ECN-capable.
    pub(super) no_ecn: Option<&'static str>,
    pub(super) control: Start,
}

impl Algorithm {
    fn new(recovery: Recovery, control: Start) -> Self {
        Self { recovery, scalable: None, no_ecn: None, control }
    }
}

impl Variant {
    /// The algorithm of the variant.
    pub(super) fn algorithm(self) -> Algorithm {
        fn reno(settings: &TcpSettings, _: Time) -> Box<dyn CongestionControl> {
            Box::new(Reno::new(settings.increase))
        }
        match self {
            Self::Tahoe => Algorithm::new(Recovery::Tahoe, reno),
            Self::Reno => Algorithm::new(Recovery::Reno, reno),
            Self::NewReno => Algorithm::new(Recovery::NewReno, reno),
            Self::Sack => Algorithm::new(Recovery::Rfc6675, reno),
            Self::Cubic => Algorithm::new(Recovery::Rack, |settings, _| {
                Box::new(Cubic::new(settings.fast_convergence, settings.hystart))
            }),
            Self::Bbr => Algorithm {
                no_ecn: Some("BBR version 1 does not respond to marks"),
                ..Algorithm::new(Recovery::Rack, |settings, now| Box::new(Bbr::new(settings, now)))
            },
            Self::Bbr3 => Algorithm {
                no_ecn: Some("the draft of BBR version 3 specifies no response to marks (section 3.7)"),
                ..Algorithm::new(Recovery::Rack, |settings, now| Box::new(Bbr3::new(settings, now)))
            },
            Self::Dctcp => Algorithm {
                scalable: Some(Ecn::Ect0),
                ..Algorithm::new(Recovery::Rack, |_, _| Box::new(Scalable::new(false)))
            },
            Self::Prague => Algorithm {
                scalable: Some(Ecn::Ect1),
                ..Algorithm::new(Recovery::Rack, |_, _| Box::new(Scalable::new(true)))
            },
        }
    }

    /// Whether the two ends use selective acknowledgements.
    #[must_use]
    pub fn uses_sack(self) -> bool {
        self.algorithm().recovery.uses_sack()
    }
}
