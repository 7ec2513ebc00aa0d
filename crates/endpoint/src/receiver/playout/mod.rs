//! The playout buffer: puts frames together, and shows them in order at their time or gives them up.

mod freeze;

use crate::settings::Playout;
use freeze::FreezeWatch;
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
    key: bool,
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
    /// The last frame that was given up, until a packet of a later key frame arrives.
    broken: Option<u32>,
}

impl PlayoutBuffer {
    /// An empty buffer of a stream that begins at `start`.
    pub(crate) fn new(flow: FlowId, video: bool, mode: Playout, clock_rate: u32, start: Time) -> Self {
        Self {
            flow,
            video,
            mode,
            clock_rate,
            slots: VecDeque::new(),
            base: 0,
            started: false,
            stray: None,
            origin: 0,
            timestamp: 0,
            clock: DelayClock::default(),
            due: Time::MAX,
            freeze: FreezeWatch::new(start),
            first_repairable: None,
            broken: None,
        }
    }

    /// When a frame is to be shown or given up.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// The number of the first frame that was neither shown nor given up.
    pub(crate) fn base(&self) -> u32 {
        self.base
    }

    /// Whether a frame that later ones need was given up, and no packet of a later key frame has arrived.
    pub(crate) fn wants_key(&self) -> bool {
        self.broken.is_some()
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
        if key && self.broken.is_some_and(|broken| number > broken) {
            self.broken = None;
        }
        let slot = &mut self.slots[index];
        let fresh = slot.media.is_none();
        slot.media = Some(media);
        slot.key = key;
        slot.received += 1;
        if flags & Frame::FIRST != 0 {
            slot.first = Some(sequence);
        }
        if flags & Frame::LAST != 0 {
            slot.last = Some(sequence);
        }
        if slot.complete.is_none() && slot.is_complete() {
            slot.complete = Some(now);
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
        self.clock = DelayClock::default();
    }

    /// The time of capture for an RTP timestamp.
    fn media(&mut self, timestamp: u32) -> Span {
        self.timestamp = wrap::nearest(timestamp, 32, self.timestamp);
        let ticks = i128::from(self.timestamp - self.origin);
        Span::from_nanos((ticks * 1_000_000_000 / i128::from(self.clock_rate)) as i64)
    }

    /// Shows and gives up the frames that are due at `now`.
    pub(crate) fn run(&mut self, now: Time, out: &mut dyn Driver) {
        loop {
            match self.next() {
                Some((time, Action::Show(index))) if time <= now => {
                    for _ in 0..index {
                        self.give_up_front(now, out);
                    }
                    self.show_front(now, out);
                }
                Some((time, Action::GiveUp(index))) if time <= now => {
                    for _ in 0..=index {
                        self.give_up_front(now, out);
                    }
                }
                next => {
                    self.due = next.map_or(Time::MAX, |(time, _)| time);
                    return;
                }
            }
        }
    }

    /// The next action and its time. The first complete frame is shown at its time, or given up if it was complete only
    /// after its deadline; with a fixed delay, a frame that is not complete at its time is given up.
    fn next(&self) -> Option<(Time, Action)> {
        let adaptive = matches!(self.mode, Playout::Adaptive { .. });
        let repairable =
            self.first_repairable.filter(|_| adaptive).map(|first| first.saturating_sub(self.base) as usize);
        let mut waiting_for = None;
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.complete.is_none()
                && waiting_for.is_none()
                && repairable.is_some_and(|first| index >= first)
            {
                waiting_for = Some(index);
            }
            let Some(media) = slot.media else { continue };
            if let (Some(first), Some(deadline)) = (waiting_for, self.clock.deadline(media, &self.mode)) {
                // later frames wait as long as this one may be repaired, and no longer than any frame may wait
                return Some((deadline + Span::from_nanos(1), Action::GiveUp(first)));
            }
            match (slot.complete, self.clock.show_time(media), self.clock.deadline(media, &self.mode)) {
                (Some(complete), Some(_), Some(deadline)) if complete > deadline => {
                    return Some((complete, Action::GiveUp(index)));
                }
                (Some(_), Some(time), _) => return Some((time, Action::Show(index))),
                (None, _, Some(deadline)) if matches!(self.mode, Playout::Fixed { .. }) => {
                    // at the deadline itself it may still become complete
                    return Some((deadline + Span::from_nanos(1), Action::GiveUp(index)));
                }
                _ => {}
            }
        }
        None
    }

    fn show_front(&mut self, now: Time, out: &mut dyn Driver) {
        let Some(slot) = self.slots.pop_front() else { return };
        let number = self.base;
        self.base = number.wrapping_add(1);
        out.record().frame(
            now,
            &FrameRecord {
                flow: self.flow,
                video: self.video,
                frame: number,
                complete: slot.complete,
                rendered: Some(now),
            },
        );
        if self.video
            && let Some(length) = self.freeze.frame_shown(now, number, slot.media.unwrap_or_default())
        {
            out.record().freeze(now, self.flow, length);
        }
    }

    fn give_up_front(&mut self, now: Time, out: &mut dyn Driver) {
        let Some(slot) = self.slots.pop_front() else { return };
        let frame = FrameRecord {
            flow: self.flow,
            video: self.video,
            frame: self.base,
            complete: slot.complete,
            rendered: None,
        };
        if self.video {
            self.broken = Some(self.base);
        }
        self.base = self.base.wrapping_add(1);
        out.record().frame(now, &frame);
    }

    /// Ends the run: open frames are given up. If the picture stands still until the stream ends at `end`, or there
    /// never was one, that is a freeze, too.
    pub(crate) fn finish(&mut self, now: Time, end: Time, out: &mut dyn Driver) {
        while !self.slots.is_empty() {
            self.give_up_front(now, out);
        }
        if self.video
            && let Some(length) = self.freeze.standing(end)
        {
            out.record().freeze(now, self.flow, length);
        }
        self.due = Time::MAX;
    }
}

/// Action on the frame at an index.
#[derive(Clone, Copy, Debug)]
enum Action {
    Show(usize),
    GiveUp(usize),
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
