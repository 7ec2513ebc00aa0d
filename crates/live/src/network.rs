//! Network namespaces of threads, and capabilities in them.

use nix::sched::{CloneFlags, setns, unshare};
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// Makes a new network namespace; it lasts as long as the file descriptor, or a process in it.
///
/// # Errors
/// Without CAP_SYS_ADMIN in the user namespace.
pub fn make() -> io::Result<OwnedFd> {
    // unshare(2) moves only the calling thread
    let thread = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from)?;
        File::open("/proc/thread-self/ns/net").map(OwnedFd::from)
    });
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that makes a network has panicked")))
}

/// Moves the calling thread, and the threads and programs that it starts from now on, into a network namespace.
///
/// # Errors
/// If the descriptor is no namespace, or without CAP_SYS_ADMIN over it.
pub fn enter(namespace: &OwnedFd) -> io::Result<()> {
    setns(namespace, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)
}

/// Rights that programs of root keep: other users' files, processes and numbers, ports below 1024, priorities, and user
/// namespaces with a root (which need SETFCAP since Linux 5.12). None of them leads to another network, or past the
/// links.
const OF_ROOT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_NICE);

/// Leaves the calling thread, and the programs that it starts, without capabilities, or with those of `OF_ROOT` if it is root's.
///
/// No program gets others back (capabilities(7)): neither because it is root's (`NO_ROOT`, locked) nor because its file
/// has the set-user-ID bit or capabilities (`no_new_privs`). The bounding set stays: without the capabilities of its file
/// in that set, a program such as `ping` could not be started at all.
///
/// # Errors
/// If the kernel refuses.
pub fn drop_rights() -> io::Result<()> {
    // in a container even root has fewer
    let kept =
        if geteuid().is_root() { OF_ROOT & capabilities(None)?.permitted } else { CapabilitySet::empty() };
    set_no_new_privs(true)?;
    if geteuid().is_root() {
        set_capabilities_secure_bits(
            CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED,
        )?;
    }
    clear_ambient_capability_set()?;
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: kept })?;
    for capability in kept.iter() {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}
