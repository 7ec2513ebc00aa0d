//! A run under way, and its outcome.

use super::calls::Calls;
use super::external::External;
use super::moves::Moves;
use super::tightest_link::{capacity, set_tightest};
use crate::engine::world::{Stopped, World};
use crate::record::Recording;
use crate::record::summary::{PlayedTrace, Summary, Warning};
use std::any::Any;
use tidegate_core::outbox::PacketAccount;
use tidegate_core::rng::Draws;
use tidegate_core::{Node, Span, Time, math};

/// A scenario under way: its world, and the time of its end.
pub struct Run {
    pub(super) world: World,
    pub(super) duration: Span,
    pub(super) warmup: Span,
    /// Bytes that each node had carried when the warm-up ended.
    pub(super) before: Option<Vec<u64>>,
    pub(super) external: External,
    pub(super) calls: Calls,
    pub(super) moves: Moves,
    /// The recorded networks that it plays.
    pub(super) recordings: Vec<PlayedTrace>,
    /// Remarks on how they were read.
    pub(super) remarks: Vec<Warning>,
}

/// The outcome of a run.
pub struct Outcome {
    /// The recorded data.
    pub recording: Box<Recording>,
    /// The metrics.
    pub summary: Summary,
    /// The number of draws of each random substream, by name.
    pub draws: Vec<Draws>,
    /// Events that the engine handled.
    pub events: u64,
    /// Packets that entered a link, counted at every link.
    pub hops: u64,
}

impl Run {
    /// Wraps each node (in a probe, say): see [`World::around`].
    ///
    /// # Panics
    /// If it has begun.
    #[must_use]
    pub fn around(self, wrap: impl FnMut(Box<dyn Node>) -> Box<dyn Node>) -> Self {
        Self { world: self.world.around(wrap), ..self }
    }

    /// Duration of the run.
    #[must_use]
    pub fn duration(&self) -> Span {
        self.duration
    }

    /// Runs up to `until`, or to its end if that is earlier.
    ///
    /// # Errors
    /// When a component fails: with its name, the time and the reason.
    pub fn run_until(&mut self, until: Time) -> Result<(), Stopped> {
        self.run_events(until, u64::MAX).map(drop)
    }

    /// Runs up to `until`, or to its end if that is earlier, but handles not many more than `events`
    /// events; returns whether it got there.
    ///
    /// # Errors
    /// When a component fails: with its name, the time and the reason.
    pub fn run_events(&mut self, until: Time, events: u64) -> Result<bool, Stopped> {
        self.in_stretches(until, events, World::run_events)
    }

    /// Runs as `run` does, and stops on the way for the end of the warm-up and for planned changes: events at the end
    /// of the warm-up already count, and a change applies to events at its time.
    pub(super) fn in_stretches(
        &mut self,
        until: Time,
        events: u64,
        mut run: impl FnMut(&mut World, Time, u64) -> Result<bool, Stopped>,
    ) -> Result<bool, Stopped> {
        self.check_environment()?;
        let until = until.min(Time::ZERO + self.duration);
        let max_events = self.world.events().saturating_add(events);
        loop {
            let warm = self.before.is_none().then_some(Time::ZERO + self.warmup);
            let due = warm.into_iter().chain(self.moves.next()).min().filter(|&time| time <= until);
            let budget = max_events.saturating_sub(self.world.events());
            let Some(time) = due else { return run(&mut self.world, until, budget) };
            if time > Time::ZERO && !run(&mut self.world, time - Span::from_nanos(1), budget)? {
                return Ok(false);
            }
            if warm == Some(time) {
                self.warm_up_ends();
            }
            self.apply_moves(time)?;
        }
    }

    /// Stores the bytes that each node had carried when the warm-up ended.
    pub(super) fn warm_up_ends(&mut self) {
        self.before = Some(self.world.accounts().iter().map(|accounts| accounts.departed_bytes).collect());
    }

    /// Runs up to `until`, or to its end if that is earlier, but not the events at that very time, so that a change can
    /// come before them. Handles not many more than `events` events; returns whether it got there.
    ///
    /// # Errors
    /// When a component fails: with its name, the time and the reason.
    pub fn run_before(&mut self, until: Time, events: u64) -> Result<bool, Stopped> {
        let until = until.min(Time::ZERO + self.duration);
        if until <= self.reached() {
            return Ok(true);
        }
        self.run_events(until - Span::from_nanos(1), events)
    }

    /// The earliest time at which no event has been handled yet; after [`Run::run_before`], that time.
    #[must_use]
    pub fn reached(&self) -> Time {
        match self.world.now() {
            Time::ZERO if self.world.events() == 0 => Time::ZERO,
            now => now + Span::from_nanos(1),
        }
    }

    /// The present simulated time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.world.now()
    }

    /// Ends the run.
    ///
    /// # Errors
    /// When a component fails at the end or a packet went missing.
    pub fn finish(self) -> Result<Outcome, Stopped> {
        self.check_environment()?;
        let accounts = self.world.accounts().to_vec();
        let events = self.world.events();
        let mut draws = Vec::new();
        for node in self.world.nodes() {
            node.draws(&mut |drawn| draws.push(drawn));
        }
        draws.sort_by(|a, b| a.name.cmp(&b.name));
        let warnings = self.warnings();
        let (recorder, mut nodes) = self.world.finish_with_nodes()?;
        let recorder: Box<dyn Any> = recorder;
        let Ok(mut recording) = recorder.downcast::<Recording>() else {
            unreachable!("a builder's world always writes to a Recording")
        };
        let sums = Sums { accounts: &accounts, before: self.before.as_deref(), warmup: self.warmup };
        let summary = sums.up(&mut recording, &mut nodes, self.duration);
        let hops = recording.links.iter().map(|link| accounts[link.node.0 as usize].departed).sum();
        let summary =
            Summary { recordings: played(self.recordings.iter(), self.duration), ..summary.warned(warnings) };
        Ok(Outcome { recording, summary, draws, events, hops })
    }

    /// Checks that floating-point numbers are rounded here as on every machine: code of the driver may have changed
    /// that since the last call.
    fn check_environment(&self) -> Result<(), Stopped> {
        let stopped = |other: math::OtherEnvironment| Stopped {
            time: self.world.now(),
            node: "the run".to_owned(),
            reason: other.to_string(),
        };
        math::check_environment().map_err(stopped)
    }

    /// Checks that no packet went missing so far.
    ///
    /// # Errors
    /// With the node and its counts, when one did.
    pub fn check(&self) -> Result<(), Stopped> {
        self.world.check()
    }

    /// The metrics so far, as if the run ended now; it goes on unchanged. They leave out what is only known at the end
    /// of a run: a freeze that lasts, and speech that is still on its way.
    pub fn summary_so_far(&mut self) -> Summary {
        let duration = self.reached() - Time::ZERO;
        let duration = duration.min(self.duration);
        let (warmup, warnings) = (self.warmup.min(duration), self.warnings());
        let accounts = self.world.accounts().to_vec();
        let mut recording = self.recording().so_far();
        let sums = Sums { accounts: &accounts, before: self.before.as_deref(), warmup };
        let summary = sums.up(&mut recording, self.world.nodes_mut(), duration);
        Summary { recordings: played(self.recordings.iter(), duration), ..summary.warned(warnings) }
    }

    /// The data recorded so far.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        let record: &dyn Any = self.world.record();
        let Some(recording) = record.downcast_ref() else {
            unreachable!("a builder's world always writes to a Recording")
        };
        recording
    }

    /// The recording, to add what is known of its flows only now.
    pub(super) fn recording_mut(&mut self) -> &mut Recording {
        let record: &mut dyn Any = self.world.record_mut();
        let Some(recording) = record.downcast_mut() else {
            unreachable!("a builder's world always writes to a Recording")
        };
        recording
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.remarks.clone();
        for node in self.world.nodes() {
            let name = node.name();
            node.warnings(&mut |key, says| {
                warnings.push(Warning { key: format!("links.{name}.{key}"), says })
            });
        }
        warnings
    }
}

/// The recordings, with the seconds that a run of this duration has played of each.
fn played<'a>(recordings: impl Iterator<Item = &'a PlayedTrace>, lasted: Span) -> Vec<PlayedTrace> {
    let lasted = lasted.as_secs_f64();
    recordings
        .map(|recording| PlayedTrace { used_s: recording.used_s.min(lasted), ..recording.clone() })
        .collect()
}

/// Inputs of the metrics beside the recording.
struct Sums<'a> {
    accounts: &'a [PacketAccount],
    /// Bytes that each node had carried when the warm-up ended; `None` before.
    before: Option<&'a [u64]>,
    warmup: Span,
}

impl Sums<'_> {
    /// Completes the recording of a run that ends after `duration`, and returns its metrics.
    fn up(&self, recording: &mut Recording, nodes: &mut [Box<dyn Node>], duration: Span) -> Summary {
        let (begin, end) = (Time::ZERO + self.warmup, Time::ZERO + duration);
        recording.close_frames(end);
        recording.end(end);
        recording.end_interval(end, |link, from| nodes[link.0 as usize].capacity(from, end));
        set_tightest(&mut recording.flows, nodes, begin);
        for info in &mut recording.links {
            info.capacity = capacity(nodes, info.node, begin, end);
        }
        recording.set_carried(|node| {
            let id = node.0 as usize;
            let (before, carried) =
                (self.before.map_or(0, |before| before[id]), self.accounts[id].departed_bytes);
            assert!(before <= carried, "node {id} has carried less than at the end of the warm-up");
            carried - before
        });
        recording.summary(duration, self.warmup)
    }
}
