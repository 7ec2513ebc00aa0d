//! ProbeRTT and the smallest round trip (draft section 5.3.4).

use super::{AckPhase, Bbr3, State};
use tidegate_core::{Span, Stream};

/// BBR.MinRTTFilterLen (section 2.16.1).
const MIN_RTT_FILTER_LEN: Span = Span::from_secs(10);
/// BBR.ProbeRTTInterval, BBR.ProbeRTTDuration and BBR.ProbeRTTCwndGain (section 2.16.2).
const PROBE_RTT_INTERVAL: Span = Span::from_secs(5);
const PROBE_RTT_DURATION: Span = Span::from_millis(200);
pub(super) const PROBE_RTT_CWND_GAIN: f64 = 0.5;

impl Bbr3 {
    pub(super) fn update_min_rtt(&mut self) {
        let now = self.c.now;
        self.probe_rtt_expired = now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = self.rs.rtt {
            self.connection_min_rtt = Some(self.connection_min_rtt.map_or(rtt, |least| least.min(rtt)));
            if self.probe_rtt_expired || self.probe_rtt_min_delay.is_none_or(|least| rtt < least) {
                (self.probe_rtt_min_delay, self.probe_rtt_min_stamp) = (Some(rtt), now);
            }
        }
        let has_expired = now > self.min_rtt_stamp + MIN_RTT_FILTER_LEN;
        if let Some(delay) = self.probe_rtt_min_delay
            && (has_expired || self.min_rtt.is_none_or(|least| delay < least))
        {
            (self.min_rtt, self.min_rtt_stamp) = (Some(delay), self.probe_rtt_min_stamp);
        }
    }

    pub(super) fn check_probe_rtt(&mut self, luck: &mut Stream) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt_done_stamp = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(luck);
        }
        if self.rs.delivered > 0.0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT; the sender marks samples as limited while [`super::Model::is_probing_rtt`].
    fn handle_probe_rtt(&mut self, luck: &mut Stream) {
        if self.probe_rtt_done_stamp.is_none() {
            if self.c.inflight <= self.probe_rtt_cwnd() {
                self.probe_rtt_done_stamp = Some(self.c.now + PROBE_RTT_DURATION);
                self.probe_rtt_round_done = false;
                self.start_round();
            }
            return;
        }
        self.probe_rtt_round_done |= self.round_start;
        if self.probe_rtt_round_done {
            self.check_probe_rtt_done(luck);
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, luck: &mut Stream) {
        if self.probe_rtt_done_stamp.is_none_or(|done| self.c.now <= done) {
            return;
        }
        self.probe_rtt_min_stamp = self.c.now;
        self.restore_cwnd();
        // ExitProbeRTT (section 5.3.4.4)
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_probe_bw_down(luck);
            self.start_probe_bw_cruise();
        } else {
            self.state = State::Startup;
        }
    }
}
