//! Captured packets of a run: each packet as it leaves one end of its flow, and as it comes in at the other.

use super::Recording;
use tidegate_core::record::Passing;
use tidegate_core::{Datagram, FlowId, Kind, NodeId, Time};

/// One of the two sides of the flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The senders of media, data or datagrams.
    Sender,
    /// Their receivers.
    Receiver,
}

/// A packet that passed the interface of an end.
#[derive(Clone, Debug)]
pub(super) struct Captured {
    /// Time at which it passed.
    pub time: Time,
    /// Node of the end.
    pub node: NodeId,
    pub passing: Passing,
    /// Its flow.
    pub flow: FlowId,
    pub kind: Kind,
    /// Its contents at this end: a network may have marked it on the way.
    pub datagram: Datagram,
}

impl Recording {
    /// For each flow its sending end: the one that its first packet other than feedback left. The sender of a flow of
    /// nothing but RTCP is the first of its two ends.
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

    /// The packets captured at one side, in order of time.
    pub(super) fn captured_at(&self, side: Side) -> impl Iterator<Item = &Captured> {
        let senders = self.senders();
        self.captured.iter().filter(move |packet| {
            let is_sender = senders[packet.flow.0 as usize] == Some(packet.node);
            is_sender == (side == Side::Sender)
        })
    }
}
