//! The media of a member: packets at exact times, and segments that repair reported losses.

use super::MediaSettings;
use std::collections::VecDeque;
use std::sync::Arc;
use tidegate_core::datagram::Attachment;
use tidegate_core::{Frame, Span, Time};

/// Packets whose loss may be reported: the last half of the range of sequence numbers.
const SENT_MAX: usize = 1 << 15;

/// Number of the latest reported losses that a segment names; fewer where packets are small. Each loss is named by all
/// segments at its position until as many others were reported, so that it gets through although segments are lost.
const AVOIDED_MAX: usize = 64;

/// One packet to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutgoingPacket {
    pub(super) sequence: u16,
    pub(super) frame: Frame,
    /// The losses at its position that were known when it was coded.
    pub(super) avoids: Option<Arc<Attachment>>,
}

/// A source of packets at exact times.
#[derive(Debug)]
pub(super) struct Media {
    settings: MediaSettings,
    size: u32,
    start: Time,
    /// Packets sent so far.
    sequence: u64,
    /// When the last packets were sent, newest last, until their loss is reported.
    sent: VecDeque<Option<Time>>,
    /// For each segment of a picture, the packets whose loss was reported: later segments do not refer to segments
    /// that these losses have damaged.
    avoids: Vec<Option<Arc<Attachment>>>,
    /// Number of losses for which a packet has room.
    avoided_max: usize,
}

impl Media {
    /// A source of packets with `overhead` bytes of IP and UDP header.
    pub(super) fn new(settings: MediaSettings, overhead: u32, start: Time) -> Self {
        let segments = match settings {
            MediaSettings::Packets { .. } => 1,
            MediaSettings::Segments { segments, .. } => usize::from(segments),
        };
        let size = settings.packet_size();
        Self {
            // behind the fixed header (RFC 3550 section 5.1), a count of two bytes and two bytes for each loss
            avoided_max: AVOIDED_MAX.min(size.saturating_sub(overhead + 12 + 2) as usize / 2),
            size,
            settings,
            start,
            sequence: 0,
            sent: VecDeque::new(),
            avoids: vec![None; segments],
        }
    }

    /// Bytes of a packet on the wire.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Packets sent so far.
    pub(super) fn packets(&self) -> u64 {
        self.sequence
    }

    /// When the next packet is due. Segments are coded and sent one by one, spread evenly over the time of a picture,
    /// because draft-burmeister-avt-rtcp-feedback-sim-00 section 4.2 has a constant packet rate.
    pub(super) fn due(&self) -> Time {
        let after = match self.settings {
            MediaSettings::Packets { size, rate } => {
                let nanos = u128::from(self.sequence) * u128::from(size) * 8_000_000_000;
                Span::from_nanos(nanos.div_ceil(u128::from(rate.as_bps())) as i64)
            }
            MediaSettings::Segments { fps, segments, .. } => {
                Span::from_secs_f64(self.sequence as f64 / (fps * f64::from(segments)))
            }
        };
        self.start + after
    }

    /// The packet that is due now.
    pub(super) fn take(&mut self, now: Time) -> OutgoingPacket {
        let (sequence, segments) = (self.sequence, self.avoids.len() as u64);
        self.sequence += 1;
        if self.sent.len() == SENT_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back(Some(now));
        let segment = sequence % segments;
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        OutgoingPacket {
            sequence: sequence as u16,
            frame: Frame {
                number: (sequence / segments) as u32,
                flags: flag(segment == 0, Frame::FIRST) | flag(segment + 1 == segments, Frame::LAST),
            },
            avoids: self.avoids[segment as usize].clone(),
        }
    }

    /// Notes that the packet `sequence` was reported as lost; at the first report, returns when it was sent.
    pub(super) fn reported(&mut self, sequence: u16) -> Option<Time> {
        let back = (self.sequence as u16).wrapping_sub(sequence);
        let index = self.sent.len().checked_sub(usize::from(back)).filter(|_| back > 0)?;
        let sent = self.sent[index].take()?;
        if matches!(self.settings, MediaSettings::Segments { .. }) && self.avoided_max > 0 {
            let lost = self.sequence - u64::from(back);
            let segment = (lost % self.avoids.len() as u64) as usize;
            let mut avoids = match self.avoids[segment].as_deref() {
                Some(Attachment::Avoids(before)) => {
                    before[before.len().saturating_sub(self.avoided_max - 1)..].to_vec()
                }
                _ => Vec::with_capacity(1),
            };
            avoids.push(sequence);
            self.avoids[segment] = Some(Arc::new(Attachment::Avoids(avoids)));
        }
        Some(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Rate;

    #[test]
    fn the_kth_packet_is_due_after_k_times_size_over_rate() {
        let rate = Rate::from_kbps(448);
        let mut media = Media::new(MediaSettings::Packets { size: 1000, rate }, 28, Time::from_secs(3));
        for k in 0..5000i64 {
            let due = media.due();
            assert_eq!(due - Time::from_secs(3), Span::from_nanos((k * 125_000_000 + 6) / 7));
            assert_eq!(media.take(due).sequence, k as u16);
        }
        assert_eq!(media.reported(5000), None, "not sent yet");
        assert!(media.reported(4999).is_some());
        assert_eq!(media.reported(4999), None, "reported before");
    }

    fn avoids(out: &OutgoingPacket) -> Vec<u16> {
        match out.avoids.as_deref() {
            Some(Attachment::Avoids(avoids)) => avoids.clone(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn segments_avoid_the_losses_that_were_reported_before_they_were_coded() {
        let settings = MediaSettings::Segments { fps: 10.0, segments: 3, rate: Rate::from_kbps(64) };
        assert_eq!(settings.packet_size(), 267);
        let mut media = Media::new(settings, 28, Time::ZERO);
        let picture = |media: &mut Media| {
            let mut take = || {
                let due = media.due();
                (due.as_secs_f64(), media.take(due))
            };
            [take(), take(), take()]
        };
        let [first, second, third] = picture(&mut media);
        assert_eq!(
            (first.1.frame.flags, second.1.frame.flags, third.1.frame.flags),
            (Frame::FIRST, 0, Frame::LAST)
        );
        assert!((second.0 - 1.0 / 30.0).abs() < 1e-8 && (third.0 - 2.0 / 30.0).abs() < 1e-8);
        picture(&mut media);
        assert!(media.reported(4).is_some(), "segment 1 of picture 1");
        for _ in 0..2 {
            let avoided = picture(&mut media).map(|(_, out)| avoids(&out));
            assert_eq!(avoided, [vec![], vec![4], vec![]]);
        }
        assert!(media.reported(1).is_some());
        assert_eq!(picture(&mut media).map(|(_, out)| avoids(&out)), [vec![], vec![4, 1], vec![]]);
        for _ in 0..100 {
            let [_, (_, out), _] = picture(&mut media);
            media.reported(out.sequence);
        }
        let avoided = avoids(&picture(&mut media)[1].1);
        let newest = media.sequence as u16 - 5;
        assert_eq!(avoided, (0..64).rev().map(|back| newest - 3 * back).collect::<Vec<_>>());
    }

    #[test]
    fn a_small_packet_names_no_more_losses_than_it_has_room_for() {
        // 80 bytes: 28 below RTP, 12 of its header, 2 of a count, and 38 for 19 numbers
        let settings = MediaSettings::Segments { fps: 10.0, segments: 1, rate: Rate::from_bps(6400) };
        let mut media = Media::new(settings, 28, Time::ZERO);
        (0..60).for_each(|_| drop(media.take(Time::ZERO)));
        (0..60).for_each(|lost| assert!(media.reported(lost).is_some()));
        let avoided = media.take(Time::ZERO).avoids;
        let Some(Attachment::Avoids(avoided)) = avoided.as_deref() else { panic!("losses were reported") };
        assert_eq!(*avoided, (41..60).collect::<Vec<u16>>());
    }
}
