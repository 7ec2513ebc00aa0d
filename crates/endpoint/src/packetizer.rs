//! From frames to RTP packets: sizes, marks and header bytes.

use serde::{Deserialize, Serialize};
use tidegate_core::datagram::Extension;
use tidegate_core::frame::Marks;
use tidegate_core::wire::descriptor;
use tidegate_core::{Frame, Time};

/// RFC 8285 identifier of abs-send-time in the packets of an endpoint.
pub const ABS_SEND_TIME_ID: u8 = 3;
/// RFC 8285 identifier of the transport-wide sequence number in the packets of an endpoint.
pub const TRANSPORT_SEQUENCE_ID: u8 = 5;
/// RFC 8285 identifier of the dependency descriptor in the video packets of an endpoint.
pub const MARKS_ID: u8 = 6;

/// Fixed part of an RTP header without contributing sources (RFC 3550 section 5.1).
const RTP_HEADER: u32 = 12;
/// Profile and length words before RFC 8285 elements.
const EXTENSION_HEADER: u32 = 4;
/// Data bytes of abs-send-time.
const ABS_SEND_TIME: u32 = 3;
/// Data bytes of a transport-wide sequence number.
const TRANSPORT_SEQUENCE: u32 = 2;

/// Header extensions that every RTP packet carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Extensions {
    /// The transport-wide sequence number that TWCC needs: 2 bytes.
    pub transport_sequence: bool,
    /// The time of sending: 3 bytes.
    pub abs_send_time: bool,
    /// On packets of video and their retransmissions, a dependency descriptor that names their frame: 3 bytes, and 9
    /// on the first packet of a key frame. Without it playout learns the frame from the receiver's driver.
    pub marks: bool,
}

impl Default for Extensions {
    /// All of them.
    fn default() -> Self {
        Self { transport_sequence: true, abs_send_time: true, marks: true }
    }
}

impl Extensions {
    /// Bytes of the RTP header without extensions.
    pub(crate) const NONE_LEN: u32 = RTP_HEADER;

    /// Bytes of the RTP header with these extensions, `marks` and a controller's `stamp`, in the layout of RFC 8285:
    /// one-byte elements where all fit, two-byte elements otherwise, padded to words.
    #[inline]
    #[must_use]
    pub fn header_len(self, marks: Option<Marks>, stamp: Option<&Extension>) -> u32 {
        let one_byte =
            stamp.is_none_or(|stamp| (1..=14).contains(&stamp.id) && (1..=16).contains(&stamp.data.len()));
        let element_header = if one_byte { 1 } else { 2 };
        // a hot path: called for every packet at both ends
        let mut elements = u32::from(self.abs_send_time) * (element_header + ABS_SEND_TIME)
            + u32::from(self.transport_sequence) * (element_header + TRANSPORT_SEQUENCE);
        if let Some(marks) = marks {
            elements += element_header + descriptor::length(marks) as u32;
        }
        if let Some(stamp) = stamp {
            elements += element_header + stamp.data.len() as u32;
        }
        if elements == 0 { RTP_HEADER } else { RTP_HEADER + EXTENSION_HEADER + elements.next_multiple_of(4) }
    }

    /// Bytes that the marks of `frame` add to a header.
    pub(crate) fn marks_len(self, frame: Frame) -> u32 {
        if !self.marks {
            return 0;
        }
        self.header_len(Some(Marks::of_frame(frame)), None) - self.header_len(None, None)
    }

    /// Bytes of the longest RTP header without a stamp, in a stream with at most so many frames between a frame and the one to
    /// which it refers.
    pub(crate) fn longest_header(self, between: u8) -> u32 {
        self.header_len(None, None)
            + self.marks_len(Frame {
                number: 0,
                flags: Frame::KEY | Frame::FIRST | Frame::flags_between(between),
            })
    }

    /// Whether one of these extensions has the identifier `id`.
    pub(crate) const fn uses(id: u8) -> bool {
        id == ABS_SEND_TIME_ID || id == TRANSPORT_SEQUENCE_ID || id == MARKS_ID
    }
}

/// A packet in the pacer's queue. It gets its sequence numbers when it leaves, so that a packet that is never sent
/// leaves no gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Queued {
    /// When it was queued.
    pub(crate) since: Time,
    /// RTP timestamp.
    pub(crate) timestamp: u32,
    /// Frame number.
    pub(crate) frame: u32,
    /// Bytes of payload.
    pub(crate) payload: u16,
    /// As in [`tidegate_core::datagram::RtpBody`].
    pub(crate) original: u16,
    /// Index of its stream.
    pub(crate) stream: u8,
    /// As in [`Frame`].
    pub(crate) flags: u8,
    /// Bytes that its marks add to its header, where rates count headers.
    pub(crate) marks: u8,
}

impl Queued {
    /// Its frame, and its position in that.
    pub(crate) fn frame_position(&self) -> Frame {
        Frame { number: self.frame, flags: self.flags }
    }
}

/// Cuts a frame into packets of at most `limit` payload bytes, each slice by itself. `slices`: the bytes of each slice;
/// `first`: a packet that lacks only payload and position.
pub(crate) fn packets(slices: &[u32], limit: u16, first: Queued) -> impl Iterator<Item = Queued> {
    let limit = u32::from(limit);
    let cut = move |&bytes: &u32| {
        (0..bytes.div_ceil(limit)).map(move |index| (bytes - index * limit).min(limit) as u16)
    };
    let mut payloads = slices.iter().flat_map(cut).peekable();
    let mut position = Frame::FIRST;
    std::iter::from_fn(move || {
        let payload = payloads.next()?;
        let mut flags = first.flags | position;
        position = 0;
        if payloads.peek().is_none() {
            flags |= Frame::LAST;
        }
        Some(Queued { payload, flags, ..first })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::frame::Position;

    #[test]
    fn headers_are_as_long_as_rfc_8285_makes_them() {
        let with =
            |transport_sequence, abs_send_time| Extensions { transport_sequence, abs_send_time, marks: true };
        assert_eq!(with(false, false).header_len(None, None), 12);
        assert_eq!(with(true, false).header_len(None, None), 20, "4 + 3 padded to 4");
        assert_eq!(with(false, true).header_len(None, None), 20, "4 + 4");
        assert_eq!(with(true, true).header_len(None, None), 24, "4 + 7 padded to 8");
        let mut marks = Marks::new(9, Position::First, false, 0);
        assert_eq!(with(true, true).header_len(Some(marks), None), 28, "4 + 11 padded to 12");
        assert_eq!(with(false, true).header_len(Some(marks), None), 24, "4 + 8");
        marks = Marks::new(9, Position::First, true, 0);
        assert_eq!(with(true, true).header_len(Some(marks), None), 36, "4 + 17 padded to 20");
        assert_eq!(with(true, true).longest_header(0), 36);
        assert_eq!(Extensions { marks: false, ..with(true, true) }.longest_header(0), 24);
        let stamp = |id, length| Extension { id, data: vec![0; length] };
        assert_eq!(with(true, true).header_len(None, Some(&stamp(1, 8))), 32, "4 + 16");
        assert_eq!(
            with(true, true).header_len(None, Some(&stamp(15, 8))),
            36,
            "two-byte: 4 + 5 + 4 + 10, padded to 20"
        );
        assert_eq!(
            with(false, false).header_len(None, Some(&stamp(1, 17))),
            36,
            "two-byte: 4 + 19 padded to 20"
        );
    }

    #[test]
    fn frames_are_cut_and_marked() {
        let frame = Queued {
            since: Time::ZERO,
            timestamp: 7,
            frame: 3,
            payload: 0,
            original: 0,
            stream: 1,
            flags: Frame::KEY,
            marks: 0,
        };
        let cut: Vec<(u16, u8)> = packets(&[2500], 1200, frame).map(|p| (p.payload, p.flags)).collect();
        assert_eq!(
            cut,
            [(1200, Frame::KEY | Frame::FIRST), (1200, Frame::KEY), (100, Frame::KEY | Frame::LAST)]
        );
        let single: Vec<Queued> = packets(&[1200], 1200, frame).collect();
        assert_eq!(single.len(), 1);
        assert_eq!(single[0].flags, Frame::KEY | Frame::FIRST | Frame::LAST);
        assert_eq!(packets(&[0], 1200, frame).count(), 0);
        let slices: Vec<(u16, u8)> =
            packets(&[700, 1300, 5], 1200, frame).map(|p| (p.payload, p.flags & !Frame::KEY)).collect();
        assert_eq!(slices, [(700, Frame::FIRST), (1200, 0), (100, 0), (5, Frame::LAST)]);
    }
}
