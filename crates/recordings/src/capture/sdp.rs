//! Clock rates by session descriptions (RFC 8866) that are in a capture: in SIP, RTSP or SAP.

use crate::kinds::{Format, Formats};
use crate::point::Nanos;

/// Adds the formats of all session descriptions in a datagram or message that was captured at a time.
pub(super) fn add_formats(at: Nanos, payload: &[u8], formats: &mut Formats) {
    /// RFC 8866 section 5.1: each begins with its version.
    const BEGIN: &[u8] = b"v=0";
    /// Largest number of bytes before a description: headers of SIP.
    const MAX_HEAD: usize = 8192;
    let head = &payload[..payload.len().min(MAX_HEAD)];
    let Some(begin) = head.windows(BEGIN.len()).position(|window| window == BEGIN) else { return };
    let text = String::from_utf8_lossy(&payload[begin..]);
    // port of the media section that is being read, and whether it is audio
    let mut section = None;
    for line in text.lines() {
        if let Some(media) = line.strip_prefix("m=") {
            // audio 49170 RTP/AVP 0 96
            let port = media.split(' ').nth(1).and_then(|port| port.split('/').next()?.parse::<u16>().ok());
            section = port.map(|port| (port, media.starts_with("audio")));
        } else if let (Some(map), Some((port, is_audio))) = (line.strip_prefix("a=rtpmap:"), section) {
            // 96 opus/48000/2
            let Some((kind, encoding)) = map.split_once(' ') else { continue };
            let clock = encoding.trim().split('/').nth(1).and_then(|clock| clock.parse().ok());
            if let (Ok(kind), Some(clock @ 1000..=1_000_000)) = (kind.parse(), clock) {
                formats.add(at, port, kind, Format { clock, is_audio });
            }
        }
    }
}
