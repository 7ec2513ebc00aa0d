//! TCP compared with closed forms and with ns-2 and ns-3, and over malicious networks.

mod acceptance;
mod bbr;
mod bbr3;
mod bench;
mod ecn;
mod fuzz;
mod harness;
mod offload;
mod reference;
mod rules_rack;
mod rules_receiver;
mod rules_sender;
mod scalable;
mod timestamps;
