//! Distributions of the emulator's delay, as the tables of iproute2 (`netem/*.c`) have them.

use super::random::Correlated;
use serde::Deserialize;
use std::sync::OnceLock;
use tidegate_core::math::{erf, pow, round, sqrt};
use tidegate_core::{Span, Stream};

/// A standard deviation in a table (`NETEM_DIST_SCALE`).
const SCALE: i64 = 8192;
const SIZE: usize = 4096;

type Table = [i16; SIZE];

/// A distribution of the delay around its mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Uniform.
    #[default]
    Uniform,
    /// Normal.
    Normal,
    /// Pareto with the exponent 3, shifted to mean zero.
    Pareto,
    /// A quarter of the normal one and three quarters of Pareto's.
    Paretonormal,
}

impl Distribution {
    /// A random delay (`tabledist`).
    pub(super) fn delay(self, mean: Span, jitter: Span, numbers: &mut Correlated, luck: &mut Stream) -> Span {
        let sigma = jitter.as_nanos();
        if sigma == 0 {
            return mean;
        }
        let drawn = numbers.next(luck);
        let Some(table) = self.table() else {
            return mean + Span::from_nanos(i64::from(drawn) % (2 * sigma) - sigma);
        };
        let value = i64::from(table[drawn as usize % SIZE]);
        let rest = (sigma % SCALE) * value;
        let rounded = if rest >= 0 { rest + SCALE / 2 } else { rest - SCALE / 2 };
        mean + Span::from_nanos(rounded / SCALE + (sigma / SCALE) * value)
    }

    fn table(self) -> Option<&'static Table> {
        static NORMAL: OnceLock<Box<Table>> = OnceLock::new();
        static PARETO: OnceLock<Box<Table>> = OnceLock::new();
        static BOTH: OnceLock<Box<Table>> = OnceLock::new();
        let make = |value: fn(usize) -> i64| {
            let values = (0..SIZE).map(|index| value(index).clamp(i16::MIN.into(), i16::MAX.into()) as i16);
            values.collect::<Box<[i16]>>().try_into().unwrap_or_else(|_| unreachable!("of this size"))
        };
        match self {
            Self::Uniform => None,
            Self::Normal => Some(NORMAL.get_or_init(|| make(normal))),
            Self::Pareto => Some(PARETO.get_or_init(|| make(pareto))),
            Self::Paretonormal => {
                Some(BOTH.get_or_init(|| make(|index| (normal(index) + 3 * pareto(index)) / 4)))
            }
        }
    }
}

/// Quantile of the normal distribution: the largest multiple of 0.00005 at which 16384 times the distribution rounds to
/// four times the index (`netem/normal.c`).
fn normal(index: usize) -> i64 {
    const STEP: f64 = 0.00005;
    let at = |steps: i64| steps as f64 * STEP - 10.0;
    let reaches = |steps: i64| {
        let share = 0.5 + 0.5 * erf(at(steps) / sqrt(2.0));
        16_384.0 * share < 4.0 * index as f64 + 0.5
    };
    // the last step that rounds down to it
    let (mut low, mut high) = (0, 401_000);
    while high - low > 1 {
        let middle = i64::midpoint(low, high);
        if reaches(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    round(at(low) * SCALE as f64) as i64
}

/// Quantile of Pareto's distribution (`netem/pareto.c`).
fn pareto(index: usize) -> i64 {
    let share = (65_536 - 16 * index) as f64 / 65_536.0;
    let value = (1.0 / pow(share, 1.0 / 3.0) - 1.5) * (4.0 / 3.0) * SCALE as f64;
    round(value.min(32_767.0)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// iproute2's own tables, where it is installed.
    #[expect(clippy::disallowed_methods, reason = "a test that compares with a file of the system")]
    fn installed(name: &str) -> Option<Vec<i64>> {
        let path = format!("/usr/lib/x86_64-linux-gnu/tc/{name}.dist");
        let text = std::fs::read_to_string(path).ok()?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Some(lines.flat_map(|line| line.split_whitespace().map(|value| value.parse().unwrap())).collect())
    }

    #[test]
    fn tables_are_those_of_iproute2() {
        for (distribution, name) in [
            (Distribution::Normal, "normal"),
            (Distribution::Pareto, "pareto"),
            (Distribution::Paretonormal, "paretonormal"),
        ] {
            let table = distribution.table().unwrap();
            let Some(theirs) = installed(name) else { continue };
            assert_eq!(theirs.len(), SIZE);
            let differ =
                table.iter().zip(&theirs).filter(|(ours, theirs)| i64::from(**ours) != **theirs).count();
            assert_eq!(differ, 0, "{name}: {:?} and {:?}", &table[..8], &theirs[..8]);
        }
    }

    /// A few rows of the tables of iproute2 6.1.
    #[test]
    fn tables_have_known_rows() {
        let row = |distribution: Distribution, index: usize| distribution.table().unwrap()[index];
        assert_eq!(
            [0, 1, 2, 7, 8].map(|index| row(Distribution::Normal, index)),
            [-32768, -28307, -26871, -23937, -23600]
        );
    }

    #[test]
    fn delays_have_their_mean_and_deviation() {
        let (mean, jitter) = (Span::from_millis(50), Span::from_millis(10));
        for (distribution, deviation) in
            [(Distribution::Uniform, 10.0 / sqrt(3.0)), (Distribution::Normal, 10.0)]
        {
            let mut luck = Stream::new(9, "netem", "test");
            let mut numbers = Correlated::new(0, &mut luck);
            let delays: Vec<f64> = (0..400_000)
                .map(|_| 1e3 * distribution.delay(mean, jitter, &mut numbers, &mut luck).as_secs_f64())
                .collect();
            let average = delays.iter().sum::<f64>() / delays.len() as f64;
            let square =
                delays.iter().map(|x| (x - average) * (x - average)).sum::<f64>() / delays.len() as f64;
            assert!((average - 50.0).abs() < 0.05, "{distribution:?}: {average}");
            assert!((sqrt(square) / deviation - 1.0).abs() < 0.01, "{distribution:?}: {}", sqrt(square));
        }
    }

    /// `tabledist` by hand: sigma of 10 ms is 1220 scales and 5760 ns; a value of -3 is -3660 - 2.1 ns.
    #[test]
    fn delays_round_as_in_linux() {
        let sigma = Span::from_millis(10).as_nanos();
        assert_eq!((sigma / SCALE, sigma % SCALE), (1220, 5760));
        let mut luck = Stream::new(10, "netem", "test");
        let mut numbers = Correlated::new(0, &mut luck);
        let mut next = luck.clone();
        for _ in 0..1000 {
            let drawn = super::super::random::number(&mut next);
            let value = i64::from(Distribution::Normal.table().unwrap()[drawn as usize % SIZE]);
            let exact = f64::from(sigma as i32) * value as f64 / 8192.0;
            let delay =
                Distribution::Normal.delay(Span::ZERO, Span::from_millis(10), &mut numbers, &mut luck);
            assert!((delay.as_nanos() as f64 - exact).abs() <= 0.5, "{value}: {delay} for {exact} ns");
        }
    }
}
