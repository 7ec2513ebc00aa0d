//! How fast a link puts packets on the wire.
//!
//! Every service is first come, first served and lazily evaluated: when a packet comes in, the time at
//! which it will have been served is computed at once from where the service of the one before ended.

mod constant;

pub use constant::Constant;

use tidegate_core::{Rate, Time};

/// Work is counted in bit times nanosecond per second, so that a rate in bit/s does `rate` of it in
/// each nanosecond and everything stays an integer.
pub(crate) const WORK_PER_BYTE: u128 = 8_000_000_000;

/// When a packet is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served {
    /// When its first byte is served, in whole nanoseconds rounded up: it has waited until then.
    pub start: Time,
    /// When its last byte has been served, in whole nanoseconds rounded up; [`Time::MAX`] for never.
    pub finish: Time,
}

/// The service of a link.
#[derive(Clone, Debug)]
pub enum Service {
    /// Every packet takes no time at all.
    Infinite,
    /// One rate.
    Constant(Constant),
}

impl Service {
    /// Service at `rate`; [`Rate::MAX`] means that it takes no time.
    #[must_use]
    pub const fn constant(rate: Rate) -> Self {
        if rate.as_bps() == Rate::MAX.as_bps() { Self::Infinite } else { Self::Constant(Constant::new(rate)) }
    }

    /// Serves a packet of `size` bytes that came at `now`, after all that came before.
    #[inline]
    pub(crate) fn serve(&mut self, now: Time, size: u32) -> Served {
        match self {
            Self::Constant(service) => service.serve(now, size),
            Self::Infinite => Served { start: now, finish: now },
        }
    }

    /// Whether a packet that comes at `now` to an empty link goes into service at once instead of
    /// waiting for an opportunity or for the end of an outage.
    #[inline]
    pub(crate) fn is_ready(&self, now: Time) -> bool {
        let _ = now;
        match self {
            Self::Constant(_) | Self::Infinite => true,
        }
    }

    /// The rate that a queue limit in time is computed from.
    #[must_use]
    pub fn nominal_rate(&self) -> Rate {
        match self {
            Self::Infinite => Rate::MAX,
            Self::Constant(service) => service.rate(),
        }
    }
}
