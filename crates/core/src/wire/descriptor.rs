//! AV1's dependency descriptor (RTP Payload Format For AV1, version 1.0.0, appendix A), for a stream without layers.
//!
//! Each packet has three bytes: start and end of its frame, the template of its frame, and 16 bits of the frame's number.
//! In the first packet of a key frame, the template dependency structure follows. It is that of libwebrtc's encoders
//! without scalability (`scalable_video_controller_no_layering.cc`): one decode target, one chain, and two templates, for
//! a frame without references and for one that refers to the previous frame. A stream with B frames has further templates,
//! for frames that refer to earlier ones.

use super::Error;
use crate::frame::{Frame, Marks, Position};

/// Length of the mandatory fields (appendix A.8.2, `mandatory_descriptor_fields`).
const MANDATORY: usize = 3;

/// Bytes that follow in the first packet of a key frame, and their number: the five flags of
/// `extended_descriptor_fields`, with the first one set, and the structure of a stream whose frames have up to `between`
/// others between them and their reference.
///
/// ```text
/// 1 0 0 0 0          structure; no bitmask, no custom DTIs, frame or chain differences
/// 000000 00000       templates from 0 on; one decode target
/// 00 ... 11          templates of one layer: of a key frame, and one for each distance
/// 10 ... 10          all are switch points of the target
/// 0  1 0000 0 ...    the first refers to no frame, the next to the previous one, and so on
/// 1  0000 0001 ...   one chain, with the frame to which it refers as the previous frame of the chain, or none
/// 0                  no resolutions; zero padding to a byte
/// ```
fn structure(between: u8) -> ([u8; 16], usize) {
    let (mut bits, mut length) = (0_u128, 0);
    let mut put = |value: u8, width: usize| {
        bits = bits << width | u128::from(value);
        length += width;
    };
    // distances from a frame to its reference are also the numbers of their templates
    let furthest = between + 1;
    put(0b10000, 5);
    put(0, 11);
    (1..=furthest).for_each(|_| put(0b00, 2));
    put(0b11, 2);
    (0..=furthest).for_each(|_| put(0b10, 2));
    put(0, 1);
    (1..=furthest).for_each(|distance| put(0b10_0000 | (distance - 1) << 1, 6));
    put(1, 1);
    (0..=furthest).for_each(|distance| put(distance, 4));
    put(0, 1);
    ((bits << (128 - length)).to_be_bytes(), length.div_ceil(8))
}

/// Template of a key frame. That of other frames is their distance from the frame to which they refer.
const KEY: u8 = 0;

/// Length of the longest descriptor, bytes: that with the structure for [`Frame::BETWEEN_MAX`]. An element of a header
/// extension holds no more (RFC 8285 section 4.2).
pub const LONGEST: usize = 16;

/// Length of the descriptor with these marks, bytes.
#[must_use]
pub fn length(marks: Marks) -> usize {
    if marks.has_structure() { MANDATORY + structure(marks.between()).1 } else { MANDATORY }
}

/// Encodes the descriptor with these marks: an array, and the number of its bytes that are used, which is [`length`].
#[must_use]
pub fn write(marks: Marks) -> ([u8; LONGEST], usize) {
    let mut bytes = [0; LONGEST];
    bytes[0] = (marks.position as u8) << 6 | if marks.is_key() { KEY } else { 1 + marks.between() };
    bytes[1..MANDATORY].copy_from_slice(&marks.frame.to_be_bytes());
    if !marks.has_structure() {
        return (bytes, MANDATORY);
    }
    let (structure, count) = structure(marks.between());
    bytes[MANDATORY..MANDATORY + count].copy_from_slice(&structure[..count]);
    (bytes, MANDATORY + count)
}

/// Parses a descriptor, which must have a structure as above in the first packet of a key frame, and none elsewhere.
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
    if template > Frame::BETWEEN_MAX + 1 {
        return Err(Error::Invalid { field: "dependency template", offset: 0, value: u64::from(template) });
    }
    let marks = |between: u8| {
        let frame = u16::from_be_bytes([high, low]);
        Marks::new(frame, Position::from_bits(first >> 6), template == KEY, between)
    };
    let without = marks(template.saturating_sub(1));
    if !without.has_structure() {
        let end = |&value: &u8| {
            let field = "end of the dependency descriptor";
            Error::Invalid { field, offset: MANDATORY, value: u64::from(value) }
        };
        return remainder.first().map_or(Ok(without), |value| Err(end(value)));
    }
    // the structure with the longest common beginning says what is wrong
    let mut furthest = 0;
    for between in 0..=Frame::BETWEEN_MAX {
        let (expected, count) = structure(between);
        if remainder == &expected[..count] {
            return Ok(marks(between));
        }
        let equal = remainder.iter().zip(&expected[..count]).take_while(|(one, other)| one == other).count();
        if equal == remainder.len() {
            return Err(Error::Truncated {
                field: "dependency structure",
                offset: MANDATORY,
                needed: count,
                available: remainder.len(),
            });
        }
        furthest = furthest.max(equal);
    }
    let value = u64::from(remainder[furthest]);
    Err(Error::Invalid { field: "dependency structure", offset: MANDATORY + furthest, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(frame: u16, position: Position, key: bool) -> Marks {
        Marks::new(frame, position, key, 0)
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
    fn a_stream_with_b_frames_has_a_template_for_each_distance() {
        assert_eq!(written(Marks::new(1, Position::Middle, false, 2)), [0b0000_0011, 0, 1]);
        let fields = [
            "10000 000000 00000",
            "00 00 00 11",
            "10 10 10 10",
            "0 1_0000_0 1_0001_0 1_0010_0",
            "1 0000 0001 0010 0011",
            "0",
        ];
        let mut bits: String = fields.concat().chars().filter(char::is_ascii_digit).collect();
        bits.extend(std::iter::repeat_n('0', bits.len().next_multiple_of(8) - bits.len()));
        let byte = |index: usize| u8::from_str_radix(&bits[8 * index..8 * index + 8], 2).expect("bits");
        let structure: Vec<u8> = (0..bits.len() / 8).map(byte).collect();
        let key = Marks::new(3, Position::Only, true, 2);
        assert_eq!(written(key), [&[0b1100_0000, 0, 3], &structure[..]].concat());
        assert_eq!(length(Marks::new(3, Position::Only, true, Frame::BETWEEN_MAX)), LONGEST);
    }

    #[test]
    fn what_was_written_is_read_and_what_makes_no_sense_is_not() {
        for frame in [0, 1, 0x8000, 0xffff] {
            for bits in 0..4 {
                for (key, between) in
                    [false, true].into_iter().flat_map(|key| (0..5).map(move |count| (key, count)))
                {
                    let marks = Marks::new(frame, Position::from_bits(bits), key, between);
                    if key && between > 0 && !marks.has_structure() {
                        continue;
                    }
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
            read(&[0b0000_0110, 0, 0]),
            Err(Error::Invalid { field: "dependency template", offset: 0, value: 6 })
        );
        let mut corrupted = written(marks(0, Position::First, true));
        corrupted[5] ^= 1;
        assert_eq!(
            read(&corrupted),
            Err(Error::Invalid { field: "dependency structure", offset: 5, value: 0x3b })
        );
    }
}
