//! Network namespaces and the rights in them, as they concern one thread.

use nix::sched::{CloneFlags, setns, unshare};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// A network namespace of its own; it lasts as long as the file descriptor, or a process in it.
///
/// # Errors
/// Without CAP_SYS_ADMIN in the user namespace.
pub fn make() -> io::Result<OwnedFd> {
    // unshare(2) moves the calling thread alone
    let made = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from)?;
        File::open("/proc/thread-self/ns/net").map(OwnedFd::from)
    });
    made.join().unwrap_or_else(|_| Err(io::Error::other("the thread that makes a network has panicked")))
}

/// Moves the calling thread, and what it starts from now on, into a network namespace.
///
/// # Errors
/// When it is none, or without CAP_SYS_ADMIN over it.
pub fn enter(namespace: &OwnedFd) -> io::Result<()> {
    setns(namespace, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)
}

/// Takes from the calling thread what would give programs that it starts rights in the namespaces: they are then what
/// they are outside (capabilities(7)). Programs of root keep what root has.
///
/// # Errors
/// When the kernel refuses.
pub fn drop_rights() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let sets = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::empty(), ..sets })?;
    Ok(())
}
