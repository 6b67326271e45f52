package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/pion/webrtc/v4"
)

// Time after the last sample in which it can still be retransmitted.
const grace = 500 * time.Millisecond

// session is one connection, with what it sends or receives.
type session struct {
	role     string
	pc       *webrtc.PeerConnection
	counts   wireCounts
	received *receiver
	tracks   []*webrtc.TrackLocalStaticSample

	connected chan struct{}
	ended     chan struct{}
	once      [2]sync.Once
	began     time.Time
	joined    time.Duration
}

func newSession(o options, role string, sends bool) (*session, error) {
	s := &session{role: role, connected: make(chan struct{}), ended: make(chan struct{}), began: time.Now()}
	var err error
	if s.pc, err = connection(o, &s.counts); err != nil {
		return nil, err
	}
	s.pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			s.once[0].Do(func() {
				s.joined = time.Since(s.began)
				close(s.connected)
			})
		case webrtc.PeerConnectionStateFailed, webrtc.PeerConnectionStateClosed:
			s.end()
		}
	})
	if sends {
		return s, s.addTracks(o)
	}
	s.received = newReceiver(s.pc, o.videoOut+o.audioOut != "", s.end)
	return s, nil
}

func (s *session) end() { s.once[1].Do(func() { close(s.ended) }) }

func (s *session) addTracks(o options) error {
	for _, track := range []struct {
		file, name string
		capability webrtc.RTPCodecCapability
	}{{o.video, "video", h264}, {o.audio, "audio", opus}} {
		if track.file == "" {
			continue
		}
		local, err := webrtc.NewTrackLocalStaticSample(track.capability, track.name, "pion")
		if err != nil {
			return err
		}
		sends := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}
		transceiver, err := s.pc.AddTransceiverFromTrack(local, sends)
		if err != nil {
			return err
		}
		sender := transceiver.Sender()
		s.tracks = append(s.tracks, local)
		// Reports and requests are handled while they are read.
		go func() {
			buffer := make([]byte, 1500)
			for {
				if _, _, err := sender.Read(buffer); err != nil {
					return
				}
			}
		}()
	}
	return nil
}

// describe sets the local description and returns it with all candidates.
func (s *session) describe(description webrtc.SessionDescription, err error) (string, error) {
	if err != nil {
		return "", err
	}
	gathered := webrtc.GatheringCompletePromise(s.pc)
	if err := s.pc.SetLocalDescription(description); err != nil {
		return "", err
	}
	<-gathered
	return s.pc.LocalDescription().SDP, nil
}

// run sends or receives until the session ends, leaves, and returns its report.
func (s *session) run(o options, leave func()) (map[string]any, error) {
	select {
	case <-s.connected:
	case <-s.ended:
		return nil, fmt.Errorf("%s: it ended before it was connected", s.role)
	case <-time.After(20 * time.Second):
		return nil, fmt.Errorf("%s: no connection after 20 s", s.role)
	}
	limit := make(<-chan time.Time)
	if o.seconds > 0 {
		limit = time.After(time.Duration(o.seconds * float64(time.Second)))
	}
	var failure error
	if s.received == nil {
		go func() {
			<-limit
			s.end()
		}()
		failure = send(o, s.tracks, s.ended)
		select {
		case <-s.ended:
		case <-time.After(grace):
		}
	} else {
		select {
		case <-s.ended:
		case <-limit:
		}
	}
	leave()
	if err := s.pc.Close(); err != nil {
		return nil, err
	}
	report := map[string]any{
		"role": s.role, "wire": s.counts.report(), "connected_ms": s.joined.Milliseconds(),
	}
	if s.received != nil {
		if err := s.received.write(o); err != nil {
			return nil, err
		}
		report["tracks"] = s.received.Tallies
	}
	return report, failure
}
