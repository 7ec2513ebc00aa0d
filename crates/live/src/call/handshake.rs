//! The beginning of a call: the handshake of both sides over a socket.

use super::offer::Offer;
use super::session::{Accepted, Parts, Session, Side};
use super::socket::Socket;
use super::{CallError, EndedCall, Phase, Progress, ProgressReply};
use crate::clock::monotonic;
use crate::session::Ignored;
use crate::session::handshake::{Answerer, AnswererAction, Caller, HandshakeError};
use crate::session::keys::{NONCE, Nonce, PresharedKey};
use crate::session::message::{MAX_MESSAGE, VERSION};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use tidegate_core::{Ecn, Rate, Span, Time};
use tidegate_endpoint::Endpoint;
use tidegate_sim::scenario::assemble::Maker;

/// Time that a caller waits for an answer.
const ANSWER_TIMEOUT: Span = Span::from_secs(5);
/// Largest number of datagrams that are read at once: a flood must not keep this side from everything else.
const READ_BATCH: usize = 64;
/// Interval of the progress callback.
const PROGRESS_INTERVAL: Span = Span::from_millis(50);

/// Settings of a caller.
#[derive(Debug)]
pub struct CallerSettings {
    /// Address of the other side.
    pub peer: SocketAddr,
    /// Address of this side; any address and port if `None`.
    pub bind: Option<SocketAddr>,
    /// Key that both sides have.
    pub key: PresharedKey,
    /// Largest rate that this side sends.
    pub max_rate: Rate,
    /// Text for the other side's record.
    pub about: String,
    /// File for a capture of this side's datagrams, if wanted.
    pub capture: Option<PathBuf>,
}

/// Settings of an answerer.
#[derive(Debug)]
pub struct AnswererSettings {
    /// Address of this side.
    pub bind: SocketAddr,
    /// Key that both sides have.
    pub key: PresharedKey,
    /// Largest rate that this side sends.
    pub max_rate: Rate,
    /// Text for the other side's record.
    pub about: String,
    /// File for a capture of this side's datagrams, if wanted.
    pub capture: Option<PathBuf>,
}

fn nonce() -> Result<Nonce, CallError> {
    let mut nonce = [0; NONCE];
    getrandom::fill(&mut nonce)
        .map_err(|error| CallError::Failed(format!("the system provides no random bytes: {error}")))?;
    Ok(nonce)
}

fn bind_socket(address: SocketAddr, capture: Option<&Path>, name: &str) -> Result<Socket, CallError> {
    let mut socket = Socket::bind(address).map_err(|error| {
        let expected = match error.kind() {
            io::ErrorKind::AddrInUse => "another port; this one is in use",
            io::ErrorKind::AddrNotAvailable => "an address of this machine",
            io::ErrorKind::PermissionDenied => "a port from 1024 on; smaller ones need special rights",
            _ => return CallError::Invalid(format!("{address}: {error}")),
        };
        CallError::Invalid(format!("{address} cannot be used; expected {expected}"))
    })?;
    if let Some(file) = capture {
        let failed = |error| CallError::Failed(format!("{} cannot be written: {error}", file.display()));
        socket.capture(file, name).map_err(failed)?;
    }
    Ok(socket)
}

fn version_mismatch(version: u8) -> CallError {
    CallError::Failed(format!(
        "the other side speaks version {version} of the session's protocol, this side version {VERSION}; use the \
         same release of tidegate on both sides"
    ))
}

fn broken(error: &io::Error) -> CallError {
    CallError::Failed(format!("the socket has failed: {error}"))
}

/// Time since `begin`, a monotonic time in nanoseconds.
fn since(begin: i64) -> Time {
    Time::from_nanos(monotonic() - begin)
}

/// Calls, and returns when the call is over. `progress` is called every 50 ms and says whether to go on.
///
/// # Errors
/// If an address is invalid or not reachable, or there is no answer in time, or a refusal.
pub fn call(
    settings: CallerSettings,
    endpoint: Endpoint,
    offer: Offer,
    progress: &mut Progress<'_>,
) -> Result<EndedCall, CallError> {
    let CallerSettings { peer, bind, key, max_rate, about, capture } = settings;
    let any = if peer.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let bind = bind.unwrap_or(SocketAddr::new(any, 0));
    if bind.is_ipv6() != peer.is_ipv6() {
        return Err(CallError::Invalid(format!(
            "{bind}: expected an address of the same family (IPv4 or IPv6) as {peer}"
        )));
    }
    let mut socket = bind_socket(bind, capture.as_deref(), "sender")?;
    socket.connect(peer).map_err(|error| CallError::Invalid(format!("{peer} is not reachable: {error}")))?;
    let offer_bytes = offer.to_bytes().map_err(CallError::Invalid)?;
    let mut caller = Caller::new(key, nonce()?, offer_bytes).map_err(|length| {
        CallError::Invalid(format!("{length} bytes of settings do not fit into a datagram"))
    })?;
    let mut ignored = Ignored::default();
    let (begin, mut next_progress, mut refused) = (monotonic(), Time::ZERO, false);
    let mut buffer = vec![0; MAX_MESSAGE + 1];
    loop {
        for _ in 0..READ_BATCH {
            let Some(received) = socket.receive(&mut buffer).map_err(|error| broken(&error))? else { break };
            let bytes = &buffer[..received.length];
            let before = ignored.total();
            let outcome = if socket.is_peer(received.from) {
                caller.receive(since(begin), bytes, &mut ignored)
            } else {
                ignored.strangers += 1;
                Ok(None)
            };
            socket.capture_received(&received, bytes, ignored.total() > before);
            match outcome {
                Ok(None) => {}
                Ok(Some(keys)) => {
                    let keys = (keys.caller_to_answerer, keys.answerer_to_caller);
                    let (side, accepted) = (Side::Caller, None);
                    let parts = Parts { side, offer, endpoint, keys, max_rate, accepted, ignored };
                    return Ok(Session::new(socket, parts).run(about, progress));
                }
                Err(HandshakeError::Version(version)) => return Err(version_mismatch(version)),
                Err(HandshakeError::Refused(reason)) => {
                    return Err(CallError::Failed(format!("{peer} refused the call: {reason}")));
                }
            }
        }
        let now = since(begin);
        if now > Time::ZERO + ANSWER_TIMEOUT {
            let why = if refused {
                "no program listens there; start `tidegate live receive` at that address".to_owned()
            } else if ignored.forged > 0 {
                "the replies have a wrong tag: the two sides have different keys".to_owned()
            } else {
                "no program listens there, the path is blocked, or the other side has another key (it then shows the \
                 number of datagrams that it ignored)"
                    .to_owned()
            };
            let counts = if ignored.total() > 0 { format!("; {ignored}") } else { String::new() };
            let seconds = ANSWER_TIMEOUT.as_secs_f64();
            return Err(CallError::Failed(format!(
                "{peer} does not answer within {seconds} s: {why}{counts}"
            )));
        }
        if let Some(bytes) = caller.advance(now) {
            // whether the last message was refused; the other side may have started since
            refused = socket.refused();
            socket.send(&bytes, Ecn::NotEct, 0, None).map_err(|error| broken(&error))?;
        }
        if now >= next_progress {
            next_progress = now + PROGRESS_INTERVAL;
            if progress(Phase::Waiting, 0.0) == ProgressReply::Stop {
                return Err(CallError::Stopped(ignored));
            }
        }
        socket.wait(caller.due().min(next_progress) - since(begin)).map_err(|error| broken(&error))?;
    }
}

/// Waits for a call, answers it, and returns when it is over. `make` makes receiver halves; `progress` is called every
/// 50 ms and says whether to go on.
///
/// # Errors
/// If the address is not of this machine, the port is in use, or the caller speaks another version.
pub fn answer(
    settings: AnswererSettings,
    make: &mut Maker<'_>,
    progress: &mut Progress<'_>,
) -> Result<EndedCall, CallError> {
    let AnswererSettings { bind, key, max_rate, about, capture } = settings;
    let mut socket = bind_socket(bind, capture.as_deref(), "receiver")?;
    let answerer = Answerer::new(key, &nonce()?);
    let own_nonce = nonce()?;
    let mut ignored = Ignored::default();
    let (begin, mut next_progress) = (monotonic(), Time::ZERO);
    let mut buffer = vec![0; MAX_MESSAGE + 1];
    loop {
        for _ in 0..READ_BATCH {
            let Some(received) = socket.receive(&mut buffer).map_err(|error| broken(&error))? else { break };
            let (now, bytes, before) = (since(begin), &buffer[..received.length], ignored.total());
            let action = answerer.receive(now, received.from, bytes, &mut ignored);
            socket.capture_received(&received, bytes, ignored.total() > before);
            let reply = match action {
                AnswererAction::Ignore => None,
                AnswererAction::Send(reply) => Some(reply),
                AnswererAction::Version(version, reply) => {
                    socket
                        .send(&reply, Ecn::NotEct, 0, Some(received.from))
                        .map_err(|error| broken(&error))?;
                    return Err(version_mismatch(version));
                }
                AnswererAction::Offered(offered) => {
                    let prepared = Offer::from_bytes(&offered.settings)
                        .and_then(|offer| Ok((offer.endpoint(make)?, offer)));
                    match prepared {
                        Err(reason) => Some(answerer.refuse(&offered, &reason)),
                        Ok((endpoint, offer)) => {
                            let (reply, keys) = answerer.accept(&offered, &own_nonce);
                            let sent = socket
                                .connect(received.from)
                                .and_then(|()| socket.send(&reply, Ecn::NotEct, 0, None));
                            sent.map_err(|error| broken(&error))?;
                            let accepted = Some(Accepted { reply, offer: bytes.to_vec() });
                            let keys = (keys.answerer_to_caller, keys.caller_to_answerer);
                            let side = Side::Answerer;
                            let parts = Parts { side, offer, endpoint, keys, max_rate, accepted, ignored };
                            return Ok(Session::new(socket, parts).run(about, progress));
                        }
                    }
                }
            };
            if let Some(reply) = reply {
                socket.send(&reply, Ecn::NotEct, 0, Some(received.from)).map_err(|error| broken(&error))?;
            }
        }
        let now = since(begin);
        if now >= next_progress {
            next_progress = now + PROGRESS_INTERVAL;
            if progress(Phase::Waiting, 0.0) == ProgressReply::Stop {
                return Err(CallError::Stopped(ignored));
            }
        }
        socket.wait(next_progress - since(begin)).map_err(|error| broken(&error))?;
    }
}
