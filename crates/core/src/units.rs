//! Time, spans, rates and sizes as integers, with the unit in the constructor's name.
//!
//! 1 kb is 1000 bit and 1 kB is 1000 bytes everywhere. A plain `-` that would go below zero on an
//! unsigned unit panics in every build: use the `saturating_` form where zero is meant.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};
use serde::{Deserialize, Serialize};

const NANOS: i64 = 1_000_000_000;

/// An instant of the local clock: nanoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(i64);

/// A signed length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(i64);

/// A reading of the far end's clock, in nanoseconds since an origin nobody knows.
///
/// The only thing that two of them allow is a difference, so that with one local pair of instants
/// one-way delay *variation* can be expressed, and an absolute one-way delay cannot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RemoteTime(i64);

/// A rate in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(u64);

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Size(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const MAX: Self = Self(i64::MAX);

    /// An instant `nanos` nanoseconds after the start.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }
    /// An instant `micros` microseconds after the start.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros * 1_000)
    }
    /// An instant `millis` milliseconds after the start.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis * 1_000_000)
    }
    /// An instant `secs` seconds after the start.
    #[must_use]
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs * NANOS)
    }
    /// Nanoseconds since the start.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
    /// Seconds since the start.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS as f64
    }
    /// Milliseconds since the start.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// The later one of this and `other`.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
    /// `self - earlier`, or zero where that is negative.
    #[must_use]
    pub fn saturating_since(self, earlier: Self) -> Span {
        Span((self.0 - earlier.0).max(0))
    }
}

impl RemoteTime {
    /// A reading `nanos` nanoseconds after the far clock's origin.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }
    /// Nanoseconds since the far clock's origin; only differences mean anything.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than anything that happens.
    pub const MAX: Self = Self(i64::MAX);

    /// `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }
    /// `micros` microseconds.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros * 1_000)
    }
    /// `millis` milliseconds.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis * 1_000_000)
    }
    /// `secs` seconds.
    #[must_use]
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs * NANOS)
    }
    /// `secs` seconds, rounded to the nearest nanosecond; out of range saturates, NaN is zero.
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self(libm::round(secs * NANOS as f64) as i64)
    }
    /// `millis` milliseconds, rounded to the nearest nanosecond.
    #[must_use]
    pub fn from_millis_f64(millis: f64) -> Self {
        Self(libm::round(millis * 1e6) as i64)
    }
    /// Nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
    /// Seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS as f64
    }
    /// Milliseconds.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Whether this is less than zero.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }
    /// The magnitude.
    #[must_use]
    pub const fn abs(self) -> Self {
        Self(self.0.abs())
    }
    /// This times `factor`, rounded to the nearest nanosecond.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self(libm::round(self.0 as f64 * factor) as i64)
    }
}

impl Rate {
    /// Nothing at all.
    pub const ZERO: Self = Self(0);
    /// More than any link carries.
    pub const MAX: Self = Self(u64::MAX);

    /// `bps` bit/s.
    #[must_use]
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }
    /// `kbps` times 1000 bit/s.
    #[must_use]
    pub const fn from_kbps(kbps: u64) -> Self {
        Self(kbps * 1_000)
    }
    /// `mbps` times 1 000 000 bit/s.
    #[must_use]
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }
    /// `bps` bit/s, rounded to the nearest; negative and NaN are zero.
    #[must_use]
    pub fn from_bps_f64(bps: f64) -> Self {
        Self(libm::round(bps) as u64)
    }
    /// bit/s.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// bit/s as a float.
    #[must_use]
    pub fn as_bps_f64(self) -> f64 {
        self.0 as f64
    }
    /// This times `factor`, rounded to the nearest bit/s.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self::from_bps_f64(self.0 as f64 * factor)
    }
    /// The lower one.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }
    /// The higher one.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
    /// This, but not under `low` nor over `high`.
    #[must_use]
    pub fn clamp(self, low: Self, high: Self) -> Self {
        Self(self.0.min(high.0).max(low.0))
    }
    /// `self - other`, or zero where that is negative.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// How long `size` takes at this rate, rounded up to a nanosecond; [`Span::MAX`] at rate zero.
    #[must_use]
    pub fn time_for(self, size: Size) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        // 8e9 * bytes fits u64 up to 2.3 GB, which spares nearly every packet the 128-bit division
        let nanos = match size.0.checked_mul(8 * NANOS as u64) {
            Some(bits) => bits.div_ceil(self.0),
            None => {
                let wide = (u128::from(size.0) * 8 * NANOS as u128).div_ceil(u128::from(self.0));
                u64::try_from(wide).unwrap_or(i64::MAX as u64)
            }
        };
        Span(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
    /// How many whole bytes pass in `span`; zero for a negative span.
    #[must_use]
    pub fn bytes_in(self, span: Span) -> Size {
        if span.0 <= 0 {
            return Size::ZERO;
        }
        let wide = u128::from(self.0) * span.0 as u128 / (8 * NANOS as u128);
        Size(u64::try_from(wide).unwrap_or(u64::MAX))
    }
}

impl Size {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// `bytes` bytes.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }
    /// Bytes.
    #[must_use]
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
    /// Bits.
    #[must_use]
    pub const fn as_bits(self) -> u64 {
        self.0 * 8
    }
    /// `self - other`, or zero where that is negative.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// The rate that carries this in `span`; zero for a span that is not positive.
    #[must_use]
    pub fn per(self, span: Span) -> Rate {
        if span.0 <= 0 {
            return Rate::ZERO;
        }
        let wide = u128::from(self.0) * 8 * NANOS as u128 / span.0 as u128;
        Rate(u64::try_from(wide).unwrap_or(u64::MAX))
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}
impl Sub<Span> for Time {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}
impl Sub for Time {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        Span(self.0 - earlier.0)
    }
}
impl Sub for RemoteTime {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        Span(self.0 - earlier.0)
    }
}
impl Add<Span> for RemoteTime {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}
impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
impl SubAssign for Span {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
impl Neg for Span {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}
impl Mul<i64> for Span {
    type Output = Self;
    fn mul(self, times: i64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}
impl Div<i64> for Span {
    type Output = Self;
    fn div(self, parts: i64) -> Self {
        Self(self.0 / parts)
    }
}
impl Sum for Span {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}
impl Add for Rate {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl Sub for Rate {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("a rate went below zero"))
    }
}
impl Sum for Rate {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}
impl Add for Size {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
impl Sub for Size {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("a size went below zero"))
    }
}
impl SubAssign for Size {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
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

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9}s", self.as_secs_f64())
    }
}
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
impl fmt::Debug for RemoteTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "remote {} ns", self.0)
    }
}
impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}ms", self.as_millis_f64())
    }
}
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_its_bits_over_the_rate() {
        let rate = Rate::from_mbps(10);
        assert_eq!(rate.time_for(Size::from_bytes(1500)), Span::from_micros(1200));
        assert_eq!(Rate::from_bps(3).time_for(Size::from_bytes(1)).as_nanos(), 2_666_666_667);
        assert_eq!(Rate::ZERO.time_for(Size::from_bytes(1)), Span::MAX);
        let huge = Size::from_bytes(u64::MAX / 16);
        assert_eq!(Rate::from_bps(1).time_for(huge), Span::MAX);
    }

    #[test]
    fn rate_and_size_are_inverse() {
        let size = Size::from_bytes(125_000);
        assert_eq!(size.per(Span::from_secs(1)), Rate::from_mbps(1));
        assert_eq!(Rate::from_mbps(1).bytes_in(Span::from_secs(1)), size);
        assert_eq!(Rate::from_mbps(1).bytes_in(Span::from_millis(-1)), Size::ZERO);
    }

    #[test]
    #[should_panic(expected = "below zero")]
    fn a_rate_does_not_wrap() {
        let _ = Rate::from_bps(1) - Rate::from_bps(2);
    }
}
