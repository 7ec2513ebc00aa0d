//! The engine in a browser. A page uses `page::World`; its implementation is in [`session`], which compiles and is
//! tested on any platform.
//!
//! Scenarios come lowered, as JSON, from Python: this crate parses neither TOML nor units. Controllers are those of the
//! registry.

#[cfg(target_arch = "wasm32")]
mod page;
pub mod session;
