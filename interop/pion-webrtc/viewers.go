package main

import (
	"fmt"
	"sync"
	"time"
)

// viewer is what one of many received.
type viewer struct {
	JoinedMs int64             `json:"connected_ms"`
	Tracks   map[string]*tally `json:"tracks"`
	Error    string            `json:"error,omitempty"`
}

// view connects many viewers, one after the other, and counts what each receives for -seconds.
func view(o options, to string) (any, error) {
	if o.seconds == 0 {
		return nil, fmt.Errorf("viewers need -seconds")
	}
	viewers := make([]viewer, o.count)
	var tasks sync.WaitGroup
	for n := range viewers {
		tasks.Add(1)
		go func() {
			defer tasks.Done()
			if err := viewers[n].watch(o, to); err != nil {
				viewers[n].Error = err.Error()
			}
		}()
		time.Sleep(o.ramp)
	}
	tasks.Wait()
	connected, packets, lost, fewest := 0, int64(0), int64(0), int64(-1)
	for _, viewer := range viewers {
		if viewer.Error == "" {
			connected++
		}
		own := int64(0)
		for _, track := range viewer.Tracks {
			own += track.Packets
			lost += track.Lost
		}
		packets += own
		if fewest < 0 || own < fewest {
			fewest = own
		}
	}
	return map[string]any{
		"role": "viewers", "count": o.count, "connected": connected, "packets": packets, "lost": lost,
		"fewest_packets": fewest, "viewers": viewers,
	}, nil
}

func (v *viewer) watch(o options, to string) error {
	s, err := newViewer(o)
	if err != nil {
		return err
	}
	report, err := exchange(o, s, to)
	if err != nil {
		return err
	}
	v.JoinedMs = report["connected_ms"].(int64)
	v.Tracks = s.received.Tallies
	return nil
}
