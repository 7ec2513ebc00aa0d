//! Members of a session: RFC 3550 sections 6.2.1 and 6.3.3 to 6.3.5.

use tidegate_core::{Span, Time};

/// State of one other participant.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// When a packet of it arrived last.
    heard: Time,
    /// When RTP of it arrived last.
    sent: Option<Time>,
}

/// The other members of a session.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// Their SSRCs in ascending order; apart from the rest, so that a search in a large session stays in few lines of
    /// cache.
    ssrcs: Vec<u32>,
    /// Their states, in the same order.
    list: Vec<Member>,
    senders: u32,
    /// Index of the member that sent RTP last: most packets are of the same sender as the one before.
    last: usize,
    /// SSRCs that have said goodbye, and when: a straggler of their packets must not bring them back (section 6.3.4).
    departed: Vec<(u32, Time)>,
}

/// Time for which a goodbye is remembered (RFC 3550 section 6.2.1: time enough for packets that were delayed).
const GOODBYE_MEMORY: Span = Span::from_secs(10);

impl Members {
    /// Number of members, this participant among them.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.list.len() as u32 + 1
    }

    /// Number of other members that have sent RTP of late.
    #[must_use]
    pub fn senders(&self) -> u32 {
        self.senders
    }

    /// Notes a packet of `ssrc`; returns whether a count has changed. `rtp`: the packet makes it a sender.
    pub fn heard(&mut self, now: Time, ssrc: u32, rtp: bool) -> bool {
        match self.find(ssrc) {
            Ok(index) => {
                let member = &mut self.list[index];
                member.heard = now;
                if rtp {
                    self.last = index;
                    let fresh = member.sent.replace(now).is_none();
                    self.senders += u32::from(fresh);
                    return fresh;
                }
                false
            }
            Err(index) => {
                if self.departed.iter().any(|&(gone, time)| gone == ssrc && now - time < GOODBYE_MEMORY) {
                    return false;
                }
                self.ssrcs.insert(index, ssrc);
                self.list.insert(index, Member { heard: now, sent: rtp.then_some(now) });
                self.senders += u32::from(rtp);
                self.check();
                true
            }
        }
    }

    /// Asserts that each SSRC has its member, once, and that senders are no more than members.
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

    /// Index of `ssrc`; as an error, the index where it belongs.
    fn find(&self, ssrc: u32) -> Result<usize, usize> {
        if self.ssrcs.get(self.last) == Some(&ssrc) {
            return Ok(self.last);
        }
        self.ssrcs.binary_search(&ssrc)
    }

    /// Notes that `ssrc` has said goodbye; returns whether it was a member.
    pub fn bye(&mut self, now: Time, ssrc: u32) -> bool {
        self.departed.retain(|&(gone, time)| gone != ssrc && now - time < GOODBYE_MEMORY);
        self.departed.push((ssrc, now));
        let Ok(index) = self.find(ssrc) else { return false };
        self.ssrcs.remove(index);
        let member = self.list.remove(index);
        self.senders -= u32::from(member.sent.is_some());
        self.check();
        true
    }

    /// Removes members that were silent for longer than `member_timeout`, and senders that sent no RTP for longer than
    /// `sender_timeout`.
    pub fn time_out(&mut self, now: Time, member_timeout: Span, sender_timeout: Span) {
        for member in &mut self.list {
            if member.sent.is_some_and(|sent| now - sent > sender_timeout) {
                member.sent = None;
            }
        }
        let stays = |member: &Member| now - member.heard <= member_timeout;
        if !self.list.iter().all(stays) {
            let mut list = self.list.iter();
            self.ssrcs.retain(|_| list.next().is_some_and(stays));
            self.list.retain(stays);
        }
        self.senders = self.list.iter().filter(|member| member.sent.is_some()).count() as u32;
        self.check();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: i64) -> Time {
        Time::from_secs(secs)
    }

    #[test]
    fn members_and_senders_are_counted() {
        let mut members = Members::default();
        assert_eq!((members.count(), members.senders()), (1, 0));
        assert!(members.heard(secs(0), 7, false));
        assert!(!members.heard(secs(1), 7, false));
        assert!(members.heard(secs(1), 7, true), "a sender now");
        assert!(!members.heard(secs(2), 7, true));
        assert!(members.heard(secs(2), 3, true));
        assert_eq!((members.count(), members.senders()), (3, 2));
        assert!(members.bye(secs(3), 7));
        assert!(!members.bye(secs(3), 7));
        assert_eq!((members.count(), members.senders()), (2, 1));
        assert!(!members.heard(secs(4), 7, true), "a straggler");
        assert!(members.heard(secs(13), 7, true), "it has come again");
    }

    #[test]
    fn silence_ends_membership() {
        let mut members = Members::default();
        members.heard(secs(0), 1, true);
        members.heard(secs(20), 1, false);
        members.heard(secs(0), 2, false);
        members.time_out(secs(25), Span::from_secs(25), Span::from_secs(10));
        assert_eq!((members.count(), members.senders()), (3, 0), "25 s are not more than 25 s");
        members.time_out(secs(26), Span::from_secs(25), Span::from_secs(10));
        assert_eq!((members.count(), members.senders()), (2, 0));
        members.heard(secs(27), 1, true);
        assert_eq!(members.senders(), 1);
    }

    #[test]
    fn remaining_members_keep_their_states_when_members_go() {
        let mut members = Members::default();
        for ssrc in 0..100 {
            members.heard(secs(i64::from(ssrc % 10)), ssrc, ssrc % 7 == 0);
        }
        // those of seconds 0 to 4 go
        members.time_out(secs(10), Span::from_secs(5), Span::from_secs(100));
        assert_eq!(members.count(), 51);
        for ssrc in 0..100 {
            assert_eq!(members.heard(secs(10), ssrc, false), ssrc % 10 < 5, "{ssrc}");
        }
        assert_eq!(members.count(), 101);
        let senders = (0..100).filter(|ssrc| ssrc % 7 == 0 && ssrc % 10 >= 5).count();
        assert_eq!(members.senders() as usize, senders);
        members.heard(secs(11), 50, true);
        assert!(members.bye(secs(11), 50) && !members.bye(secs(11), 50));
        assert!(members.heard(secs(30), 50, true), "the index of the last sender is another member's");
    }
}
