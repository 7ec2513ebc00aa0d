//! TCP against closed forms, against what ns-2 and ns-3 agree on, and against malicious networks.

mod acceptance;
mod bbr;
mod bench;
mod ecn;
mod fuzz;
mod harness;
mod reference;
mod rules_receiver;
mod rules_sender;
mod scalable;
