//! Control messages, which sealed datagrams carry beside RTP and RTCP. All numbers are big-endian.

/// Largest piece of a record in bytes: with seal and headers it fits any path that carries IPv6.
pub const PIECE: usize = 1100;

/// A control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control<'a> {
    /// Sign of life, which an answerer sends only while it receives datagrams from the caller.
    Alive,
    /// The sender's media or feedback has ended: the call is over.
    End,
    /// Request for `count` pieces of the receiver's record, from number `from` on.
    Ask {
        /// Number of the first piece.
        from: u32,
        /// Number of pieces.
        count: u32,
    },
    /// A piece of the sender's record.
    Piece {
        /// Its number; each piece but the last one has [`PIECE`] bytes.
        number: u32,
        /// Bytes of the whole record.
        total: u32,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// The sender has received the whole record of the other side.
    Done,
}

/// Whether a payload is RTP or RTCP, which begin with version 2 (RFC 3550 section 5.1).
#[must_use]
pub fn is_rtp(payload: &[u8]) -> bool {
    payload.first().is_some_and(|first| first >> 6 == 2)
}

fn split(bytes: &[u8]) -> Option<(u32, &[u8])> {
    bytes.split_first_chunk().map(|(number, rest)| (u32::from_be_bytes(*number), rest))
}

impl<'a> Control<'a> {
    /// Encodes this message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        match self {
            Self::Alive => bytes.push(1),
            Self::End => bytes.push(2),
            Self::Ask { from, count } => {
                bytes.push(3);
                bytes.extend(from.to_be_bytes());
                bytes.extend(count.to_be_bytes());
            }
            Self::Piece { number, total, bytes: piece } => {
                bytes.push(4);
                bytes.extend(number.to_be_bytes());
                bytes.extend(total.to_be_bytes());
                bytes.extend(*piece);
            }
            Self::Done => bytes.push(5),
        }
        bytes
    }

    /// Decodes a message; `None` if the bytes are none.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        match bytes {
            [1] => Some(Self::Alive),
            [2] => Some(Self::End),
            [3, rest @ ..] => {
                let (from, rest) = split(rest)?;
                let (count, rest) = split(rest)?;
                rest.is_empty().then_some(Self::Ask { from, count })
            }
            [4, rest @ ..] => {
                let (number, rest) = split(rest)?;
                let (total, bytes) = split(rest)?;
                Some(Self::Piece { number, total, bytes })
            }
            [5] => Some(Self::Done),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_their_bytes() {
        let piece = Control::Piece { number: 7, total: 1 << 20, bytes: &[9; 30] };
        let ask = Control::Ask { from: 3, count: u32::MAX };
        for message in [Control::Alive, Control::End, ask, piece, Control::Done] {
            let bytes = message.encode();
            assert_eq!(Control::decode(&bytes), Some(message));
            assert!(!is_rtp(&bytes));
            let longer = [bytes.as_slice(), &[0]].concat();
            let cut = Control::decode(&longer);
            assert!(cut.is_none() || matches!(message, Control::Piece { .. }), "{cut:?}");
        }
        assert_eq!(Control::decode(&[]), None);
        assert_eq!(Control::decode(&[6]), None);
        assert!(is_rtp(&[0x80, 96]) && is_rtp(&[0xbf]) && !is_rtp(&[0xc0]) && !is_rtp(&[]));
    }
}
