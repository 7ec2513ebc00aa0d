package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/pion/webrtc/v4/pkg/media/ivfreader"
)

// rung is the clip at one rate.
type rung struct {
	frames [][]byte
	rate   float64 // bit/s, of what is in the file: an encoder cannot go as low as one likes
}

// ladder is the clip at all rates, the lowest first; all have the same pictures and key frames at the same ones.
type ladder struct {
	rungs    []rung
	interval time.Duration
}

func readLadder(folder string) (ladder, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.ivf"))
	if err != nil || len(files) == 0 {
		return ladder{}, fmt.Errorf("%s: no .ivf files (CALL_LADDER; run.sh makes them)", folder)
	}
	var made ladder
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return ladder{}, err
		}
		one, interval, err := readRung(file)
		file.Close()
		if err != nil {
			return ladder{}, fmt.Errorf("%s: %w", name, err)
		}
		made.rungs, made.interval = append(made.rungs, one), interval
	}
	sort.Slice(made.rungs, func(i, j int) bool { return made.rungs[i].rate < made.rungs[j].rate })
	for _, one := range made.rungs {
		if len(one.frames) != len(made.rungs[0].frames) {
			return ladder{}, fmt.Errorf("%s: files of %d and of %d frames", folder, len(made.rungs[0].frames), len(one.frames))
		}
	}
	return made, nil
}

func readRung(file *os.File) (rung, time.Duration, error) {
	reader, head, err := ivfreader.NewWith(file)
	if err != nil {
		return rung{}, 0, err
	}
	interval := time.Second * time.Duration(head.TimebaseNumerator) / time.Duration(head.TimebaseDenominator)
	var made rung
	size := 0
	for {
		frame, _, err := reader.ParseNextFrame()
		if err != nil {
			break
		}
		made.frames = append(made.frames, frame)
		size += len(frame)
	}
	if size == 0 {
		return rung{}, 0, fmt.Errorf("no frames")
	}
	made.rate = float64(8*size) / (time.Duration(len(made.frames)) * interval).Seconds()
	return made, interval, nil
}

// isKey tells whether a frame of VP8 is a key frame (RFC 6386, section 9.1).
func isKey(frame []byte) bool { return len(frame) > 0 && frame[0]&1 == 0 }

// below is the best rung that a rate carries, or the lowest.
func (l ladder) below(rate float64) int {
	best := 0
	for index, one := range l.rungs {
		if one.rate <= rate {
			best = index
		}
	}
	return best
}
