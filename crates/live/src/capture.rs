//! Writes capture files for Wireshark.
//!
//! The format is pcapng (draft-ietf-opsawg-pcapng) with one interface and time stamps in nanoseconds of real time.

use std::io::{self, Write};

/// Link type of a file, a value of LINKTYPE (draft-ietf-opsawg-pcaplinktype): the first header of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Ethernet header.
    Ethernet = 1,
    /// IPv4 or IPv6 header, by its version field.
    Raw = 101,
}

// sections 3.5, 4.2 and 4.3 of the draft
const END_OF_OPTIONS: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const INBOUND: u32 = 0b01;
const OUTBOUND: u32 = 0b10;

/// A capture file that is written packet by packet.
pub struct Capture<W>(W);

impl<W: Write> Capture<W> {
    /// Begins a file with an interface called `name`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(mut writer: W, link: Link, name: &str) -> io::Result<Self> {
        let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &u64::MAX.to_le_bytes()].concat();
        block(&mut writer, 0x0a0d_0d0a, &section)?;
        let mut interface = [&(link as u16).to_le_bytes()[..], &[0; 6]].concat();
        option(&mut interface, IF_NAME, name.as_bytes());
        option(&mut interface, IF_TSRESOL, &[9]);
        option(&mut interface, END_OF_OPTIONS, &[]);
        block(&mut writer, 1, &interface)?;
        Ok(Self(writer))
    }

    /// Writes a frame or packet, at `real` nanoseconds of real time.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn packet(&mut self, real: i64, inbound: bool, frame: &[u8]) -> io::Result<()> {
        let length = (frame.len() as u32).to_le_bytes();
        let (high, low) = ((real >> 32) as u32, real as u32);
        let mut body = [[0; 4], high.to_le_bytes(), low.to_le_bytes(), length, length].concat();
        body.extend(frame);
        body.resize(body.len().next_multiple_of(4), 0);
        option(&mut body, EPB_FLAGS, &(if inbound { INBOUND } else { OUTBOUND }).to_le_bytes());
        option(&mut body, END_OF_OPTIONS, &[]);
        block(&mut self.0, 6, &body)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.0.flush()?;
        Ok(self.0)
    }
}

fn option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    block.extend(code.to_le_bytes());
    block.extend((value.len() as u16).to_le_bytes());
    block.extend(value);
    block.resize(block.len().next_multiple_of(4), 0);
}

fn block(writer: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    // type, length, body in words of 32 bits, length again
    let length = (body.len() as u32 + 12).to_le_bytes();
    writer.write_all(&kind.to_le_bytes())?;
    writer.write_all(&length)?;
    writer.write_all(body)?;
    writer.write_all(&length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_words_and_say_their_length_twice() {
        let mut capture = Capture::begin(Vec::new(), Link::Ethernet, "A").unwrap();
        let real = 1_700_000_000_123_456_789;
        capture.packet(real, true, &[7; 61]).unwrap();
        capture.packet(real + 1, false, &[8; 64]).unwrap();
        let bytes = capture.finish().unwrap();
        let word = |offset: usize| u32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap());
        let (mut offset, mut kinds) = (0, Vec::new());
        while offset < bytes.len() {
            let length = word(offset + 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(offset + length - 4) as usize, length);
            kinds.push((word(offset), offset));
            offset += length;
        }
        assert_eq!(kinds.iter().map(|kind| kind.0).collect::<Vec<_>>(), [0x0a0d_0d0a, 1, 6, 6]);
        let packet = kinds[2].1;
        assert_eq!(i64::from(word(packet + 12)) << 32 | i64::from(word(packet + 16)), real);
        assert_eq!((word(packet + 20), word(packet + 24)), (61, 61));
        assert_eq!(bytes[packet + 28..packet + 89], [7; 61]);
    }
}
