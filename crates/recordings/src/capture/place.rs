//! Tells at which end of a call a capture was made.

use super::Capture;
use super::layers::Datagram;
use super::streams::Kind;
use crate::frequent::most_frequent;
use crate::point::Nanos;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tidegate_core::wire::ntp;
use tidegate_core::wire::rtcp::{self, Packet};

/// The place of a capture on the path of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// At the end that sends more.
    Sender,
    /// At the end that receives more.
    Receiver,
    /// Between the ends: packets of both directions may be lost before it.
    Middle,
}

/// The ends of a call, as seen from a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// The end at which the capture was made, or the nearer one.
    pub near: SocketAddr,
    /// The other end.
    pub far: SocketAddr,
    /// The evidence for it, for the user to read.
    pub evidence: &'static str,
}

impl Capture<'_> {
    /// The ends of the call.
    #[must_use]
    pub fn ends(&self, at: Option<At>) -> Option<Ends> {
        let (larger, smaller) = self.call()?;
        let call = || self.of_call((larger, smaller));
        let is_larger_near = |evidence, is_near: bool| {
            // no capture is made at a group of receivers
            let is_near = (is_near && !larger.ip().is_multicast()) || smaller.ip().is_multicast();
            let (near, far) = if is_near { (larger, smaller) } else { (smaller, larger) };
            Some(Ends { near, far, evidence })
        };
        match at {
            Some(At::Sender) => return is_larger_near("as --at says", true),
            Some(At::Receiver) => return is_larger_near("as --at says", false),
            _ => (),
        }
        if let Some(leaves) = direction(call(), larger) {
            return is_larger_near("by the direction that the file has for each packet", leaves);
        }
        let routers = |end| routers(call().filter(|datagram| Self::is_from(datagram, end)));
        match (routers(larger), routers(smaller)) {
            (Some(larger), Some(smaller)) if larger != smaller => {
                return is_larger_near("by the hop limits of packets", larger < smaller);
            }
            (Some(larger), None) if larger > 0 => {
                return is_larger_near("by the hop limits of packets", false);
            }
            _ => (),
        }
        // the time until an end answered a report is small at that end
        match (round_trip(call(), larger), round_trip(call(), smaller)) {
            (Some(larger), Some(smaller)) if larger != smaller => {
                return is_larger_near("by the round trips of RTCP", larger < smaller);
            }
            (None, Some(smaller)) => {
                return is_larger_near("by the round trips of RTCP", smaller > AT_ONCE);
            }
            (Some(larger), None) => return is_larger_near("by the round trips of RTCP", larger <= AT_ONCE),
            _ => (),
        }
        is_larger_near("assumed, because it sends more; set --at otherwise", true)
    }
}

/// Longest round trip between a capture and the end at which it was made.
const AT_ONCE: Nanos = 1_000_000;

/// Whether the capturing host sent the packets from `end`, by the direction in the file; `None` without one.
fn direction<'d, 'a: 'd>(datagrams: impl Iterator<Item = &'d Datagram<'a>>, end: SocketAddr) -> Option<bool> {
    // at a mirrored port all packets come in
    let mut votes = [0usize; 2];
    for datagram in datagrams {
        let Some(leaves) = datagram.leaves else { continue };
        votes[usize::from(leaves == Capture::is_from(datagram, end))] += 1;
    }
    let [against, in_favour] = votes;
    if in_favour > 4 * against { Some(true) } else { (against > 4 * in_favour).then_some(false) }
}

/// Number of routers that packets have passed, by the most frequent hop limit, which hosts set to 32, 64, 128 or 255;
/// `None` without packets, or for packets that must not pass a router.
fn routers<'d, 'a: 'd>(datagrams: impl Iterator<Item = &'d Datagram<'a>>) -> Option<u8> {
    let hops = most_frequent(datagrams.map(|datagram| datagram.hops))?;
    let initial = [32, 64, 128, 255].into_iter().find(|&initial| hops <= initial)?;
    (hops > 1).then_some(initial - hops)
}

/// The least time from a sender report of the other end to the answer of `end` (RFC 3550 section 6.4.1), without the time
/// for which `end` waited.
fn round_trip<'d, 'a: 'd>(
    datagrams: impl Iterator<Item = &'d Datagram<'a>>,
    end: SocketAddr,
) -> Option<Nanos> {
    let mut reports: BTreeMap<u32, Nanos> = BTreeMap::new();
    let mut least: Option<Nanos> = None;
    for datagram in datagrams.filter(|datagram| datagram.kind == Kind::Rtcp) {
        let Ok(packets) = rtcp::decode(&datagram.payload) else { continue };
        for packet in &packets {
            if !Capture::is_from(datagram, end) {
                if let Packet::SenderReport(report) = packet {
                    reports.insert(report.middle(), datagram.at);
                }
                continue;
            }
            let blocks = match packet {
                Packet::SenderReport(report) => &report.blocks,
                Packet::ReceiverReport(report) => &report.blocks,
                _ => continue,
            };
            for block in blocks.iter().filter(|block| block.last_sr != 0) {
                let Some(&sent) = reports.get(&block.last_sr) else { continue };
                let waited = ntp::span(i64::from(block.delay_since_last_sr));
                let round_trip = datagram.at - sent - waited.as_nanos();
                least = Some(least.map_or(round_trip, |least| least.min(round_trip)));
            }
        }
    }
    // less than nothing is a clock that was set
    least.map(|least| least.max(0))
}
