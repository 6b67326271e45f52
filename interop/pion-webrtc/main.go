// A peer for the tests of WebRTC: pion behind WHIP and WHEP (RFC 9725), as server and as client, on loopback.
//
//	pion-webrtc serve HOST:PORT    POST /whip is received, POST /whep gets the files; ends after -sessions
//	pion-webrtc whip URL           publishes the files and ends with them
//	pion-webrtc whep URL           receives until the other end closes, or for -seconds
//	pion-webrtc viewers URL        -count viewers at once, which only count packets (viewers.go)
//
// Files that are sent are H.264 in Annex B and Opus in Ogg; those that are received are written likewise.
// The last line of standard output is one object of JSON with what was counted.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

// What the command line says.
type options struct {
	video, audio       string
	videoOut, audioOut string
	fps                float64
	loop               bool
	loss               float64
	seconds            float64
	sessions           int
	count              int
	ramp               time.Duration
	token              string
}

func main() {
	var o options
	flags := flag.NewFlagSet("pion-webrtc", flag.ExitOnError)
	flags.StringVar(&o.video, "video", "", "H.264 that is sent, in Annex B")
	flags.StringVar(&o.audio, "audio", "", "Opus that is sent, in Ogg")
	flags.StringVar(&o.videoOut, "video-out", "", "file for the received H.264")
	flags.StringVar(&o.audioOut, "audio-out", "", "file for the received Opus")
	flags.Float64Var(&o.fps, "fps", 30, "frames a second of the video that is sent")
	flags.BoolVar(&o.loop, "loop", false, "send the files again and again")
	flags.Float64Var(&o.loss, "loss", 0, "per cent of the RTP packets that are dropped, both ways")
	flags.Float64Var(&o.seconds, "seconds", 0, "length of a session in seconds (0: until it ends)")
	flags.IntVar(&o.sessions, "sessions", 1, "sessions after which the server ends")
	flags.IntVar(&o.count, "count", 1, "viewers")
	flags.DurationVar(&o.ramp, "ramp", 20*time.Millisecond, "time between two viewers")
	flags.StringVar(&o.token, "token", "", "bearer token that is sent, or demanded")
	roles := map[string]func(options, string) (any, error){
		"serve": serve, "whip": publish, "whep": play, "viewers": view,
	}
	if len(os.Args) < 3 || roles[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: pion-webrtc serve|whip|whep|viewers HOST:PORT|URL [options]")
		flags.PrintDefaults()
		os.Exit(2)
	}
	if err := flags.Parse(os.Args[3:]); err != nil {
		os.Exit(2)
	}
	report, err := roles[os.Args[1]](o, os.Args[2])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(report)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pion-webrtc:", err)
		os.Exit(1)
	}
}
