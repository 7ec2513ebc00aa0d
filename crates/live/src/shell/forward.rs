//! Forwards packets between the devices and the model: reads them with their time stamps, and writes them when they are
//! due.

use super::arrival::{Arrival, FateRecord};
use super::flows::Flows;
use super::frame::{self, Frame};
use super::lateness::{Lateness, LatenessSummary};
use super::log::{Log, Row};
use super::model::{Fate, Model, PacketExit};
use super::{Names, Side};
use crate::clock::{Bridge, Reading, monotonic};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use rustix::time::Timespec;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use tidegate_core::{Span, Time};
use tidegate_sim::engine::world::Stopped;
use tidegate_sim::scenario::{Outcome, Run};

/// Size of the frame buffer in bytes: more than a frame of a device with the usual MTU of 1500, or a jumbo frame.
const MAX_FRAME: usize = 9216;
/// Number of packets that are read from one device before the other device and the model have their turn.
const READ_BATCH: usize = 256;
/// Number of events of the model before the devices have their turn: about a millisecond of work.
const EVENT_BATCH: u64 = 4096;
/// Longest sleep in nanoseconds; the clocks are compared at each wakeup.
const MAX_SLEEP: i64 = 100_000_000;
/// Longest time in nanoseconds from the time stamp of a packet until it can be read: the sender may lose the processor
/// in between. A packet that is stamped before a smaller step of the clock and read after it is off by that step.
const MAX_STAMP_AGE: i64 = 50_000_000;
/// Time in nanoseconds without a sleep after which the thread sleeps for [`PAUSE`]: a thread with real-time priority
/// must leave the processor to the others from time to time (RLIMIT_RTTIME is 50 ms).
const MAX_BUSY: i64 = 10_000_000;
const PAUSE: i64 = 50_000;
/// Lag in nanoseconds beyond which the model does not catch up any more.
const MAX_LAG: i64 = 1_000_000_000;

/// A packet socket that is bound to one device.
pub struct Port(OwnedFd);

impl Port {
    /// Takes the packet socket with file descriptor `number` of this process, and enables time stamps in nanoseconds.
    ///
    /// # Errors
    /// If it is no open socket.
    pub fn of(number: i32) -> io::Result<Self> {
        let socket = descriptor(number)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(io::Error::from)?;
        Ok(Self(socket))
    }
}

/// Duplicates file descriptor `number` of this process. A number from Python may be invalid; this way the kernel checks
/// it, without unsafe code.
///
/// # Errors
/// If there is no such descriptor.
pub fn descriptor(number: i32) -> io::Result<OwnedFd> {
    let process = pidfd_open(getpid(), PidfdFlags::empty())?;
    Ok(pidfd_getfd(process, number, PidfdGetfdFlags::empty())?)
}

/// Reason why forwarding has stopped.
#[derive(Debug)]
pub enum StopReason {
    /// The scenario's time is over.
    Over,
    /// The `stop` descriptor was closed or written to.
    Stopped,
    /// A signal arrived; forwarding may go on.
    Interrupted,
    /// The model lags too far behind the wall clock.
    Behind(Span),
}

/// An error of forwarding.
#[derive(Debug)]
pub enum Error {
    /// A component of the scenario failed.
    Model(Stopped),
    /// A system call failed.
    System(io::Error),
}

impl From<Errno> for Error {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

/// Counts of packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Packets that entered the model.
    pub packets: u64,
    /// Frames that are no complete IPv4 packets.
    pub not_ipv4: u64,
    /// Packets that entered the model later than their time stamp, because the model had already passed it.
    pub clamped: u64,
    /// Packets without a time stamp, or with one that no clock offset explains.
    pub unstamped: u64,
    /// Packets that found the model full.
    pub overflowed: u64,
    /// Packets that the device of the opposite side did not accept.
    pub unwritten: u64,
    /// Steps of the real-time clock.
    pub steps: u64,
}

/// A session under way.
pub struct Shell {
    model: Model<Vec<u8>>,
    flows: Flows,
    bridge: Bridge,
    /// Monotonic time at model time 0.
    begin: i64,
    /// Last monotonic time at which each device had no unread packet.
    empty: [i64; 2],
    /// Monotonic time since which the thread has not slept.
    busy: i64,
    log: Log,
    counts: Counts,
    late: Lateness,
    clamped: Lateness,
    buffer: Box<[u8; MAX_FRAME]>,
    control: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

impl Shell {
    /// A session of a scenario, which begins now; `names` are the names of the external flows.
    ///
    /// # Errors
    /// If the scenario does not have these flows.
    pub fn new(run: Run, log: Log, names: &Names) -> Result<Self, String> {
        let model = Model::new(run, names)?;
        if model.flows() != names[0].len() {
            return Err(format!(
                "the scenario has {} external flows for each side; expected {}",
                model.flows(),
                names[0].len()
            ));
        }
        let flows = Flows::new(model.flows());
        let now = monotonic();
        Ok(Self {
            model,
            flows,
            bridge: Bridge::new(Reading::take()),
            begin: now,
            empty: [now; 2],
            busy: now,
            log,
            counts: Counts::default(),
            late: Lateness::default(),
            clamped: Lateness::default(),
            buffer: Box::new([0; MAX_FRAME]),
            control: nix::cmsg_space!(TimeSpec),
            spare: Vec::new(),
        })
    }

    fn model_time(&self, monotonic: i64) -> Time {
        Time::from_nanos(monotonic - self.begin)
    }

    /// The present in model time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.model_time(monotonic())
    }

    /// Forwards between the devices of A and B until the scenario's end, or until `stop` can be read.
    ///
    /// # Errors
    /// If the scenario or a system call fails.
    pub fn forward(&mut self, ports: [&Port; 2], stop: &OwnedFd) -> Result<StopReason, Error> {
        // for all timers of this thread; the default of 50 us is meant to save power
        nix::sys::prctl::set_timerslack(1).map_err(|error| Error::System(error.into()))?;
        let over = Time::ZERO + self.model.duration();
        self.busy = monotonic();
        loop {
            let now = monotonic();
            self.bridge.update(Reading::once());
            let mut all_read = true;
            for side in Side::ALL {
                all_read &= self.receive(ports[side as usize], side)?;
            }
            let until = self.model_time(now).min(over);
            let caught_up = self.advance(until, Some(ports))?;
            if until == over && caught_up {
                return Ok(StopReason::Over);
            }
            let behind = until - self.model.simulated();
            if behind > Span::from_nanos(MAX_LAG) {
                return Ok(StopReason::Behind(behind));
            }
            let now = monotonic();
            let next = self.model.next().unwrap_or(over).min(over);
            let mut sleep = (next - self.model_time(now)).as_nanos().clamp(0, MAX_SLEEP);
            if !all_read || !caught_up {
                sleep = 0;
            }
            if sleep > 0 {
                self.busy = now;
            } else if now - self.busy > MAX_BUSY {
                (sleep, self.busy) = (PAUSE, now);
            }
            let mut descriptors = [
                PollFd::new(&ports[0].0, PollFlags::IN),
                PollFd::new(&ports[1].0, PollFlags::IN),
                PollFd::new(stop, PollFlags::IN),
            ];
            let timeout = Timespec { tv_sec: 0, tv_nsec: sleep };
            match poll(&mut descriptors, Some(&timeout)) {
                Ok(_) => {}
                Err(Errno::INTR) => return Ok(StopReason::Interrupted),
                Err(error) => return Err(error.into()),
            }
            if !descriptors[2].revents().is_empty() {
                return Ok(StopReason::Stopped);
            }
        }
    }

    /// Reads the waiting packets of a device into the model; returns whether all were read.
    fn receive(&mut self, port: &Port, side: Side) -> Result<bool, Error> {
        for _ in 0..READ_BATCH {
            let mut slices = [IoSliceMut::new(&mut self.buffer[..])];
            let result = recvmsg::<()>(
                port.0.as_raw_fd(),
                &mut slices,
                Some(&mut self.control),
                MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC,
            );
            let message = match result {
                Ok(message) => message,
                Err(nix::Error::EAGAIN) => {
                    self.empty[side as usize] = monotonic();
                    return Ok(true);
                }
                Err(nix::Error::EINTR) => return Ok(false),
                Err(error) => return Err(Error::System(error.into())),
            };
            let stamp = message.cmsgs().ok().and_then(|mut controls| {
                controls.find_map(|control| match control {
                    ControlMessageOwned::ScmTimestampns(time) => {
                        Some(time.tv_sec() * 1_000_000_000 + time.tv_nsec())
                    }
                    _ => None,
                })
            });
            let length = message.bytes;
            self.packet(side, length, stamp);
        }
        Ok(false)
    }

    /// Enters the packet of `length` bytes in the buffer into the model.
    fn packet(&mut self, from: Side, length: usize, stamp: Option<i64>) {
        let Some(frame) = self.buffer.get(..length).and_then(|frame| Frame::parse(frame, from)) else {
            self.counts.not_ipv4 += 1;
            return;
        };
        let now = monotonic();
        let stamped =
            stamp.map(|stamp| self.bridge.monotonic(stamp, self.empty[from as usize] - MAX_STAMP_AGE, now));
        let (arrival, is_exact) = stamped.unwrap_or((now, false));
        if !self.model.has_room(frame.size) {
            self.counts.overflowed += 1;
            return;
        }
        let flow = self.flows.number(frame.tuple);
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(&self.buffer[..length]);
        let copy = self.log.captures().then(|| bytes.clone());
        let (stamp, real) = (self.model_time(arrival), self.bridge.real(arrival));
        let Some(entered) = self.model.enter(from, flow, stamp, frame.size, frame.ecn, bytes) else {
            // the packet arrived after the end of the session
            return;
        };
        self.counts.unstamped += u64::from(!is_exact);
        self.counts.packets += 1;
        if let Some(frame) = copy {
            self.log.put(Row::Frame { side: from, real, inbound: false, frame });
        }
        self.counts.clamped += u64::from(entered.clamped > Span::ZERO);
        self.clamped.add(entered.clamped);
        let (number, at, clamped) = (entered.number, entered.at, entered.clamped);
        self.log.put(Row::Arrival(Arrival { number, at, clamped, from, flow, frame }));
    }

    /// Runs the model up to `until`, and writes the packets that leave it to `ports`, if there are any.
    fn advance(&mut self, until: Time, ports: Option<[&Port; 2]>) -> Result<bool, Error> {
        let Self { model, log, counts, late, spare, begin, bridge, .. } = self;
        let on_exit = |exit: PacketExit<Vec<u8>>| {
            let PacketExit { number, at: due, from, fate, mut bytes, duplicate } = exit;
            let mut written = None;
            if let (Fate::Arrives { marked }, Some(ports)) = (fate, ports) {
                if marked {
                    frame::mark(&mut bytes);
                }
                let to = ports[from.opposite() as usize].0.as_fd();
                match rustix::net::send(to, &bytes, SendFlags::DONTWAIT) {
                    Ok(_) => {
                        let now = Time::from_nanos(monotonic() - *begin);
                        late.add(now - due);
                        written = Some(now);
                        if log.captures() {
                            let (side, real) = (from.opposite(), bridge.real(*begin + now.as_nanos()));
                            log.put(Row::Frame { side, real, inbound: true, frame: bytes.clone() });
                        }
                    }
                    // the device is down or its queue is full: the packet does not arrive
                    Err(_) => counts.unwritten += 1,
                }
            }
            // a copy is no packet of its own
            if !duplicate {
                log.put(Row::Fate(FateRecord { number, at: due, fate, written }));
            }
            if spare.len() < 1024 {
                spare.push(bytes);
            }
        };
        model.advance(until, EVENT_BATCH, on_exit).map_err(Error::Model)
    }

    /// The programs' flows by number.
    #[must_use]
    pub fn flows(&self) -> &Flows {
        &self.flows
    }

    /// The counts, the lateness of written packets, and the amounts by which arrivals were clamped.
    #[must_use]
    pub fn summary(&self) -> (Counts, LatenessSummary, LatenessSummary) {
        let counts = Counts { steps: self.bridge.steps().0, ..self.counts };
        (counts, self.late.summary(), self.clamped.summary())
    }

    /// Ends the session now, or at the scenario's end, and completes its files. Returns the end, and the recorded run.
    ///
    /// # Errors
    /// If the scenario fails at its end, or the files cannot be written.
    pub fn finish(mut self) -> Result<(Time, Outcome), Error> {
        // all packets stamped before this are in the model, and the model is not beyond it
        let end = self.now().max(self.model.simulated()).min(Time::ZERO + self.model.duration());
        while !self.advance(end, None)? {}
        self.log.finish().map_err(Error::System)?;
        let outcome = self.model.finish(end).map_err(Error::Model)?;
        Ok((end, outcome))
    }
}
