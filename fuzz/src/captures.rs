//! Changes captures by their records, blocks and the fields of their packets, so that lengths around a change fit.

use crate::mutations::Rng;

/// A packet of pcap: its time stamp, its length on the link, its frame.
#[derive(Clone)]
struct Record {
    stamp: [u32; 2],
    length: u32,
    frame: Vec<u8>,
}

/// A block of pcapng: its type and its body.
type Block = (u32, Vec<u8>);

/// Bytes of an enhanced packet block before its frame.
const PACKET_HEADER: usize = 20;

/// Changes one part of a capture; other bytes stay as they are.
pub fn change(input: &mut Vec<u8>, rng: &mut Rng) {
    if let Some(mut blocks) = blocks(input) {
        change_blocks(&mut blocks, rng);
        *input = blocks.iter().flat_map(encode_block).collect();
    } else if let Some((mut header, mut records)) = records(input) {
        if rng.below(16) == 0 {
            // magic and link type
            match rng.below(2) {
                0 => header[..4].copy_from_slice(
                    &[0xa1b2_c3d4u32, 0xa1b2_3c4d, 0xd4c3_b2a1, 0x4d3c_b2a1][rng.below(4)].to_le_bytes(),
                ),
                _ => header[20] = LINKS[rng.below(LINKS.len())],
            }
        } else {
            change_records(&mut records, rng);
        }
        *input = header;
        for Record { stamp: [seconds, part], length, frame } in records {
            for field in [seconds, part, frame.len() as u32, length] {
                input.extend(field.to_le_bytes());
            }
            input.extend(frame);
        }
    }
}

const LINKS: [u8; 9] = [0, 1, 12, 14, 101, 108, 113, 228, 2];

// --- files ----------------------------------------------------------------------------------------

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The header and the records of a little-endian pcap file.
fn records(bytes: &[u8]) -> Option<(Vec<u8>, Vec<Record>)> {
    if !matches!(word(bytes, 0)?, 0xa1b2_c3d4 | 0xa1b2_3c4d) {
        return None;
    }
    let (header, mut rest) = bytes.split_at_checked(24)?;
    let mut records = Vec::new();
    while let Some((head, after)) = rest.split_at_checked(16) {
        let size = word(head, 8)? as usize;
        let Some((frame, after)) = after.split_at_checked(size) else { break };
        let stamp = [word(head, 0)?, word(head, 4)?];
        records.push(Record { stamp, length: word(head, 12)?, frame: frame.to_vec() });
        rest = after;
    }
    Some((header.to_vec(), records))
}

/// The blocks of a little-endian pcapng file.
fn blocks(mut bytes: &[u8]) -> Option<Vec<Block>> {
    if word(bytes, 0)? != 0x0a0d_0d0a || word(bytes, 8)? != 0x1a2b_3c4d {
        return None;
    }
    let mut blocks = Vec::new();
    while let (Some(kind), Some(length)) = (word(bytes, 0), word(bytes, 4)) {
        let Some((block, rest)) = bytes.split_at_checked(length as usize).filter(|_| length >= 12) else {
            break;
        };
        blocks.push((kind, block[8..block.len() - 4].to_vec()));
        bytes = rest;
    }
    Some(blocks)
}

fn encode_block((kind, body): &Block) -> Vec<u8> {
    let mut body = body.clone();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = (body.len() as u32 + 12).to_le_bytes();
    [kind.to_le_bytes().as_slice(), &length, &body, &length].concat()
}

fn change_records(records: &mut Vec<Record>, rng: &mut Rng) {
    if records.is_empty() {
        return;
    }
    let (at, other) = (rng.below(records.len()), rng.below(records.len()));
    match rng.below(10) {
        0 => drop(records.remove(at)),
        1 => records.insert(other, records[at].clone()),
        2 => records.swap(at, other),
        3 => {
            let part = rng.below(2);
            records[at].stamp[part] = rng.number(records[at].stamp[part].into()) as u32;
        }
        4 => records[at].length = rng.number(records[at].length.into()) as u32,
        _ => change_frame(&mut records[at].frame, rng),
    }
}

fn change_blocks(blocks: &mut Vec<Block>, rng: &mut Rng) {
    if blocks.is_empty() {
        return;
    }
    let (at, other) = (rng.below(blocks.len()), rng.below(blocks.len()));
    let (kind, body) = &mut blocks[at];
    match rng.below(10) {
        0 => drop(blocks.remove(at)),
        1 => blocks.insert(other, blocks[at].clone()),
        2 => blocks.swap(at, other),
        3 => *kind = [1, 2, 3, 4, 5, 6, 0x0a0d_0d0a, rng.next() as u32][rng.below(8)],
        // fields of a header, and options of two bytes each for code and length
        4 | 5 => change_fields(body, [2, 4][rng.below(2)], PACKET_HEADER, rng),
        _ if *kind == 6 && body.len() > PACKET_HEADER => {
            let (captured, length) = (word(body, 12).unwrap_or(0) as usize, word(body, 16).unwrap_or(0));
            let end = (PACKET_HEADER + captured).min(body.len());
            let (mut frame, options) = (body[PACKET_HEADER..end].to_vec(), body[end..].to_vec());
            change_frame(&mut frame, rng);
            let lengths = [frame.len() as u32, length.max(frame.len() as u32)];
            body.truncate(12);
            lengths.iter().for_each(|length| body.extend(length.to_le_bytes()));
            body.extend(&frame);
            body.resize(body.len().next_multiple_of(4), 0);
            body.extend(options.iter().skip(captured.next_multiple_of(4) - captured));
        }
        _ => {
            let length = body.len();
            change_fields(body, [1, 2, 4, 8][rng.below(4)], length, rng);
        }
    }
}

// --- packets --------------------------------------------------------------------------------------

/// Puts another number into one of the fields of `width` bytes in the first `reach` bytes.
fn change_fields(bytes: &mut [u8], width: usize, reach: usize, rng: &mut Rng) {
    let at = rng.below(reach.min(bytes.len()).div_ceil(width)) * width;
    if let Some(field) = bytes.get_mut(at..at + width) {
        let value = field.iter().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
        field.copy_from_slice(&rng.number(value).to_be_bytes()[8 - width..]);
    }
}

/// Offsets of the IP packet and of the UDP header in a frame.
fn headers(frame: &[u8]) -> Option<(usize, usize)> {
    [14, 0, 4, 16, 20, 18].into_iter().find_map(|ip| match frame.get(ip)? >> 4 {
        4 if frame.get(ip + 9) == Some(&17) => Some((ip, ip + 4 * usize::from(frame[ip] & 15))),
        6 if frame.get(ip + 6) == Some(&17) => Some((ip, ip + 40)),
        _ => None,
    })
}

/// Changes a field of a packet's headers or its payload, and mostly makes the lengths of IP and UDP right.
fn change_frame(frame: &mut Vec<u8>, rng: &mut Rng) {
    let Some((ip, udp)) = headers(frame).filter(|&(_, udp)| udp + 8 <= frame.len()) else {
        return change_fields(frame, 1, usize::MAX, rng);
    };
    match rng.below(8) {
        0 => change_fields(&mut frame[ip..udp], [1, 2, 4][rng.below(3)], usize::MAX, rng),
        1 => change_fields(&mut frame[udp..udp + 8], 2, usize::MAX, rng),
        _ => {
            let mut payload = frame.split_off(udp + 8);
            change_payload(&mut payload, rng);
            frame.extend(payload);
        }
    }
    if rng.below(8) > 0 {
        let length = (frame.len() - udp) as u16;
        frame[udp + 4..udp + 6].copy_from_slice(&length.to_be_bytes());
        let (field, length) =
            if frame[ip] >> 4 == 4 { (ip + 2, frame.len() - ip) } else { (ip + 4, length.into()) };
        frame[field..field + 2].copy_from_slice(&(length as u16).to_be_bytes());
    }
}

fn change_payload(payload: &mut Vec<u8>, rng: &mut Rng) {
    let is_rtcp = payload.get(1).is_some_and(|kind| (192..224).contains(kind));
    match rng.below(8) {
        0 => payload.truncate(rng.below(payload.len() + 1)),
        1 => payload.extend((0..4 * rng.below(9)).map(|_| rng.byte())),
        _ if is_rtcp => change_rtcp(payload, rng),
        // RTP: bits, type, sequence number, timestamp, SSRC, CSRCs or extensions
        2 => change_fields(payload, 1, 2, rng),
        3 | 4 => {
            let at = payload.len().min(2);
            change_fields(&mut payload[at..], 2, 2, rng);
        }
        5 => {
            let at = payload.len().min(12);
            change_fields(&mut payload[at..], [1, 2][rng.below(2)], 24, rng);
        }
        _ => change_fields(payload, 4, 16, rng),
    }
}

fn change_rtcp(payload: &mut Vec<u8>, rng: &mut Rng) {
    let mut packets: Vec<Vec<u8>> = Vec::new();
    let mut rest = payload.as_slice();
    while let Some(&[_, _, high, low]) = rest.first_chunk::<4>() {
        let length = 4 + 4 * usize::from(u16::from_be_bytes([high, low]));
        let (packet, after) = rest.split_at(length.min(rest.len()));
        packets.push(packet.to_vec());
        rest = after;
    }
    if packets.is_empty() {
        return;
    }
    let (at, other) = (rng.below(packets.len()), rng.below(packets.len()));
    match rng.below(8) {
        0 => drop(packets.remove(at)),
        1 => packets.insert(other, packets[at].clone()),
        2 => packets[at][0] = packets[at][0] & 0xe0 | rng.byte() & 0x1f,
        3 if packets[at].len() > 1 => packets[at][1] = 200 + rng.below(8) as u8,
        // words put in or taken away, with a length that fits
        4 => {
            let packet = &mut packets[at];
            let more = 4 * rng.below(12);
            packet.resize(if rng.below(2) == 0 { packet.len() + more } else { more + 4 }, rng.byte());
            let words = (packet.len() / 4 - 1) as u16;
            packet[2..4].copy_from_slice(&words.to_be_bytes());
        }
        _ => {
            let start = packets[at].len().min(4);
            change_fields(&mut packets[at][start..], [1, 2, 4][rng.below(3)], usize::MAX, rng);
        }
    }
    *payload = packets.concat();
}
