//! The packets in the queues of a run at the present time, for a picture of it.

use super::run::Run;
use crate::link::ManagedLink;
use std::any::Any;
use tidegate_core::{FlowId, Kind, Time};

/// A packet that waits for a link or is in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Index of its link among those of the recording.
    pub link: u32,
    /// Its flow.
    pub flow: FlowId,
    /// Its kind.
    pub kind: Kind,
    /// Its bytes on the wire.
    pub size: u32,
    /// Time since which it waits; `None` while it is being sent.
    pub since: Option<Time>,
}

impl Run {
    /// Visits the packets in each managed link now: the packet in service, and then the others in the order of their
    /// queue, at most `limit` a link.
    pub fn waiting(&self, limit: usize, visit: &mut dyn FnMut(Queued)) {
        // the link has handled all its events up to this time
        let now = self.world.now();
        for (link, info) in self.recording().links.iter().enumerate() {
            let node: &dyn Any = &*self.world.nodes()[info.node.0 as usize];
            let Some(node) = node.downcast_ref::<ManagedLink>() else { continue };
            let mut count = 0;
            node.waiting(now, &mut |packet, since| {
                count += 1;
                if count <= limit {
                    let (flow, kind, size) = (packet.flow, packet.kind, packet.size);
                    visit(Queued { link: link as u32, flow, kind, size, since });
                }
            });
        }
    }

    /// Whether each link of the recording can be changed while it runs.
    #[must_use]
    pub fn managed_links(&self) -> Vec<bool> {
        let nodes = self.world.nodes();
        let managed = |node: &dyn Any| node.is::<ManagedLink>();
        self.recording().links.iter().map(|info| managed(&*nodes[info.node.0 as usize])).collect()
    }
}
