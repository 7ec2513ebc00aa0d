//! The congestion window: slow start and what follows it (RFC 5681, RFC 9438).

use super::bbr::{Acked, Bbr};
use super::cubic::{self, Cubic};
use super::hystart::HyStart;
use super::scalable::Scalable;
use super::{Increase, TcpSettings, Variant};
use tidegate_core::{Span, Stream, Time};

/// How the window grows in congestion avoidance, and how far it falls.
#[derive(Debug)]
enum Growth {
    Reno {
        increase: Increase,
        acked: f64,
    },
    Cubic {
        cubic: Cubic,
        fast_convergence: bool,
        hystart: Option<HyStart>,
    },
    /// Not by growth: a model of the path sets the window.
    Bbr(Box<Bbr>),
    /// DCTCP and Prague.
    Scalable(Scalable),
}

/// The congestion window and the slow start threshold, in bytes.
#[derive(Debug)]
pub(super) struct Window {
    /// The congestion window.
    pub(super) cwnd: f64,
    /// Slow start below this.
    pub(super) ssthresh: f64,
    segment: f64,
    initial: f64,
    growth: Growth,
}

impl Window {
    /// That of a connection that begins at `now`.
    pub(super) fn new(settings: &TcpSettings, now: Time) -> Self {
        let segment = f64::from(settings.segment);
        let initial = segment * f64::from(settings.initial_window);
        let growth = match settings.variant {
            Variant::Cubic => Growth::Cubic {
                cubic: Cubic::default(),
                fast_convergence: settings.fast_convergence,
                hystart: settings.hystart.then(HyStart::default),
            },
            Variant::Bbr => Growth::Bbr(Box::new(Bbr::new(segment, initial, settings.pacing_margin, now))),
            Variant::Dctcp => Growth::Scalable(Scalable::new(false)),
            Variant::Prague => Growth::Scalable(Scalable::new(true)),
            Variant::Tahoe | Variant::Reno | Variant::NewReno | Variant::Sack => {
                Growth::Reno { increase: settings.increase, acked: 0.0 }
            }
        };
        // RFC 5681 section 3.1: initially arbitrarily high
        Self { cwnd: initial, ssthresh: f64::INFINITY, segment, initial, growth }
    }

    /// `acked` bytes of new data were acknowledged while the window was in use.
    #[inline]
    pub(super) fn grow(&mut self, now: Time, acked: u64, srtt: Option<Span>) {
        let acked = acked as f64;
        if let Growth::Bbr(_) = self.growth {
            return;
        }
        if self.cwnd < self.ssthresh {
            self.cwnd += acked.min(self.segment);
            return;
        }
        match &mut self.growth {
            Growth::Reno { increase: Increase::PerAck, .. } => {
                self.cwnd += self.segment * self.segment / self.cwnd;
            }
            Growth::Reno { increase: Increase::PerByte, acked: sum } => {
                *sum += acked;
                if *sum >= self.cwnd {
                    *sum -= self.cwnd;
                    self.cwnd += self.segment;
                }
            }
            Growth::Cubic { cubic, .. } => {
                let rtt = srtt.map_or(0.0, Span::as_secs_f64);
                let segment = self.segment;
                self.cwnd = segment * cubic.avoid(now, self.cwnd / segment, acked / segment, rtt);
            }
            Growth::Scalable(scalable) => {
                // a segment for each window of bytes, delayed acknowledgements or not
                self.cwnd += scalable.increase(srtt) * self.segment * acked / self.cwnd;
            }
            Growth::Bbr(_) => {}
        }
    }

    /// `bytes` up to `una` were acknowledged, with those up to `max` sent; with a mark or without.
    #[inline]
    pub(super) fn echoed(&mut self, now: Time, bytes: u64, una: u64, max: u64, marked: bool) {
        if let Growth::Scalable(scalable) = &mut self.growth {
            scalable.acked(now, bytes, una, max, marked);
        }
    }

    /// The receiver tells of a mark, with `flight` bytes under way. Says whether the window was reduced: as after a loss
    /// (RFC 3168 section 6.1.2), or by the share of marks (RFC 8257 section 3.3).
    pub(super) fn marked(&mut self, now: Time, flight: u64) -> bool {
        if let Growth::Scalable(scalable) = &mut self.growth {
            let Some(keeps) = scalable.keeps(now) else { return false };
            self.cwnd = (self.cwnd * keeps).max(2.0 * self.segment);
            self.ssthresh = self.cwnd;
        } else {
            self.loss(flight);
            self.fall();
        }
        true
    }

    /// An acknowledgement of the bytes up to `una`, with those up to `max` sent, measured a round trip; to be called
    /// before the window grows by it.
    #[inline]
    pub(super) fn measured(&mut self, now: Time, rtt: Span, una: u64, max: u64) {
        if let Growth::Cubic { hystart: Some(hystart), cubic, .. } = &mut self.growth {
            let (slow_start, segments) = (self.cwnd < self.ssthresh, self.cwnd / self.segment);
            if !cubic.has_just_begun(now) && hystart.measured(now, rtt, segments, una, max, slow_start) {
                self.ssthresh = self.cwnd;
            }
        }
    }

    /// New data was acknowledged, but the window was not in use: it stays.
    pub(super) fn not_in_use(&mut self) {
        if let Growth::Cubic { cubic, .. } = &mut self.growth {
            cubic.not_in_use();
        }
    }

    /// Duplicates said that a segment is lost, or the receiver that one was marked, with `flight` bytes under way: sets
    /// ssthresh (RFC 5681 equation 4; RFC 9438 section 4.6). What becomes of cwnd is up to the recovery.
    pub(super) fn loss(&mut self, flight: u64) {
        self.lower(flight);
        let segments = self.cwnd / self.segment;
        match &mut self.growth {
            Growth::Reno { acked, .. } => *acked = 0.0,
            Growth::Cubic { cubic, fast_convergence, .. } => cubic.reduce(segments, *fast_convergence),
            Growth::Bbr(bbr) => bbr.save_cwnd(self.cwnd),
            Growth::Scalable(_) => {}
        }
    }

    /// The window falls to what a loss or a mark leaves of it; BBR's does not.
    pub(super) fn fall(&mut self) {
        if !matches!(self.growth, Growth::Bbr(_)) {
            self.cwnd = self.ssthresh;
        }
    }

    /// The timer went off with `flight` bytes under way; `None` where it did so before for the same
    /// segment, and ssthresh stays as it is (RFC 5681 section 3.1). Bytes up to `max` had been sent.
    pub(super) fn timeout(&mut self, now: Time, flight: Option<u64>, max: u64) {
        if let Growth::Cubic { hystart: Some(hystart), .. } = &mut self.growth {
            hystart.timeout(now, max);
        }
        if let Some(flight) = flight {
            self.lower(flight);
            let segments = self.cwnd / self.segment;
            match &mut self.growth {
                Growth::Reno { acked, .. } => *acked = 0.0,
                Growth::Cubic { cubic, .. } => cubic.timeout(segments),
                Growth::Bbr(bbr) => bbr.save_cwnd(self.cwnd),
                Growth::Scalable(_) => {}
            }
        }
        self.cwnd = self.segment;
    }

    fn lower(&mut self, flight: u64) {
        let factor = match self.growth {
            Growth::Reno { .. } | Growth::Scalable(_) => 0.5,
            Growth::Cubic { .. } => cubic::BETA,
            Growth::Bbr(_) => return,
        };
        // what limited transmit sent beyond cwnd is not to count (RFC 5681 section 3.2 step 2)
        let flight = (flight as f64).min(self.cwnd);
        self.ssthresh = (flight * factor).max(2.0 * self.segment);
    }

    /// A SYN had to be repeated: start with one segment (RFC 5681 section 3.1).
    pub(super) fn lost_syn(&mut self) {
        self.cwnd = self.segment;
    }

    /// Nothing was sent for longer than a timeout (RFC 5681 section 4.1).
    pub(super) fn restart(&mut self) {
        match &mut self.growth {
            Growth::Bbr(_) => return,
            Growth::Cubic { cubic, .. } => cubic.restart(),
            Growth::Reno { .. } | Growth::Scalable(_) => {}
        }
        self.cwnd = self.cwnd.min(self.initial);
    }

    /// The model that sets the window, where there is one.
    #[inline]
    pub(super) fn model(&mut self) -> Option<Model<'_>> {
        match &mut self.growth {
            Growth::Bbr(bbr) => Some(Model { bbr, cwnd: &mut self.cwnd }),
            Growth::Reno { .. } | Growth::Cubic { .. } | Growth::Scalable(_) => None,
        }
    }

    /// At which rate segments leave, in bytes of data a second; `None` if they are not paced.
    #[inline]
    pub(super) fn pacing_rate(&self, srtt: Option<Span>) -> Option<f64> {
        match &self.growth {
            Growth::Bbr(bbr) => Some(bbr.pacing_rate()),
            Growth::Scalable(scalable) if scalable.is_prague() => {
                // twice as fast while slow start doubles the window (`prague_update_pacing_rate`)
                let doubles = if self.cwnd < self.ssthresh / 2.0 { 2.0 } else { 1.0 };
                srtt.filter(|srtt| *srtt > Span::ZERO).map(|srtt| doubles * self.cwnd / srtt.as_secs_f64())
            }
            Growth::Reno { .. } | Growth::Cubic { .. } | Growth::Scalable(_) => None,
        }
    }
}

/// A window that a model of the path sets.
pub(super) struct Model<'a> {
    bbr: &'a mut Bbr,
    cwnd: &'a mut f64,
}

impl Model<'_> {
    pub(super) fn least(&self) -> Option<Span> {
        self.bbr.least()
    }

    pub(super) fn opened(&mut self, now: Time, rtt: Span) {
        self.bbr.opened(now, rtt, *self.cwnd);
    }

    /// Takes in an acknowledgement; says whether the sender limits itself on purpose.
    pub(super) fn acked(&mut self, told: &Acked, luck: &mut Stream) -> bool {
        self.bbr.acked(told, self.cwnd, luck);
        self.bbr.is_probing_rtt()
    }

    pub(super) fn timeout(&mut self, now: Time, delivered: u64, lost: u64, luck: &mut Stream) {
        self.bbr.timeout(now, delivered, lost, luck);
    }

    pub(super) fn restart(&mut self, now: Time, luck: &mut Stream) {
        self.bbr.restart(now, self.cwnd, luck);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(settings: TcpSettings) -> Window {
        Window::new(&TcpSettings { segment: 1000, ..settings }, Time::ZERO)
    }

    #[test]
    fn slow_start_doubles_and_never_counts_more_than_a_segment() {
        let mut window = window(TcpSettings { initial_window: 2, ..TcpSettings::default() });
        for expected in [4000.0, 8000.0, 16_000.0] {
            for _ in 0..(window.cwnd / 1000.0) as u32 {
                window.grow(Time::ZERO, 1000, None);
            }
            assert_eq!(window.cwnd, expected);
        }
        window.grow(Time::ZERO, 5000, None);
        assert_eq!(window.cwnd, 17_000.0, "L = 1");
        window.grow(Time::ZERO, 10, None);
        assert_eq!(window.cwnd, 17_010.0, "no more than was acknowledged");
    }

    #[test]
    fn congestion_avoidance_adds_a_segment_per_round_trip() {
        for (increase, covers, expected) in
            [(Increase::PerAck, 1, 1.0), (Increase::PerAck, 2, 0.5), (Increase::PerByte, 2, 1.0)]
        {
            let mut window = window(TcpSettings { increase, initial_window: 20, ..TcpSettings::default() });
            window.ssthresh = 1000.0;
            for _ in 0..10 {
                for _ in 0..(window.cwnd / 1000.0) as u64 / covers {
                    window.grow(Time::ZERO, 1000 * covers, None);
                }
            }
            let growth = (window.cwnd / 1000.0 - 20.0) / 10.0;
            assert!((growth / expected - 1.0).abs() < 0.11, "{increase:?} {covers}: {growth}");
        }
    }

    #[test]
    fn a_loss_halves_the_flight_and_a_timeout_starts_over() {
        let mut reno = window(TcpSettings { initial_window: 20, ..TcpSettings::default() });
        reno.loss(22_000);
        assert_eq!(reno.ssthresh, 10_000.0, "limited transmit does not count");
        reno.loss(12_000);
        assert_eq!(reno.ssthresh, 6000.0);
        reno.timeout(Time::ZERO, Some(3000), 0);
        assert_eq!((reno.cwnd, reno.ssthresh), (1000.0, 2000.0), "at least two segments");
        reno.ssthresh = 7000.0;
        reno.timeout(Time::ZERO, None, 0);
        assert_eq!((reno.cwnd, reno.ssthresh), (1000.0, 7000.0));
    }

    #[test]
    fn a_restart_never_raises_the_window() {
        let mut reno = window(TcpSettings { initial_window: 4, ..TcpSettings::default() });
        reno.cwnd = 2000.0;
        reno.restart();
        assert_eq!(reno.cwnd, 2000.0);
        reno.cwnd = 90_000.0;
        reno.restart();
        assert_eq!(reno.cwnd, 4000.0);
    }
}
