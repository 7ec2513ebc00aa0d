//! The application above a connection: its downloads and their times.

use super::{TcpSender, TcpSettings};
use crate::refusal::Refusal;
use serde::Deserialize;
use tidegate_core::{Outbox, Span, Stream, Time};

/// The data that a connection sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Endless data.
    #[default]
    Long,
    /// One download of this many bytes.
    File(u64),
    /// Data that a program writes while it runs ([`super::TcpSender::write`]).
    #[serde(skip)]
    Stream,
    /// Short downloads with idle times between them (RFC 8868 section 5.1: 30 to 50 kB, 10 s).
    Web {
        /// Size of the smallest download, in bytes; sizes are uniform.
        min: u64,
        /// Size of the largest download, in bytes.
        max: u64,
        /// Mean of the exponential idle time from the end of one download to the start of the next.
        idle: Span,
        /// Whether there is an idle time before the first one.
        #[serde(default)]
        begins_idle: bool,
    },
}

impl Workload {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        match *self {
            Self::Long | Self::Stream => Ok(()),
            Self::File(0) => Err(Refusal::new("workload.file", "0 bytes", "at least 1 byte")),
            Self::File(_) => Ok(()),
            Self::Web { min, max, .. } if min == 0 || min > max || max == u64::MAX => {
                let found = format!("downloads of {min} to {max} bytes");
                Err(Refusal::new(
                    "workload.web",
                    found,
                    "a smallest size of at least 1 byte, and a largest size not below it",
                ))
            }
            Self::Web { idle, .. } if idle <= Span::ZERO => {
                Err(Refusal::new("workload.web.idle", idle, "more than zero"))
            }
            Self::Web { .. } => Ok(()),
        }
    }
}

/// The application, which begins downloads.
#[derive(Debug)]
pub(super) struct Application {
    workload: Workload,
    /// Beginning of the next download.
    next: Option<Time>,
    stop: Option<Time>,
    stopped: bool,
    luck: Stream,
}

/// An action of the application at its wakeup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Act {
    /// No action is due.
    Idle,
    /// Begins a download of this many bytes.
    Begin(u64),
    /// Stops writing.
    Stop,
}

/// Bytes of endless data: more than any run sends, and far from overflow when added to a position.
const ENDLESS: u64 = 1 << 62;

impl Application {
    pub(super) fn new(settings: &TcpSettings, name: &str, seed: u64) -> Self {
        let mut luck = Stream::new(seed, name, "downloads");
        let mut next = settings.start;
        if let Workload::Web { idle, begins_idle: true, .. } = settings.workload {
            next += Span::from_secs_f64(luck.exponential(idle.as_secs_f64()));
        }
        Self { workload: settings.workload, next: Some(next), stop: settings.stop, stopped: false, luck }
    }

    pub(super) fn next_wakeup(&self) -> Option<Time> {
        match (self.next, self.stop) {
            (Some(next), Some(stop)) => Some(if stop < next { stop } else { next }),
            (next, stop) => next.or(stop),
        }
    }

    /// The action due at `now`; to be called until it is [`Act::Idle`].
    pub(super) fn act(&mut self, now: Time) -> Act {
        if self.stop.is_some_and(|stop| stop <= now) {
            self.stop = None;
            self.next = None;
            self.stopped = true;
            return Act::Stop;
        }
        if self.next.is_none_or(|next| next > now) {
            return Act::Idle;
        }
        self.next = None;
        Act::Begin(match self.workload {
            Workload::Long => ENDLESS,
            Workload::Stream => 0,
            Workload::File(bytes) => bytes.min(ENDLESS),
            Workload::Web { min, max, .. } => (min + self.luck.below(max - min + 1)).min(ENDLESS),
        })
    }

    /// Takes note that all written data has arrived; returns whether it was a whole download.
    pub(super) fn completed(&mut self, now: Time) -> bool {
        if let (Workload::Web { idle, .. }, false) = (self.workload, self.stopped) {
            self.next = Some(now + Span::from_secs_f64(self.luck.exponential(idle.as_secs_f64())));
        }
        !self.stopped && self.workload != Workload::Stream
    }

    pub(super) fn luck(&self) -> &Stream {
        &self.luck
    }
}

impl TcpSender {
    /// Adds bytes to the stream, which leave as soon as they may: without Nagle's algorithm.
    pub fn write(&mut self, now: Time, bytes: u64, out: &mut Outbox) {
        self.written += bytes;
        self.fill(now, out);
    }

    /// Bytes in its socket: those that were written and are not acknowledged.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.written - self.flight.una()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downloads_have_their_sizes_and_idle_times() {
        let idle = Span::from_secs(10);
        let workload = Workload::Web { min: 30_000, max: 50_000, idle, begins_idle: false };
        let settings = TcpSettings { workload, ..TcpSettings::default() };
        let mut application = Application::new(&settings, "web", 1);
        let mut now = application.next_wakeup().unwrap();
        assert_eq!(now, Time::ZERO);
        let (mut bytes, mut idle_seconds, n) = (0, 0.0, 20_000);
        for _ in 0..n {
            let Act::Begin(size) = application.act(now) else { panic!("a download is due") };
            assert!((30_000..=50_000).contains(&size));
            assert_eq!(application.act(now), Act::Idle);
            assert_eq!(application.next_wakeup(), None);
            bytes += size;
            assert!(application.completed(now));
            let next = application.next_wakeup().unwrap();
            idle_seconds += (next - now).as_secs_f64();
            now = next;
        }
        let mean = bytes as f64 / f64::from(n);
        assert!((mean - 40_000.0).abs() < 150.0, "{mean}");
        let mean = idle_seconds / f64::from(n);
        assert!((mean - 10.0).abs() < 0.25, "{mean}");
    }

    #[test]
    fn a_stop_comes_before_a_download_that_would_begin_at_the_same_time() {
        let settings = TcpSettings { stop: Some(Time::ZERO), ..TcpSettings::default() };
        let mut application = Application::new(&settings, "x", 1);
        assert_eq!(application.act(Time::ZERO), Act::Stop);
        assert_eq!(application.act(Time::ZERO), Act::Idle);
        assert_eq!(application.next_wakeup(), None);
    }
}
