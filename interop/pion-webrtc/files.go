package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
	"github.com/pion/webrtc/v4/pkg/media/h264reader"
)

// send writes the files to the tracks of a connection in real time, and returns at their end.
func send(o options, tracks []*webrtc.TrackLocalStaticSample, ended <-chan struct{}) error {
	var tasks sync.WaitGroup
	failures := make(chan error, len(tracks))
	for _, track := range tracks {
		read := videoSamples
		if track.Kind() == webrtc.RTPCodecTypeAudio {
			read = audioSamples
		}
		samples, err := read(o)
		if err != nil {
			return err
		}
		tasks.Add(1)
		go func() {
			defer tasks.Done()
			failures <- paced(track, samples, o.loop, ended)
		}()
	}
	tasks.Wait()
	close(failures)
	var all error
	for failure := range failures {
		all = errors.Join(all, failure)
	}
	return all
}

func paced(
	track *webrtc.TrackLocalStaticSample, samples []media.Sample, loop bool, ended <-chan struct{},
) error {
	due := time.Now()
	for again := true; again; again = loop {
		for _, sample := range samples {
			select {
			case <-ended:
				return nil
			case <-time.After(time.Until(due)):
			}
			if err := track.WriteSample(sample); err != nil {
				return err
			}
			due = due.Add(sample.Duration)
		}
	}
	return nil
}

// videoSamples returns the access units of a file in Annex B.
func videoSamples(o options) ([]media.Sample, error) {
	octets, err := os.ReadFile(o.video)
	if err != nil {
		return nil, err
	}
	reader, err := h264reader.NewReaderWithOptions(bytes.NewReader(octets), h264reader.WithIncludeSEI(true))
	if err != nil {
		return nil, err
	}
	duration := time.Duration(float64(time.Second) / o.fps)
	var samples []media.Sample
	var unit []byte
	hasPicture := false
	for {
		nal, err := reader.NextNAL()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		isPicture := err == nil && nal.UnitType >= 1 && nal.UnitType <= 5
		// A slice whose first macroblock is 0, or anything else behind slices, begins an access unit.
		begins := err != nil || !isPicture || nal.Data[1]&0x80 != 0
		if hasPicture && begins {
			samples = append(samples, media.Sample{Data: unit, Duration: duration})
			unit, hasPicture = nil, false
		}
		if err != nil {
			return samples, nil
		}
		unit = append(append(unit, 0, 0, 0, 1), nal.Data...)
		hasPicture = hasPicture || isPicture
	}
}

// audioSamples returns the packets of a file in Ogg (RFC 3533 §6), without its two headers (RFC 7845 §3).
func audioSamples(o options) ([]media.Sample, error) {
	octets, err := os.ReadFile(o.audio)
	if err != nil {
		return nil, err
	}
	var packets [][]byte
	var packet []byte
	for len(octets) > 0 {
		if len(octets) < 27 || string(octets[:4]) != "OggS" || len(octets) < 27+int(octets[26]) {
			return nil, fmt.Errorf("%s is no Ogg file", o.audio)
		}
		lengths := octets[27 : 27+int(octets[26])]
		octets = octets[27+len(lengths):]
		for _, length := range lengths {
			if len(octets) < int(length) {
				return nil, fmt.Errorf("%s is cut off", o.audio)
			}
			packet = append(packet, octets[:length]...)
			octets = octets[length:]
			if length < 255 {
				packets, packet = append(packets, packet), nil
			}
		}
	}
	var samples []media.Sample
	for _, packet := range packets[min(2, len(packets)):] {
		samples = append(samples, media.Sample{Data: packet, Duration: opusDuration(packet)})
	}
	return samples, nil
}

// opusDuration returns how long a packet sounds (RFC 6716 §3.1, 3.2).
func opusDuration(packet []byte) time.Duration {
	if len(packet) == 0 {
		return 0
	}
	const ms = time.Millisecond
	config := packet[0] >> 3
	var frame time.Duration
	switch {
	case config < 12:
		frame = []time.Duration{10 * ms, 20 * ms, 40 * ms, 60 * ms}[config%4]
	case config < 16:
		frame = []time.Duration{10 * ms, 20 * ms}[config%2]
	default:
		frame = []time.Duration{2500 * time.Microsecond, 5 * ms, 10 * ms, 20 * ms}[config%4]
	}
	frames := []int{1, 2, 2, 0}[packet[0]&3]
	if frames == 0 && len(packet) > 1 {
		frames = int(packet[1] & 0x3f)
	}
	return time.Duration(frames) * frame
}
