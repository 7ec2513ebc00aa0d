//! The playout buffer: puts frames together, and shows them in order at their time or gives them up.
//!
//! Only what can be decoded is shown: a video frame that is complete, and either a key frame or one whose reference was
//! decoded. Its reference is the frame before it, or before the B frames that it follows.
//!
//! A frame that is complete after its deadline is decoded. Video with an adaptive delay shows it at once, as libwebrtc
//! does: `FrameDecodeTiming::OnFrameBufferUpdated` (`video/frame_decode_timing.cc`) skips a late frame only if a newer one
//! can be decoded without it. With a fixed delay, and for audio, it is not shown.

mod freeze;
mod key_timer;

use crate::clock::Drift;
use crate::settings::Playout;
use freeze::FreezeWatch;
use key_timer::KeyTimer;
use std::collections::VecDeque;
use tidegate_core::driver::Driver;
use tidegate_core::record::FrameRecord;
use tidegate_core::wire::wrap;
use tidegate_core::{FlowId, Frame, Span, Time};

/// Number of frames whose transits determine the adaptive delay: some three seconds of video.
const RECENT_FRAMES: usize = 100;
/// Number of frames that may be open at once; the oldest give way.
const OPEN_MAX: usize = 4096;

/// Jump in frame numbers that counts as a new numbering, and not as a loss.
const JUMP_MAX: u32 = 1 << 16;

/// A frame that is being put together; empty before its first packet.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Its time of capture, by the sender's media clock, since the first frame.
    media: Option<Span>,
    first: Option<i64>,
    last: Option<i64>,
    received: i64,
    complete: Option<Time>,
    /// When it was to be shown, if it could not be decoded then.
    due: Option<Time>,
    key: bool,
    /// Number of frames between it and the one to which it refers, if it is no key frame.
    between: u8,
}

impl Slot {
    fn is_complete(&self) -> bool {
        matches!((self.first, self.last), (Some(first), Some(last)) if self.received > last - first)
    }
}

/// The playout buffer of one stream.
#[derive(Debug)]
pub(crate) struct PlayoutBuffer {
    flow: FlowId,
    video: bool,
    mode: Playout,
    clock_rate: u32,
    /// Drift of the receiver's clock.
    drift: Drift,
    /// Open frames by number, from `base` on.
    slots: VecDeque<Slot>,
    base: u32,
    started: bool,
    /// The last frame that came from before `base`.
    stray: Option<u32>,
    /// RTP timestamps, unwrapped: of the first packet, and the latest one.
    origin: i64,
    timestamp: i64,
    clock: DelayClock,
    due: Time,
    freeze: FreezeWatch,
    /// The first frame that may yet be repaired: with an adaptive delay, later ones wait for it.
    first_repairable: Option<u32>,
    /// Whether missing packets are requested until they come: with an adaptive delay, frames wait for them even beyond
    /// their deadline, because no later frame can be decoded without them.
    waits: bool,
    /// When key frames are requested as libwebrtc requests them beside packets.
    key_timer: Option<KeyTimer>,
    /// A bit for each of the last 32 frames before `base`, set if it was decoded; the lowest is that of the last frame.
    decoded: u32,
    /// The last frame that is missing as a reference, until a packet of a later key frame arrives.
    broken: Option<u32>,
    /// The last missing frame that held up a complete one.
    stalled: Option<u32>,
}

impl PlayoutBuffer {
    /// An empty buffer.
    pub(crate) fn new(flow: FlowId, video: bool, mode: Playout, clock_rate: u32) -> Self {
        Self {
            flow,
            video,
            mode,
            clock_rate,
            drift: Drift::default(),
            slots: VecDeque::new(),
            base: 0,
            started: false,
            stray: None,
            origin: 0,
            timestamp: 0,
            clock: DelayClock::default(),
            due: Time::MAX,
            freeze: FreezeWatch::default(),
            first_repairable: None,
            waits: false,
            key_timer: None,
            decoded: 0,
            broken: None,
            stalled: None,
        }
    }

    /// Sets the drift of the receiver's clock, by which frames are shown.
    pub(crate) fn set_drift(&mut self, drift: Drift) {
        self.drift = drift;
    }

    /// Sets which requests the receiver makes: of packets, and of key frames.
    pub(crate) fn set_requests(&mut self, packets: bool, key_frames: bool) {
        self.waits = packets && matches!(self.mode, Playout::Adaptive { .. });
        self.key_timer = (self.waits && key_frames).then(KeyTimer::default);
    }

    /// When a frame is to be shown or given up.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// The number of the first frame that was neither shown nor given up.
    pub(crate) fn base(&self) -> u32 {
        self.base
    }

    /// Whether a key frame is to be requested: a frame to which later ones refer is missing, and no packet of a later
    /// key frame has arrived. Where packets are requested, too, [`KeyTimer`] decides.
    pub(crate) fn wants_key(&self) -> bool {
        self.key_timer.as_ref().map_or(self.broken.is_some(), |timer| timer.wanted)
    }

    /// Notes that a key frame is requested.
    pub(crate) fn key_requested(&mut self) {
        self.key_timer.iter_mut().for_each(|timer| timer.wanted = false);
    }

    /// Notes that more packets are missing than are requested.
    pub(crate) fn too_many_missing(&mut self) {
        self.key_timer.iter_mut().for_each(|timer| timer.wanted = true);
    }

    /// Sets the first frame that may yet be repaired, which counts from the next run on.
    pub(crate) fn set_first_repairable(&mut self, first: Option<u32>) {
        self.first_repairable = first;
    }

    /// Adds the first copy of a packet of `frame`, with its RTP timestamp and its unwrapped sequence number; returns
    /// whether it is in time.
    pub(crate) fn packet(
        &mut self,
        now: Time,
        frame: Frame,
        timestamp: u32,
        sequence: i64,
        out: &mut dyn Driver,
    ) -> bool {
        let Frame { number, flags } = frame;
        self.freeze.packet(now);
        if !self.started {
            self.started = true;
            (self.origin, self.timestamp) = (i64::from(timestamp), i64::from(timestamp));
        }
        if number < self.base {
            out.late(now, self.flow);
            let stray = self.stray.replace(number);
            let again = stray.is_some_and(|stray| number.wrapping_sub(stray) <= 1);
            if !again || self.base - number < JUMP_MAX {
                return false;
            }
            // two in a row from so far behind: the jump ahead before them was in error
            self.restart(now, number, out);
        } else if number - self.base >= JUMP_MAX {
            self.restart(now, number, out);
        }
        // a jump over more frames than are kept gives up the oldest
        while (number - self.base) as usize >= OPEN_MAX {
            if self.slots.is_empty() {
                self.slots.push_back(Slot::default());
            }
            self.give_up_front(now, out);
        }
        let index = (number - self.base) as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, Slot::default());
        }
        debug_assert!(self.slots.len() <= OPEN_MAX, "{} frames are open", self.slots.len());
        let media = self.media(timestamp);
        let late = self.clock.deadline(media, &self.mode).is_some_and(|deadline| now > deadline);
        if late {
            out.late(now, self.flow);
        }
        let key = flags & Frame::KEY != 0;
        self.key_timer.iter_mut().for_each(|timer| timer.packet(now, key));
        if key && self.broken.is_some_and(|broken| number > broken) {
            self.broken = None;
        }
        let slot = &mut self.slots[index];
        let fresh = slot.media.is_none();
        slot.media = Some(media);
        // a packet that comes before the frame's first one does not say that it belongs to a key frame
        slot.key |= key;
        slot.between = frame.between();
        slot.received += 1;
        if flags & Frame::FIRST != 0 {
            slot.first = Some(sequence);
        }
        if flags & Frame::LAST != 0 {
            slot.last = Some(sequence);
        }
        if slot.complete.is_none() && slot.is_complete() {
            slot.complete = Some(now);
            let key = slot.key;
            self.key_timer.iter_mut().for_each(|timer| timer.complete(key));
            self.clock.complete(now, media, &self.mode);
            self.run(now, out);
        } else if fresh && matches!(self.mode, Playout::Fixed { .. }) {
            // its deadline is known now, and may have passed
            self.run(now, out);
        }
        !late
    }

    /// Gives up the open frames and goes on with `frame`.
    fn restart(&mut self, now: Time, frame: u32, out: &mut dyn Driver) {
        while !self.slots.is_empty() {
            self.give_up_front(now, out);
        }
        self.base = frame;
        self.decoded = 0;
        self.stalled = None;
        self.clock = DelayClock::default();
    }

    /// The time of capture for an RTP timestamp, in the time of the driver: a clock that runs fast counts the same ticks in less.
    fn media(&mut self, timestamp: u32) -> Span {
        self.timestamp = wrap::nearest(timestamp, 32, self.timestamp);
        let ticks = i128::from(self.timestamp - self.origin);
        let media = Span::from_nanos((ticks * 1_000_000_000 / i128::from(self.clock_rate)) as i64);
        media - self.drift.of(media)
    }

    /// Shows and gives up the frames that are due at `now`.
    pub(crate) fn run(&mut self, now: Time, out: &mut dyn Driver) {
        loop {
            self.key_timer.iter_mut().for_each(|timer| timer.run(now));
            let next = self.next();
            match next {
                Some((time, Action::Decode { index, shown })) if time <= now => {
                    (0..index).for_each(|_| self.give_up_front(now, out));
                    self.decode_front(now, shown, out);
                }
                Some((time, Action::GiveUp(index))) if time <= now => {
                    (0..=index).for_each(|_| self.give_up_front(now, out));
                }
                Some((time, Action::Wait(index))) if time <= now => self.wait(now, index),
                _ => {
                    let timeout = self.key_timer.as_ref().map_or(Time::MAX, |timer| timer.timeout);
                    self.due = next.map_or(Time::MAX, |(time, _)| time).min(timeout);
                    return;
                }
            }
        }
    }

    /// The next action and its time.
    ///
    /// The first frame that can be decoded is shown at its time; those before it are given up. With a fixed delay, a
    /// frame that is not complete at its time is given up. With an adaptive delay, a missing frame holds up the later
    /// ones that refer to it; it is given up when a later key frame is shown, or at its deadline if it is not requested.
    fn next(&self) -> Option<(Time, Action)> {
        let adaptive = matches!(self.mode, Playout::Adaptive { .. });
        let repairable =
            self.first_repairable.filter(|_| adaptive).map(|first| first.saturating_sub(self.base) as usize);
        let (mut missing, mut waiting_for, mut first_deadline) = (None, None, None);
        let mut action: Option<(Time, Action)> = None;
        let sooner = |first: Option<(Time, Action)>, second: (Time, Action)| match first {
            Some(first) if first.0 <= second.0 => Some(first),
            _ => Some(second),
        };
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.complete.is_none() {
                missing = Some(index);
                if waiting_for.is_none() && repairable.is_some_and(|first| index >= first) {
                    waiting_for = missing;
                }
            }
            let Some(media) = slot.media else { continue };
            let Some((show, deadline)) = self.clock.times(media, &self.mode) else { continue };
            // video with an adaptive delay is shown however late it is
            let in_time = |complete: Time| complete <= deadline || (self.video && adaptive);
            // at the deadline itself a frame may still become complete
            let passed = deadline + Span::from_nanos(1);
            let first_deadline = *first_deadline.get_or_insert(passed);
            if let Some(first) = waiting_for.filter(|_| !self.waits) {
                // later frames wait as long as this one may be repaired, and no longer than any frame may wait
                return sooner(action, (passed, Action::GiveUp(first)));
            }
            match (slot.complete, missing) {
                (None, _) if adaptive => {}
                (None, _) => return Some((passed, Action::GiveUp(index))),
                (Some(complete), _) if self.is_decodable(index) => {
                    return sooner(
                        action,
                        (show.max(complete), Action::Decode { index, shown: in_time(complete) }),
                    );
                }
                (Some(complete), Some(_)) if adaptive => {
                    if slot.due.is_none() && in_time(complete) {
                        action = sooner(action, (show.max(complete), Action::Wait(index)));
                    }
                    if !self.waits {
                        action = sooner(action, (first_deadline, Action::GiveUp(0)));
                    }
                }
                // the frame to which it refers was given up
                (Some(_), _) if slot.due.is_none() => return Some((show, Action::Wait(index))),
                (Some(_), _) => return Some((show, Action::GiveUp(index))),
            }
        }
        action
    }

    /// Notes that the complete frame at `index` is due, and which missing one holds it up.
    fn wait(&mut self, now: Time, index: usize) {
        self.slots[index].due = Some(now);
        let missing = (0..index).rev().find(|&before| self.slots[before].complete.is_none());
        let missing = missing.map(|missing| self.base + missing as u32);
        if missing.is_some() && missing > self.stalled {
            (self.broken, self.stalled) = (missing, missing);
        }
    }

    /// Whether the complete frame at `index` can be decoded.
    fn is_decodable(&self, index: usize) -> bool {
        let slot = &self.slots[index];
        // its reference is so many frames before `base`; an open one is not decoded yet
        let before = usize::from(slot.between).checked_sub(index);
        !self.video || slot.key || before.is_some_and(|before| self.decoded >> before & 1 == 1)
    }

    /// Decodes the first frame, and shows it if it is in time.
    fn decode_front(&mut self, now: Time, shown: bool, out: &mut dyn Driver) {
        let Some(slot) = self.slots.pop_front() else { return };
        self.decoded = self.decoded << 1 | 1;
        // a frame that held up the picture may have come after all
        self.broken = self.broken.filter(|&broken| broken > self.base);
        self.freeze.decoded(now);
        self.key_timer.iter_mut().for_each(|timer| timer.decoded(now));
        self.report(now, &slot, shown, out);
        if self.video
            && shown
            && let Some(length) = self.freeze.frame_shown(now)
        {
            out.record().freeze(now, self.flow, length);
        }
    }

    fn give_up_front(&mut self, now: Time, out: &mut dyn Driver) {
        let Some(slot) = self.slots.pop_front() else { return };
        self.decoded <<= 1;
        let known = slot.complete.is_some() || self.stalled.is_some_and(|stalled| stalled >= self.base);
        if self.video && !known {
            self.broken = Some(self.base);
        }
        self.report(now, &slot, false, out);
    }

    /// Records the result of the frame at `base`, and moves on to the next one.
    fn report(&mut self, now: Time, slot: &Slot, shown: bool, out: &mut dyn Driver) {
        let frame = FrameRecord {
            flow: self.flow,
            video: self.video,
            frame: self.base,
            complete: slot.complete,
            rendered: shown.then_some(now),
            due: if shown { Some(now) } else { slot.due },
        };
        self.base = self.base.wrapping_add(1);
        out.record().frame(now, &frame);
    }

    /// Ends the run: open frames are given up.
    pub(crate) fn finish(&mut self, now: Time, out: &mut dyn Driver) {
        while !self.slots.is_empty() {
            self.give_up_front(now, out);
        }
        self.due = Time::MAX;
    }
}

/// Action on frames at the front.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// Decodes the frame at `index`, and shows it if `shown`; those before it are given up.
    Decode { index: usize, shown: bool },
    /// Gives up the frames up to this index.
    GiveUp(usize),
    /// Notes that the complete frame at this index is due and cannot be decoded yet.
    Wait(usize),
}

/// Computes the times at which frames are shown: `media + offset`.
#[derive(Debug, Default)]
struct DelayClock {
    /// Local time less media time of the frames that are shown.
    offset: Option<Span>,
    /// The transit (local time less media time) of the fastest frame.
    fastest: Span,
    /// Transits of the last frames.
    recent: VecDeque<Span>,
    /// Media time of the newest complete frame.
    newest: Span,
}

impl DelayClock {
    /// Notes that a frame captured at `media` is complete at `now`.
    fn complete(&mut self, now: Time, media: Span, mode: &Playout) {
        let transit = now - Time::ZERO - media;
        let Some(offset) = self.offset else {
            let delay = match *mode {
                Playout::Fixed { delay } => delay,
                Playout::Adaptive { min, .. } => min,
            };
            self.offset = Some(transit + delay);
            (self.fastest, self.newest) = (transit, media);
            self.recent.push_back(transit);
            return;
        };
        self.fastest = self.fastest.min(transit);
        let Playout::Adaptive { min, max, shrink } = *mode else { return };
        if self.recent.len() == RECENT_FRAMES {
            self.recent.pop_front();
        }
        self.recent.push_back(transit);
        let passed = (media - self.newest).max(Span::ZERO);
        self.newest = self.newest.max(media);
        let slowest = self.recent.iter().copied().max().unwrap_or(transit);
        let offset_max = self.fastest + max;
        let aim = (slowest + min).min(offset_max);
        let slowly = if aim > offset { aim } else { offset - (offset - aim).min(passed.scaled(shrink)) };
        // a faster frame than any before lowers the maximum at once: frames that wait longer are shown at once, or late
        self.offset = Some(slowly.min(offset_max));
    }

    /// When a frame captured at `media` is shown.
    fn show_time(&self, media: Span) -> Option<Time> {
        self.offset.map(|offset| Time::ZERO + (media + offset))
    }

    /// When a frame captured at `media` is shown, and its deadline.
    fn times(&self, media: Span, mode: &Playout) -> Option<(Time, Time)> {
        self.show_time(media).zip(self.deadline(media, mode))
    }

    /// Deadline by which a frame captured at `media` has to be complete.
    fn deadline(&self, media: Span, mode: &Playout) -> Option<Time> {
        match *mode {
            Playout::Fixed { .. } => self.show_time(media),
            Playout::Adaptive { max, .. } => self.offset.map(|_| Time::ZERO + (media + self.fastest + max)),
        }
    }
}

#[cfg(test)]
mod tests;
