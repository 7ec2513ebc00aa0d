//! The files of a session.

use super::Side;
use super::arrival::{ARRIVALS, Arrival, Ending, FATES};
use crate::capture::{Capture, Link};
use crate::writer::{Items, Writer};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A line of either file.
#[derive(Clone, Debug)]
pub enum Row {
    /// A packet that came in.
    Arrival(Arrival),
    /// What became of one.
    Ending(Ending),
    /// A frame that the device of a side has sent, with the kernel's stamp, or received, when it was written; for its
    /// capture file.
    Seen {
        /// Whose device.
        side: Side,
        /// When, in nanoseconds of real time.
        real: i64,
        /// Whether the device received it.
        inbound: bool,
        /// The frame.
        frame: Vec<u8>,
    },
}

/// So many rows go to the thread at once.
const CHUNK: usize = 256;

/// Takes rows and has them written.
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
    /// Begins `arrivals.csv` and `fates.csv` in `folder`, and with `captures` the capture file of each side. The thread has the scheduling of whoever calls this.
    ///
    /// # Errors
    /// When they cannot be made.
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
        let mut seen =
            captures.then(|| -> io::Result<_> { Ok([capture(Side::A)?, capture(Side::B)?]) }).transpose()?;
        let write = move |rows: Items<Row>| {
            let mut text = String::new();
            for row in rows {
                text.clear();
                match row {
                    Row::Arrival(one) => {
                        one.write(&mut text);
                        arrivals.write_all(text.as_bytes())?;
                    }
                    Row::Ending(one) => {
                        one.write(&mut text);
                        fates.write_all(text.as_bytes())?;
                    }
                    Row::Seen { side, real, inbound, frame } => {
                        if let Some(seen) = &mut seen {
                            seen[side as usize].packet(real, inbound, &frame)?;
                        }
                    }
                }
            }
            for one in seen.into_iter().flatten() {
                one.finish()?;
            }
            arrivals.flush()?;
            fates.flush()
        };
        Ok(Self { writer: Writer::begin("tidegate-log", CHUNK, write)?, captures })
    }

    /// Whether it keeps frames.
    #[must_use]
    pub fn captures(&self) -> bool {
        self.captures
    }

    /// Takes a row.
    pub fn put(&mut self, row: Row) {
        self.writer.put(row);
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// When something could not be.
    pub fn finish(self) -> io::Result<()> {
        self.writer.finish()
    }
}
