//! What a probe says: the rate at which its packets left, and that at which they arrived.
//!
//! `probe_bitrate_estimator.cc`.

use super::rounding::{bytes_in, part, per};
use std::collections::VecDeque;
use tidegate_core::control::Probe;
use tidegate_core::units::{Rate, Size, Span};

/// So much of the packets and of the bytes has to have arrived (`kMinReceivedProbesRatio`, `kMinReceivedBytesRatio`).
const ENOUGH: f64 = 0.8;
/// Faster on arrival by more than this is not believed (`kMaxValidRatio`).
const MOST_RATIO: f64 = 2.0;
/// Slower than this, and the link is full (`kMinRatioForUnsaturatedLink`): then a little less is used of it
/// (`kTargetUtilizationFraction`). Both are single precision there.
const UNSATURATED: f32 = 0.9;
const UTILIZATION: f32 = 0.95;
/// How long a probe is remembered, and may last (`kMaxClusterHistory`, `kMaxProbeInterval`).
const HISTORY: i64 = 1_000_000_000;
/// Probes asked for whose packets may still come back; the pacer keeps five.
const REMEMBERED: usize = 32;

/// What has arrived of a probe.
#[derive(Clone, Copy)]
struct Cluster {
    probe: Probe,
    packets: u64,
    size: u64,
    /// When the first and the last one were sent and have arrived, ns; each by its own clock.
    sent: (i64, i64),
    arrived: (i64, i64),
    /// Sizes that no interval covers: of the last one sent, and of the first one that arrived.
    last_sent: u64,
    first_arrived: u64,
}

/// The estimator's state.
#[derive(Clone, Default)]
pub struct ProbeRate {
    asked: VecDeque<Probe>,
    clusters: Vec<Cluster>,
    result: Option<Rate>,
}

impl ProbeRate {
    /// A probe is asked for.
    pub fn ask(&mut self, probe: Probe) {
        if self.asked.len() == REMEMBERED {
            self.asked.pop_front();
        }
        self.asked.push_back(probe);
    }

    /// Forgets what has arrived, as on a new route.
    pub fn reset(&mut self) {
        self.clusters.clear();
        self.result = None;
    }

    /// A packet of probe `id` has arrived.
    pub fn packet(&mut self, id: u32, sent: i64, arrived: i64, size: Size) {
        self.clusters.retain(|cluster| cluster.arrived.1.saturating_add(HISTORY) >= arrived);
        let size = size.as_bytes();
        let at = match self.clusters.iter().position(|cluster| cluster.probe.id == id) {
            Some(at) => at,
            None => {
                let Some(&probe) = self.asked.iter().find(|probe| probe.id == id) else { return };
                self.clusters.push(Cluster {
                    probe,
                    packets: 0,
                    size: 0,
                    sent: (i64::MAX, i64::MIN),
                    arrived: (i64::MAX, i64::MIN),
                    last_sent: 0,
                    first_arrived: 0,
                });
                self.clusters.len() - 1
            }
        };
        let cluster = &mut self.clusters[at];
        if sent > cluster.sent.1 {
            cluster.last_sent = size;
        }
        if arrived < cluster.arrived.0 {
            cluster.first_arrived = size;
        }
        cluster.sent = (cluster.sent.0.min(sent), cluster.sent.1.max(sent));
        cluster.arrived = (cluster.arrived.0.min(arrived), cluster.arrived.1.max(arrived));
        cluster.size = cluster.size.saturating_add(size);
        cluster.packets += 1;
        if let Some(rate) = cluster.rate() {
            self.result = Some(rate);
        }
    }

    /// The last result since it was last asked for.
    pub fn take(&mut self) -> Option<Rate> {
        self.result.take()
    }
}

impl Cluster {
    fn rate(&self) -> Option<Rate> {
        let Probe { rate, length, min_packets, .. } = self.probe;
        let packets = (f64::from(min_packets) * ENOUGH) as u64;
        if self.packets < packets || self.size < part(bytes_in(rate, length), ENOUGH).as_bytes() {
            return None;
        }
        let interval = |(first, last): (i64, i64)| {
            Some(last.saturating_sub(first))
                .filter(|span| (1000..=HISTORY).contains(span))
                .map(Span::from_nanos)
        };
        let sent = per(Size::from_bytes(self.size - self.last_sent), interval(self.sent)?);
        let received = per(Size::from_bytes(self.size - self.first_arrived), interval(self.arrived)?);
        if received.as_bps_f64() > MOST_RATIO * sent.as_bps_f64() {
            return None;
        }
        let full = received < sent.scaled(f64::from(UNSATURATED));
        Some(if full { received.scaled(f64::from(UTILIZATION)) } else { sent.min(received) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn estimator() -> ProbeRate {
        let mut estimator = ProbeRate::default();
        estimator.ask(Probe {
            id: 3,
            rate: Rate::from_mbps(1),
            length: Span::from_millis(15),
            min_packets: 5,
            spacing: Span::from_millis(2),
        });
        estimator
    }

    /// Five packets of 1000 bytes, sent every `sent` and arrived every `arrived` ms.
    fn result(sent: i64, arrived: i64) -> Option<Rate> {
        let mut estimator = estimator();
        (0..5).for_each(|i| estimator.packet(3, i * sent * MS, i * arrived * MS, Size::from_bytes(1000)));
        estimator.take()
    }

    #[test]
    fn it_is_the_lower_rate_or_a_little_less_than_what_a_full_link_has_let_through() {
        assert_eq!(result(10, 10), Some(Rate::from_kbps(800)));
        assert_eq!(result(11, 10), Some(Rate::from_bps(727_272)));
        assert_eq!(result(10, 11), Some(Rate::from_bps(727_272)), "0.909 of it: not full");
        assert_eq!(
            result(10, 12),
            Some(Rate::from_bps(633_333)),
            "0.833 of it: full, and 0.95 of 666 666 bit/s"
        );
        assert_eq!(result(10, 20), Some(Rate::from_kbps(380)), "0.95 of 400 kbit/s");
        // twice as fast on arrival is believed, more is not
        assert_eq!(result(20, 10), Some(Rate::from_kbps(400)));
        assert_eq!(result(21, 10), None);
        assert_eq!((result(0, 10), result(10, 0), result(400, 400)), (None, None, None));
    }

    #[test]
    fn four_fifths_have_to_arrive_and_strangers_are_left_out() {
        let mut estimator = estimator();
        estimator.packet(9, 0, 0, Size::from_bytes(1000));
        (0..3).for_each(|i| estimator.packet(3, i * 10 * MS, i * 10 * MS, Size::from_bytes(1000)));
        assert_eq!(estimator.take(), None, "three packets");
        estimator.packet(3, 30 * MS, 30 * MS, Size::from_bytes(1000));
        assert_eq!(estimator.take(), Some(Rate::from_kbps(800)));
        assert_eq!(estimator.take(), None, "once");
        // 1875 bytes in all: 1500 are enough, 1499 are not
        for (first, enough) in [(1200, true), (1199, false)] {
            let mut estimator = self::estimator();
            for i in 0..4 {
                let size = if i == 0 { first } else { 100 };
                estimator.packet(3, i * MS, i * MS, Size::from_bytes(size));
            }
            assert_eq!(estimator.take().is_some(), enough);
        }
    }

    #[test]
    fn a_second_after_its_last_packet_a_probe_is_forgotten() {
        let mut estimator = estimator();
        for i in 0..3 {
            estimator.packet(3, i * 10 * MS, i * 10 * MS, Size::from_bytes(1000));
        }
        for i in 3..6 {
            estimator.packet(3, i * 10 * MS, i * 10 * MS + 1001 * MS, Size::from_bytes(1000));
        }
        assert_eq!(estimator.take(), None);
    }
}
