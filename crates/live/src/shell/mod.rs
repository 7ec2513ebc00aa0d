//! Links of a scenario between two programs: packets of a real device go through the engine's world.
//!
//! The clock of the model is the kernel's stamp of each arrival, not the moment at which we woke and read it. So its
//! arithmetic is exact however late we are; late is only the writing, and that is measured.

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
    /// The first program: where the scenario's call is sent from.
    A,
    /// The second one.
    B,
}

impl Side {
    /// Both.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// Its letter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// Flows that a session tells apart: each has an external flow in the scenario for each direction. What comes after
/// shares the last one.
pub const FLOWS: usize = 32;

/// The names of the flows that stand for what each side sends.
pub type Names = [Vec<String>; 2];

/// `A-1`, `B-1` and so on, up to [`FLOWS`] of each side.
#[must_use]
pub fn usual_names() -> Names {
    Side::ALL.map(|side| (1..=FLOWS).map(|number| format!("{}-{number}", side.name())).collect())
}
