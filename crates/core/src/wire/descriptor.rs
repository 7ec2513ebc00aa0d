//! AV1's dependency descriptor (RTP Payload Format For AV1, version 1.0.0, appendix A), for a stream without layers.
//!
//! Each packet has three bytes: start and end of its frame, the template of its frame, and 16 bits of the frame's number.
//! In the first packet of a key frame, the template dependency structure follows. It is that of libwebrtc's encoders
//! without scalability (`scalable_video_controller_no_layering.cc`): one decode target, one chain, and two templates, for
//! a frame without references and for one that refers to the previous frame.

use super::Error;
use crate::frame::{Marks, Position};

/// Length of the mandatory fields (appendix A.8.2, `mandatory_descriptor_fields`).
const MANDATORY: usize = 3;

/// Bytes that follow in the first packet of a key frame: the five flags of `extended_descriptor_fields`, with the first one
/// set, and the structure.
///
/// ```text
/// 1 0 0 0 0          structure; no bitmask, no custom DTIs, frame or chain differences
/// 000000 00000       templates from 0 on; one decode target
/// 00 11              two templates of one layer
/// 10 10              both are switch points of the target
/// 0  1 0000 0        the first refers to no frame, the second to the previous one
/// 1  0000 0001       one chain, with the previous frame of the chain, or none
/// 0                  no resolutions; zero padding to a byte
/// ```
const STRUCTURE: [u8; 6] = [0x80, 0x00, 0x3a, 0x41, 0x01, 0x00];

/// Template of a key frame.
const KEY: u8 = 0;
/// Template of other frames.
const DELTA: u8 = 1;

/// Length of the longest descriptor, bytes.
pub const LONGEST: usize = MANDATORY + STRUCTURE.len();

/// Length of the descriptor with these marks, bytes.
#[must_use]
pub const fn length(marks: Marks) -> usize {
    if marks.has_structure() { LONGEST } else { MANDATORY }
}

/// Encodes the descriptor with these marks: an array, and the number of its bytes that are used, which is [`length`].
#[must_use]
pub fn write(marks: Marks) -> ([u8; LONGEST], usize) {
    let mut bytes = [0; LONGEST];
    bytes[0] = (marks.position as u8) << 6 | if marks.key { KEY } else { DELTA };
    bytes[1..MANDATORY].copy_from_slice(&marks.frame.to_be_bytes());
    let length = length(marks);
    bytes[MANDATORY..length].copy_from_slice(&STRUCTURE[..length - MANDATORY]);
    (bytes, length)
}

/// Parses a descriptor, which must have the structure above in the first packet of a key frame, and none elsewhere.
///
/// # Errors
/// Fails if the bytes end too early or do not fit this structure; offsets count from the descriptor's start.
pub fn read(bytes: &[u8]) -> Result<Marks, Error> {
    let Some((&[first, high, low], remainder)) = bytes.split_first_chunk() else {
        let found = bytes.len();
        return Err(Error::Truncated {
            field: "dependency descriptor",
            offset: 0,
            needed: MANDATORY,
            available: found,
        });
    };
    let template = first & 0x3f;
    if template > DELTA {
        return Err(Error::Invalid { field: "dependency template", offset: 0, value: u64::from(template) });
    }
    let marks = Marks {
        frame: u16::from_be_bytes([high, low]),
        position: Position::from_bits(first >> 6),
        key: template == KEY,
    };
    let expected = &STRUCTURE[..length(marks) - MANDATORY];
    let compared = remainder.len().min(expected.len());
    if let Some(index) = (0..compared).find(|&index| remainder[index] != expected[index]) {
        let found = u64::from(remainder[index]);
        return Err(Error::Invalid {
            field: "dependency structure",
            offset: MANDATORY + index,
            value: found,
        });
    }
    if remainder.len() < expected.len() {
        let (needed, found) = (expected.len(), remainder.len());
        return Err(Error::Truncated {
            field: "dependency structure",
            offset: MANDATORY,
            needed,
            available: found,
        });
    }
    match remainder.get(expected.len()) {
        None => Ok(marks),
        Some(&found) => {
            let offset = MANDATORY + expected.len();
            Err(Error::Invalid { field: "end of the dependency descriptor", offset, value: u64::from(found) })
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
        let byte = |index: usize| u8::from_str_radix(&bits[8 * index..8 * index + 8], 2).expect("bits");
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
            Err(Error::Invalid { field: "dependency template", offset: 0, value: 2 })
        );
        let mut corrupted = written(marks(0, Position::First, true));
        corrupted[5] ^= 1;
        assert_eq!(
            read(&corrupted),
            Err(Error::Invalid { field: "dependency structure", offset: 5, value: 0x3b })
        );
    }
}
