//! Rates in bit/s and sizes in bytes.

use super::time::{NANOS, Span};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use serde::{Deserialize, Serialize};

/// Rate in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(u64);

/// Size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Size(u64);

impl Rate {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// Largest rate, which stands for no limit.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a rate of `bps` bit/s.
    #[must_use]
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }
    /// Creates a rate of `kbps` times 1000 bit/s.
    #[must_use]
    pub const fn from_kbps(kbps: u64) -> Self {
        Self(kbps * 1_000)
    }
    /// Creates a rate of `mbps` times 1 000 000 bit/s.
    #[must_use]
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }
    /// Creates a rate of `bps` bit/s, rounded to the nearest; negative numbers and NaN give zero.
    #[must_use]
    pub fn from_bps_f64(bps: f64) -> Self {
        Self(libm::round(bps) as u64)
    }
    /// Rate in bit/s.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Rate in bit/s as a float.
    #[must_use]
    pub fn as_bps_f64(self) -> f64 {
        self.0 as f64
    }
    /// Multiplies the rate by `factor`, rounded to the nearest bit/s.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self::from_bps_f64(self.0 as f64 * factor)
    }
    /// Lower of two rates.
    #[must_use]
    pub fn min(self, rhs: Self) -> Self {
        Self(self.0.min(rhs.0))
    }
    /// Higher of two rates.
    #[must_use]
    pub fn max(self, rhs: Self) -> Self {
        Self(self.0.max(rhs.0))
    }
    /// Clamps the rate between `low` and `high`; `low` prevails.
    #[must_use]
    pub fn clamp(self, low: Self, high: Self) -> Self {
        Self(self.0.min(high.0).max(low.0))
    }
    /// Difference, or zero instead of a negative one.
    #[must_use]
    pub fn saturating_sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
    /// Time that `size` takes at this rate, rounded up to a nanosecond; [`Span::MAX`] at a rate of zero.
    #[must_use]
    pub fn time_for(self, size: Size) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        // 8e9 * bytes fits u64 up to 2.3 GB, which avoids the 128-bit division for nearly all packets
        let nanos = match size.0.checked_mul(8 * NANOS as u64) {
            Some(bits) => bits.div_ceil(self.0),
            None => {
                let wide = (u128::from(size.0) * 8 * NANOS as u128).div_ceil(u128::from(self.0));
                u64::try_from(wide).unwrap_or(i64::MAX as u64)
            }
        };
        Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
    /// Bytes that pass in `span`, rounded down; zero for a negative span.
    #[must_use]
    pub fn bytes_in(self, span: Span) -> Size {
        if span <= Span::ZERO {
            return Size::ZERO;
        }
        Size(product_over(self.0, span.as_nanos() as u64, 8 * NANOS as u64))
    }
}

/// Calculates `a * b / divisor`, rounded down and saturating. Nearly all products fit into 64 bits (a second at 18 Gbit/s,
/// or 2.3 GB), which avoids the 128-bit division.
fn product_over(a: u64, b: u64, divisor: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / divisor,
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(divisor)).unwrap_or(u64::MAX),
    }
}

impl Size {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Creates a size of `bytes` bytes.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }
    /// Size in bytes.
    #[must_use]
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
    /// Size in bits.
    #[must_use]
    pub const fn as_bits(self) -> u64 {
        self.0 * 8
    }
    /// Difference, or zero instead of a negative one.
    #[must_use]
    pub fn saturating_sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
    /// Rate that carries this size in `span`; zero for a span that is not positive.
    #[must_use]
    pub fn per(self, span: Span) -> Rate {
        if span <= Span::ZERO {
            return Rate::ZERO;
        }
        Rate(product_over(self.0, 8 * NANOS as u64, span.as_nanos() as u64))
    }
}

impl Add for Rate {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl Sub for Rate {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.checked_sub(rhs.0).expect("a rate went below zero"))
    }
}

impl Sum for Rate {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl Add for Size {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0 + rhs.0)
    }
}

impl AddAssign for Size {
    fn add_assign(&mut self, rhs: Self) {
        self.0 += rhs.0;
    }
}

impl Sub for Size {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.checked_sub(rhs.0).expect("a size went below zero"))
    }
}

impl SubAssign for Size {
    fn sub_assign(&mut self, rhs: Self) {
        *self = *self - rhs;
    }
}

impl Mul<u64> for Size {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}

impl Sum for Size {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s", self.0)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Debug for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
