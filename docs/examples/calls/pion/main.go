// One end of a call of pion: A sends the clip, B receives it. See ../session.py for the environment; CALL_LADDER is the folder
// that ladder.py makes.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/interceptor/pkg/gcc"
	"github.com/pion/interceptor/pkg/stats"
	"github.com/pion/rtp/codecs"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
	"github.com/pion/webrtc/v4/pkg/media/samplebuilder"
)

// What libwebrtc begins with (kDefaultStartBitrateBps, call/bitrate_constraints.h); pion's own 10 kbit/s is below any picture.
const startRate = 300_000

// How long the rest of a frame is waited for. Then the next key frame is there.
const patience = 600 * time.Millisecond

type peer struct {
	side, folder string
	most         int
	begun        time.Time
	pc           *webrtc.PeerConnection
	estimator    cc.BandwidthEstimator
	streams      stats.Getter

	lock      sync.Mutex
	connected *float64
	ssrc      uint32
	frames    int // given to the sender
	keys      int
	target    float64
	shown     shown
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pion's peer:", err)
		os.Exit(1)
	}
}

func run() error {
	p := &peer{side: os.Getenv("TIDEGATE_SIDE"), folder: os.Getenv("CALL_FOLDER"), most: 3_000_000, begun: time.Now()}
	if p.side == "" || p.folder == "" {
		return errors.New("TIDEGATE_SIDE and CALL_FOLDER are not set: run.sh begins it")
	}
	if text := os.Getenv("CALL_MAX_RATE"); text != "" {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || !(rate > 0) {
			return fmt.Errorf("CALL_MAX_RATE: found %q; expected bit/s, such as 3000000", text)
		}
		p.most = int(rate)
	}
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGTERM)
	notes, err := os.Create(filepath.Join(p.folder, "stats-"+p.side+".jsonl"))
	if err != nil {
		return err
	}
	defer notes.Close()
	if err := p.connect(); err != nil {
		return err
	}
	begin := p.receive
	if p.side == "A" {
		begin = p.send
	}
	failed := make(chan error, 1)
	go func() {
		if err := begin(); err != nil {
			failed <- err
		}
	}()
	ticks := time.NewTicker(time.Second)
	for {
		select {
		case err := <-failed:
			return err
		case <-ticks.C:
			if err := p.note(notes); err != nil {
				return err
			}
		case <-over:
			if err := p.note(notes); err != nil {
				return err
			}
			return p.pc.Close()
		}
	}
}

// connect makes the peer connection: pion's own parts, with its GCC at the end that sends.
func (p *peer) connect() error {
	engine, registry := &webrtc.MediaEngine{}, &interceptor.Registry{}
	if err := engine.RegisterDefaultCodecs(); err != nil {
		return err
	}
	// before what numbers packets for the whole transport, which must have been done when the controller sees them
	if p.side == "A" {
		controller, err := cc.NewInterceptor(func() (cc.BandwidthEstimator, error) {
			return gcc.NewSendSideBWE(gcc.SendSideBWEInitialBitrate(startRate), gcc.SendSideBWEMaxBitrate(p.most))
		})
		if err != nil {
			return err
		}
		controller.OnNewPeerConnection(func(_ string, made cc.BandwidthEstimator) { p.estimator = made })
		registry.Add(controller)
		if err := webrtc.ConfigureTWCCHeaderExtensionSender(engine, registry); err != nil {
			return err
		}
	}
	counted, err := stats.NewInterceptor()
	if err != nil {
		return err
	}
	counted.OnNewPeerConnection(func(_ string, made stats.Getter) { p.streams = made })
	registry.Add(counted)
	if err := webrtc.RegisterDefaultInterceptors(engine, registry); err != nil {
		return err
	}
	network := os.Getenv("TIDEGATE_ADDRESS")
	var settings webrtc.SettingEngine
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetIPFilter(func(one net.IP) bool { return one.String() == network })
	api := webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(registry), webrtc.WithSettingEngine(settings))
	p.pc, err = api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return err
	}
	p.pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		p.lock.Lock()
		defer p.lock.Unlock()
		if state == webrtc.PeerConnectionStateConnected && p.connected == nil {
			now := time.Since(p.begun).Seconds()
			p.connected = &now
		}
	})
	return nil
}

func (p *peer) send() error {
	track, err := webrtc.NewTrackLocalStaticSample(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8}, "video", "clip")
	if err != nil {
		return err
	}
	sender, err := p.pc.AddTrack(track)
	if err != nil {
		return err
	}
	p.lock.Lock()
	p.ssrc = uint32(sender.GetParameters().Encodings[0].SSRC)
	p.lock.Unlock()
	// nothing comes in unless it is read
	go func() {
		buffer := make([]byte, 1500)
		for {
			if _, _, err := sender.Read(buffer); err != nil {
				return
			}
		}
	}()
	clip, err := readLadder(os.Getenv("CALL_LADDER"))
	if err != nil {
		return err
	}
	offer, err := p.pc.CreateOffer(nil)
	if err != nil {
		return err
	}
	if err := p.describe("offer.json", offer); err != nil {
		return err
	}
	if err := p.told("answer.json"); err != nil {
		return err
	}
	p.play(clip, track)
	return nil
}

// play sends the clip over and over at its own pace; at a key frame it goes to the rate that the estimate carries.
func (p *peer) play(clip ladder, track *webrtc.TrackLocalStaticSample) {
	ticks := time.NewTicker(clip.interval)
	rung, next := 0, 0
	for range ticks.C {
		p.lock.Lock()
		there := p.connected != nil
		p.lock.Unlock()
		if !there {
			continue
		}
		if isKey(clip.rungs[0].frames[next]) {
			rung = clip.below(float64(min(p.estimator.GetTargetBitrate(), p.most)))
		}
		frame := clip.rungs[rung].frames[next]
		// the connection may be over, and then nothing is to be done about it
		_ = track.WriteSample(media.Sample{Data: frame, Duration: clip.interval})
		p.lock.Lock()
		p.frames++
		if isKey(frame) {
			p.keys++
		}
		p.target = clip.rungs[rung].rate
		p.lock.Unlock()
		next = (next + 1) % len(clip.rungs[0].frames)
	}
}

func (p *peer) receive() error {
	p.pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		p.lock.Lock()
		p.ssrc = uint32(track.SSRC())
		p.lock.Unlock()
		builder := samplebuilder.New(1000, &codecs.VP8Packet{}, track.Codec().ClockRate, samplebuilder.WithMaxTimeDelay(patience))
		for {
			packet, _, err := track.ReadRTP()
			if err != nil {
				return
			}
			builder.Push(packet)
			for sample := builder.Pop(); sample != nil; sample = builder.Pop() {
				p.lock.Lock()
				p.shown.frame(isKey(sample.Data), sample.PrevDroppedPackets > 0, time.Now())
				p.lock.Unlock()
			}
		}
	})
	if err := p.told("offer.json"); err != nil {
		return err
	}
	answer, err := p.pc.CreateAnswer(nil)
	if err != nil {
		return err
	}
	return p.describe("answer.json", answer)
}

// describe sets our description and writes it for the other end, once it has all addresses. The file gets its name when it is complete.
func (p *peer) describe(name string, description webrtc.SessionDescription) error {
	gathered := webrtc.GatheringCompletePromise(p.pc)
	if err := p.pc.SetLocalDescription(description); err != nil {
		return err
	}
	<-gathered
	text, err := json.Marshal(p.pc.LocalDescription())
	if err != nil {
		return err
	}
	file := filepath.Join(p.folder, name)
	if err := os.WriteFile(file+".part", text, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".part", file)
}

// told waits for the other end's description and sets it.
func (p *peer) told(name string) error {
	for {
		text, err := os.ReadFile(filepath.Join(p.folder, name))
		if errors.Is(err, os.ErrNotExist) {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		var description webrtc.SessionDescription
		if err := json.Unmarshal(text, &description); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return p.pc.SetRemoteDescription(description)
	}
}

// note writes a line of statistics.
func (p *peer) note(file *os.File) error {
	report := []any{}
	for _, one := range p.pc.GetStats() {
		if pair, ok := one.(webrtc.ICECandidatePairStats); ok && pair.Nominated && p.estimator != nil {
			pair.AvailableOutgoingBitrate = float64(p.estimator.GetTargetBitrate())
			one = pair
		}
		if _, ok := one.(webrtc.InboundRTPStreamStats); !ok { // ours has more
			report = append(report, one)
		}
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	frames := p.frames
	if p.side == "B" {
		frames = p.shown.frames
	}
	report = append(report, p.media()...)
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return err
	}
	line, err := json.Marshal(map[string]any{
		"time_s":      time.Since(p.begun).Seconds(),
		"unix_s":      float64(time.Now().UnixNano()) / 1e9,
		"connected_s": p.connected,
		"frames":      frames,
		"cpu_s":       time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds(),
		"report":      report,
	})
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return err
}

// media is what pion's getStats does not say, by its names: of the stream, and of the controller.
func (p *peer) media() []any {
	seen := &stats.Stats{}
	if p.ssrc != 0 && p.streams != nil {
		if got := p.streams.Get(p.ssrc); got != nil {
			seen = got
		}
	}
	if p.side == "B" {
		return []any{map[string]any{
			"type": "inbound-rtp", "kind": "video", "ssrc": p.ssrc,
			"packetsReceived": seen.InboundRTPStreamStats.PacketsReceived, "packetsLost": seen.InboundRTPStreamStats.PacketsLost,
			"bytesReceived": seen.BytesReceived, "nackCount": seen.InboundRTPStreamStats.NACKCount,
			"framesReceived": p.shown.frames + p.shown.dropped, "framesDecoded": p.shown.frames, "framesDropped": p.shown.dropped,
			"keyFramesDecoded": p.shown.keys, "freezeCount": p.shown.freezes, "totalFreezesDuration": p.shown.frozen.Seconds(),
		}}
	}
	controller := map[string]any{"type": "controller", "name": "gcc"}
	if p.estimator != nil {
		for name, value := range p.estimator.GetStats() {
			controller[name] = value
		}
	}
	return []any{
		map[string]any{
			"type": "outbound-rtp", "kind": "video", "ssrc": p.ssrc, "targetBitrate": p.target,
			"packetsSent": seen.OutboundRTPStreamStats.PacketsSent, "bytesSent": seen.OutboundRTPStreamStats.BytesSent, "framesEncoded": p.frames, "keyFramesEncoded": p.keys,
			"nackCount": seen.OutboundRTPStreamStats.NACKCount,
		},
		map[string]any{
			"type": "remote-inbound-rtp", "kind": "video", "ssrc": p.ssrc,
			"packetsLost":   seen.RemoteInboundRTPStreamStats.PacketsLost,
			"roundTripTime": seen.RemoteInboundRTPStreamStats.RoundTripTime.Seconds(),
			"fractionLost":  seen.FractionLost,
		},
		controller,
	}
}
