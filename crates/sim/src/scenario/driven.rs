//! A run in which its driver takes part: it carries packets over external links, feeds external flows, receives their
//! packets, and changes links.

use super::external::External;
use super::run::{Outcome, Run};
use crate::engine::external::{ExternalLink, ExternalSource};
use crate::engine::world::{Stopped, World};
use crate::link::{LinkChange, ManagedLink};
use crate::refusal::Refusal;
use std::any::Any;
use tidegate_core::datagram::Ecn;
use tidegate_core::outbox::{Died, Handed};
use tidegate_core::{Cause, NodeId, Outbox, Time};

impl Run {
    /// The links and flows of the run that its driver controls.
    #[must_use]
    pub fn external(&self) -> &External {
        &self.external
    }

    /// The time of the next event, as far as it is known; none after the end of the run.
    #[must_use]
    pub fn peek(&self) -> Option<Time> {
        self.world.peek().filter(|&time| time <= Time::ZERO + self.duration)
    }

    /// Runs up to and including `until`, or to its end if that is earlier, but handles not many more than
    /// `events` events, and stops after one in which a packet was handed to the driver. The clock stays at the
    /// last event. Returns whether no event is left up to `until`.
    ///
    /// # Errors
    /// When a component fails: with its name, the time and the reason.
    pub fn run_driven(&mut self, until: Time, events: u64) -> Result<bool, Stopped> {
        self.in_stretches(until, events, World::run_driven)
    }

    /// Whether packets wait for the driver.
    #[must_use]
    pub fn has_handed(&self) -> bool {
        self.world.has_handed()
    }

    /// The packets handed to the driver since the last call, oldest first.
    pub fn take_handed(&mut self) -> Vec<Handed> {
        self.world.take_handed()
    }

    /// Starts to collect the fed packets that die, for [`Run::take_died`].
    pub fn watch_deaths(&mut self) {
        self.world.watch_deaths();
    }

    /// Fed packets that have died since the last call, oldest first; only after [`Run::watch_deaths`].
    pub fn take_died(&mut self) -> Vec<Died> {
        self.world.take_died()
    }

    /// Numbers of the fed packets of which the network has made a copy since the last call, oldest first; only after
    /// [`Run::watch_deaths`].
    pub fn take_doubled(&mut self) -> Vec<u64> {
        self.world.take_doubled()
    }

    /// Lets packet `number` at the external link `link` go on along its route at `time`, or die of `cause`. False if
    /// the driver holds no such packet. Times must not go back, from call to call or behind [`Run::now`].
    #[must_use]
    pub fn decide(&mut self, link: NodeId, number: u64, time: Time, cause: Option<Cause>) -> bool {
        self.world.tell(link, |link: &mut ExternalLink| link.decide(number, time, cause)).unwrap_or(false)
    }

    /// Changes the link called `name` from `time` on; the world must have handled all events before `time`.
    ///
    /// # Errors
    /// If there is no managed link of that name, a value is out of its range, or a component fails.
    pub fn change(&mut self, name: &str, time: Time, change: &LinkChange) -> Result<(), Refusal> {
        let (node, _) = self.managed(name)?;
        let mut result = Ok(());
        let change_link = |link: &mut dyn Any, out: &mut Outbox| {
            if let Some(link) = link.downcast_mut::<ManagedLink>() {
                result = link.change(time, change, out);
            }
        };
        self.world.tell_at(time, node, change_link).map_err(|stopped| Refusal::from(stopped.to_string()))?;
        result.map_err(|refusal| refusal.at(&format!("links.{name}")))
    }

    /// Checks that [`Run::change`] could make this change.
    ///
    /// # Errors
    /// As [`Run::change`].
    pub fn changeable(&self, name: &str, change: &LinkChange) -> Result<(), Refusal> {
        let (_, link) = self.managed(name)?;
        link.changeable(change).map_err(|refusal| refusal.at(&format!("links.{name}")))
    }

    pub(super) fn managed(&self, name: &str) -> Result<(NodeId, &ManagedLink), Refusal> {
        let links = self.world.nodes().iter().enumerate().filter(|(_, node)| node.name() == name);
        let mut links = links.filter_map(|(index, node)| {
            let link = (&**node as &dyn Any).downcast_ref::<ManagedLink>()?;
            Some((NodeId(index as u32), link))
        });
        links.next().ok_or_else(|| {
            Refusal::from("found no managed link of this name; a change needs service = \"managed\"")
                .at(&format!("links.{name}"))
        })
    }

    /// Feeds the external flow with node `source`: `size` bytes with the codepoint `ecn` and a `tag` for the receiver
    /// leave at `time`. Times must not go back, from call to call or behind [`Run::now`]. False if there is no such
    /// flow.
    #[must_use]
    pub fn feed(&mut self, source: NodeId, time: Time, size: u32, ecn: Ecn, tag: u64) -> bool {
        self.world.tell(source, |source: &mut ExternalSource| source.feed(time, size, ecn, tag)).is_some()
    }

    /// Ends the run after `time`, if its end is not earlier; the metrics are those of the time until then.
    ///
    /// # Errors
    /// When a component fails at the end or a packet went missing.
    pub fn finish_at(mut self, time: Time) -> Result<Outcome, Stopped> {
        self.run_until(time)?;
        self.duration = self.duration.min(time - Time::ZERO);
        self.warmup = self.warmup.min(self.duration);
        self.finish()
    }
}
