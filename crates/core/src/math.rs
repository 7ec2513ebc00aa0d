//! Mathematical functions that give the same bits on every machine. The pure crates use no others.
//!
//! In `std`, the last bit of `exp`, `ln`, `powf` and others depends on the platform. The `libm` crate computes them in
//! software, so that a run is bit-identical on every machine.

/// e^x.
#[must_use]
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}
/// Natural logarithm.
#[must_use]
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}
/// ln(1 + x), exact near zero.
#[must_use]
pub fn ln_1p(x: f64) -> f64 {
    libm::log1p(x)
}
/// Base-10 logarithm.
#[must_use]
pub fn log10(x: f64) -> f64 {
    libm::log10(x)
}
/// Base-2 logarithm.
#[must_use]
pub fn log2(x: f64) -> f64 {
    libm::log2(x)
}
/// x^y.
#[must_use]
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}
/// Square root (exact by IEEE 754).
#[must_use]
pub fn sqrt(x: f64) -> f64 {
    libm::sqrt(x)
}
/// Cube root.
#[must_use]
pub fn cbrt(x: f64) -> f64 {
    libm::cbrt(x)
}
/// Sine of x radians.
#[must_use]
pub fn sin(x: f64) -> f64 {
    libm::sin(x)
}
/// Cosine of x radians.
#[must_use]
pub fn cos(x: f64) -> f64 {
    libm::cos(x)
}
/// Angle of the point (x, y) in radians, from -pi to pi.
#[must_use]
pub fn atan2(y: f64, x: f64) -> f64 {
    libm::atan2(y, x)
}
/// Nearest integer, with halves rounded away from zero.
#[must_use]
pub fn round(x: f64) -> f64 {
    libm::round(x)
}
/// Largest integer not above x.
#[must_use]
pub fn floor(x: f64) -> f64 {
    libm::floor(x)
}
/// Smallest integer not below x.
#[must_use]
pub fn ceil(x: f64) -> f64 {
    libm::ceil(x)
}
/// Error function.
#[must_use]
pub fn erf(x: f64) -> f64 {
    libm::erf(x)
}
/// Complementary error function, exact where `erf` is near 1.
#[must_use]
pub fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}
