//! Compressed messages of a call, with a limit on their uncompressed size.

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use std::io::{Read, Write};

/// Compresses `bytes`.
///
/// # Errors
/// With the reason, if they cannot be compressed.
pub(super) fn deflate(bytes: &[u8], level: Compression) -> Result<Vec<u8>, String> {
    let mut encoder = DeflateEncoder::new(Vec::new(), level);
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|error| error.to_string())
}

/// Uncompresses `bytes` to at most `max` bytes, which the error calls `contents`: a few bytes must not fill the memory.
///
/// # Errors
/// With the reason, if they are not compressed data, or are too long.
pub(super) fn inflate(bytes: &[u8], max: u64, contents: &str) -> Result<Vec<u8>, String> {
    let mut uncompressed = Vec::new();
    let mut decoder = DeflateDecoder::new(bytes).take(max + 1);
    decoder.read_to_end(&mut uncompressed).map_err(|error| error.to_string())?;
    if uncompressed.len() as u64 > max {
        return Err(format!("more than {max} {contents}"));
    }
    Ok(uncompressed)
}
