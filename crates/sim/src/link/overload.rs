//! Losses because more packets come in than the present status of a link can carry.
//!
//! Hoang's thesis (2017), section 3.4.2 and Figure 10: "Network can handle lambda_out bits per second at a
//! time ... Combine with the incoming bitrate, network calculates loss threshold of a packet when it comes to
//! network. For each packet come to network, it choose a real number between 0 and 1 and compare it with loss
//! threshold." With capacity C and offered rate R a packet is lost with probability max(0, 1 - C/R), so that
//! the share C/R of the offered rate, on average C, goes through.

use crate::counts::take_away;
use crate::link::capacity::StatusProcess;
use std::collections::VecDeque;
use tidegate_core::rng::Draws;
use tidegate_core::{Rate, Span, Stream, Time};

/// State of the losses of a link with statuses.
#[derive(Clone, Debug)]
pub(crate) struct OverloadLoss {
    statuses: StatusProcess,
    offered: Offered,
    luck: Stream,
}

impl OverloadLoss {
    /// Draws from the substream of `name` for "loss", one number a packet whatever its probability.
    pub(crate) fn new(statuses: StatusProcess, seed: u64, name: &str) -> Self {
        let offered = Offered::from_window(statuses.settings().rate_window);
        Self { statuses, offered, luck: Stream::new(seed, name, "loss") }
    }

    /// Whether the packet of `size` bytes that comes in at `now` is lost.
    pub(crate) fn takes(&mut self, now: Time, size: u32) -> bool {
        let capacity = self.statuses.at(now);
        let (bytes, elapsed) = self.offered.add(now, size);
        self.luck.uniform() < probability(capacity, bytes, elapsed)
    }

    pub(crate) fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.statuses.draws());
        visit(self.luck.draws());
    }
}

/// The probability of a loss: `1 - capacity / offered`, negative where all packets go through. Before any time has
/// elapsed the offered rate is unknown, and only a link without capacity loses the packet.
fn probability(capacity: Rate, bytes: u64, elapsed: Option<Span>) -> f64 {
    match elapsed {
        _ if capacity == Rate::ZERO => 1.0,
        None => 0.0,
        Some(elapsed) => 1.0 - capacity.as_bps_f64() * elapsed.as_nanos() as f64 / (bytes as f64 * 8.0 * 1e9),
    }
}

/// The offered rate: bytes that came in during a stretch of time that ends now and excludes its
/// beginning, so that one packet every interval offers exactly its bits over the interval.
#[derive(Clone, Debug)]
enum Offered {
    /// Bytes since the last earlier instant at which a packet came in; packets of one instant add up.
    Gap { latest: Option<Time>, gap: Option<Span>, bytes: u64 },
    /// Bytes within a window, or since the first packet if that is shorter.
    Window { length: Span, first: Option<Time>, packets: VecDeque<(Time, u32)>, bytes: u64 },
}

impl Offered {
    fn from_window(window: Span) -> Self {
        if window <= Span::ZERO {
            Self::Gap { latest: None, gap: None, bytes: 0 }
        } else {
            Self::Window { length: window, first: None, packets: VecDeque::with_capacity(64), bytes: 0 }
        }
    }

    /// Adds `size` bytes at `now`. Returns the bytes that came in, and the time over which they did; `None` if no
    /// packet came in before this instant.
    fn add(&mut self, now: Time, size: u32) -> (u64, Option<Span>) {
        match self {
            Self::Gap { latest, gap, bytes } => {
                if *latest != Some(now) {
                    *gap = latest.replace(now).map(|before| now - before);
                    *bytes = 0;
                }
                *bytes += u64::from(size);
                (*bytes, *gap)
            }
            Self::Window { length, first, packets, bytes } => {
                let elapsed = (now - *first.get_or_insert(now)).min(*length);
                packets.push_back((now, size));
                *bytes += u64::from(size);
                if elapsed == Span::ZERO {
                    return (*bytes, None);
                }
                while let Some(&(came, size)) = packets.front()
                    && came <= now - elapsed
                {
                    take_away(bytes, u64::from(size), "bytes of a window");
                    packets.pop_front();
                }
                debug_assert_eq!(*bytes, packets.iter().map(|&(_, size)| u64::from(size)).sum::<u64>());
                (*bytes, Some(elapsed))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: i64) -> Span {
        Span::from_millis(millis)
    }

    fn at(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn the_gap_measures_one_packet_every_interval_exactly() {
        let mut offered = Offered::from_window(Span::ZERO);
        assert_eq!(offered.add(at(5), 1000), (1000, None), "the rate is unknown at the first packet");
        assert_eq!(offered.add(at(5), 500), (1500, None), "nor at a second one beside it");
        assert_eq!(offered.add(at(15), 1000), (1000, Some(ms(10))));
        assert_eq!(offered.add(at(15), 200), (1200, Some(ms(10))), "packets that come together add up");
        assert_eq!(offered.add(at(40), 1000), (1000, Some(ms(25))));
    }

    #[test]
    fn a_window_is_as_long_as_it_can_be() {
        let mut offered = Offered::from_window(ms(100));
        assert_eq!(offered.add(at(5), 1000), (1000, None));
        // one packet every 10 ms: exact from the second one on, and once the window is full
        for k in 1..200 {
            let elapsed = (10 * k).min(100);
            assert_eq!(offered.add(at(5 + 10 * k), 1000), (100 * elapsed as u64, Some(ms(elapsed))));
        }
        // after a silence the packet stands alone in its window
        assert_eq!(offered.add(at(5000), 1000), (1000, Some(ms(100))));
        let Offered::Window { packets, .. } = &offered else { panic!("{offered:?}") };
        assert_eq!(packets.len(), 1, "packets outside the window are not kept");
    }

    #[test]
    fn packets_beyond_the_capacity_are_lost() {
        let mbps = Rate::from_mbps;
        // 1000 bytes in 1 ms: 8 Mbit/s
        assert_eq!(probability(mbps(6), 1000, Some(ms(1))), 0.25);
        assert_eq!(probability(mbps(8), 1000, Some(ms(1))), 0.0);
        assert_eq!(probability(mbps(16), 1000, Some(ms(1))), -1.0, "never");
        assert_eq!(probability(mbps(6), 1000, None), 0.0);
        assert_eq!(probability(Rate::ZERO, 1000, None), 1.0);
        assert_eq!(probability(Rate::ZERO, 0, Some(ms(1))), 1.0);
        assert!(probability(mbps(6), 0, Some(ms(1))) < 0.0, "zero bytes are not too much");
    }
}
