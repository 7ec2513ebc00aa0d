//! The world of a session: packets go in with the kernel's stamps, and come out when they are due or do not.

use super::{Names, Side};
use std::collections::VecDeque;
use tidegate_core::{Cause, Ecn, NodeId, Span, Time};
use tidegate_sim::engine::world::Stopped;
use tidegate_sim::scenario::{Outcome, Run};

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It leaves the last link; whether it bears a congestion mark then.
    Arrives {
        /// Whether a queue has marked it.
        marked: bool,
    },
    /// It died on its way.
    Dies(Cause),
}

/// A packet that has come to its end in the model.
#[derive(Debug, PartialEq, Eq)]
pub struct Decided<B> {
    /// Its number.
    pub number: u64,
    /// When, in model time: to be written then, or dead.
    pub at: Time,
    /// Who has sent it.
    pub from: Side,
    /// What became of it.
    pub fate: Fate,
    /// What came in with it.
    pub bytes: B,
}

/// A packet that came in: its number, and when by the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// Its number, counted from 0.
    pub number: u64,
    /// When it comes in, by the model.
    pub at: Time,
    /// By how much that is later than its stamp, because the model had got further.
    pub clamped: Span,
}

struct Held<B> {
    from: Side,
    capable: Ecn,
    bytes: B,
}

/// The world of a session. `B` is what is kept of a packet while the model has it: its bytes, or nothing.
pub struct Model<B> {
    run: Run,
    /// The node that feeds each flow, by side and number.
    sources: [Vec<NodeId>; 2],
    /// When each of them was last fed: stamps of one device are in order, but for what two processors receive at once.
    latest: [Vec<Time>; 2],
    held: VecDeque<Option<Held<B>>>,
    first: u64,
    /// All that happens up to and including this has happened.
    simulated: Time,
}

impl<B> Model<B> {
    /// The world of a scenario with flows for what the programs send: of each side those of its `names` that it has.
    ///
    /// # Errors
    /// If it has none of them, or more of one side than of the other.
    pub fn new(mut run: Run, names: &Names) -> Result<Self, String> {
        run.watch_deaths();
        let sources = names.each_ref().map(|names| -> Vec<NodeId> {
            let flows = &run.external().flows;
            names
                .iter()
                .map_while(|name| flows.iter().find(|flow| flow.name == *name).map(|flow| flow.source))
                .collect()
        });
        if sources[0].is_empty() || sources[0].len() != sources[1].len() {
            let first = |names: &Vec<String>| names.first().cloned().unwrap_or_default();
            let [a, b] = names.each_ref().map(first);
            return Err(format!("has no external flows {a} and {b}, as many of one side as of the other"));
        }
        let latest = sources.each_ref().map(|sources| vec![Time::ZERO; sources.len()]);
        Ok(Self { run, sources, latest, held: VecDeque::new(), first: 0, simulated: Time::from_nanos(-1) })
    }

    /// How many flows it has of each side.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.sources[0].len()
    }

    /// How long it lasts.
    #[must_use]
    pub fn duration(&self) -> Span {
        self.run.duration()
    }

    /// All that happens up to and including this has happened.
    #[must_use]
    pub fn simulated(&self) -> Time {
        self.simulated
    }

    /// When something happens next, as far as it is known.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.run.peek()
    }

    /// A packet of `size` bytes comes in from `from` on flow number `flow`, stamped with `stamp`.
    ///
    /// It enters at its stamp, or as soon after it as the model has not been yet; not at all if the scenario is over then.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn enter(
        &mut self,
        from: Side,
        flow: usize,
        stamp: Time,
        size: u32,
        ecn: Ecn,
        bytes: B,
    ) -> Option<Entered> {
        let over = Time::ZERO + self.duration();
        let (source, latest) = (self.sources[from as usize][flow], &mut self.latest[from as usize][flow]);
        let at = stamp.max(self.simulated + Span::from_nanos(1)).max(*latest);
        if at > over {
            return None;
        }
        *latest = at;
        let number = self.first + self.held.len() as u64;
        self.held.push_back(Some(Held { from, capable: ecn, bytes }));
        let fed = self.run.feed(source, at, size, ecn, number);
        assert!(fed, "the source of {}-{} is no external flow", from.name(), flow + 1);
        Some(Entered { number, at, clamped: at - stamp })
    }

    /// Does what happens up to and including `until`, but not many more than `events` events, and tells what has come
    /// to its end, in order of time. Says whether it got there.
    ///
    /// # Errors
    /// When a component of the scenario fails.
    pub fn advance(
        &mut self,
        until: Time,
        events: u64,
        mut tell: impl FnMut(Decided<B>),
    ) -> Result<bool, Stopped> {
        let mut left = events;
        let done = loop {
            // the engine stops at each packet that it hands over: so few events pass that none of them are counted
            let some = left.min(1024);
            let done = self.run.run_driven(until, some)?;
            // what died did so at or before the event at which the engine stopped
            for died in self.run.take_died() {
                if let Some(held) = self.release(died.tag) {
                    let (from, bytes) = (held.from, held.bytes);
                    tell(Decided {
                        number: died.tag,
                        at: died.at,
                        from,
                        fate: Fate::Dies(died.cause),
                        bytes,
                    });
                }
            }
            let handed = self.run.take_handed();
            let at = self.run.now();
            for one in &handed {
                let Some(number) = one.packet.tag() else { continue };
                if let Some(held) = self.release(number) {
                    let marked = one.packet.ecn == Ecn::Ce && held.capable != Ecn::Ce;
                    let (from, bytes) = (held.from, held.bytes);
                    tell(Decided { number, at, from, fate: Fate::Arrives { marked }, bytes });
                }
            }
            if done {
                break true;
            }
            left -= if handed.is_empty() { some } else { 1 };
            if left == 0 {
                break false;
            }
        };
        self.simulated = self.simulated.max(if done { until } else { self.run.now() });
        Ok(done)
    }

    fn release(&mut self, number: u64) -> Option<Held<B>> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let held = self.held.get_mut(place)?.take();
        while let Some(None) = self.held.front() {
            self.held.pop_front();
            self.first += 1;
        }
        held
    }

    /// Packets that are in the model.
    #[must_use]
    pub fn inside(&self) -> usize {
        self.held.iter().flatten().count()
    }

    /// Ends it after `at`.
    ///
    /// # Errors
    /// When a component fails at the end.
    pub fn finish(self, at: Time) -> Result<Outcome, Stopped> {
        self.run.finish_at(at)
    }
}
