//! What a member sends.

use super::MediaSettings;
use std::collections::VecDeque;
use tidegate_core::packet::RtpBody;
use tidegate_core::{Span, Time};

/// Reports on packets further back than this are not answered: half the sequence numbers.
const KEPT: usize = 1 << 15;

/// One packet to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Out {
    pub(super) sequence: u16,
    pub(super) frame: u32,
    pub(super) flags: u8,
}

/// A source of packets at exact times.
#[derive(Debug)]
pub(super) struct Media {
    settings: MediaSettings,
    size: u32,
    start: Time,
    /// Times of sending so far: packets, or pictures.
    times: u64,
    sequence: u64,
    /// When the last packets were sent, newest last, until their loss is reported.
    sent: VecDeque<Option<Time>>,
    /// For each segment whether the next one is to be coded from a picture that the receiver has.
    mend: Vec<bool>,
}

impl Media {
    pub(super) fn new(settings: MediaSettings, start: Time) -> Self {
        let segments = match settings {
            MediaSettings::Packets { .. } => 1,
            MediaSettings::Segments { segments, .. } => usize::from(segments),
        };
        Self {
            size: settings.packet_size(),
            settings,
            start,
            times: 0,
            sequence: 0,
            sent: VecDeque::new(),
            mend: vec![false; segments],
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

    /// When the next packets are due.
    pub(super) fn due(&self) -> Time {
        let after = match self.settings {
            MediaSettings::Packets { size, rate } => {
                let nanos = u128::from(self.times) * u128::from(size) * 8_000_000_000;
                Span::from_nanos(nanos.div_ceil(u128::from(rate.as_bps())) as i64)
            }
            MediaSettings::Segments { fps, .. } => Span::from_secs_f64(self.times as f64 / fps),
        };
        self.start + after
    }

    /// The packets that are due now.
    pub(super) fn take(&mut self, now: Time) -> impl Iterator<Item = Out> + '_ {
        let frame = self.times as u32;
        self.times += 1;
        let (first, segments) = (self.sequence, self.mend.len());
        self.sequence += segments as u64;
        self.sent.extend(std::iter::repeat_n(Some(now), segments));
        let excess = self.sent.len().saturating_sub(KEPT);
        self.sent.drain(..excess);
        self.mend.iter_mut().enumerate().map(move |(segment, mend)| {
            let mut flags = 0;
            if segment == 0 {
                flags |= RtpBody::FIRST;
            }
            if segment + 1 == segments {
                flags |= RtpBody::LAST;
            }
            if std::mem::take(mend) {
                flags |= RtpBody::KEY;
            }
            Out { sequence: (first + segment as u64) as u16, frame, flags }
        })
    }

    /// The packet with this number was reported as lost: when it was sent, for the first report on it.
    pub(super) fn reported(&mut self, sequence: u16) -> Option<Time> {
        let back = (self.sequence as u16).wrapping_sub(sequence);
        let place = self.sent.len().checked_sub(usize::from(back)).filter(|_| back > 0)?;
        if matches!(self.settings, MediaSettings::Segments { .. }) {
            let segment = (self.sequence - u64::from(back)) % self.mend.len() as u64;
            self.mend[segment as usize] = true;
        }
        self.sent[place].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Rate;

    #[test]
    fn the_kth_packet_is_due_after_k_times_size_over_rate() {
        let rate = Rate::from_kbps(448);
        let mut media = Media::new(MediaSettings::Packets { size: 1000, rate }, Time::from_secs(3));
        for k in 0..5000i64 {
            let due = media.due();
            assert_eq!(due - Time::from_secs(3), Span::from_nanos((k * 125_000_000 + 6) / 7));
            let out: Vec<Out> = media.take(due).collect();
            assert_eq!(out.iter().map(|out| out.sequence).collect::<Vec<_>>(), [k as u16]);
        }
        assert_eq!(media.reported(5000), None, "not sent yet");
        assert!(media.reported(4999).is_some());
        assert_eq!(media.reported(4999), None, "reported before");
    }

    #[test]
    fn a_reported_segment_is_mended_in_the_next_picture() {
        let settings = MediaSettings::Segments { fps: 10.0, segments: 3, rate: Rate::from_kbps(64) };
        assert_eq!(settings.packet_size(), 267);
        let mut media = Media::new(settings, Time::ZERO);
        let mut flags = || {
            let due = media.due();
            let flags: Vec<u8> = media.take(due).map(|out| out.flags & RtpBody::KEY).collect();
            (flags, media.sequence)
        };
        assert_eq!(flags(), (vec![0; 3], 3));
        assert_eq!(flags(), (vec![0; 3], 6));
        assert!(media.reported(4).is_some(), "segment 1 of picture 1");
        let mut flags = || media.take(Time::ZERO).map(|out| out.flags & RtpBody::KEY).collect::<Vec<u8>>();
        assert_eq!(flags(), [0, RtpBody::KEY, 0]);
        assert_eq!(flags(), [0; 3]);
    }
}
