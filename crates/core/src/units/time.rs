//! Times and durations, in nanoseconds.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};
use serde::{Deserialize, Serialize};

pub(super) const NANOS: i64 = 1_000_000_000;

/// Time of the local clock, in nanoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(i64);

/// Signed duration in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(i64);

/// Time of the far end's clock, in nanoseconds since an unknown origin.
///
/// Two of them can only be subtracted. With the difference of two local times this gives the *variation* of the one-way
/// delay, but never an absolute one-way delay.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RemoteTime(i64);

impl Time {
    /// Start of the run.
    pub const ZERO: Self = Self(0);
    /// Latest time, which stands for never.
    pub const MAX: Self = Self(i64::MAX);

    /// Creates a time `nanos` nanoseconds after the start.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }
    /// Creates a time `micros` microseconds after the start.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros * 1_000)
    }
    /// Creates a time `millis` milliseconds after the start.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis * 1_000_000)
    }
    /// Creates a time `secs` seconds after the start.
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
    /// Later of two times.
    #[must_use]
    pub fn max(self, rhs: Self) -> Self {
        Self(self.0.max(rhs.0))
    }
    /// Duration since `earlier`, or zero instead of a negative one.
    #[must_use]
    pub fn saturating_since(self, earlier: Self) -> Span {
        Span((self.0 - earlier.0).max(0))
    }
}

impl RemoteTime {
    /// Creates a time `nanos` nanoseconds after the far clock's origin.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }
    /// Nanoseconds since the far clock's origin; only differences have a meaning.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

impl Span {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// Longest duration, which stands for no limit.
    pub const MAX: Self = Self(i64::MAX);

    /// Creates a duration of `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }
    /// Creates a duration of `micros` microseconds.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros * 1_000)
    }
    /// Creates a duration of `millis` milliseconds.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis * 1_000_000)
    }
    /// Creates a duration of `secs` seconds.
    #[must_use]
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs * NANOS)
    }
    /// Creates a duration of `secs` seconds, rounded to the nearest nanosecond; saturates, and NaN gives zero.
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self(libm::round(secs * NANOS as f64) as i64)
    }
    /// Creates a duration of `millis` milliseconds, rounded to the nearest nanosecond.
    #[must_use]
    pub fn from_millis_f64(millis: f64) -> Self {
        Self(libm::round(millis * 1e6) as i64)
    }
    /// Duration in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
    /// Duration in seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS as f64
    }
    /// Duration in milliseconds.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Whether the duration is below zero.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }
    /// Absolute value, at most the longest span.
    #[must_use]
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }
    /// Multiplies the duration by `factor`, rounded to the nearest nanosecond.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self(libm::round(self.0 as f64 * factor) as i64)
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
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, rhs: Self) {
        *self = *self - rhs;
    }
}

impl Neg for Span {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
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
