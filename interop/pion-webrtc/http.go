package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pion/webrtc/v4"
)

// Octets of the longest description that is read.
const longest = 1 << 20

// connect offers a session to a server, which answers it. It returns the URL of the session.
func (s *session) connect(o options, to string) (string, error) {
	offer, err := s.describe(s.pc.CreateOffer(nil))
	if err != nil {
		return "", err
	}
	answer, response, err := request(o, http.MethodPost, to, offer)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("%s: %s: %s", to, response.Status, answer)
	}
	base, err := url.Parse(to)
	if err != nil {
		return "", err
	}
	resource, err := base.Parse(response.Header.Get("Location"))
	if err != nil {
		return "", err
	}
	description := webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}
	return resource.String(), s.pc.SetRemoteDescription(description)
}

func request(o options, method, to, body string) (string, *http.Response, error) {
	request, err := http.NewRequest(method, to, strings.NewReader(body))
	if err != nil {
		return "", nil, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/sdp")
	}
	if o.token != "" {
		request.Header.Set("Authorization", "Bearer "+o.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, longest))
	return string(text), response, err
}

// exchange connects as a client, and runs to the end.
func exchange(o options, s *session, to string) (map[string]any, error) {
	resource, err := s.connect(o, to)
	if err != nil {
		return nil, err
	}
	status := 0
	report, err := s.run(o, func() {
		// A server that has ended its session may be gone.
		if _, response, err := request(o, http.MethodDelete, resource, ""); err == nil {
			status = response.StatusCode
		}
	})
	if err != nil {
		return nil, err
	}
	report["delete_status"] = status
	return report, nil
}

// publish is a client of WHIP.
func publish(o options, to string) (any, error) {
	s, err := newSession(o, "whip client", true)
	if err != nil {
		return nil, err
	}
	return exchange(o, s, to)
}

// newViewer returns a client of WHEP that has not yet connected.
func newViewer(o options) (*session, error) {
	s, err := newSession(o, "whep client", false)
	if err != nil {
		return nil, err
	}
	for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeVideo, webrtc.RTPCodecTypeAudio} {
		receives := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}
		if _, err := s.pc.AddTransceiverFromKind(kind, receives); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// play is a client of WHEP.
func play(o options, to string) (any, error) {
	s, err := newViewer(o)
	if err != nil {
		return nil, err
	}
	return exchange(o, s, to)
}

// server has the sessions of clients, by their paths.
type server struct {
	options  options
	mutex    sync.Mutex
	sessions map[string]*session
	reports  chan any
}

// serve is a server of WHIP and WHEP.
func serve(o options, at string) (any, error) {
	s := &server{options: o, sessions: map[string]*session{}, reports: make(chan any)}
	listener := http.Server{Addr: at, Handler: s}
	failed := make(chan error, 1)
	go func() { failed <- listener.ListenAndServe() }()
	var reports []any
	for len(reports) < o.sessions {
		select {
		case err := <-failed:
			return nil, err
		case report := <-s.reports:
			if err, isFailure := report.(error); isFailure {
				return nil, err
			}
			reports = append(reports, report)
		}
	}
	patience, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// The answer to the last DELETE is still sent.
	_ = listener.Shutdown(patience)
	if len(reports) == 1 {
		return reports[0], nil
	}
	return reports, nil
}

func (s *server) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	if s.options.token != "" && request.Header.Get("Authorization") != "Bearer "+s.options.token {
		writer.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(writer, "a token is needed", http.StatusUnauthorized)
		return
	}
	switch request.Method {
	case http.MethodPost:
		s.open(writer, request)
	case http.MethodDelete:
		s.mutex.Lock()
		session := s.sessions[request.URL.Path]
		delete(s.sessions, request.URL.Path)
		s.mutex.Unlock()
		if session == nil {
			http.NotFound(writer, request)
			return
		}
		session.end()
	default:
		// Without candidates that follow (RFC 9725 §4.3).
		http.Error(writer, "not supported", http.StatusMethodNotAllowed)
	}
}

func (s *server) open(writer http.ResponseWriter, request *http.Request) {
	sends := request.URL.Path == "/whep"
	if !sends && request.URL.Path != "/whip" {
		http.NotFound(writer, request)
		return
	}
	offer, err := io.ReadAll(io.LimitReader(request.Body, longest))
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	session, err := newSession(s.options, request.URL.Path[1:]+" server", sends)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	answer, err := session.answer(string(offer))
	if err != nil {
		_ = session.pc.Close()
		http.Error(writer, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	s.mutex.Lock()
	resource := fmt.Sprintf("%s/%d", request.URL.Path, len(s.sessions)+1)
	s.sessions[resource] = session
	s.mutex.Unlock()
	writer.Header().Set("Content-Type", "application/sdp")
	writer.Header().Set("Location", resource)
	writer.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(writer, answer)
	go func() {
		report, err := session.run(s.options, func() {})
		if err != nil {
			s.reports <- err
			return
		}
		s.reports <- report
	}()
}

func (s *session) answer(offer string) (string, error) {
	description := webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}
	if err := s.pc.SetRemoteDescription(description); err != nil {
		return "", err
	}
	return s.describe(s.pc.CreateAnswer(nil))
}
