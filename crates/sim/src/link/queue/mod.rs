//! Queues of links and their disciplines.

mod bucket;
mod codel;
#[cfg(test)]
mod desk;
mod discipline;
mod drop_tail;
mod dualpi2;
mod fifo;
mod fq_codel;
mod pie;
mod policer;
mod shaper;
mod ticks;

pub use bucket::BucketSettings;
pub use codel::CodelSettings;
pub use discipline::{Moment, QueueDiscipline, Waiting};
pub use drop_tail::DropTail;
pub(crate) use drop_tail::Room;
pub use dualpi2::DualPi2Settings;
pub use fq_codel::FqCodelSettings;
pub use pie::PieSettings;

use crate::refusal::Refusal;
use bucket::Tokens;
use codel::Codel;
use drop_tail::Tail;
use dualpi2::DualPi2;
use fq_codel::FqCodel;
use pie::Pie;
use policer::Policer;
use serde::Deserialize;
use shaper::Shaper;
use tidegate_core::Rate;

/// A queue discipline, with its parameters.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// First in, first out; packets that do not fit are dropped.
    #[default]
    DropTail,
    /// CoDel (RFC 8289).
    Codel(CodelSettings),
    /// FQ-CoDel (RFC 8290).
    FqCodel(FqCodelSettings),
    /// PIE (RFC 8033).
    Pie(PieSettings),
    /// DualPI2 (RFC 9332).
    Dualpi2(DualPi2Settings),
    /// A token bucket that drops packets without tokens.
    Policer(BucketSettings),
    /// A token bucket that delays packets without tokens.
    Shaper(BucketSettings),
}

impl Discipline {
    /// Its name for people.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq-codel",
            Self::Pie(_) => "pie",
            Self::Dualpi2(_) => "dualpi2",
            Self::Policer(_) => "policer",
            Self::Shaper(_) => "shaper",
        }
    }

    /// Largest rate that it lets pass in the long run.
    pub(crate) const fn max_rate(&self) -> Rate {
        match self {
            Self::Policer(bucket) | Self::Shaper(bucket) => bucket.rate,
            _ => Rate::MAX,
        }
    }

    /// The rate at which a queue on a link of `nominal` rate is emptied, from which limits in time are computed.
    pub(crate) fn drain_rate(&self, nominal: Rate) -> Rate {
        match self {
            Self::Shaper(bucket) => nominal.min(bucket.rate),
            _ => nominal,
        }
    }

    /// An empty queue with `room` for the link called `name` in the run with `seed`.
    pub(crate) fn start(
        self,
        room: Room,
        seed: u64,
        name: &str,
    ) -> Result<Box<dyn QueueDiscipline>, Refusal> {
        Ok(match self {
            Self::DropTail => Box::new(Tail::new(room)),
            Self::Codel(settings) => Box::new(Codel::new(settings, room)?),
            Self::FqCodel(settings) => Box::new(FqCodel::new(settings, room, seed, name)?),
            Self::Pie(settings) => Box::new(Pie::new(settings, room, seed, name)?),
            Self::Dualpi2(settings) => Box::new(DualPi2::new(settings, room)?),
            Self::Policer(settings) => {
                let tokens = Tokens::new(&settings)?;
                Box::new(Policer::new(tokens, settings.queue(room, seed, name)?))
            }
            Self::Shaper(settings) => {
                let tokens = Tokens::new(&settings)?;
                Box::new(Shaper::new(tokens, settings.queue(room, seed, name)?))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::desk::Desk;
    use super::*;
    use serde_json::{Value, json};
    use tidegate_core::{Ecn, Size, Span, Time};

    struct Any(Box<dyn QueueDiscipline>);

    impl QueueDiscipline for Any {
        fn enqueue(&mut self, moment: &mut Moment<'_>, waiting: Waiting) {
            self.0.enqueue(moment, waiting);
        }

        fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Waiting> {
            self.0.dequeue(moment)
        }

        fn limit(&mut self, moment: &mut Moment<'_>, limits: &DropTail) {
            self.0.limit(moment, limits);
        }

        fn into_waiting(self: Box<Self>) -> Vec<Waiting> {
            self.0.into_waiting()
        }

        fn backlog(&self) -> tidegate_core::record::Backlog {
            self.0.backlog()
        }

        fn for_each(&self, visit: &mut dyn FnMut(&Waiting)) {
            self.0.for_each(visit);
        }
    }

    #[test]
    fn limits_hold_at_once_and_every_packet_is_dropped_or_kept() {
        let codel = json!({"target": 5_000_000, "interval": 100_000_000, "maxpacket": 1500, "ecn": true});
        let mut fair = codel.clone();
        (fair["quantum"], fair["flows"]) = (json!(1514), json!(16));
        let pie = json!({
            "qdelay_ref": 15_000_000, "t_update": 15_000_000, "max_burst": 150_000_000, "alpha": 0.125,
            "beta": 1.25, "mean_pktsize": 1000, "ecn": true, "mark_ecnth": 0.1, "derandomize": true, "cap_drop": true,
        });
        let dual = json!({
            "k": 2.0, "target": 15_000_000, "rtt_max": 100_000_000, "min_th": 800_000, "range": 400_000, "th_len": 1,
            "classic_weight": 0.0625,
        });
        let bucket =
            |inner: Value| json!({"rate": 2_000_000, "burst": 300_000, "mtu": 1500, "discipline": inner});
        for (discipline, batch) in [
            (json!("drop_tail"), 1),
            (json!({"codel": codel}), 1),
            // half of its longest queue at once
            (json!({"fq_codel": fair}), 5),
            (json!({"pie": pie}), 1),
            (json!({"dualpi2": dual}), 1),
            (json!({"policer": bucket(json!({"codel": codel}))}), 1),
            (json!({"shaper": bucket(json!("drop_tail"))}), 1),
        ] {
            let kind: Discipline = serde_json::from_value(discipline.clone()).unwrap();
            let room = DropTail::UNLIMITED.resolve(Rate::from_mbps(10));
            let mut desk = Desk::new(Any(kind.start(room, 1, "link").unwrap()));
            for number in 0..40 {
                let ecn = if number % 3 == 0 { Ecn::Ect1 } else { Ecn::NotEct };
                desk.put(Time::from_millis(number), Span::ZERO, number as u32 % 5, 1000, ecn);
            }
            assert_eq!(desk.take_events(), []);
            let now = Time::from_millis(41);
            // the packet in service, of 1000 bytes, counts
            for (limits, most) in [(DropTail::packets(31), 30), (DropTail::bytes(Size::from_bytes(8500)), 7)]
            {
                let before = desk.queue.backlog().packets;
                desk.with(now, |queue, moment| queue.limit(moment, &limits));
                let (left, dropped) = (desk.queue.backlog().packets, desk.take_events().len() as u32);
                assert_eq!(left + dropped, before, "{discipline}");
                assert!((most + 1 - batch..=most).contains(&left), "{discipline}: {left} of {most}");
            }
            let left = desk.queue.backlog().packets;
            assert_eq!(Box::new(desk.queue).into_waiting().len() as u32, left, "{discipline}");
        }
    }
}
