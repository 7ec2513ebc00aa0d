//! Tells apart why a packet is in a capture more than once: it was seen twice at one place (a mirrored port, `-i any`), it
//! passed two places whose captures were merged, or the network doubled it.

use super::layers::Datagram;
use crate::frequent::most_frequent;
use crate::point::Nanos;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Greatest time between two sights of one packet at one place.
const SAME_PLACE: Nanos = 1_000_000;
/// Greatest time between them where it is always the same, as at a mirrored port, and greatest difference of such times.
const CONSTANT: (Nanos, Nanos) = (5_000_000, 100_000);
/// Time between two sights that no path takes.
const LATE: Nanos = 10_000_000_000;
/// Greatest difference of hop limits between interfaces of one router.
const SAME_ROUTER: u8 = 1;

/// The repeated sights of the packets between two addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Repetition {
    /// Indices of the sights after the first at the same place.
    pub(super) copies: Vec<usize>,
    /// Time between a sight and its copy, which nine of ten do not exceed.
    pub(super) lag: Nanos,
    /// Whether most of the others are sights of two places.
    pub(super) is_of_two_places: bool,
}

/// Indices of the datagrams with equal contents, in the order of time. Checksums may differ: network adapters compute them
/// when a packet leaves, so that its first sight has part of one.
fn sights(datagrams: &[Datagram<'_>], indices: &[usize]) -> Vec<Vec<usize>> {
    let mut sights: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
    for &index in indices {
        sights.entry(&datagrams[index].payload).or_default().push(index);
    }
    sights.into_values().collect()
}

/// Finds repeated sights of the datagrams with these indices.
pub(super) fn repetitions(datagrams: &[Datagram<'_>], indices: &[usize]) -> Vec<Repetition> {
    let mut flows: BTreeMap<(SocketAddr, SocketAddr), Vec<usize>> = BTreeMap::new();
    for &index in indices {
        flows.entry((datagrams[index].from, datagrams[index].to)).or_default().push(index);
    }
    flows.values().map(|indices| repetition(datagrams, sights(datagrams, indices))).collect()
}

/// Fewest packets that are seen again.
const FEWEST: usize = 3;

/// The repeated sights of a flow. The network itself doubles some packets, too, but fewer: a second place or interface sees
/// most packets, unless its capture began late or many packets were lost before it.
fn repetition(datagrams: &[Datagram<'_>], mut sights: Vec<Vec<usize>>) -> Repetition {
    const SHARE: usize = 3;
    let packets = sights.len();
    let hops = |a: usize, b: usize| datagrams[a].hops.abs_diff(datagrams[b].hops);
    let lag = |a: usize, b: usize| datagrams[b].at - datagrams[a].at;
    let is_often = |count: usize| count >= FEWEST && count * SHARE >= packets;
    let mut repetition = Repetition::default();
    let mut take = |sights: &mut Vec<Vec<usize>>, is_copy: &dyn Fn(usize, usize) -> bool| {
        let repeated = |sights: &&Vec<usize>| sights.windows(2).any(|pair| is_copy(pair[0], pair[1]));
        if !is_often(sights.iter().filter(repeated).count()) {
            return;
        }
        let mut lags = Vec::new();
        for sights in sights.iter_mut() {
            let mut kept: Vec<usize> = Vec::with_capacity(sights.len());
            for (order, &index) in sights.iter().enumerate() {
                if order > 0 && is_copy(sights[order - 1], index) {
                    repetition.copies.push(index);
                    lags.push(lag(sights[order - 1], index));
                } else {
                    kept.push(index);
                }
            }
            *sights = kept;
        }
        lags.sort_unstable();
        repetition.lag = repetition.lag.max(lags[(lags.len() - 1) * 9 / 10]);
    };
    take(&mut sights, &|a, b| lag(a, b) <= SAME_PLACE && hops(a, b) <= SAME_ROUTER);
    let mut lags: Vec<Nanos> =
        sights.iter().flat_map(|sights| sights.windows(2).map(|pair| lag(pair[0], pair[1]))).collect();
    lags.sort_unstable();
    if let (Some(&least), Some(&most)) = (lags.get(lags.len() / 10), lags.get(lags.len() * 9 / 10)) {
        let is_constant = most <= CONSTANT.0 && most - least <= CONSTANT.1;
        // of places with clocks that are hours apart nothing tells which is which, unless interfaces or hop limits do
        let is_late = least > LATE;
        if is_late {
            let is_alike = |a: usize, b: usize| {
                lag(a, b) > LATE && hops(a, b) == 0 && datagrams[a].interface == datagrams[b].interface
            };
            take(&mut sights, &is_alike);
        } else if is_constant {
            take(&mut sights, &|a, b| lag(a, b) <= CONSTANT.0 && hops(a, b) == 0);
        }
    }
    let repeated: Vec<&Vec<usize>> = sights.iter().filter(|sights| sights.len() > 1).collect();
    // what the network doubles comes by one way
    let is_distinct = |sights: &&&Vec<usize>| {
        sights.windows(2).all(|pair| {
            hops(pair[0], pair[1]) > 0 || datagrams[pair[0]].interface != datagrams[pair[1]].interface
        })
    };
    let distinct = repeated.iter().filter(is_distinct).count();
    repetition.is_of_two_places =
        is_often(repeated.len()) || (distinct >= FEWEST && distinct * 10 >= repeated.len() * 9);
    repetition
}

/// The indices of the sights at the second of two places, which is the one nearer to the end that `is_from_first` does not
/// recognise. They are told by the hop limit, else by the interface, else by the order.
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
        let interfaces = (
            most_frequent(firsts().map(|first| first.interface)),
            most_frequent(lasts().map(|last| last.interface)),
        );
        if interfaces.0 != interfaces.1 && interface_of_second.is_none() {
            interface_of_second = if is_out { interfaces.1 } else { interfaces.0 };
        }
        // routers lower it, so that it is higher at the sender, whatever the clocks say
        let hops = repeated().flat_map(|sights| sights.iter().map(|&index| datagrams[index].hops));
        let (low, high) = hops.fold((u8::MAX, u8::MIN), |(low, high), hops| (low.min(hops), high.max(hops)));
        let differ = |pair: &[usize]| datagrams[pair[0]].hops != datagrams[pair[1]].hops;
        let always_differ = low < high && repeated().all(|sights| sights.windows(2).all(differ));
        let hops_of_second = always_differ.then_some(if is_out { low } else { high });
        for sights in &sights {
            for (order, &index) in sights.iter().enumerate() {
                let datagram = &datagrams[index];
                let is_second = match (interface_of_second, hops_of_second) {
                    (_, Some(hops)) => datagram.hops.abs_diff(hops) <= (high - low) / 2,
                    (Some(interface), None) => datagram.interface == interface,
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
