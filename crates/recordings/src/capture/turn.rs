//! Data that a TURN client and its server exchange (RFC 8656): channels, Send and Data indications.

use super::layers::word;

/// Message types of STUN with data: Send and Data indications (RFC 8656 section 17).
const INDICATIONS: [u16; 2] = [0x0016, 0x0017];
/// RFC 8489 section 5.
const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
const HEADER: usize = 20;
/// The attribute DATA.
const DATA: u16 = 0x0013;

/// Whether bytes begin with the header of a STUN message.
pub(super) fn is_stun(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|&first| first < 4) && bytes.get(4..8) == Some(&MAGIC_COOKIE[..])
}

/// Beginning and end of the data in a TURN message of `length` bytes, of which the end may not be captured; `None` for
/// other messages.
pub(super) fn contents(bytes: &[u8], length: usize) -> Option<(usize, usize)> {
    let kind = word(bytes, 0)?;
    if is_channel(kind) {
        // over UDP the data may be padded to a multiple of four bytes (section 12.5)
        let data = usize::from(word(bytes, 2)?);
        return (4 + data..4 + data + 4).contains(&length).then_some((4, 4 + data));
    }
    if !INDICATIONS.contains(&kind) || !is_stun(bytes) {
        return None;
    }
    let mut offset = HEADER;
    while let (Some(kind), Some(size)) = (word(bytes, offset), word(bytes, offset + 2)) {
        let size = usize::from(size);
        if kind == DATA {
            return Some((offset + 4, offset + 4 + size));
        }
        offset += 4 + size.next_multiple_of(4);
    }
    None
}

/// Whether this is a channel number: 0x4000 to 0x4fff, and up to 0x7ffe before RFC 8656 (RFC 5766 section 11).
pub(super) const fn is_channel(number: u16) -> bool {
    0x4000 <= number && number <= 0x7ffe
}
