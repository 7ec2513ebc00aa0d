//! A UDP socket for calls: kernel receive time stamps, the ECN field in both directions, waits with nanosecond
//! timeouts, and a capture file of its datagrams.

use super::tap::{CapturedDatagram, Tap};
use crate::clock::real;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrStorage, bind,
    connect, getsockname, recvmsg, sendmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use tidegate_core::{Ecn, Span};

/// Receive buffer for datagrams that arrive while this process is not running: half a second of 16 Mb/s.
const RECEIVE_BUFFER: usize = 1 << 20;

/// Largest number of ignored datagrams in a capture file: the datagrams of a stranger must not fill the disk.
const MAX_IGNORED_CAPTURED: u32 = 10_000;

/// A socket of one address family.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    v6: bool,
    space: Vec<u8>,
    refused: bool,
    /// Its address, and that of its peer if it is connected.
    ends: (SocketAddr, Option<SocketAddr>),
    tap: Option<Tap>,
    /// Number of ignored datagrams in the capture file.
    ignored_captured: u32,
}

/// A received datagram, whose bytes are in the caller's buffer.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Bytes in the buffer: its length, or the buffer's length if that is less.
    pub length: usize,
    /// Its source address.
    pub from: SocketAddr,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its DSCP.
    pub dscp: u8,
    /// Time at which the kernel received it, in nanoseconds of CLOCK_REALTIME.
    pub stamp: Option<i64>,
}

impl Socket {
    /// Binds a socket to `address`; port 0 is any free port.
    ///
    /// # Errors
    /// Those of the system calls: the address is not of this machine, the port is in use.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let v6 = address.is_ipv6();
        let family = if v6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(family, SockType::Datagram, flags, None)?;
        if v6 {
            setsockopt(&fd, sockopt::Ipv6V6Only, &true)?;
            setsockopt(&fd, sockopt::Ipv6RecvTClass, &true)?;
        } else {
            setsockopt(&fd, sockopt::IpRecvTos, &true)?;
        }
        setsockopt(&fd, sockopt::ReceiveTimestampns, &true)?;
        setsockopt(&fd, sockopt::RcvBuf, &RECEIVE_BUFFER)?;
        bind(fd.as_raw_fd(), &SockaddrStorage::from(address))?;
        let space = cmsg_space!(TimeSpec, u8, i32);
        let ends = (address, None);
        let mut socket = Self { fd, v6, space, refused: false, ends, tap: None, ignored_captured: 0 };
        socket.ends.0 = socket.address()?;
        Ok(socket)
    }

    /// Writes the datagrams from now on to a capture file, with an interface called `name`: those sent, and those given to
    /// [`Socket::capture_received`].
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn capture(&mut self, file: &Path, name: &str) -> io::Result<()> {
        self.tap = Some(Tap::begin(file, name)?);
        Ok(())
    }

    /// Ends the capture file, if there is one.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn end_capture(&mut self) -> io::Result<()> {
        self.tap.take().map_or(Ok(()), Tap::finish)
    }

    /// Connects to `peer`: the kernel drops datagrams that come from other addresses from now on (but see
    /// [`Socket::is_peer`]), and ICMP errors about `peer` are received.
    ///
    /// # Errors
    /// The error of the system call: there is no route to it.
    pub fn connect(&mut self, peer: SocketAddr) -> io::Result<()> {
        connect(self.fd.as_raw_fd(), &SockaddrStorage::from(peer))?;
        // a socket that was bound to any address now has the source address of the route to the peer
        self.ends = (self.address()?, Some(peer));
        Ok(())
    }

    /// Its address.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn address(&self) -> io::Result<SocketAddr> {
        let name: SockaddrStorage = getsockname(self.fd.as_raw_fd())?;
        address(&name).ok_or_else(|| io::Error::other("the socket has no address"))
    }

    /// Receives the next datagram, if there is one. A datagram longer than `buffer` is cut.
    ///
    /// # Errors
    /// If the socket has failed. A peer without a listener is no error, see [`Socket::refused`].
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut parts = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let result =
            recvmsg::<SockaddrStorage>(self.fd.as_raw_fd(), &mut parts, Some(&mut self.space), flags);
        let message = match result {
            Ok(message) => message,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            // errors about datagrams sent earlier
            Err(error @ (Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH)) => {
                self.refused |= error == Errno::ECONNREFUSED;
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let Some(from) = message.address.as_ref().and_then(address) else { return Ok(None) };
        let (mut field, mut stamp) = (0, None);
        // control messages that are cut off count as missing
        for control in message.cmsgs().into_iter().flatten() {
            match control {
                ControlMessageOwned::Ipv4Tos(tos) => field = tos,
                ControlMessageOwned::Ipv6TClass(class) => field = class as u8,
                ControlMessageOwned::ScmTimestampns(time) => {
                    stamp = Some(time.tv_sec() * 1_000_000_000 + time.tv_nsec());
                }
                _ => {}
            }
        }
        let length = message.bytes;
        Ok(Some(Received { length, from, ecn: Ecn::from_bits(field), dscp: field >> 2, stamp }))
    }

    /// Writes a received datagram to the capture file, if there is one. Of the datagrams that were `ignored`, the file has
    /// the first 10 000.
    pub fn capture_received(&mut self, received: &Received, bytes: &[u8], ignored: bool) {
        let Some(tap) = &mut self.tap else { return };
        if ignored {
            if self.ignored_captured == MAX_IGNORED_CAPTURED {
                return;
            }
            self.ignored_captured += 1;
        }
        let Received { from, ecn, dscp, stamp, .. } = *received;
        let (real, class) = (stamp.unwrap_or_else(real), dscp << 2 | ecn as u8);
        tap.put(CapturedDatagram {
            real,
            inbound: true,
            from,
            to: self.ends.0,
            class,
            bytes: bytes.to_vec(),
        });
    }

    /// Whether an address is that of the peer. Datagrams from other addresses that came before the socket was connected
    /// are received after it, too.
    #[must_use]
    pub fn is_peer(&self, from: SocketAddr) -> bool {
        self.ends.1.is_some_and(|peer| (peer.ip(), peer.port()) == (from.ip(), from.port()))
    }

    /// Whether the network has reported since the last call that nothing listens at the peer of a connected socket.
    pub fn refused(&mut self) -> bool {
        std::mem::take(&mut self.refused)
    }

    /// Sends a datagram; `to` is `None` if the socket is connected. Returns false if the kernel had no room for it or
    /// no route to the address: it counts as lost.
    ///
    /// # Errors
    /// If the socket has failed, or the datagram is too long for the path's first link.
    pub fn send(&mut self, bytes: &[u8], ecn: Ecn, dscp: u8, to: Option<SocketAddr>) -> io::Result<bool> {
        let field = dscp << 2 | ecn as u8;
        let class = i32::from(field);
        let control =
            if self.v6 { [ControlMessage::Ipv6TClass(&class)] } else { [ControlMessage::Ipv4Tos(&field)] };
        let storage = to.map(SockaddrStorage::from);
        let fd = self.fd.as_raw_fd();
        let parts = [IoSlice::new(bytes)];
        match sendmsg(fd, &parts, &control, MsgFlags::MSG_DONTWAIT, storage.as_ref()) {
            Ok(_) => {
                if let Some((tap, to)) = self.tap.as_mut().zip(to.or(self.ends.1)) {
                    let (real, from, bytes) = (real(), self.ends.0, bytes.to_vec());
                    tap.put(CapturedDatagram { real, inbound: false, from, to, class: field, bytes });
                }
                Ok(true)
            }
            Err(Errno::ECONNREFUSED) => {
                self.refused = true;
                Ok(false)
            }
            Err(
                Errno::EAGAIN
                | Errno::EINTR
                | Errno::ENOBUFS
                | Errno::EHOSTUNREACH
                | Errno::ENETUNREACH
                | Errno::ENETDOWN
                | Errno::EPERM,
            ) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until there is a datagram, or `span` is over, or a signal arrives.
    ///
    /// # Errors
    /// If the socket has failed.
    pub fn wait(&self, span: Span) -> io::Result<()> {
        let nanos = span.as_nanos().max(0);
        let timeout = TimeSpec::new(nanos / 1_000_000_000, nanos % 1_000_000_000);
        let mut fds = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut fds, Some(timeout), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|v4| SocketAddr::V4(SocketAddrV4::new(v4.ip(), v4.port())));
    v4.or_else(|| {
        let v6 = storage.as_sockaddr_in6()?;
        Some(SocketAddr::V6(SocketAddrV6::new(v6.ip(), v6.port(), v6.flowinfo(), v6.scope_id())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic;

    #[test]
    fn datagrams_come_with_their_ecn_field_and_a_stamp() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            let address: SocketAddr = loopback.parse().expect("an address");
            let Ok(mut receiver) = Socket::bind(address) else {
                // a machine without IPv6
                assert!(address.is_ipv6(), "{address}");
                continue;
            };
            let mut sender = Socket::bind(address).expect("another one");
            let to = receiver.address().expect("bound");
            assert!(receiver.receive(&mut [0; 10]).expect("it works").is_none());
            for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                assert!(sender.send(b"here it is", ecn, 46, Some(to)).expect("sent"));
                receiver.wait(Span::from_secs(5)).expect("it comes");
                let mut buffer = [0; 10];
                let received = receiver.receive(&mut buffer).expect("it works").expect("it has come");
                assert_eq!((received.length, received.ecn, received.dscp), (10, ecn, 46), "{loopback}");
                assert_eq!(&buffer, b"here it is");
                assert_eq!(received.from, sender.address().expect("bound"));
                assert!(received.stamp.is_some());
            }
        }
    }

    #[test]
    fn a_capture_file_has_a_limited_number_of_ignored_datagrams() {
        let address: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let mut socket = Socket::bind(address).expect("bound");
        let file = std::env::temp_dir().join(format!("tidegate-ignored-{}.pcapng", std::process::id()));
        socket.capture(&file, "test").expect("a file");
        let received = Received { length: 4, from: address, ecn: Ecn::NotEct, dscp: 0, stamp: Some(1) };
        for number in 0..MAX_IGNORED_CAPTURED + 500 {
            socket.capture_received(&received, b"noise", true);
            if number % 1000 == 0 {
                socket.capture_received(&received, b"media", false);
            }
        }
        socket.end_capture().expect("written");
        let bytes = std::fs::read(&file).expect("a file");
        std::fs::remove_file(&file).expect("it is there");
        let count = |text: &[u8]| bytes.windows(text.len()).filter(|window| *window == text).count();
        assert_eq!((count(b"noise"), count(b"media")), (10_000, 11));
    }

    #[test]
    fn a_peer_without_a_listener_is_reported() {
        let gone = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
        let mut sender = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
        sender.connect(gone.address().expect("bound")).expect("a way");
        drop(gone);
        assert!(sender.send(b"?", Ecn::NotEct, 0, None).expect("sent"));
        sender.wait(Span::from_secs(1)).expect("it works");
        assert!(sender.receive(&mut [0; 8]).expect("no error of this side").is_none());
        assert!(sender.refused() && !sender.refused());
    }

    #[test]
    fn waiting_ends_in_time() {
        let socket = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
        let before = monotonic();
        socket.wait(Span::from_millis(20)).expect("it works");
        assert!(monotonic() - before >= 20_000_000);
    }

    #[test]
    fn a_port_in_use_and_an_address_of_another_machine_are_errors() {
        let first = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
        let in_use = Socket::bind(first.address().expect("bound")).map(drop);
        assert_eq!(in_use.map_err(|error| error.kind()), Err(io::ErrorKind::AddrInUse));
        let foreign = Socket::bind("192.0.2.1:5004".parse().expect("an address")).map(drop);
        assert_eq!(foreign.map_err(|error| error.kind()), Err(io::ErrorKind::AddrNotAvailable));
    }
}
