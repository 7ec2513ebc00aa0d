//! Radio networks: many users share what the air carries.

pub mod lte;
