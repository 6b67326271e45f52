package main

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/gcc"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// The identifiers of header extensions, which the tests agree on.
const (
	levelID  = 1
	numberID = 3
	midID    = 4
)

const transportWide = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"

// receiveWide reports arrivals by transport-wide number, as pion does behind a peer connection, and
// prints what the packets carried. It ends after a second of silence.
func receiveWide(from string) error {
	conn, err := net.ListenPacket("udp", from)
	if err != nil {
		return err
	}
	defer conn.Close()
	recorder, begin := twcc.NewRecorder(0x70696f6e), time.Now()
	packets, reports, last, names := 0, 0, begin, map[string]int{}
	buffer := make([]byte, 65536)
	timeout := 20 * time.Second
	for {
		if err := conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
		n, source, err := conn.ReadFrom(buffer)
		if err != nil {
			break
		}
		if buffer[1] >= 192 && buffer[1] <= 223 {
			continue
		}
		var packet rtp.Packet
		if err := packet.Unmarshal(append([]byte(nil), buffer[:n]...)); err != nil {
			return fmt.Errorf("packet %d: %w", packets, err)
		}
		var number rtp.TransportCCExtension
		if err := number.Unmarshal(packet.GetExtension(numberID)); err != nil {
			return fmt.Errorf("packet %d has no number: %w", packets, err)
		}
		if mid := packet.GetExtension(midID); mid != nil {
			names["mid="+string(mid)]++
		}
		if level := packet.GetExtension(levelID); level != nil {
			var audio rtp.AudioLevelExtension
			if err := audio.Unmarshal(level); err != nil {
				return err
			}
			names[fmt.Sprintf("level=%d voice=%t", audio.Level, audio.Voice)]++
		}
		recorder.Record(packet.SSRC, number.TransportSequence, time.Since(begin).Microseconds())
		packets++
		if time.Since(last) > 20*time.Millisecond {
			last = time.Now()
			wire, err := rtcp.Marshal(recorder.BuildFeedbackPacket())
			if err != nil {
				return err
			}
			if _, err := conn.WriteTo(wire, source); err != nil {
				return err
			}
			reports++
		}
		timeout = time.Second
	}
	fmt.Printf("packets=%d reports=%d\n", packets, reports)
	for name, count := range names {
		fmt.Printf("%s packets=%d\n", name, count)
	}
	return nil
}

// sendWide sends audio whose packets carry a MID, a level and transport-wide numbers; reports of their
// arrivals drive pion's congestion controller. It prints the controller's target.
func sendWide(to string) error {
	conn, err := net.Dial("udp", to)
	if err != nil {
		return err
	}
	defer conn.Close()
	estimator, err := gcc.NewSendSideBWE(
		gcc.SendSideBWEInitialBitrate(100_000), gcc.SendSideBWEPacer(gcc.NewNoOpPacer()))
	if err != nil {
		return err
	}
	info := &interceptor.StreamInfo{
		SSRC:                0x70696f6e,
		RTPHeaderExtensions: []interceptor.RTPHeaderExtension{{URI: transportWide, ID: numberID}},
	}
	wire := interceptor.RTPWriterFunc(
		func(header *rtp.Header, payload []byte, _ interceptor.Attributes) (int, error) {
			octets, err := (&rtp.Packet{Header: *header, Payload: payload}).Marshal()
			if err != nil {
				return 0, err
			}
			return conn.Write(octets)
		})
	factory, err := twcc.NewHeaderExtensionInterceptor()
	if err != nil {
		return err
	}
	numbering, err := factory.NewInterceptor("")
	if err != nil {
		return err
	}
	// Numbers come first, so that the estimator sees them.
	writer := numbering.BindLocalStream(info, estimator.AddStream(info, wire))
	counted, done := &counts{}, make(chan error, 1)
	go readReports(conn, estimator, counted, done)
	for n := 0; n < 600; n++ {
		header := rtp.Header{Version: 2, PayloadType: 111, SequenceNumber: uint16(65300 + n),
			Timestamp: uint32(n * 960), SSRC: info.SSRC}
		if err := header.SetExtension(midID, []byte("audio")); err != nil {
			return err
		}
		level, err := rtp.AudioLevelExtension{Level: uint8(n % 128), Voice: n%2 == 0}.Marshal()
		if err != nil {
			return err
		}
		if err := header.SetExtension(levelID, level); err != nil {
			return err
		}
		payload := append([]byte{0xfc}, make([]byte, 200)...)
		if _, err := writer.Write(&header, payload, nil); err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond)
	conn.Close()
	<-done
	counted.Lock()
	defer counted.Unlock()
	fmt.Printf("target=%d reports=%d received=%d missing=%d\n", estimator.GetTargetBitrate(),
		counted.reports, counted.received, counted.missing)
	return estimator.Close()
}

type counts struct {
	sync.Mutex
	reports, received, missing int
}

func readReports(conn net.Conn, estimator *gcc.SendSideBWE, counted *counts, done chan error) {
	buffer := make([]byte, 65536)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			done <- nil
			return
		}
		packets, err := rtcp.Unmarshal(append([]byte(nil), buffer[:n]...))
		if err != nil {
			continue
		}
		counted.Lock()
		for _, packet := range packets {
			if report, is := packet.(*rtcp.TransportLayerCC); is {
				counted.reports++
				counted.received += len(report.RecvDeltas)
				counted.missing += int(report.PacketStatusCount) - len(report.RecvDeltas)
			}
		}
		counted.Unlock()
		if err := estimator.WriteRTCP(packets, nil); err != nil && !strings.Contains(err.Error(), "closed") {
			done <- err
			return
		}
	}
}
