//! Which frame of its stream a packet belongs to, and what a packet of video says of that.

/// Which frame of its stream an RTP packet belongs to, and where in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The frame's running number in the stream.
    pub number: u32,
    /// See the associated constants.
    pub flags: u8,
}

impl Frame {
    /// Last packet of its frame.
    pub const LAST: u8 = 1;
    /// First packet of its frame.
    pub const FIRST: u8 = 2;
    /// The frame can be decoded without earlier ones.
    pub const KEY: u8 = 4;

    /// Whether it is the last packet of its frame.
    #[must_use]
    pub const fn is_last(self) -> bool {
        self.flags & Self::LAST != 0
    }
}

/// Where in its frame a packet is: the discriminants are the bits `start_of_frame` and `end_of_frame` of a dependency
/// descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Position {
    /// In between.
    #[default]
    Middle = 0b00,
    /// The last of several.
    Last = 0b01,
    /// The first of several.
    First = 0b10,
    /// The only one.
    Only = 0b11,
}

impl Position {
    /// From the two bits; higher bits are ignored.
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

/// What a video packet says of its frame, by a dependency descriptor (see [`crate::wire::descriptor`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Marks {
    /// The last 16 bits of the frame's number.
    pub frame: u16,
    /// Where in the frame the packet is.
    pub position: Position,
    /// Whether the frame can be decoded without earlier ones.
    pub key: bool,
}

impl Marks {
    /// Those of a packet of `frame`.
    #[must_use]
    pub const fn of(frame: Frame) -> Self {
        let position = Position::from_bits(frame.flags & (Frame::FIRST | Frame::LAST));
        Self { frame: frame.number as u16, position, key: frame.flags & Frame::KEY != 0 }
    }

    /// The frame, of whose number `number` is the whole.
    #[must_use]
    pub const fn frame(self, number: u32) -> Frame {
        let key = if self.key { Frame::KEY } else { 0 };
        Frame { number, flags: self.position as u8 | key }
    }

    /// Whether the descriptor comes with the structure that templates belong to: on the first packet of a key frame.
    #[must_use]
    pub const fn has_structure(self) -> bool {
        self.key && matches!(self.position, Position::First | Position::Only)
    }
}
