//! What is wrong with a setting.

/// A setting that cannot be used, said in words a person can act upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(pub String);

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}

/// Fails with `message` unless `condition` holds.
pub(crate) fn ensure(condition: bool, message: impl FnOnce() -> String) -> Result<(), Invalid> {
    if condition { Ok(()) } else { Err(Invalid(message())) }
}

/// Fails unless `value` is a probability.
pub(crate) fn ensure_probability(what: &str, value: f64) -> Result<(), Invalid> {
    ensure((0.0..=1.0).contains(&value), || format!("{what} is {value}: a probability lies between 0 and 1"))
}
