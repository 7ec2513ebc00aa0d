//! The end of a call: both sides announce it, and each fetches the other's record.

use super::record::Record;
use super::session::{PROGRESS_INTERVAL, ReceiveMode, Session};
use super::{Phase, Progress, ProgressReply, SILENCE};
use crate::session::control::Control;
use crate::session::transfer::{Fetch, OfferedRecord};
use tidegate_core::Span;

/// Interval at which `End` and `Done` messages are repeated.
const REPEAT_INTERVAL: Span = Span::from_millis(200);

impl Session {
    /// Announces the end of the call until the other side announces it, too; all that it sent before has then arrived.
    /// False if the other side does not announce it.
    pub(super) fn drain(&mut self, progress: &mut Progress<'_>) -> bool {
        let (begin, mut due, mut next_progress) = (self.now(), self.now(), self.now());
        loop {
            self.receive(ReceiveMode::RecordOnly);
            let now = self.now();
            if now >= due {
                due = now + REPEAT_INTERVAL;
                self.driver.send_control(now, &Control::End.encode());
            }
            if self.remote_ended {
                return true;
            }
            if self.driver.failure.is_some() || now - begin.max(self.last_received.unwrap_or(begin)) > SILENCE
            {
                return false;
            }
            if now >= next_progress {
                next_progress = now + PROGRESS_INTERVAL;
                if progress(Phase::Exchange, 0.0) == ProgressReply::Stop && now - begin > SILENCE {
                    self.stopped = true;
                    return false;
                }
            }
            self.wait(due.min(next_progress));
        }
    }

    /// Exchanges records; returns the other side's if all of it has arrived.
    pub(super) fn exchange(&mut self, progress: &mut Progress<'_>) -> Option<Record> {
        let offered = self.driver.record.to_bytes().ok().and_then(|bytes| OfferedRecord::new(bytes).ok())?;
        let begin = self.now();
        self.fetch = Some(Fetch::new(begin));
        let (mut due, mut next_progress) = (begin, begin);
        loop {
            self.receive(ReceiveMode::Discard);
            let now = self.now();
            for (from, count) in std::mem::take(&mut self.requested) {
                for piece in offered.pieces(from, count) {
                    self.driver.send_control(now, &piece);
                }
            }
            let fetch = self.fetch.as_mut()?;
            if let Some(request) = fetch.advance(now) {
                self.driver.send_control(now, &request);
            }
            let (complete, next_request, share) = (fetch.is_complete(), fetch.due(), fetch.share());
            if now >= due {
                due = now + REPEAT_INTERVAL;
                // `End` may have been lost; `Done` says that the whole record has arrived
                self.driver.send_control(now, &if complete { Control::Done } else { Control::End }.encode());
            }
            let silent = now - begin.max(self.last_received.unwrap_or(begin)) > SILENCE;
            if (complete && self.remote_done) || silent || self.driver.failure.is_some() {
                if complete {
                    self.driver.send_control(now, &Control::Done.encode());
                }
                break;
            }
            if now >= next_progress {
                next_progress = now + PROGRESS_INTERVAL;
                if progress(Phase::Exchange, share) == ProgressReply::Stop {
                    self.stopped = true;
                    break;
                }
            }
            self.wait(next_request.min(due).min(next_progress));
        }
        let record = self.fetch.take()?.into_record()?;
        Record::from_bytes(&record).ok()
    }
}
