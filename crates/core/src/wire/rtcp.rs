//! RTCP packets.

/// An application-defined packet (RFC 3550 section 6.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// Five bits for the application's use.
    pub subtype: u8,
    /// SSRC of the sender.
    pub ssrc: u32,
    /// Four ASCII characters.
    pub name: [u8; 4],
    /// Data, a multiple of four bytes.
    pub data: Vec<u8>,
}

/// One RTCP packet of a compound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Application-defined.
    App(App),
}
