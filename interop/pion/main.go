// A peer for the tests of H.266: pion's packetizer and depacketizer behind two UDP sockets.
//
//	pion send FILE HOST:PORT    FILE: access units, each after its length in 4 octets, big-endian
//	pion recv HOST:PORT FILE    FILE: the received units, in Annex B; ends after a second of silence
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
	payloadType  = 98
	frameTicks   = 3000
)

func main() {
	var err error
	switch {
	case len(os.Args) == 4 && os.Args[1] == "send":
		err = send(os.Args[2], os.Args[3])
	case len(os.Args) == 4 && os.Args[1] == "recv":
		err = receive(os.Args[2], os.Args[3])
	default:
		err = fmt.Errorf("usage: pion send FILE HOST:PORT | pion recv HOST:PORT FILE")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pion:", err)
		os.Exit(1)
	}
}

func send(file, to string) error {
	octets, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	conn, err := net.Dial("udp", to)
	if err != nil {
		return err
	}
	defer conn.Close()
	packetizer := &codecs.H266Packetizer{}
	// Sequence numbers and timestamps that wrap soon.
	sequence, timestamp := uint16(65500), uint32(0xffff_f000)
	for len(octets) >= 4 {
		length := int(binary.BigEndian.Uint32(octets))
		unit := octets[4 : 4+length]
		octets = octets[4+length:]
		payloads := packetizer.Payload(payloadLimit, unit)
		for n, payload := range payloads {
			packet := rtp.Packet{Header: rtp.Header{
				Version:        2,
				Marker:         n == len(payloads)-1,
				PayloadType:    payloadType,
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

func receive(from, file string) error {
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
	depacketizer := &codecs.H266Depacketizer{}
	var out []byte
	for n, packet := range packets {
		units, err := depacketizer.Unmarshal(packet.Payload)
		if err != nil {
			return fmt.Errorf("payload %d: %w", n, err)
		}
		out = append(out, units...)
	}
	return os.WriteFile(file, out, 0o644)
}
