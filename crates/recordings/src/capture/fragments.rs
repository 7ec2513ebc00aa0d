//! Puts fragments of IP packets together (RFC 791 section 3.2, RFC 8200 section 4.5).

use super::layers::{Bytes, Ip, Sight};
use crate::point::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A fragment of an IP packet.
#[derive(Clone, Debug)]
pub(super) struct Fragment<'a> {
    /// Position of its first byte in the payload of the whole packet.
    pub(super) offset: usize,
    /// Whether others follow.
    pub(super) more: bool,
    /// Its length, of which the end may not be captured.
    pub(super) length: usize,
    pub(super) payload: Bytes<'a>,
}

/// Addresses, protocol, identification and interface.
type Key = (IpAddr, IpAddr, u8, u32, u32);

/// Fragments of one packet, with what the first one that came says of it.
#[derive(Debug)]
struct Parts<'a> {
    ip: Ip,
    sight: Sight,
    protocol: u8,
    fragments: Vec<Fragment<'a>>,
}

/// The payload of an IP packet, with its protocol, its addresses and all its bytes, and when it was complete.
pub(super) type Packet<'a> = (u8, Bytes<'a>, Ip, Sight);

/// Packets of which fragments are missing so far.
#[derive(Debug, Default)]
pub(super) struct Fragments<'a> {
    waiting: BTreeMap<Key, Parts<'a>>,
    given_up: Vec<Parts<'a>>,
    /// Addresses between which fragments other than first ones were captured.
    with_others: BTreeSet<(IpAddr, IpAddr)>,
}

/// Time after which the identification counts as that of another packet; hosts wait for 60 s at most (RFC 8200).
const TIMEOUT: Nanos = 30_000_000_000;
/// Largest number of fragments of a packet: 64 KiB in pieces of 256 bytes.
const MAX_FRAGMENTS: usize = 256;

impl<'a> Fragments<'a> {
    /// Adds a fragment. Returns the packet that it completes; one that was cut in the capture counts as complete as far as it
    /// was captured.
    pub(super) fn add(
        &mut self,
        (protocol, id): (u8, u32),
        fragment: Fragment<'a>,
        ip: Ip,
        sight: Sight,
    ) -> Option<Packet<'a>> {
        let key = (ip.from, ip.to, protocol, id, sight.interface);
        if fragment.offset > 0 {
            self.with_others.insert((ip.from, ip.to));
        }
        if self.waiting.get(&key).is_some_and(|parts| (sight.at - parts.sight.at).abs() > TIMEOUT) {
            self.given_up.extend(self.waiting.remove(&key));
        }
        let begin = || Parts { ip: Ip { size: 0, ..ip }, sight, protocol, fragments: Vec::new() };
        let parts = self.waiting.entry(key).or_insert_with(begin);
        if parts.fragments.iter().any(|other| other.offset == fragment.offset) {
            return None; // a copy
        }
        parts.ip.size = parts.ip.size.saturating_add(ip.size);
        parts.fragments.push(fragment);
        if parts.fragments.len() > MAX_FRAGMENTS {
            self.given_up.extend(self.waiting.remove(&key));
            return None;
        }
        let payload = whole(&mut parts.fragments)?;
        let packet = (protocol, Bytes::Owned(payload), parts.ip, sight);
        self.waiting.remove(&key);
        Some(packet)
    }

    /// First fragments where no others were captured at all, which a capture filter by ports leaves out; and the number of
    /// the other fragments.
    pub(super) fn incomplete(self) -> (Vec<Packet<'a>>, usize) {
        let mut firsts = Vec::new();
        let mut count = 0;
        for mut parts in self.given_up.into_iter().chain(self.waiting.into_values()) {
            let addresses = (parts.ip.from, parts.ip.to);
            match (parts.fragments.pop(), &parts.fragments[..]) {
                (Some(first), []) if first.offset == 0 && !self.with_others.contains(&addresses) => {
                    firsts.push((parts.protocol, first.payload, parts.ip, parts.sight));
                }
                (_, others) => count += others.len() + 1,
            }
        }
        (firsts, count)
    }
}

/// The payload of a packet, as far as it was captured, if all its fragments are there.
fn whole(fragments: &mut [Fragment<'_>]) -> Option<Vec<u8>> {
    fragments.sort_by_key(|fragment| fragment.offset);
    fragments.last().filter(|fragment| !fragment.more)?;
    let mut end = 0;
    for fragment in fragments.iter() {
        if fragment.offset != end {
            return None;
        }
        end += fragment.length;
    }
    let mut payload = Vec::new();
    for fragment in fragments.iter() {
        payload.extend_from_slice(&fragment.payload);
        if fragment.payload.len() < fragment.length {
            break;
        }
    }
    Some(payload)
}
