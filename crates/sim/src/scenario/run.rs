//! A run under way, and what it leaves behind.

use super::external::External;
use super::moves::Moves;
use super::tightest_link::{capacity, set_tightest};
use crate::engine::world::{Stopped, World};
use crate::record::Recording;
use crate::record::summary::{Recorded, Summary, Warning};
use std::any::Any;
use tidegate_core::outbox::PacketAccount;
use tidegate_core::rng::Draws;
use tidegate_core::{Node, Span, Time};

/// A scenario under way: its world, and when it ends.
pub struct Run {
    pub(super) world: World,
    pub(super) duration: Span,
    pub(super) warmup: Span,
    /// Bytes that each node had carried when the warm-up ended.
    pub(super) before: Option<Vec<u64>>,
    pub(super) external: External,
    pub(super) moves: Moves,
    /// What it plays of recorded networks.
    pub(super) recordings: Vec<Recorded>,
}

/// What a run leaves behind.
pub struct Outcome {
    /// All that was recorded.
    pub recording: Box<Recording>,
    /// The metrics.
    pub summary: Summary,
    /// What each random substream gave out, by name.
    pub draws: Vec<Draws>,
    /// Events that the engine handled.
    pub events: u64,
    /// Packets that entered a link, counted at every link.
    pub hops: u64,
}

impl Run {
    /// This run with something around each node (a probe): see [`World::around`].
    ///
    /// # Panics
    /// If it has begun.
    #[must_use]
    pub fn around(self, wrap: impl FnMut(Box<dyn Node>) -> Box<dyn Node>) -> Self {
        Self { world: self.world.around(wrap), ..self }
    }

    /// How long it runs.
    #[must_use]
    pub fn duration(&self) -> Span {
        self.duration
    }

    /// Runs up to `until`, or to its end if that is earlier.
    ///
    /// # Errors
    /// When a component fails: with its name, the time and the reason.
    pub fn run_until(&mut self, until: Time) -> Result<(), Stopped> {
        self.run_some(until, u64::MAX).map(drop)
    }

    /// Runs up to `until`, or to its end if that is earlier, but handles not many more than `events`
    /// events; says whether it got there.
    ///
    /// # Errors
    /// When a component fails: with its name, the time and the reason.
    pub fn run_some(&mut self, until: Time, events: u64) -> Result<bool, Stopped> {
        self.in_stretches(until, events, World::run_some)
    }

    /// Runs as `run` does, and sees to what is due on the way: what happens at the very end of the warm-up counts
    /// already, and a change holds for what happens at its time.
    pub(super) fn in_stretches(
        &mut self,
        until: Time,
        events: u64,
        mut run: impl FnMut(&mut World, Time, u64) -> Result<bool, Stopped>,
    ) -> Result<bool, Stopped> {
        let until = until.min(Time::ZERO + self.duration);
        let most = self.world.events().saturating_add(events);
        loop {
            let warm = self.before.is_none().then_some(Time::ZERO + self.warmup);
            let due = warm.into_iter().chain(self.moves.next()).min().filter(|&at| at <= until);
            let left = most.saturating_sub(self.world.events());
            let Some(at) = due else { return run(&mut self.world, until, left) };
            if at > Time::ZERO && !run(&mut self.world, at - Span::from_nanos(1), left)? {
                return Ok(false);
            }
            if warm == Some(at) {
                self.warm_up_ends();
            }
            self.make_moves(at);
        }
    }

    /// Notes what had been carried before the metrics began.
    pub(super) fn warm_up_ends(&mut self) {
        self.before = Some(self.world.accounts().iter().map(|accounts| accounts.left_bytes).collect());
    }

    /// Runs up to `until`, or to its end if that is earlier, but leaves undone what happens at that very time: a change
    /// there comes first. Handles not many more than `events` events; says whether it got there.
    ///
    /// # Errors
    /// When a component fails: with its name, the time and the reason.
    pub fn run_before(&mut self, until: Time, events: u64) -> Result<bool, Stopped> {
        let until = until.min(Time::ZERO + self.duration);
        if until <= self.reached() {
            return Ok(true);
        }
        self.run_some(until - Span::from_nanos(1), events)
    }

    /// The earliest time at which nothing can have happened yet: where a run that was run *before* a time stands.
    #[must_use]
    pub fn reached(&self) -> Time {
        match self.world.now() {
            Time::ZERO if self.world.events() == 0 => Time::ZERO,
            now => now + Span::from_nanos(1),
        }
    }

    /// The simulated time that it has got to.
    #[must_use]
    pub fn now(&self) -> Time {
        self.world.now()
    }

    /// Ends the run.
    ///
    /// # Errors
    /// When a component fails at the end or a packet went missing.
    pub fn finish(self) -> Result<Outcome, Stopped> {
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
        let hops = recording.links.iter().map(|link| accounts[link.node.0 as usize].left).sum();
        let summary =
            Summary { warnings, recordings: played(self.recordings.iter(), self.duration), ..summary };
        Ok(Outcome { recording, summary, draws, events, hops })
    }

    /// Asserts that no packet went missing so far.
    ///
    /// # Errors
    /// With the node and its counts, when one did.
    pub fn check(&self) -> Result<(), Stopped> {
        self.world.check()
    }

    /// The metrics so far, as those of a run that ends where this one has got to, which goes on unmoved. What only
    /// the end of a run brings to light is left out: a freeze that lasts, and speech that is still on its way.
    pub fn summary_so_far(&mut self) -> Summary {
        let duration = self.reached() - Time::ZERO;
        let duration = duration.min(self.duration);
        let (warmup, warnings) = (self.warmup.min(duration), self.warnings());
        let accounts = self.world.accounts().to_vec();
        let mut recording = self.recording().so_far();
        let sums = Sums { accounts: &accounts, before: self.before.as_deref(), warmup };
        let summary = sums.up(&mut recording, self.world.nodes_mut(), duration);
        Summary { warnings, recordings: played(self.recordings.iter(), duration), ..summary }
    }

    /// All that has been recorded so far.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        let record: &dyn Any = self.world.record();
        let Some(recording) = record.downcast_ref() else {
            unreachable!("a builder's world always writes to a Recording")
        };
        recording
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for node in self.world.nodes() {
            let name = node.name();
            node.warnings(&mut |key, says| {
                warnings.push(Warning { key: format!("links.{name}.{key}"), says })
            });
        }
        warnings
    }
}

/// What was played of recordings in a run that lasted so long.
fn played<'a>(recordings: impl Iterator<Item = &'a Recorded>, lasted: Span) -> Vec<Recorded> {
    let lasted = lasted.as_secs_f64();
    recordings.map(|one| Recorded { used_s: one.used_s.min(lasted), ..one.clone() }).collect()
}

/// What the metrics need beside the recording.
struct Sums<'a> {
    accounts: &'a [PacketAccount],
    /// What nodes had carried when the warm-up ended; `None` before.
    before: Option<&'a [u64]>,
    warmup: Span,
}

impl Sums<'_> {
    /// The metrics of a run that ends after `duration`, and what the recording has to know for them.
    fn up(&self, recording: &mut Recording, nodes: &mut [Box<dyn Node>], duration: Span) -> Summary {
        let (begin, end) = (Time::ZERO + self.warmup, Time::ZERO + duration);
        recording.close_frames(end);
        recording.end(end);
        set_tightest(&mut recording.flows, nodes, begin);
        for info in &mut recording.links {
            info.capacity = capacity(nodes, info.node, begin, end);
        }
        recording.set_carried(|node| {
            let id = node.0 as usize;
            let (before, left) = (self.before.map_or(0, |before| before[id]), self.accounts[id].left_bytes);
            assert!(before <= left, "node {id} has carried less than at the end of the warm-up");
            left - before
        });
        recording.summary(duration, self.warmup)
    }
}
