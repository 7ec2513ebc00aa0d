//! Mathematical functions that give the same bits on every machine. The pure crates use no others.
//!
//! In `std`, the last bit of `exp`, `ln`, `powf` and others depends on the platform. The `libm` crate computes them in
//! software, so that a run is bit-identical on every machine. Sums and products are exact by IEEE 754, as long as the
//! thread's floating-point environment is the default one ([`check_environment`]).

use std::fmt;
use std::hint::black_box;

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

/// A floating-point environment in which sums and products have other bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherEnvironment {
    /// Results are not rounded to the nearest number.
    Rounding,
    /// Subnormal numbers become zero.
    Subnormals,
}

impl fmt::Display for OtherEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rounding => {
                "this thread does not round floating-point numbers to nearest, so results would differ from those \
                 elsewhere; some code in this process changed the mode: call fesetround(FE_TONEAREST) before"
            }
            Self::Subnormals => {
                "this thread flushes subnormal floating-point numbers to zero, so results could differ from those \
                 elsewhere; some library in this process changed the mode (-ffast-math does): call \
                 fesetenv(FE_DFL_ENV) before"
            }
        })
    }
}

impl std::error::Error for OtherEnvironment {}

/// Checks that this thread's floating-point environment is the default of IEEE 754: to nearest, with subnormals.
///
/// Rust's own code never changes it. A program in C in the same process can.
///
/// # Errors
/// With what differs.
pub fn check_environment() -> Result<(), OtherEnvironment> {
    let half = black_box(f64::MIN_POSITIVE) / 2.0;
    judge(
        black_box(1.0) + black_box(f64::EPSILON * 0.5),
        black_box(1.0) + black_box(f64::EPSILON * 0.75),
        black_box(half) * 2.0,
    )
}

/// Judges 1 + ε/2, 1 + 3ε/4, and twice the half of the least normal number, as the environment has them.
fn judge(tie: f64, above: f64, doubled: f64) -> Result<(), OtherEnvironment> {
    // upward the tie becomes 1 + ε; downward and toward zero 1 + 3ε/4 becomes 1
    if tie != 1.0 || above != 1.0 + f64::EPSILON {
        Err(OtherEnvironment::Rounding)
    } else if doubled != f64::MIN_POSITIVE {
        Err(OtherEnvironment::Subnormals)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_known_by_its_sums() {
        const MORE: f64 = 1.0 + f64::EPSILON;
        let least = f64::MIN_POSITIVE;
        assert_eq!(judge(1.0, MORE, least), Ok(()));
        let upward = judge(MORE, MORE, least);
        let downward_or_toward_zero = judge(1.0, 1.0, least);
        assert_eq!([upward, downward_or_toward_zero], [Err(OtherEnvironment::Rounding); 2]);
        // flushed as a result, or read as zero when it is doubled
        assert_eq!(judge(1.0, MORE, 0.0), Err(OtherEnvironment::Subnormals));
    }

    #[test]
    fn the_environment_of_rust_is_the_default() {
        assert_eq!(check_environment(), Ok(()));
    }

    #[test]
    fn a_fault_says_what_to_call() {
        assert!(OtherEnvironment::Rounding.to_string().ends_with("call fesetround(FE_TONEAREST) before"));
        assert!(OtherEnvironment::Subnormals.to_string().ends_with("call fesetenv(FE_DFL_ENV) before"));
    }
}
