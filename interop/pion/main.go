// A peer for the tests of H.266 and AV1: pion's packetizers and depacketizers behind two UDP sockets.
//
//	pion send CODEC FILE HOST:PORT
//	    CODEC: h266 or av1; FILE: frames, each after its length in 4 octets, big-endian
//	pion recv CODEC HOST:PORT FILE
//	    FILE: the received units, in Annex B, or temporal units; ends after a second of silence
//	pion wide-send HOST:PORT, pion wide-recv HOST:PORT
//	    header extensions, and reports by transport-wide number (wide.go)
package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sort"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
)

const (
	payloadLimit = 1200
	frameTicks   = 3000
)

type codec struct {
	payloadType  uint8
	payloader    rtp.Payloader
	depacketizer interface {
		Unmarshal(payload []byte) ([]byte, error)
	}
	// What precedes the units of a frame and is not sent.
	delimiter []byte
}

var codecsByName = map[string]codec{
	"h266": {98, &codecs.H266Packetizer{}, &codecs.H266Depacketizer{}, nil},
	"av1":  {106, &codecs.AV1Payloader{}, &codecs.AV1Depacketizer{}, []byte{0x12, 0}},
}

func main() {
	err := fmt.Errorf("usage: pion send h266|av1 FILE HOST:PORT | pion recv h266|av1 HOST:PORT FILE")
	if len(os.Args) == 3 {
		switch os.Args[1] {
		case "wide-send":
			err = sendWide(os.Args[2])
		case "wide-recv":
			err = receiveWide(os.Args[2])
		}
	}
	if len(os.Args) == 5 {
		if codec, known := codecsByName[os.Args[2]]; known {
			switch os.Args[1] {
			case "send":
				err = send(codec, os.Args[3], os.Args[4])
			case "recv":
				err = receive(codec, os.Args[3], os.Args[4])
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pion:", err)
		os.Exit(1)
	}
}

func send(codec codec, file, to string) error {
	octets, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	conn, err := net.Dial("udp", to)
	if err != nil {
		return err
	}
	defer conn.Close()
	// Sequence numbers and timestamps that wrap soon.
	sequence, timestamp := uint16(65500), uint32(0xffff_f000)
	for len(octets) >= 4 {
		length := int(binary.BigEndian.Uint32(octets))
		unit := octets[4 : 4+length]
		octets = octets[4+length:]
		payloads := codec.payloader.Payload(payloadLimit, unit)
		for n, payload := range payloads {
			packet := rtp.Packet{Header: rtp.Header{
				Version:        2,
				Marker:         n == len(payloads)-1,
				PayloadType:    codec.payloadType,
				SequenceNumber: sequence,
				Timestamp:      timestamp,
				SSRC:           0x70696f6e,
			}, Payload: payload}
			wire, err := packet.Marshal()
			if err != nil {
				return err
			}
			if _, err := conn.Write(wire); err != nil {
				return err
			}
			sequence++
			time.Sleep(200 * time.Microsecond)
		}
		timestamp += frameTicks
	}
	return nil
}

func receive(codec codec, from, file string) error {
	conn, err := net.ListenPacket("udp", from)
	if err != nil {
		return err
	}
	defer conn.Close()
	var packets []rtp.Packet
	buffer := make([]byte, 65536)
	timeout := 20 * time.Second
	for {
		if err := conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
		n, _, err := conn.ReadFrom(buffer)
		if err != nil {
			break
		}
		var packet rtp.Packet
		if err := packet.Unmarshal(append([]byte(nil), buffer[:n]...)); err != nil {
			return fmt.Errorf("packet %d: %w", len(packets), err)
		}
		packets = append(packets, packet)
		timeout = time.Second
	}
	if len(packets) == 0 {
		return fmt.Errorf("no packet arrived")
	}
	first := packets[0].SequenceNumber
	sort.SliceStable(packets, func(i, j int) bool {
		return packets[i].SequenceNumber-first < packets[j].SequenceNumber-first
	})
	var out []byte
	for n, packet := range packets {
		if n == 0 || packet.Timestamp != packets[n-1].Timestamp {
			out = append(out, codec.delimiter...)
		}
		units, err := codec.depacketizer.Unmarshal(packet.Payload)
		if err != nil {
			return fmt.Errorf("payload %d: %w", n, err)
		}
		out = append(out, units...)
	}
	return os.WriteFile(file, out, 0o644)
}
