//! How calls begin: the handshake over a socket, of both sides.

use super::offer::Offer;
use super::session::{Accepted, Parts, Session, Side};
use super::socket::Socket;
use super::{Ended, NoCall, Phase, Pulse, Wish};
use crate::clock::monotonic;
use crate::session::Ignored;
use crate::session::handshake::{Answer, Answerer, Caller, Failed};
use crate::session::keys::{NONCE, Nonce, PresharedKey};
use crate::session::message::{LARGEST, VERSION};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use tidegate_core::{Ecn, Rate, Span, Time};
use tidegate_endpoint::Endpoint;
use tidegate_sim::scenario::assemble::Maker;

/// A caller waits so long for an answer.
const PATIENCE: Span = Span::from_secs(5);
/// Datagrams that are read before anything else is done: a flood must not keep this side from it.
const AT_ONCE: usize = 64;
/// Whoever drives is asked this often.
const PULSE: Span = Span::from_millis(50);

/// What a caller needs.
#[derive(Debug)]
pub struct Calling {
    /// Where the other side is.
    pub peer: SocketAddr,
    /// Where this side is; any port of any address if not given.
    pub bind: Option<SocketAddr>,
    /// What both sides hold.
    pub key: PresharedKey,
    /// The most that this side sends.
    pub most: Rate,
    /// For the other side's record.
    pub about: String,
    /// A capture file, if what this side sees is to be kept.
    pub capture: Option<PathBuf>,
}

/// What an answerer needs.
#[derive(Debug)]
pub struct Answering {
    /// Where this side is.
    pub bind: SocketAddr,
    /// What both sides hold.
    pub key: PresharedKey,
    /// The most that this side sends.
    pub most: Rate,
    /// For the other side's record.
    pub about: String,
    /// A capture file, if what this side sees is to be kept.
    pub capture: Option<PathBuf>,
}

fn nonce() -> Result<Nonce, NoCall> {
    let mut nonce = [0; NONCE];
    getrandom::fill(&mut nonce)
        .map_err(|error| NoCall::Failed(format!("the system gives no random bytes: {error}")))?;
    Ok(nonce)
}

fn bound(at: SocketAddr, capture: Option<&Path>, name: &str) -> Result<Socket, NoCall> {
    let mut socket = Socket::bind(at).map_err(|error| {
        let expected = match error.kind() {
            io::ErrorKind::AddrInUse => "another port, for this one is in use",
            io::ErrorKind::AddrNotAvailable => "an address of this machine",
            io::ErrorKind::PermissionDenied => "a port from 1024 on, for smaller ones need rights",
            _ => return NoCall::Wrong(format!("{at}: {error}")),
        };
        NoCall::Wrong(format!("{at}: cannot be used; expected {expected}"))
    })?;
    if let Some(file) = capture {
        let failed = |error| NoCall::Failed(format!("{}: cannot be written: {error}", file.display()));
        socket.capture(file, name).map_err(failed)?;
    }
    Ok(socket)
}

fn version(other: u8) -> NoCall {
    NoCall::Failed(format!(
        "the other side speaks version {other} of the session's protocol, this side version {VERSION}; both need the same \
         tidegate"
    ))
}

fn broken(error: &io::Error) -> NoCall {
    NoCall::Failed(format!("the socket is of no more use: {error}"))
}

/// Time since something began.
fn since(begin: i64) -> Time {
    Time::from_nanos(monotonic() - begin)
}

/// Calls, and stays until the call is over. `pulse` is asked every 50 ms whether to go on.
///
/// # Errors
/// When there is no such address, no way to it, no answer within 5 s, or a refusal.
pub fn call(
    calling: Calling,
    endpoint: Endpoint,
    offer: Offer,
    pulse: &mut Pulse<'_>,
) -> Result<Ended, NoCall> {
    let Calling { peer, bind, key, most, about, capture } = calling;
    let any = if peer.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let bind = bind.unwrap_or(SocketAddr::new(any, 0));
    if bind.is_ipv6() != peer.is_ipv6() {
        return Err(NoCall::Wrong(format!("{bind}: expected an address of the same kind as {peer}")));
    }
    let mut socket = bound(bind, capture.as_deref(), "sender")?;
    socket.connect(peer).map_err(|error| NoCall::Wrong(format!("{peer}: there is no way to it: {error}")))?;
    let settings = offer.to_bytes().map_err(NoCall::Wrong)?;
    let mut caller = Caller::new(key, nonce()?, settings)
        .map_err(|found| NoCall::Wrong(format!("{found} bytes of settings do not fit into a datagram")))?;
    let mut ignored = Ignored::default();
    let (begin, mut beat, mut refused) = (monotonic(), Time::ZERO, false);
    let mut buffer = vec![0; LARGEST + 1];
    loop {
        for _ in 0..AT_ONCE {
            let Some(got) = socket.receive(&mut buffer).map_err(|error| broken(&error))? else { break };
            let told = caller.receive(since(begin), &buffer[..got.length], &mut ignored);
            match told {
                Ok(None) => {}
                Ok(Some(keys)) => {
                    let keys = (keys.there, keys.back);
                    let parts = Parts { side: Side::Caller, offer, endpoint, keys, most, accepted: None };
                    return Ok(Session::new(socket, parts).run(about, pulse));
                }
                Err(Failed::Version(other)) => return Err(version(other)),
                Err(Failed::Refused(reason)) => {
                    return Err(NoCall::Failed(format!("{peer} refuses the call: {reason}")));
                }
            }
        }
        let now = since(begin);
        if now > Time::ZERO + PATIENCE {
            let why = if refused {
                "nobody listens there; expected `tidegate live receive` at that address".to_owned()
            } else if ignored.forged > 0 {
                "what came has a wrong tag: the two sides have different keys".to_owned()
            } else {
                "nobody listens there, the way is blocked, or the other side has another key (it then says how many \
                 datagrams it ignored)"
                    .to_owned()
            };
            return Err(NoCall::Failed(format!("{peer} does not answer within {} s: {why}", 5)));
        }
        if let Some(bytes) = caller.advance(now) {
            // of what was said last: somebody may have come since
            refused = socket.refused();
            socket.send(&bytes, Ecn::NotEct, 0, None).map_err(|error| broken(&error))?;
        }
        if now >= beat {
            beat = now + PULSE;
            if pulse(Phase::Waiting, 0.0) == Wish::Stop {
                return Err(NoCall::Stopped(ignored));
            }
        }
        socket.wait(caller.due().min(beat) - since(begin)).map_err(|error| broken(&error))?;
    }
}

/// Waits for a call, answers it, and stays until it is over. Receiver halves come from `make`; `pulse` is asked every
/// 50 ms whether to go on.
///
/// # Errors
/// When there is no such address here, the port is in use, or the caller speaks another version.
pub fn answer(answering: Answering, make: &mut Maker<'_>, pulse: &mut Pulse<'_>) -> Result<Ended, NoCall> {
    let Answering { bind, key, most, about, capture } = answering;
    let mut socket = bound(bind, capture.as_deref(), "receiver")?;
    let answerer = Answerer::new(key, &nonce()?);
    let ours = nonce()?;
    let mut ignored = Ignored::default();
    let (begin, mut beat) = (monotonic(), Time::ZERO);
    let mut buffer = vec![0; LARGEST + 1];
    loop {
        for _ in 0..AT_ONCE {
            let Some(got) = socket.receive(&mut buffer).map_err(|error| broken(&error))? else { break };
            let now = since(begin);
            let reply = match answerer.receive(now, got.from, &buffer[..got.length], &mut ignored) {
                Answer::Nothing => None,
                Answer::Send(reply) => Some(reply),
                Answer::Version(other, reply) => {
                    socket.send(&reply, Ecn::NotEct, 0, Some(got.from)).map_err(|error| broken(&error))?;
                    return Err(version(other));
                }
                Answer::Offered(offered) => {
                    let made = Offer::from_bytes(&offered.settings)
                        .and_then(|offer| Ok((offer.endpoint(make)?, offer)));
                    match made {
                        Err(reason) => Some(answerer.refuse(&offered, &reason)),
                        Ok((endpoint, offer)) => {
                            let (reply, keys) = answerer.accept(&offered, &ours);
                            let sent = socket
                                .connect(got.from)
                                .and_then(|()| socket.send(&reply, Ecn::NotEct, 0, None));
                            sent.map_err(|error| broken(&error))?;
                            let accepted = Some(Accepted { reply, offer: buffer[..got.length].to_vec() });
                            let keys = (keys.back, keys.there);
                            let parts = Parts { side: Side::Answerer, offer, endpoint, keys, most, accepted };
                            let mut session = Session::new(socket, parts);
                            session.ignored_before(ignored);
                            return Ok(session.run(about, pulse));
                        }
                    }
                }
            };
            if let Some(reply) = reply {
                socket.send(&reply, Ecn::NotEct, 0, Some(got.from)).map_err(|error| broken(&error))?;
            }
        }
        let now = since(begin);
        if now >= beat {
            beat = now + PULSE;
            if pulse(Phase::Waiting, 0.0) == Wish::Stop {
                return Err(NoCall::Stopped(ignored));
            }
        }
        socket.wait(beat - since(begin)).map_err(|error| broken(&error))?;
    }
}
