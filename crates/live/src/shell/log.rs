//! The files of a session.

use super::Side;
use super::arrival::{ARRIVALS, Arrival, FATES, FateRecord};
use crate::capture::{Capture, Link};
use crate::writer::{Items, Writer};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A line of either file.
#[derive(Clone, Debug)]
pub enum Row {
    /// A packet that arrived.
    Arrival(Arrival),
    /// The fate of a packet.
    Fate(FateRecord),
    /// A frame for the capture file of a side.
    Frame {
        /// The side of the device.
        side: Side,
        /// Nanoseconds of real time: the kernel's time stamp if the device sent the frame, else the time of writing.
        real: i64,
        /// Whether the device received it.
        inbound: bool,
        /// The frame.
        frame: Vec<u8>,
    },
}

/// Number of rows that go to the writing thread at once.
const CHUNK: usize = 256;

/// The log of a session, which is written by a thread of its own.
pub struct Log {
    writer: Writer<Row>,
    captures: bool,
}

/// The capture file of a side.
#[must_use]
pub fn capture_file(side: Side) -> String {
    format!("packets-{}.pcapng", side.name())
}

impl Log {
    /// Begins `arrivals.csv` and `fates.csv` in `folder`, and with `captures` the capture file of each side. The
    /// writing thread has the scheduling of the calling thread.
    ///
    /// # Errors
    /// If the files cannot be created.
    pub fn begin(folder: &Path, captures: bool) -> io::Result<Self> {
        let file = |name: &str, head: &str| -> io::Result<_> {
            let mut file = BufWriter::new(File::create(folder.join(name))?);
            writeln!(file, "{head}")?;
            Ok(file)
        };
        let mut arrivals = file("arrivals.csv", ARRIVALS)?;
        let mut fates = file("fates.csv", FATES)?;
        let capture = |side: Side| {
            let file = BufWriter::new(File::create(folder.join(capture_file(side)))?);
            Capture::begin(file, Link::Ethernet, side.name())
        };
        let mut pcaps =
            captures.then(|| -> io::Result<_> { Ok([capture(Side::A)?, capture(Side::B)?]) }).transpose()?;
        let write = move |rows: Items<Row>| {
            let mut text = String::new();
            for row in rows {
                text.clear();
                match row {
                    Row::Arrival(arrival) => {
                        arrival.write(&mut text);
                        arrivals.write_all(text.as_bytes())?;
                    }
                    Row::Fate(fate) => {
                        fate.write(&mut text);
                        fates.write_all(text.as_bytes())?;
                    }
                    Row::Frame { side, real, inbound, frame } => {
                        if let Some(pcaps) = &mut pcaps {
                            pcaps[side as usize].packet(real, inbound, &frame)?;
                        }
                    }
                }
            }
            for pcap in pcaps.into_iter().flatten() {
                pcap.finish()?;
            }
            arrivals.flush()?;
            fates.flush()
        };
        Ok(Self { writer: Writer::begin("tidegate-log", CHUNK, write)?, captures })
    }

    /// Whether it writes capture files.
    #[must_use]
    pub fn captures(&self) -> bool {
        self.captures
    }

    /// Adds a row.
    pub fn put(&mut self, row: Row) {
        self.writer.put(row);
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn finish(self) -> io::Result<()> {
        self.writer.finish()
    }
}
