package harness

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/record"
	"github.com/einmal/einmal/pkg/child"
)

// laboratory is who directs simulators, in place of a caller.
const laboratory = "laboratory"

// recorded prepares a call to be recorded where its context records. The caller gives done the answer.
func (c Call) recorded(ctx context.Context) (_ context.Context, done func(Answer)) {
	log := record.From(ctx)
	directs := strings.HasPrefix(c.Path, "/_")
	if log == nil || directs && c.Method == http.MethodGet { // looking at the truth is not part of the scenario
		return ctx, func(Answer) {}
	}
	m := record.Message{
		From: log.Caller(c.Token), To: strings.TrimPrefix(c.Base, "http://"),
		Method: c.Method, Path: c.Path, Key: c.Key, Body: c.Body, Sent: time.Now(),
	}
	if directs {
		m.From = laboratory
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { m.Conn = got.Conn.LocalAddr().String() },
	})
	return ctx, func(a Answer) { log.Message(answered(m, a)) }
}

// recordedRaw is the same for bytes that may be no request.
func recordedRaw(ctx context.Context, address string, request []byte) (_ context.Context, done func(Answer)) {
	log := record.From(ctx)
	line, _, _ := bytes.Cut(request, []byte("\r\n"))
	m := record.Message{From: "raw bytes", To: address, Sent: time.Now()}
	m.Method, m.Path, _ = strings.Cut(string(line), " ")
	m.Path, _, _ = strings.Cut(m.Path, " ")
	return ctx, func(a Answer) { log.Message(answered(m, a)) }
}

func answered(m record.Message, a Answer) record.Message {
	m.Ended = time.Now()
	m.Status, m.Outcome, m.Said = a.Status, a.Outcome(), string(a.Body)
	if a.Err != nil {
		m.Status, m.Err = 0, a.Err.Error()
		if outer := (*url.Error)(nil); errors.As(a.Err, &outer) {
			m.Err = outer.Err.Error() // where to is recorded as such
		}
	}
	return m
}

// recordLife records the process that was just started, until it ends.
func (s *Service) recordLife(ctx context.Context) {
	if s.record = record.From(ctx); s.record == nil {
		return
	}
	s.record.Place(record.Place{Address: s.address, Kind: record.Process, Name: s.settings.Role})
	how := ""
	if n := len(s.settings.Under); n > 0 {
		how = s.settings.Under[n-1] // what strace is to inject
	}
	s.record.Mark(s.address, record.Started, how)
	go func(log *record.Log, address string, process *child.Process) {
		how := "exit status 0"
		if err := process.Err(); err != nil {
			how = err.Error()
		}
		log.Mark(address, record.Ended, how)
	}(s.record, s.address, s.process)
}

func (s *Service) mark(event record.Event) { s.record.Mark(s.address, event, "") }
