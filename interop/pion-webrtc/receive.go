package main

import (
	"os"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media/oggwriter"
)

// Packets within which a second copy is recognised.
const window = 4096

// tally counts the packets of one track.
type tally struct {
	Codec    string `json:"codec"`
	Packets  int64  `json:"packets"`
	Lost     int64  `json:"lost"`
	Repaired int64  `json:"retransmissions"`
	Twice    int64  `json:"duplicates"`
	Frames   int64  `json:"markers"`

	highest int64
	first   int64
	seen    [window]int64
}

// take returns the extended sequence number, and whether the packet is new.
func (t *tally) take(packet *rtp.Packet, retransmitted bool) (int64, bool) {
	if t.Packets == 0 {
		t.first = 1<<16 + int64(packet.SequenceNumber)
		t.highest = t.first
	}
	number := t.highest + int64(int16(packet.SequenceNumber-uint16(t.highest)))
	if retransmitted {
		t.Repaired++
	}
	if t.seen[number%window] == number {
		t.Twice++
		return number, false
	}
	t.seen[number%window] = number
	t.Packets++
	if packet.Marker {
		t.Frames++
	}
	t.highest, t.first = max(t.highest, number), min(t.first, number)
	t.Lost = t.highest - t.first + 1 - t.Packets
	return number, true
}

// receiver has the tracks of one connection.
type receiver struct {
	mutex  sync.Mutex
	tracks sync.WaitGroup
	// Tracks that have not ended.
	open atomic.Int32
	// By kind, "video" or "audio".
	Tallies map[string]*tally
	packets map[string]map[int64]*rtp.Packet
	// Whether the packets are kept for the files.
	keep bool
}

// newReceiver calls ended when the last track ends.
func newReceiver(pc *webrtc.PeerConnection, keep bool, ended func()) *receiver {
	r := &receiver{Tallies: map[string]*tally{}, packets: map[string]map[int64]*rtp.Packet{}, keep: keep}
	pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		r.tracks.Add(1)
		defer r.tracks.Done()
		r.open.Add(1)
		defer func() {
			if r.open.Add(-1) == 0 {
				ended()
			}
		}()
		if track.Kind() == webrtc.RTPCodecTypeVideo {
			_ = pc.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: uint32(track.SSRC())}})
		}
		r.read(track)
	})
	return r
}

func (r *receiver) read(track *webrtc.TrackRemote) {
	kind := track.Kind().String()
	r.mutex.Lock()
	counts := &tally{Codec: track.Codec().MimeType}
	r.Tallies[kind], r.packets[kind] = counts, map[int64]*rtp.Packet{}
	r.mutex.Unlock()
	for {
		packet, attributes, err := track.ReadRTP()
		if err != nil {
			return
		}
		r.mutex.Lock()
		number, isNew := counts.take(packet, attributes.Get(webrtc.AttributeRtxSsrc) != nil)
		if isNew && r.keep {
			r.packets[kind][number] = packet
		}
		r.mutex.Unlock()
	}
}

// inOrder returns the packets of a kind by their sequence numbers.
func (r *receiver) inOrder(kind string) []*rtp.Packet {
	var numbers []int64
	for number := range r.packets[kind] {
		numbers = append(numbers, number)
	}
	sort.Slice(numbers, func(i, j int) bool { return numbers[i] < numbers[j] })
	var packets []*rtp.Packet
	for _, number := range numbers {
		packets = append(packets, r.packets[kind][number])
	}
	return packets
}

// write writes what was received, once the connection is closed.
func (r *receiver) write(o options) error {
	r.tracks.Wait()
	if o.videoOut != "" {
		var depacketizer codecs.H264Packet
		var units []byte
		for _, packet := range r.inOrder("video") {
			if len(packet.Payload) == 0 {
				continue
			}
			octets, err := depacketizer.Unmarshal(packet.Payload)
			if err != nil {
				return err
			}
			units = append(units, octets...)
		}
		if err := os.WriteFile(o.videoOut, units, 0o644); err != nil {
			return err
		}
	}
	if o.audioOut == "" {
		return nil
	}
	file, err := os.Create(o.audioOut)
	if err != nil {
		return err
	}
	defer file.Close()
	// Not oggwriter.New, whose end overwrites the last packet.
	writer, err := oggwriter.NewWith(file, 48000, 2)
	if err != nil {
		return err
	}
	for _, packet := range r.inOrder("audio") {
		if len(packet.Payload) == 0 {
			continue
		}
		if err := writer.WriteRTP(packet); err != nil {
			return err
		}
	}
	return nil
}
