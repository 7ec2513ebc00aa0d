//! The engine in a browser. What a page sees is `page::World`; all that it does is in [`session`], which compiles
//! and is tested anywhere.
//!
//! Scenarios come lowered, as JSON, from Python: neither TOML nor units are read here. Controllers are those of the
//! registry.

#[cfg(target_arch = "wasm32")]
mod page;
pub mod session;
