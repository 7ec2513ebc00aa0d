package main

import "time"

// shown tells what a receiver would show of the frames that have come whole: those whose references have come, too.
// A freeze is what W3C's webrtc-stats calls one (freezeCount), over the 30 frames before it.
type shown struct {
	frames, dropped int
	keys            int
	freezes         int
	frozen          time.Duration

	intact bool // whether all since the last key frame is there
	last   time.Time
	gaps   []time.Duration
}

// frame takes the next frame, and whether any was missing before it.
func (s *shown) frame(key, missing bool, now time.Time) {
	s.intact = key || s.intact && !missing
	if !s.intact {
		s.dropped++
		return
	}
	s.frames++
	if key {
		s.keys++
	}
	if !s.last.IsZero() {
		gap := now.Sub(s.last)
		var sum time.Duration
		for _, one := range s.gaps {
			sum += one
		}
		if len(s.gaps) > 0 {
			mean := sum / time.Duration(len(s.gaps))
			if gap >= max(3*mean, mean+150*time.Millisecond) {
				s.freezes++
				s.frozen += gap
			}
		}
		s.gaps = append(s.gaps, gap)
		if len(s.gaps) > 30 {
			s.gaps = s.gaps[1:]
		}
	}
	s.last = now
}
