//! Frames of a stream, and the marks of a frame on a video packet.

/// Frame to which an RTP packet belongs, and the packet's position in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Running number of the frame in the stream.
    pub number: u32,
    /// Flags; see the associated constants.
    pub flags: u8,
}

impl Frame {
    /// Last packet of its frame.
    pub const LAST: u8 = 1;
    /// First packet of its frame.
    pub const FIRST: u8 = 2;
    /// The frame can be decoded without earlier ones.
    pub const KEY: u8 = 4;
    /// Largest number of frames between a frame and the frame to which it refers.
    pub const BETWEEN_MAX: u8 = 4;
    const BETWEEN_SHIFT: u32 = 3;

    /// The flags of a frame with so many frames between it and the one to which it refers: B frames, to which none refers.
    /// Of a key frame it is the largest such number in its stream.
    #[must_use]
    pub const fn flags_between(count: u8) -> u8 {
        assert!(count <= Self::BETWEEN_MAX);
        count << Self::BETWEEN_SHIFT
    }

    /// The number of frames between it and the one to which it refers; of a key frame, the largest in its stream.
    #[must_use]
    pub const fn between(self) -> u8 {
        self.flags >> Self::BETWEEN_SHIFT & 7
    }

    /// Whether the packet is the last one of its frame.
    #[must_use]
    pub const fn is_last(self) -> bool {
        self.flags & Self::LAST != 0
    }
}

/// Position of a packet in its frame; the discriminants are the bits `start_of_frame` and `end_of_frame` of a dependency
/// descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Position {
    /// Neither first nor last.
    #[default]
    Middle = 0b00,
    /// Last of two or more packets.
    Last = 0b01,
    /// First of two or more packets.
    First = 0b10,
    /// Only packet.
    Only = 0b11,
}

impl Position {
    /// Converts the two bits; higher bits are ignored.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::Middle,
            0b01 => Self::Last,
            0b10 => Self::First,
            _ => Self::Only,
        }
    }
}

/// Marks of a video packet's frame, from its dependency descriptor (see [`crate::wire::descriptor`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Marks {
    /// Low 16 bits of the frame's number.
    pub frame: u16,
    /// Position of the packet in the frame.
    pub position: Position,
    /// [`Frame::KEY`] and the number of frames between, as in the frame's flags.
    reference: u8,
}

impl Marks {
    /// Marks of a packet of `frame`.
    #[must_use]
    pub const fn of_frame(frame: Frame) -> Self {
        let position = Position::from_bits(frame.flags & (Frame::FIRST | Frame::LAST));
        Self { frame: frame.number as u16, position, reference: frame.flags & !(Frame::FIRST | Frame::LAST) }
    }

    /// Marks of a packet of a frame: whether that is a key frame, and the number of frames between it and the one to
    /// which it refers; of a key frame, the largest in its stream.
    #[must_use]
    pub const fn new(frame: u16, position: Position, key: bool, between: u8) -> Self {
        let key = if key { Frame::KEY } else { 0 };
        Self { frame, position, reference: key | Frame::flags_between(between) }
    }

    /// Whether the frame can be decoded without earlier ones.
    #[must_use]
    pub const fn is_key(self) -> bool {
        self.reference & Frame::KEY != 0
    }

    /// Number of frames between it and the one to which it refers; of a key frame, the largest in its stream.
    #[must_use]
    pub const fn between(self) -> u8 {
        self.reference >> Frame::BETWEEN_SHIFT
    }

    /// Frame of these marks, given its full number.
    #[must_use]
    pub const fn frame(self, number: u32) -> Frame {
        Frame { number, flags: self.position as u8 | self.reference }
    }

    /// Whether the descriptor contains the template structure, as on the first packet of a key frame.
    #[must_use]
    pub const fn has_structure(self) -> bool {
        self.is_key() && matches!(self.position, Position::First | Position::Only)
    }
}
