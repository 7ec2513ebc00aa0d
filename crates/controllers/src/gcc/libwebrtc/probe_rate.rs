//! Result of a probe, from the rates at which its packets left and arrived.
//!
//! `probe_bitrate_estimator.cc`.

use super::rounding::{bytes_in, part, per};
use std::collections::VecDeque;
use tidegate_core::control::Probe;
use tidegate_core::units::{Rate, Size, Span};

/// Part of a probe's packets that has to arrive.
const MIN_RECEIVED_PROBES_RATIO: f64 = 0.8;
/// Part of a probe's bytes that has to arrive.
const MIN_RECEIVED_BYTES_RATIO: f64 = 0.8;
/// Highest ratio of received and sent rate of a valid result.
const MAX_VALID_RATIO: f64 = 2.0;
/// Ratio of received and sent rate below which the link counts as saturated. Single precision in libwebrtc.
const MIN_RATIO_FOR_UNSATURATED_LINK: f32 = 0.9;
/// Part of a saturated link's rate that is the result. Single precision in libwebrtc.
const TARGET_UTILIZATION_FRACTION: f32 = 0.95;
/// Time after which a probe without further packets is forgotten, ns.
const MAX_CLUSTER_HISTORY: i64 = 1_000_000_000;
/// Longest valid duration of a probe, ns.
const MAX_PROBE_INTERVAL: i64 = 1_000_000_000;
/// Number of requested probes whose packets may still be reported; the pacer keeps five.
const MAX_REQUESTED: usize = 32;

/// Received packets of a probe (`AggregatedCluster`).
#[derive(Clone, Copy)]
struct Cluster {
    probe: Probe,
    packets: u64,
    size: u64,
    /// Times of the first and the last packet, ns: departures by our clock, arrivals by the receiver's.
    sent: (i64, i64),
    arrived: (i64, i64),
    /// Size of the last packet sent, which the interval of departures does not cover.
    last_sent: u64,
    /// Size of the first packet received, which the interval of arrivals does not cover.
    first_arrived: u64,
}

/// Estimator of probe results (`ProbeBitrateEstimator`).
#[derive(Clone, Default)]
pub struct ProbeRate {
    requested: VecDeque<Probe>,
    clusters: Vec<Cluster>,
    result: Option<Rate>,
}

impl ProbeRate {
    /// Records a requested probe.
    pub fn request(&mut self, probe: Probe) {
        if self.requested.len() == MAX_REQUESTED {
            self.requested.pop_front();
        }
        self.requested.push_back(probe);
    }

    /// Forgets the received packets, as on a new route.
    pub fn reset(&mut self) {
        self.clusters.clear();
        self.result = None;
    }

    /// Takes a received packet of the probe `id`; times in ns (`HandleProbeAndEstimateBitrate`).
    pub fn packet(&mut self, id: u32, sent: i64, arrived: i64, size: Size) {
        self.clusters.retain(|cluster| cluster.arrived.1.saturating_add(MAX_CLUSTER_HISTORY) >= arrived);
        let size = size.as_bytes();
        let index = match self.clusters.iter().position(|cluster| cluster.probe.id == id) {
            Some(index) => index,
            None => {
                let Some(&probe) = self.requested.iter().find(|probe| probe.id == id) else { return };
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
        let cluster = &mut self.clusters[index];
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

    /// Takes the last result since the previous call (`FetchAndResetLastEstimatedBitrate`).
    pub fn take(&mut self) -> Option<Rate> {
        self.result.take()
    }
}

impl Cluster {
    fn rate(&self) -> Option<Rate> {
        let Probe { rate, length, min_packets, .. } = self.probe;
        let packets = (f64::from(min_packets) * MIN_RECEIVED_PROBES_RATIO) as u64;
        if self.packets < packets
            || self.size < part(bytes_in(rate, length), MIN_RECEIVED_BYTES_RATIO).as_bytes()
        {
            return None;
        }
        let interval = |(first, last): (i64, i64)| {
            Some(last.saturating_sub(first))
                .filter(|span| (1000..=MAX_PROBE_INTERVAL).contains(span))
                .map(Span::from_nanos)
        };
        let sent = per(Size::from_bytes(self.size - self.last_sent), interval(self.sent)?);
        let received = per(Size::from_bytes(self.size - self.first_arrived), interval(self.arrived)?);
        if received.as_bps_f64() > MAX_VALID_RATIO * sent.as_bps_f64() {
            return None;
        }
        let saturated = received < sent.scaled(f64::from(MIN_RATIO_FOR_UNSATURATED_LINK));
        Some(if saturated {
            received.scaled(f64::from(TARGET_UTILIZATION_FRACTION))
        } else {
            sent.min(received)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn estimator() -> ProbeRate {
        let mut estimator = ProbeRate::default();
        estimator.request(Probe {
            id: 3,
            rate: Rate::from_mbps(1),
            length: Span::from_millis(15),
            min_packets: 5,
            spacing: Span::from_millis(2),
        });
        estimator
    }

    /// Result of five packets of 1000 bytes, sent every `sent` ms and received every `arrived` ms.
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
