//! Behaviour of the controllers: a module for each of them and for what all of them have to do, in one program.

mod closed_loop;
mod docs;
mod fuzzed_reports;
mod gcc_settings;
mod gcc_vectors;
mod late_alarms;
mod libwebrtc_faults;
mod libwebrtc_flow;
mod libwebrtc_loop;
mod libwebrtc_parts;
mod libwebrtc_recordings;
mod nada;
mod nada_vectors;
mod operations;
mod placements;
mod reports;
mod scream;
mod scream_equations;
mod scream_ericsson;
mod scream_recordings;
mod scream_senders;
mod scream_v1;
mod sprout;
mod support;
mod tfrc;
