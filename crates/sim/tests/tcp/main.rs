//! TCP against closed forms, against what ns-2 and ns-3 agree on, and against malicious networks.

mod acceptance;
mod harness;
mod reference;
