//! The largest IP packet of a link (MTU), and the fate of larger ones.

use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use tidegate_core::wire::ip::IP_HEADER;
use tidegate_core::{Cause, FlowId, Outbox, Packet, Time};

/// Bytes of the IP header of each fragment.
const HEADER: u32 = IP_HEADER as u32;

/// The largest IP packet of a link, and what it does with larger ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MtuSettings {
    /// Bytes of the largest packet, with its IP header.
    pub bytes: u32,
    /// The fate of larger ones.
    #[serde(default)]
    pub too_big: TooBig,
}

/// The fate of packets that are too big for a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TooBig {
    /// They go on in fragments (RFC 791 section 2.3), which are lost as a whole.
    #[default]
    Fragment,
    /// They are dropped in silence, as where messages of ICMP are filtered (RFC 2923 section 2.1).
    Drop,
    /// They are dropped, and their sender hears of it, which from then on sends fragments: a UDP socket of Linux
    /// (`IP_PMTUDISC_WANT`) after ICMP's "fragmentation needed" (RFC 1191) or "packet too big" (RFC 8201).
    Report,
}

impl MtuSettings {
    /// The smallest MTU: that which each host must take in (RFC 791 section 3.1).
    const MIN: u32 = 576;

    /// Checks that the values are in their ranges.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        ensure(self.bytes >= Self::MIN, || {
            Refusal::new(
                "mtu",
                format!("{} bytes", self.bytes),
                format!("at least {} bytes (RFC 791)", Self::MIN),
            )
        })
    }

    /// The number of fragments of a packet: each has an IP header, and carries a multiple of 8 bytes, but for the last.
    fn fragments(&self, size: u32) -> u32 {
        (size - HEADER).div_ceil((self.bytes - HEADER) & !7)
    }
}

/// A link's limit of sizes, and the packets that were beyond it.
#[derive(Clone, Debug)]
pub(crate) struct Mtu {
    settings: MtuSettings,
    /// When the sender of a flow hears that its packets are too big.
    heard: BTreeMap<FlowId, Time>,
    fragmented: u64,
    dropped: u64,
    largest: u32,
}

impl Mtu {
    /// A limit; its settings must be valid.
    pub(crate) fn new(settings: MtuSettings) -> Self {
        Self { settings, heard: BTreeMap::new(), fragmented: 0, dropped: 0, largest: 0 }
    }

    /// Changes the limit for packets that come from now on; senders hear anew of a smaller one.
    pub(crate) fn change(&mut self, settings: MtuSettings) {
        if settings.bytes < self.settings.bytes || settings.too_big != self.settings.too_big {
            self.heard.clear();
        }
        self.settings = settings;
    }

    /// Lets a packet pass, if need be as fragments, or drops it; returns whether it passes.
    pub(crate) fn pass(&mut self, now: Time, packet: &mut Packet, out: &mut Outbox) -> bool {
        let MtuSettings { bytes, too_big } = self.settings;
        if packet.size <= bytes {
            return true;
        }
        let passes = match too_big {
            TooBig::Fragment => true,
            TooBig::Drop => false,
            TooBig::Report => {
                // the message takes as long back as the packet took without queues
                let back = now - packet.sent - packet.queued;
                packet.sent >= *self.heard.entry(packet.flow).or_insert(now + back)
            }
        };
        self.largest = self.largest.max(packet.size);
        if passes {
            self.fragmented += u64::from(packet.fragments == 0);
            packet.fragments = packet.fragments.max((self.settings.fragments(packet.size) - 1) as u8);
        } else {
            self.dropped += 1;
            out.discard(now, packet, Cause::TooBig);
        }
        passes
    }

    /// Warns about packets that were too big.
    pub(crate) fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        let Self { settings: MtuSettings { bytes, .. }, fragmented, dropped, largest, .. } = *self;
        let of_them = |count: u64, fate: &str| {
            let packets = if count == 1 { "packet" } else { "packets" };
            format!("{count} {packets} of up to {largest} bytes, above its MTU of {bytes}, {fate}")
        };
        if fragmented > 0 {
            let fate = "went as fragments, each of which can be lost: smaller payloads avoid it";
            tell("mtu", of_them(fragmented, fate));
        }
        if dropped > 0 {
            tell("mtu", of_them(dropped, "were dropped: smaller payloads avoid it"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_carry_multiples_of_eight_bytes() {
        let of = |bytes, size| MtuSettings { bytes, too_big: TooBig::Fragment }.fragments(size);
        // RFC 791's example: 276 bytes of data in packets of 280 bytes are 256 and 20
        assert_eq!(of(1500, 1501), 2);
        assert_eq!(of(1500, 20 + 1480), 1);
        assert_eq!(of(1500, 20 + 1480 + 1), 2);
        // 1280 - 20 = 1260, of which 1256 are a multiple of 8
        assert_eq!((of(1280, 20 + 1256), of(1280, 20 + 2 * 1256), of(1280, 20 + 2 * 1256 + 1)), (1, 2, 3));
        assert_eq!(of(MtuSettings::MIN, 65_535), 119);
    }

    #[test]
    fn an_mtu_below_what_a_host_must_take_is_refused() {
        let settings = |bytes| MtuSettings { bytes, too_big: TooBig::Drop };
        assert_eq!(settings(576).check(), Ok(()));
        let refusal = settings(575).check().unwrap_err().to_string();
        assert!(refusal.starts_with("mtu: found 575 bytes; expected at least 576"), "{refusal}");
    }
}
