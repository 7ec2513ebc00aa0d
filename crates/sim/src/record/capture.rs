//! What both ends of a flow see of it: each packet as it leaves one of them, and as it comes in at the other.

use super::Recording;
use tidegate_core::record::Passing;
use tidegate_core::{Datagram, FlowId, Kind, NodeId, Time};

/// One of the two sides of the flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Where media, data or datagrams come from.
    Sender,
    /// Where they go.
    Receiver,
}

/// A packet as it passed the interface of an end.
#[derive(Clone, Debug)]
pub(super) struct Captured {
    /// When.
    pub at: Time,
    /// Which end.
    pub node: NodeId,
    pub passing: Passing,
    /// Whose it is.
    pub flow: FlowId,
    pub kind: Kind,
    /// The packet as it was there: a network may have marked it since it was sent.
    pub datagram: Datagram,
}

impl Recording {
    /// For each flow the end that sends what the flow is for: where its first packet that is no feedback left. A flow
    /// of nothing but RTCP has its sender where the first of its two ends is.
    pub(super) fn senders(&self) -> Vec<Option<NodeId>> {
        let mut senders = vec![None; self.flows.len()];
        let mut first = senders.clone();
        for packet in self.captured.iter().filter(|packet| packet.passing == Passing::Out) {
            let flow = packet.flow.0 as usize;
            first[flow] = Some(first[flow].map_or(packet.node, |node: NodeId| node.min(packet.node)));
            if !packet.kind.is_feedback() {
                senders[flow].get_or_insert(packet.node);
            }
        }
        senders.into_iter().zip(first).map(|(sender, first)| sender.or(first)).collect()
    }

    /// The packets that one side sees, in order of time.
    pub(super) fn seen(&self, side: Side) -> impl Iterator<Item = &Captured> {
        let senders = self.senders();
        self.captured.iter().filter(move |packet| {
            let here = senders[packet.flow.0 as usize] == Some(packet.node);
            here == (side == Side::Sender)
        })
    }
}
