//! Behaviour of the simulator: a module for each of its parts, in one program, which builds in a fifth of the time of a program each.

mod bytes;
mod disciplines;
mod external;
mod legs;
mod links_reference;
mod lte;
mod managed;
mod marks;
mod moves;
mod mtu;
mod paths;
mod radios;
mod routes;
mod sessions;
mod stepped;
mod ties;
mod trace_formats;
mod traces;
