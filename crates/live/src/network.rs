//! Network namespaces of threads, and capabilities in them.

use nix::sched::{CloneFlags, setns, unshare};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
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

/// Clears the ambient and inheritable capabilities of the calling thread, so that programs that it starts have no more
/// rights in the namespaces than outside (capabilities(7)). Programs of root keep root's capabilities.
///
/// # Errors
/// If the kernel refuses.
pub fn drop_rights() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let sets = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::empty(), ..sets })?;
    Ok(())
}
