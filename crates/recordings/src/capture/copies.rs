//! Tells apart why a packet is in a capture more than once: it was seen twice at one place (a mirrored port, `-i any`), it
//! passed two places whose captures were merged, or the network doubled it.

use super::layers::Datagram;
use crate::point::Nanos;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Greatest time between two sights of one packet at one place.
const SAME_PLACE: Nanos = 1_000_000;
/// Greatest time between them where it is always the same, as at a mirrored port, and greatest difference of such times.
const CONSTANT: (Nanos, Nanos) = (5_000_000, 100_000);

/// The kind of repeated sights of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Sights of the same place.
    Copies,
    /// Sights of a second place.
    Places,
}

/// The repeated sights of the packets between two addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Repetition {
    pub(super) kind: Kind,
    /// Time between two sights, which nine of ten do not exceed.
    pub(super) lag: Nanos,
    /// Indices of the sights after the first.
    pub(super) later: Vec<usize>,
}

/// Indices of the datagrams with equal contents and checksums, in the order of time.
fn sights<'d>(datagrams: &'d [Datagram<'_>], indices: &[usize]) -> Vec<Vec<usize>> {
    let mut sights: BTreeMap<(&'d [u8], u16), Vec<usize>> = BTreeMap::new();
    for &index in indices {
        let datagram = &datagrams[index];
        sights.entry((&datagram.payload, datagram.checksum)).or_default().push(index);
    }
    sights.into_values().collect()
}

/// Finds repeated sights of the datagrams with these indices.
pub(super) fn repetitions(datagrams: &[Datagram<'_>], indices: &[usize]) -> Vec<Repetition> {
    let mut flows: BTreeMap<(SocketAddr, SocketAddr), Vec<usize>> = BTreeMap::new();
    for &index in indices {
        flows.entry((datagrams[index].from, datagrams[index].to)).or_default().push(index);
    }
    flows.values().filter_map(|indices| repetition(datagrams, &sights(datagrams, indices))).collect()
}

/// The repeated sights of a flow; `None` if there are few: the network itself doubles some packets.
fn repetition(datagrams: &[Datagram<'_>], sights: &[Vec<usize>]) -> Option<Repetition> {
    const FEWEST: usize = 3;
    /// A second place or interface sees most packets, unless its capture began late or many packets were lost before it.
    const SHARE: usize = 3;
    let repeated = sights.iter().filter(|sights| sights.len() > 1).count();
    if repeated < FEWEST || repeated * SHARE < sights.len() {
        return None;
    }
    let lag = |pair: &[usize]| datagrams[pair[1]].at - datagrams[pair[0]].at;
    let mut lags: Vec<Nanos> = sights.iter().flat_map(|sights| sights.windows(2).map(lag)).collect();
    lags.sort_unstable();
    let at = |percent: usize| lags[(lags.len() - 1) * percent / 100];
    let is_constant = at(90) <= CONSTANT.0 && at(90) - at(10) <= CONSTANT.1;
    let kind = if at(90) <= SAME_PLACE || is_constant { Kind::Copies } else { Kind::Places };
    let later = sights.iter().flat_map(|sights| &sights[1..]).copied().collect();
    Some(Repetition { kind, lag: at(90), later })
}

/// The value that most sights have.
fn usual<T: Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts.into_iter().max_by_key(|&(_, count)| count).map(|(value, _)| value)
}

/// The indices of the sights at the second of two places, which is the one nearer to the end that `is_from_first` does not
/// recognise. They are told by the interface, else by the hop limit, else by the order.
pub(super) fn second_place(
    datagrams: &[Datagram<'_>],
    indices: &[usize],
    is_from_first: impl Fn(&Datagram<'_>) -> bool,
) -> Vec<usize> {
    let (out, back): (Vec<usize>, Vec<usize>) =
        indices.iter().partition(|&&index| is_from_first(&datagrams[index]));
    let mut second = Vec::new();
    let mut interface_of_second = None;
    for (is_out, indices) in [(true, out), (false, back)] {
        let sights = sights(datagrams, &indices);
        let repeated = || sights.iter().filter(|sights| sights.len() > 1);
        let firsts = || repeated().map(|sights| &datagrams[sights[0]]);
        let lasts = || repeated().map(|sights| &datagrams[sights[sights.len() - 1]]);
        let interfaces =
            (usual(firsts().map(|first| first.interface)), usual(lasts().map(|last| last.interface)));
        if interfaces.0 != interfaces.1 && interface_of_second.is_none() {
            interface_of_second = if is_out { interfaces.1 } else { interfaces.0 };
        }
        let hops = (usual(firsts().map(|first| first.hops)), usual(lasts().map(|last| last.hops)));
        let hops_of_second = (hops.0 != hops.1).then_some(if is_out { hops.1 } else { hops.0 }).flatten();
        for sights in &sights {
            for (order, &index) in sights.iter().enumerate() {
                let datagram = &datagrams[index];
                let is_second = match (interface_of_second, hops_of_second) {
                    (Some(interface), _) => datagram.interface == interface,
                    (None, Some(hops)) => datagram.hops == hops,
                    (None, None) => (order > 0) == is_out,
                };
                if is_second {
                    second.push(index);
                }
            }
        }
    }
    second
}
