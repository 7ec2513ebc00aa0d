//! Between the devices and the model: packets are read with their stamps, and written when they are due.

use super::arrival::{Arrival, Ending};
use super::flows::Flows;
use super::frame::{self, Frame};
use super::lateness::{Late, Lateness};
use super::log::{Log, Row};
use super::model::{Decided, Fate, Model};
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

/// More than any frame of a device whose MTU is the usual 1500, and than jumbo frames.
const LONGEST: usize = 9216;
/// So many packets are read from one device before the other, and the model, have their turn.
const TURN: usize = 256;
/// The model does so many events before the devices have their turn: about a millisecond's worth.
const EVENTS: u64 = 4096;
/// Sleeps no longer than this, in nanoseconds: the clocks are compared at each wakeup.
const COMPARE: i64 = 100_000_000;
/// So long before a device was seen without an unread packet, in nanoseconds, one may have been stamped that was not
/// there yet: whoever sends it may lose the processor in between. A packet that is stamped before a smaller step of the
/// clock and read after it is off by that step.
const UNDER_WAY: i64 = 50_000_000;
/// Who has not slept for so long, in nanoseconds, does so for [`BREATH`]: whoever runs at a real-time priority must not
/// keep a processor from everybody else (RLIMIT_RTTIME is 50 ms).
const BUSY: i64 = 10_000_000;
const BREATH: i64 = 50_000;
/// A model that is so far behind, in nanoseconds, does not catch up any more.
const BEHIND: i64 = 1_000_000_000;

/// A packet socket that is bound to one device.
pub struct Port(OwnedFd);

impl Port {
    /// The packet socket that is file descriptor `number` of this process; it is asked for stamps in nanoseconds.
    ///
    /// # Errors
    /// When it is no open socket.
    pub fn of(number: i32) -> io::Result<Self> {
        let socket = descriptor(number)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(io::Error::from)?;
        Ok(Self(socket))
    }
}

/// A copy of file descriptor `number` of this process. A number that comes from Python may be of anything or nothing:
/// the kernel is asked, and no unsafe promise is made.
///
/// # Errors
/// When there is no such descriptor.
pub fn descriptor(number: i32) -> io::Result<OwnedFd> {
    let process = pidfd_open(getpid(), PidfdFlags::empty())?;
    Ok(pidfd_getfd(process, number, PidfdGetfdFlags::empty())?)
}

/// Why forwarding has come to an end.
#[derive(Debug)]
pub enum End {
    /// The scenario's time is over.
    Over,
    /// Somebody has closed, or written to, what ends it.
    Stopped,
    /// A signal came; forwarding may go on.
    Interrupted,
    /// The model is too far behind the wall clock.
    Behind(Span),
}

/// What went wrong.
#[derive(Debug)]
pub enum Error {
    /// A component of the scenario failed.
    Model(Stopped),
    /// A system call did.
    System(io::Error),
}

impl From<Errno> for Error {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Packets that came in.
    pub packets: u64,
    /// Frames that are no whole IPv4 packets.
    pub other: u64,
    /// Packets that entered the model later than their stamp, because the model had got further.
    pub clamped: u64,
    /// Packets that had no stamp, or one that nothing explains.
    pub unstamped: u64,
    /// Packets that the device at the far side did not take.
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
    /// When each device had no unread packet.
    empty: [i64; 2],
    /// Since when it has not slept.
    busy: i64,
    log: Log,
    counts: Counts,
    late: Lateness,
    clamped: Lateness,
    buffer: Box<[u8; LONGEST]>,
    control: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

impl Shell {
    /// A session of a scenario, which begins now; `names` are those of the programs' flows.
    ///
    /// # Errors
    /// When the scenario has no flows for it.
    pub fn new(run: Run, log: Log, names: &Names) -> Result<Self, String> {
        let model = Model::new(run, names)?;
        if model.flows() != names[0].len() {
            return Err(format!("has {} flows of each side; expected {}", model.flows(), names[0].len()));
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
            buffer: Box::new([0; LONGEST]),
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
    /// When the scenario or a system call fails.
    pub fn forward(&mut self, ports: [&Port; 2], stop: &OwnedFd) -> Result<End, Error> {
        // of all timers in this thread; the default of 50 us is for the sake of batteries
        nix::sys::prctl::set_timerslack(1).map_err(|error| Error::System(error.into()))?;
        let over = Time::ZERO + self.model.duration();
        self.busy = monotonic();
        loop {
            let now = monotonic();
            self.bridge.update(Reading::once());
            let mut all = true;
            for side in Side::ALL {
                all &= self.read(ports[side as usize], side)?;
            }
            let until = self.model_time(now).min(over);
            let caught_up = self.advance(until, Some(ports))?;
            if until == over && caught_up {
                return Ok(End::Over);
            }
            let behind = until - self.model.simulated();
            if behind > Span::from_nanos(BEHIND) {
                return Ok(End::Behind(behind));
            }
            let now = monotonic();
            let next = self.model.next().unwrap_or(over).min(over);
            let mut sleep = (next - self.model_time(now)).as_nanos().clamp(0, COMPARE);
            if !all || !caught_up {
                sleep = 0;
            }
            if sleep > 0 {
                self.busy = now;
            } else if now - self.busy > BUSY {
                (sleep, self.busy) = (BREATH, now);
            }
            let mut wanted = [
                PollFd::new(&ports[0].0, PollFlags::IN),
                PollFd::new(&ports[1].0, PollFlags::IN),
                PollFd::new(stop, PollFlags::IN),
            ];
            let timeout = Timespec { tv_sec: 0, tv_nsec: sleep };
            match poll(&mut wanted, Some(&timeout)) {
                Ok(_) => {}
                Err(Errno::INTR) => return Ok(End::Interrupted),
                Err(error) => return Err(error.into()),
            }
            if !wanted[2].revents().is_empty() {
                return Ok(End::Stopped);
            }
        }
    }

    /// Reads what waits at a device, into the model; says whether nothing is left.
    fn read(&mut self, port: &Port, side: Side) -> Result<bool, Error> {
        for _ in 0..TURN {
            let mut slices = [IoSliceMut::new(&mut self.buffer[..])];
            let got = recvmsg::<()>(
                port.0.as_raw_fd(),
                &mut slices,
                Some(&mut self.control),
                MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC,
            );
            let got = match got {
                Ok(got) => got,
                Err(nix::Error::EAGAIN) => {
                    self.empty[side as usize] = monotonic();
                    return Ok(true);
                }
                Err(nix::Error::EINTR) => return Ok(false),
                Err(error) => return Err(Error::System(error.into())),
            };
            let stamp = got.cmsgs().ok().and_then(|mut all| {
                all.find_map(|one| match one {
                    ControlMessageOwned::ScmTimestampns(at) => {
                        Some(at.tv_sec() * 1_000_000_000 + at.tv_nsec())
                    }
                    _ => None,
                })
            });
            let bytes = got.bytes;
            self.packet(side, bytes, stamp);
        }
        Ok(false)
    }

    /// Takes the packet of `bytes` bytes in the buffer into the model.
    fn packet(&mut self, from: Side, bytes: usize, stamp: Option<i64>) {
        let Some(frame) = self.buffer.get(..bytes).and_then(|frame| Frame::read(frame, from)) else {
            self.counts.other += 1;
            return;
        };
        let now = monotonic();
        let stamped =
            stamp.map(|stamp| self.bridge.monotonic(stamp, self.empty[from as usize] - UNDER_WAY, now));
        let (at, known) = stamped.unwrap_or((now, false));
        let flow = self.flows.number(frame.tuple);
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(&self.buffer[..bytes]);
        let seen = self.log.captures().then(|| kept.clone());
        let (stamp, real) = (self.model_time(at), self.bridge.real(at));
        let Some(entered) = self.model.enter(from, flow, stamp, frame.size, frame.ecn, kept) else {
            // we have read it late, and the session was over when it came
            return;
        };
        self.counts.unstamped += u64::from(!known);
        self.counts.packets += 1;
        if let Some(frame) = seen {
            self.log.put(Row::Seen { side: from, real, inbound: false, frame });
        }
        self.counts.clamped += u64::from(entered.clamped > Span::ZERO);
        self.clamped.add(entered.clamped);
        let (number, at, clamped) = (entered.number, entered.at, entered.clamped);
        self.log.put(Row::Arrival(Arrival { number, at, clamped, from, flow, frame }));
    }

    /// Lets the model do what happens up to `until`, and writes what comes out, if there is somewhere to write.
    fn advance(&mut self, until: Time, ports: Option<[&Port; 2]>) -> Result<bool, Error> {
        let Self { model, log, counts, late, spare, begin, bridge, .. } = self;
        let tell = |one: Decided<Vec<u8>>| {
            let Decided { number, at, from, fate, mut bytes } = one;
            let mut written = None;
            if let (Fate::Arrives { marked }, Some(ports)) = (fate, ports) {
                if marked {
                    frame::mark(&mut bytes);
                }
                let to = ports[from.other() as usize].0.as_fd();
                match rustix::net::send(to, &bytes, SendFlags::DONTWAIT) {
                    Ok(_) => {
                        let now = Time::from_nanos(monotonic() - *begin);
                        late.add(now - at);
                        written = Some(now);
                        if log.captures() {
                            let (side, real) = (from.other(), bridge.real(*begin + now.as_nanos()));
                            log.put(Row::Seen { side, real, inbound: true, frame: bytes.clone() });
                        }
                    }
                    // the device is down or its queue is full: the far side has not got it
                    Err(_) => counts.unwritten += 1,
                }
            }
            log.put(Row::Ending(Ending { number, at, fate, written }));
            if spare.len() < 1024 {
                spare.push(bytes);
            }
        };
        model.advance(until, EVENTS, tell).map_err(Error::Model)
    }

    /// The programs' flows by number.
    #[must_use]
    pub fn flows(&self) -> &Flows {
        &self.flows
    }

    /// What was counted, how late packets were written, and by how much arrivals were clamped.
    #[must_use]
    pub fn summary(&self) -> (Counts, Late, Late) {
        let counts = Counts { steps: self.bridge.steps().0, ..self.counts };
        (counts, self.late.summary(), self.clamped.summary())
    }

    /// Ends the session at the present, or the scenario's end: its files are whole then. The time, and the run as it
    /// was recorded meanwhile.
    ///
    /// # Errors
    /// When the scenario fails at its end, or the files could not be written.
    pub fn finish(mut self) -> Result<(Time, Outcome), Error> {
        // what was stamped before this is in the model; nothing is behind it
        let end = self.now().max(self.model.simulated()).min(Time::ZERO + self.model.duration());
        while !self.advance(end, None)? {}
        self.log.finish().map_err(Error::System)?;
        let outcome = self.model.finish(end).map_err(Error::Model)?;
        Ok((end, outcome))
    }
}
