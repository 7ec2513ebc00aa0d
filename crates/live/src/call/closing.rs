//! How a call ends: both sides say so, and each fetches what the other has recorded.

use super::record::Record;
use super::session::{PULSE, Session, Take};
use super::{Phase, Pulse, SILENCE, Wish};
use crate::session::control::Control;
use crate::session::transfer::{Fetch, Offered};
use tidegate_core::Span;

/// What ends a call is said again after this long.
const AGAIN: Span = Span::from_millis(200);

impl Session {
    /// Says that the call is over, until the other side has said so, too: what it sent before has then come. False if it
    /// does not.
    pub(super) fn drain(&mut self, pulse: &mut Pulse<'_>) -> bool {
        let (begin, mut due, mut beat) = (self.now(), self.now(), self.now());
        loop {
            self.receive(Take::Record);
            let now = self.now();
            if now >= due {
                due = now + AGAIN;
                self.line.say(now, &Control::End.encode());
            }
            if self.end {
                return true;
            }
            if self.line.failure.is_some() || now - begin.max(self.heard.unwrap_or(begin)) > SILENCE {
                return false;
            }
            if now >= beat {
                beat = now + PULSE;
                if pulse(Phase::Exchange, 0.0) == Wish::Stop && now - begin > SILENCE {
                    return false;
                }
            }
            self.wait(due.min(beat));
        }
    }

    /// Exchanges records; gives the other side's if it has come whole.
    pub(super) fn exchange(&mut self, pulse: &mut Pulse<'_>) -> Option<Record> {
        let offered = self.line.record.to_bytes().ok().and_then(|bytes| Offered::new(bytes).ok())?;
        let begin = self.now();
        self.fetch = Some(Fetch::new(begin));
        let (mut due, mut beat) = (begin, begin);
        loop {
            self.receive(Take::Nothing);
            let now = self.now();
            for (from, count) in std::mem::take(&mut self.asked) {
                for piece in offered.pieces(from, count) {
                    self.line.say(now, &piece);
                }
            }
            let fetch = self.fetch.as_mut()?;
            if let Some(ask) = fetch.advance(now) {
                self.line.say(now, &ask);
            }
            let (complete, asks, share) = (fetch.is_complete(), fetch.due(), fetch.share());
            if now >= due {
                due = now + AGAIN;
                // an end that was lost, or that all has come
                self.line.say(now, &if complete { Control::Done } else { Control::End }.encode());
            }
            let silent = now - begin.max(self.heard.unwrap_or(begin)) > SILENCE;
            if (complete && self.done) || silent || self.line.failure.is_some() {
                if complete {
                    self.line.say(now, &Control::Done.encode());
                }
                break;
            }
            if now >= beat {
                beat = now + PULSE;
                if pulse(Phase::Exchange, share) == Wish::Stop {
                    break;
                }
            }
            self.wait(asks.min(due).min(beat));
        }
        let record = self.fetch.take()?.into_record()?;
        Record::from_bytes(&record).ok()
    }
}
