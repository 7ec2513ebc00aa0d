//! Connects two programs by a scenario's links: packets of real devices go through the engine's world.
//!
//! The model uses the kernel's time stamp of each arrival, and not the time at which the packet was read. It therefore
//! is exact even if wakeups are late. Only the writing of packets is late then, and that lateness is measured.

pub mod arrival;
pub mod flows;
pub mod forward;
pub mod frame;
pub mod lateness;
pub mod log;
pub mod model;
pub mod replay;

/// One of the two ends of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The first program, from which the scenario's call is sent.
    A,
    /// The second program.
    B,
}

impl Side {
    /// Both sides.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// Its letter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }

    /// The opposite side.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// Number of flows that a session distinguishes; each has an external flow in the scenario for each direction. All
/// further flows share the last one.
pub const FLOWS: usize = 128;

/// The names of the external flows of each side.
pub type Names = [Vec<String>; 2];

/// `A-1`, `B-1` and so on, up to [`FLOWS`] of each side.
#[must_use]
pub fn usual_names() -> Names {
    Side::ALL.map(|side| (1..=FLOWS).map(|number| format!("{}-{number}", side.name())).collect())
}
