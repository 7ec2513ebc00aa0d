//! The check of the fuzz target of IP packets, for a thousand mutations.

#[path = "../../../fuzz/src/datagram.rs"]
#[allow(unreachable_pub)]
mod datagram;
#[path = "../../../fuzz/src/mutations.rs"]
#[allow(dead_code, unreachable_pub)]
mod mutations;

#[test]
fn ip_packets() {
    mutations::each("datagram", &mutations::arbitrary(), None, datagram::check);
}
