//! The times in which a flow's target is below the least rate of its sources, and how long media wait then.

use super::summary::Warning;
use tidegate_core::record::LeastRate;
use tidegate_core::{Rate, Span, Time};

/// Wait at the sender above which frames that stand there are worth a warning. Ours: at any rate, the burst of RFC 8593's
/// encoder takes as long as 8 frames to leave, 267 ms at 30 frames a second, and no floor is the reason for that.
const WAIT_MAX: Span = Span::from_millis(500);

/// Time that an encoder takes to follow a target that falls: RFC 8593's tau_v, 200 ms, and a frame or two.
const ENCODER_DELAY: Span = Span::from_millis(300);

/// The times below the least rate after the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct BelowLeast {
    /// The begin of the present time below it.
    since: Option<Time>,
    /// Whether media have to wait for it now.
    held: bool,
    /// The largest of the least rates.
    least: Rate,
    /// Earlier times below it.
    time: Span,
    /// When the last packet left that was captured at an earlier rate, before the target fell or the encoder followed.
    earlier_until: Time,
    /// Longest wait of a packet that was captured and left in one of these times, behind none of an earlier rate.
    waited: Option<Span>,
    /// Frames that were not sent in these times, because too much waited.
    skipped: u64,
}

impl BelowLeast {
    /// Notes that the target falls below this rate, or no longer is below one.
    pub fn change(&mut self, now: Time, least: Option<LeastRate>, warmup: Time) {
        if let Some(since) = self.since.take() {
            self.time += now.max(warmup) - since.max(warmup);
        }
        if let Some(LeastRate { rate, held }) = least {
            (self.since, self.held, self.least) = (Some(now), held, self.least.max(rate));
        }
    }

    /// Takes the wait of a packet that leaves, where it has to wait for the least rate. What was encoded at an earlier rate,
    /// and what stood behind it, waited for another reason and does not count.
    #[inline]
    pub fn waited(&mut self, now: Time, waited: Span) {
        let Some(since) = self.since.filter(|_| self.held) else { return };
        let captured = now - waited;
        if captured < since + ENCODER_DELAY {
            self.earlier_until = now;
        } else if captured >= self.earlier_until {
            self.waited = self.waited.max(Some(waited));
        }
    }

    /// Takes a frame that is not sent.
    pub fn skipped(&mut self) {
        self.skipped += u64::from(self.held && self.since.is_some());
    }

    /// All times below the least rate between `begin` and `end`.
    #[must_use]
    pub fn time(&self, begin: Time, end: Time) -> Span {
        self.time + self.since.map_or(Span::ZERO, |since| end.saturating_since(since.max(begin)))
    }

    /// Longest wait of a packet that was captured and left in one of these times in milliseconds.
    #[must_use]
    pub fn waited_ms_max(&self) -> Option<f64> {
        self.waited.map(|waited| waited.as_secs_f64() * 1e3)
    }

    /// A reason to doubt the numbers of the flow of this name, if frames have stood at the sender.
    #[must_use]
    pub fn warning(&self, flow: &str, begin: Time, end: Time) -> Option<Warning> {
        let waited = self.waited.filter(|&waited| waited > WAIT_MAX)?;
        let (below, of) = (self.time(begin, end).as_secs_f64(), (end - begin).as_secs_f64());
        let (least, waited) = (self.least.as_bps_f64() / 1e3, waited.as_secs_f64() * 1e3);
        let skipped = match self.skipped {
            0 => String::new(),
            count => format!(", and {count} frames were not sent"),
        };
        Some(Warning {
            key: format!("flows.{flow}.media.video.min"),
            says: format!(
                "for {below:.1} of {of:.1} s the target was below what audio and the encoder's lowest rate need with \
                 their headers, {least:.0} kbit/s, and media waited up to {waited:.0} ms at the sender{skipped}; delays \
                 and freezes then show the sender's queue: lower min, or choose another below_min"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_after_the_warm_up_and_until_the_end() {
        let [warmup, end] = [10, 60].map(Time::from_secs);
        let mut below = BelowLeast::default();
        let least = Some(LeastRate { rate: Rate::from_kbps(180), held: true });
        below.waited(Time::from_secs(2), Span::from_secs(1));
        below.skipped();
        assert_eq!((below.time(warmup, end), below.waited_ms_max()), (Span::ZERO, None));
        below.change(Time::from_secs(3), least, warmup);
        below.change(Time::from_secs(5), None, warmup);
        assert_eq!(below.time(warmup, end), Span::ZERO, "it was over before");
        below.change(Time::from_secs(7), least, warmup);
        let mut waited = |millis| below.waited(Time::from_secs(9), Span::from_millis(millis));
        waited(500);
        waited(2001);
        assert_eq!(below.warning("call", warmup, end), None, "bursts, and a frame from before");
        below.waited(Time::from_secs(9), Span::from_millis(1234));
        assert_eq!(below.warning("call", warmup, end), None, "behind that frame");
        below.waited(Time::from_secs(11), Span::from_millis(1234));
        below.waited(Time::from_secs(11), Span::from_millis(5));
        // another least rate, as when a pause ends
        below.change(Time::from_secs(20), Some(LeastRate { rate: Rate::from_kbps(30), held: false }), warmup);
        below.change(Time::from_secs(25), None, warmup);
        assert_eq!(below.time(warmup, end), Span::from_secs(15));
        below.change(Time::from_secs(50), least, warmup);
        below.skipped();
        assert_eq!((below.time(warmup, end), below.waited_ms_max()), (Span::from_secs(25), Some(1234.0)));
        let warning = below.warning("call", warmup, end).expect("1.2 s");
        assert_eq!(warning.key, "flows.call.media.video.min");
        let begin = "for 25.0 of 50.0 s the target was below what audio and the encoder's lowest rate need with their \
                     headers, 180 kbit/s, and media waited up to 1234 ms at the sender, and 1 frames were not sent; ";
        assert!(warning.says.starts_with(begin), "{}", warning.says);
    }
}
