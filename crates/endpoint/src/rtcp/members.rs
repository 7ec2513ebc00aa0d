//! Who takes part in a session: RFC 3550 sections 6.2.1 and 6.3.3 to 6.3.5.

use tidegate_core::{Span, Time};

/// One participant as another one knows it.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// When anything was heard of it last.
    heard: Time,
    /// When RTP was heard of it last.
    sent: Option<Time>,
}

/// The other members of a session.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// Their SSRCs in order: apart from the rest, so that a search in a large session stays in few lines of cache.
    ssrcs: Vec<u32>,
    /// In the same order.
    list: Vec<Member>,
    senders: u32,
    /// The place of who sent RTP last: most packets are of the same sender as the one before.
    last: usize,
    /// Who has said goodbye, and when: a straggler of its packets must not bring it back (section 6.3.4).
    gone: Vec<(u32, Time)>,
}

/// So long a goodbye is remembered (RFC 3550 section 6.2.1: time enough for packets that were delayed).
const GOODBYE_KEPT: Span = Span::from_secs(10);

impl Members {
    /// How many there are, this participant among them.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.list.len() as u32 + 1
    }

    /// How many of the others have sent RTP of late.
    #[must_use]
    pub fn senders(&self) -> u32 {
        self.senders
    }

    /// Something was heard of `ssrc`; `rtp`: that makes it a sender. Says whether any count has changed.
    pub fn heard(&mut self, now: Time, ssrc: u32, rtp: bool) -> bool {
        match self.place(ssrc) {
            Ok(place) => {
                let member = &mut self.list[place];
                member.heard = now;
                if rtp {
                    self.last = place;
                    let fresh = member.sent.replace(now).is_none();
                    self.senders += u32::from(fresh);
                    return fresh;
                }
                false
            }
            Err(place) => {
                if self.gone.iter().any(|&(other, at)| other == ssrc && now - at < GOODBYE_KEPT) {
                    return false;
                }
                self.ssrcs.insert(place, ssrc);
                self.list.insert(place, Member { heard: now, sent: rtp.then_some(now) });
                self.senders += u32::from(rtp);
                self.check();
                true
            }
        }
    }

    /// Holds that each SSRC has its member, once, and that no more are senders than are members.
    fn check(&self) {
        debug_assert_eq!(self.ssrcs.len(), self.list.len(), "as many SSRCs as members");
        debug_assert!(self.ssrcs.is_sorted_by(|a, b| a < b), "SSRCs in order, each once: {:?}", self.ssrcs);
        debug_assert!(
            self.senders as usize <= self.list.len(),
            "{} senders among {}",
            self.senders,
            self.list.len()
        );
    }

    fn place(&self, ssrc: u32) -> Result<usize, usize> {
        if self.ssrcs.get(self.last) == Some(&ssrc) {
            return Ok(self.last);
        }
        self.ssrcs.binary_search(&ssrc)
    }

    /// `ssrc` has said goodbye. Says whether it was a member.
    pub fn bye(&mut self, now: Time, ssrc: u32) -> bool {
        self.gone.retain(|&(other, at)| other != ssrc && now - at < GOODBYE_KEPT);
        self.gone.push((ssrc, now));
        let Ok(place) = self.place(ssrc) else { return false };
        self.ssrcs.remove(place);
        let member = self.list.remove(place);
        self.senders -= u32::from(member.sent.is_some());
        self.check();
        true
    }

    /// Forgets who was silent for longer than `member`, and who sent no RTP for longer than `sender`.
    pub fn time_out(&mut self, now: Time, member: Span, sender: Span) {
        for known in &mut self.list {
            if known.sent.is_some_and(|at| now - at > sender) {
                known.sent = None;
            }
        }
        let stays = |known: &Member| now - known.heard <= member;
        if !self.list.iter().all(stays) {
            let mut list = self.list.iter();
            self.ssrcs.retain(|_| list.next().is_some_and(stays));
            self.list.retain(stays);
        }
        self.senders = self.list.iter().filter(|known| known.sent.is_some()).count() as u32;
        self.check();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Time {
        Time::from_secs(secs)
    }

    #[test]
    fn members_and_senders_are_counted() {
        let mut members = Members::default();
        assert_eq!((members.count(), members.senders()), (1, 0));
        assert!(members.heard(at(0), 7, false));
        assert!(!members.heard(at(1), 7, false));
        assert!(members.heard(at(1), 7, true), "a sender now");
        assert!(!members.heard(at(2), 7, true));
        assert!(members.heard(at(2), 3, true));
        assert_eq!((members.count(), members.senders()), (3, 2));
        assert!(members.bye(at(3), 7));
        assert!(!members.bye(at(3), 7));
        assert_eq!((members.count(), members.senders()), (2, 1));
        assert!(!members.heard(at(4), 7, true), "a straggler");
        assert!(members.heard(at(13), 7, true), "it has come again");
    }

    #[test]
    fn silence_ends_membership() {
        let mut members = Members::default();
        members.heard(at(0), 1, true);
        members.heard(at(20), 1, false);
        members.heard(at(0), 2, false);
        members.time_out(at(25), Span::from_secs(25), Span::from_secs(10));
        assert_eq!((members.count(), members.senders()), (3, 0), "25 s are not more than 25 s");
        members.time_out(at(26), Span::from_secs(25), Span::from_secs(10));
        assert_eq!((members.count(), members.senders()), (2, 0));
        members.heard(at(27), 1, true);
        assert_eq!(members.senders(), 1);
    }

    #[test]
    fn the_others_keep_their_places_when_some_go() {
        let mut members = Members::default();
        for ssrc in 0..100 {
            members.heard(at(i64::from(ssrc % 10)), ssrc, ssrc % 7 == 0);
        }
        // those of seconds 0 to 4 go
        members.time_out(at(10), Span::from_secs(5), Span::from_secs(100));
        assert_eq!(members.count(), 51);
        for ssrc in 0..100 {
            assert_eq!(members.heard(at(10), ssrc, false), ssrc % 10 < 5, "{ssrc}");
        }
        assert_eq!(members.count(), 101);
        let senders = (0..100).filter(|ssrc| ssrc % 7 == 0 && ssrc % 10 >= 5).count();
        assert_eq!(members.senders() as usize, senders);
        members.heard(at(11), 50, true);
        assert!(members.bye(at(11), 50) && !members.bye(at(11), 50));
        assert!(members.heard(at(30), 50, true), "the place of the last sender is another's");
    }
}
