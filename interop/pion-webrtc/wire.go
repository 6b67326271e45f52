package main

import (
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

const (
	h264PayloadType = 102
	rtxPayloadType  = 103
	opusPayloadType = 111
)

// What went over the wire of one session, as its report has it.
type wireCounts struct {
	RTPSent       atomic.Int64
	Dropped       atomic.Int64
	NacksSent     atomic.Int64
	NacksReceived atomic.Int64
	PlisSent      atomic.Int64
	PlisReceived  atomic.Int64
	ByesReceived  atomic.Int64
}

func (c *wireCounts) report() map[string]int64 {
	return map[string]int64{
		"rtp_sent": c.RTPSent.Load(), "dropped": c.Dropped.Load(),
		"nacks_sent": c.NacksSent.Load(), "nacks_received": c.NacksReceived.Load(),
		"plis_sent": c.PlisSent.Load(), "plis_received": c.PlisReceived.Load(),
		"byes_received": c.ByesReceived.Load(),
	}
}

// wire is the interceptor next to the network: it counts, and drops packets both ways.
type wire struct {
	interceptor.NoOp
	counts *wireCounts
	loss   float64
	mutex  sync.Mutex
	random *rand.Rand
}

func (w *wire) NewInterceptor(string) (interceptor.Interceptor, error) { return w, nil }

func (w *wire) drops() bool {
	if w.loss == 0 {
		return false
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	dropped := w.random.Float64()*100 < w.loss
	if dropped {
		w.counts.Dropped.Add(1)
	}
	return dropped
}

func (w *wire) BindLocalStream(_ *interceptor.StreamInfo, writer interceptor.RTPWriter) interceptor.RTPWriter {
	return interceptor.RTPWriterFunc(
		func(header *rtp.Header, payload []byte, attributes interceptor.Attributes) (int, error) {
			w.counts.RTPSent.Add(1)
			// pion repeats a retransmission under its number, which the other end drops as replayed: a lost
			// one would never be made good.
			if header.PayloadType != rtxPayloadType && w.drops() {
				return header.MarshalSize() + len(payload), nil
			}
			return writer.Write(header, payload, attributes)
		})
}

func (w *wire) BindRemoteStream(_ *interceptor.StreamInfo, reader interceptor.RTPReader) interceptor.RTPReader {
	return interceptor.RTPReaderFunc(
		func(buffer []byte, attributes interceptor.Attributes) (int, interceptor.Attributes, error) {
			for {
				n, read, err := reader.Read(buffer, attributes)
				if err != nil || !w.drops() {
					return n, read, err
				}
			}
		})
}

func (w *wire) BindRTCPWriter(writer interceptor.RTCPWriter) interceptor.RTCPWriter {
	return interceptor.RTCPWriterFunc(
		func(packets []rtcp.Packet, attributes interceptor.Attributes) (int, error) {
			for _, packet := range packets {
				switch packet.(type) {
				case *rtcp.TransportLayerNack:
					w.counts.NacksSent.Add(1)
				case *rtcp.PictureLossIndication:
					w.counts.PlisSent.Add(1)
				}
			}
			return writer.Write(packets, attributes)
		})
}

func (w *wire) BindRTCPReader(reader interceptor.RTCPReader) interceptor.RTCPReader {
	return interceptor.RTCPReaderFunc(
		func(buffer []byte, attributes interceptor.Attributes) (int, interceptor.Attributes, error) {
			n, read, err := reader.Read(buffer, attributes)
			if err != nil {
				return n, read, err
			}
			packets, err := rtcp.Unmarshal(buffer[:n])
			if err != nil {
				return n, read, err
			}
			for _, packet := range packets {
				switch packet.(type) {
				case *rtcp.TransportLayerNack:
					w.counts.NacksReceived.Add(1)
				case *rtcp.PictureLossIndication:
					w.counts.PlisReceived.Add(1)
				case *rtcp.Goodbye:
					w.counts.ByesReceived.Add(1)
				}
			}
			return n, read, nil
		})
}

var h264 = webrtc.RTPCodecCapability{
	MimeType:    webrtc.MimeTypeH264,
	ClockRate:   90000,
	SDPFmtpLine: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
	// RegisterDefaultInterceptors adds the generic NACK.
	RTCPFeedback: []webrtc.RTCPFeedback{{Type: "nack", Parameter: "pli"}, {Type: "ccm", Parameter: "fir"}},
}

var opus = webrtc.RTPCodecCapability{
	MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2, SDPFmtpLine: "minptime=10;useinbandfec=1",
}

// connection makes a peer connection with H.264, its retransmissions and Opus, on loopback only.
func connection(o options, counts *wireCounts) (*webrtc.PeerConnection, error) {
	media := &webrtc.MediaEngine{}
	apt := fmt.Sprintf("apt=%d", h264PayloadType)
	rtx := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeRTX, ClockRate: 90000, SDPFmtpLine: apt}
	for _, codec := range []struct {
		capability  webrtc.RTPCodecCapability
		payloadType webrtc.PayloadType
		kind        webrtc.RTPCodecType
	}{
		{h264, h264PayloadType, webrtc.RTPCodecTypeVideo},
		{rtx, rtxPayloadType, webrtc.RTPCodecTypeVideo},
		{opus, opusPayloadType, webrtc.RTPCodecTypeAudio},
	} {
		parameters := webrtc.RTPCodecParameters{RTPCodecCapability: codec.capability, PayloadType: codec.payloadType}
		if err := media.RegisterCodec(parameters, codec.kind); err != nil {
			return nil, err
		}
	}
	interceptors := &interceptor.Registry{}
	interceptors.Add(&wire{counts: counts, loss: o.loss, random: rand.New(rand.NewSource(1))})
	if err := webrtc.RegisterDefaultInterceptors(media, interceptors); err != nil {
		return nil, err
	}
	var settings webrtc.SettingEngine
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetInterfaceFilter(func(name string) bool { return name == "lo" })
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	api := webrtc.NewAPI(webrtc.WithMediaEngine(media), webrtc.WithInterceptorRegistry(interceptors),
		webrtc.WithSettingEngine(settings))
	return api.NewPeerConnection(webrtc.Configuration{})
}
