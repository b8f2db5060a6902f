package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/einmal/einmal/e2e/harness"
)

// Callers of two accounts, from the demo identities that services know unless they are given others.
const (
	agent        = "demo-agent"
	otherAccount = "demo-globex"
)

// repeatAfter is how long a caller waits before it repeats a request. Answers say a second (Retry-After); this caller is less patient, which
// is the harder test.
const repeatAfter = 50 * time.Millisecond

// ticket is the command that most scenarios send.
type ticket struct {
	Project       string `json:"project"`
	Title         string `json:"title"`
	SourceEventID string `json:"source_event_id,omitempty"`
}

// JSON is the body of a request.
func (t ticket) JSON() string {
	body, err := json.Marshal(t)
	if err != nil {
		panic(err) // texts only
	}
	return string(body)
}

// NewTicket is a ticket that no other resembles.
func (s *Stage) NewTicket() ticket {
	title := fmt.Sprintf("Disk %d full on db-%d", s.rand.IntN(1000), s.rand.IntN(1000))
	s.secrets = append(s.secrets, title)
	return ticket{Project: "ops", Title: title}
}

// NewKey is a key that was never used.
func (s *Stage) NewKey() string {
	s.keys++
	key := fmt.Sprintf("key-%d-%08x", s.keys, s.rand.Uint32())
	s.secrets = append(s.secrets, key)
	return key
}

// Do sends one request, once, as the agent unless the call says otherwise.
func (s *Stage) Do(call harness.Call) harness.Answer {
	if call.Token == "" {
		call.Token = agent
	}
	return s.heard(harness.Do(s.ctx, call))
}

// Create sends POST /v1/tickets once.
func (s *Stage) Create(base, key, body string) harness.Answer {
	return s.Do(harness.Call{Base: base, Method: http.MethodPost, Path: "/v1/tickets", Key: key, Body: body})
}

// Insist sends POST /v1/tickets with the same key until the answer is final, as a client should: no answer, 409 operation-in-progress and 503
// are reasons to send the same once more.
func (s *Stage) Insist(base, key, body string) harness.Answer {
	poll := time.NewTicker(repeatAfter)
	defer poll.Stop()
	for {
		answer := s.Create(base, key, body)
		if final(answer) {
			return answer
		}
		select {
		case <-poll.C:
		case <-s.ctx.Done():
			return answer
		}
	}
}

func final(a harness.Answer) bool {
	return a.Err == nil && a.Status != http.StatusServiceUnavailable && a.Text("code") != "operation-in-progress"
}

// Sent is a request that is on its way.
type Sent struct {
	answer chan harness.Answer
	cancel context.CancelFunc
}

// Send sends POST /v1/tickets once without waiting for the answer.
func (s *Stage) Send(base, key, body string) *Sent {
	ctx, cancel := context.WithCancel(s.ctx)
	sent := &Sent{answer: make(chan harness.Answer, 1), cancel: cancel}
	go func() {
		sent.answer <- s.heard(harness.Do(ctx, harness.Call{Base: base, Method: http.MethodPost, Path: "/v1/tickets", Token: agent, Key: key, Body: body}))
	}()
	return sent
}

// Answer waits for the answer.
func (s *Sent) Answer() harness.Answer {
	defer s.cancel()
	return <-s.answer
}

// HangUp closes the caller's connection, whatever it was waiting for.
func (s *Sent) HangUp() {
	s.cancel()
	<-s.answer
}

// OperationOf asks for the operation of a key.
func (s *Stage) OperationOf(base, key string) harness.Answer {
	return s.Do(harness.Call{Base: base, Method: http.MethodGet, Path: "/v1/operations", Key: key})
}
