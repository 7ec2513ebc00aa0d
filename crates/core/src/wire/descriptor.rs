//! AV1's dependency descriptor (RTP Payload Format For AV1, version 1.0.0, appendix A), as far as a stream without layers
//! needs it.
//!
//! Three bytes on every packet: start and end of its frame, the template that its frame follows, and the frame's
//! number, of which there are 16 bits. The first packet of a key frame has the template dependency structure behind
//! them, which is the one that libwebrtc's encoders without scalability send (`scalable_video_controller_no_layering.cc`):
//! one decode target, one chain, and two templates: a frame that refers to none, and one that refers to the frame
//! before it.

use super::Error;
use crate::frame::{Marks, Position};

/// Bytes of the fields that are always there (appendix A.8.2, `mandatory_descriptor_fields`).
const MANDATORY: usize = 3;

/// What follows them on the first packet of a key frame: the five flags of `extended_descriptor_fields`, of which the
/// first one is set, and the structure.
///
/// ```text
/// 1 0 0 0 0          structure; no bitmask, no DTIs, frame or chain differences of its own
/// 000000 00000       templates from 0 on; one decode target
/// 00 11              two templates of one layer
/// 10 10              both are switch points of the target
/// 0  1 0000 0        the first refers to no frame, the second to the one before it
/// 1  0000 0001       one chain, in which they follow the same frame, or none
/// 0                  no resolutions; zeros up to a byte
/// ```
const STRUCTURE: [u8; 6] = [0x80, 0x00, 0x3a, 0x41, 0x01, 0x00];

/// The templates of this structure.
const KEY: u8 = 0;
const DELTA: u8 = 1;

/// Bytes of the longest descriptor.
pub const LONGEST: usize = MANDATORY + STRUCTURE.len();

/// Bytes of the descriptor with these marks.
#[must_use]
pub const fn length(marks: Marks) -> usize {
    if marks.has_structure() { LONGEST } else { MANDATORY }
}

/// The descriptor with these marks: as many bytes as [`length`] says of an array of the longest.
#[must_use]
pub fn write(marks: Marks) -> ([u8; LONGEST], usize) {
    let mut bytes = [0; LONGEST];
    bytes[0] = (marks.position as u8) << 6 | if marks.key { KEY } else { DELTA };
    bytes[1..MANDATORY].copy_from_slice(&marks.frame.to_be_bytes());
    let length = length(marks);
    bytes[MANDATORY..length].copy_from_slice(&STRUCTURE[..length - MANDATORY]);
    (bytes, length)
}

/// Reads a descriptor that has the structure above on the first packet of a key frame, and none elsewhere.
///
/// # Errors
/// When it ends too early, or says what this structure has no room for; offsets count from the descriptor's start.
pub fn read(bytes: &[u8]) -> Result<Marks, Error> {
    let Some((&[first, high, low], rest)) = bytes.split_first_chunk() else {
        let found = bytes.len();
        return Err(Error::Truncated { what: "dependency descriptor", offset: 0, needed: MANDATORY, found });
    };
    let template = first & 0x3f;
    if template > DELTA {
        return Err(Error::Invalid { what: "dependency template", offset: 0, found: u64::from(template) });
    }
    let marks = Marks {
        frame: u16::from_be_bytes([high, low]),
        position: Position::from_bits(first >> 6),
        key: template == KEY,
    };
    let expected = &STRUCTURE[..length(marks) - MANDATORY];
    if let Some(place) = (0..rest.len().min(expected.len())).find(|&at| rest[at] != expected[at]) {
        let found = u64::from(rest[place]);
        return Err(Error::Invalid { what: "dependency structure", offset: MANDATORY + place, found });
    }
    if rest.len() < expected.len() {
        let (needed, found) = (expected.len(), rest.len());
        return Err(Error::Truncated { what: "dependency structure", offset: MANDATORY, needed, found });
    }
    match rest.get(expected.len()) {
        None => Ok(marks),
        Some(&found) => {
            let offset = MANDATORY + expected.len();
            Err(Error::Invalid { what: "end of the dependency descriptor", offset, found: u64::from(found) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(frame: u16, position: Position, key: bool) -> Marks {
        Marks { frame, position, key }
    }

    fn written(marks: Marks) -> Vec<u8> {
        let (bytes, length) = write(marks);
        bytes[..length].to_vec()
    }

    #[test]
    fn descriptors_have_the_bits_of_appendix_a() {
        // start, end, template in 6 bits, number in 16
        assert_eq!(written(marks(0x1234, Position::Middle, false)), [0b0000_0001, 0x12, 0x34]);
        assert_eq!(written(marks(1, Position::Last, false)), [0b0100_0001, 0, 1]);
        assert_eq!(written(marks(1, Position::First, false)), [0b1000_0001, 0, 1]);
        assert_eq!(written(marks(0xffff, Position::Only, false)), [0b1100_0001, 0xff, 0xff]);
        assert_eq!(written(marks(7, Position::Last, true)), [0b0100_0000, 0, 7]);
        // the structure field by field, as appendix A.8.2 has them
        let fields: [(u32, u32); 22] = [
            (1, 1), // template_dependency_structure_present_flag
            (0, 1), // active_decode_targets_present_flag
            (0, 1), // custom_dtis_flag
            (0, 1), // custom_fdiffs_flag
            (0, 1), // custom_chains_flag
            (0, 6), // template_id_offset
            (0, 5), // dt_cnt_minus_one
            (0, 2), // next_layer_idc: the same layer
            (3, 2), // next_layer_idc: no more
            (2, 2), // template_dti of the key frame: switch
            (2, 2), // template_dti of the others
            (0, 1), // fdiff_follows_flag of the key frame
            (1, 1), // fdiff_follows_flag of the others
            (0, 4), // fdiff_minus_one
            (0, 1), // fdiff_follows_flag
            (1, 1), // chain_cnt, ns(2)
            (0, 0), // decode_target_protected_by, ns(1)
            (0, 4), // template_chain_fdiff of the key frame
            (1, 4), // template_chain_fdiff of the others
            (0, 1), // resolutions_present_flag
            (0, 7), // zero_padding
            (0, 0),
        ];
        let mut bits = String::new();
        for (value, width) in fields {
            (0..width).rev().for_each(|bit| bits.push(if value >> bit & 1 == 1 { '1' } else { '0' }));
        }
        let byte = |at: usize| u8::from_str_radix(&bits[8 * at..8 * at + 8], 2).expect("bits");
        let structure: Vec<u8> = (0..bits.len() / 8).map(byte).collect();
        assert_eq!(bits.len(), 48);
        for (position, first) in [(Position::First, 0b1000_0000), (Position::Only, 0b1100_0000)] {
            assert_eq!(written(marks(3, position, true)), [&[first, 0, 3], &structure[..]].concat());
        }
    }

    #[test]
    fn what_was_written_is_read_and_what_makes_no_sense_is_not() {
        for frame in [0, 1, 0x8000, 0xffff] {
            for bits in 0..4 {
                for key in [false, true] {
                    let marks = marks(frame, Position::from_bits(bits), key);
                    let bytes = written(marks);
                    assert_eq!(bytes.len(), length(marks));
                    assert_eq!(read(&bytes), Ok(marks));
                    for cut in 0..bytes.len() {
                        assert!(
                            matches!(read(&bytes[..cut]), Err(Error::Truncated { .. })),
                            "{bytes:?} {cut}"
                        );
                    }
                    assert!(read(&[&bytes[..], &[0]].concat()).is_err(), "too long");
                }
            }
        }
        assert_eq!(
            read(&[0b0000_0010, 0, 0]),
            Err(Error::Invalid { what: "dependency template", offset: 0, found: 2 })
        );
        let mut other = written(marks(0, Position::First, true));
        other[5] ^= 1;
        assert_eq!(
            read(&other),
            Err(Error::Invalid { what: "dependency structure", offset: 5, found: 0x3b })
        );
    }
}
