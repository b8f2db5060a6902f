package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/einmal/einmal/pkg/problem"
)

const (
	// answerWithin is how long one request may take: longer than any wait of a service that is not in trouble.
	answerWithin = 30 * time.Second

	// heldFor is how long a service is asked at most to hold a poll back until its operation has ended (Prefer: wait).
	heldFor = 10 * time.Second

	// mostRead is how much of an answer is read: a body of 1 MiB in the most wasteful spelling, and an operation around it.
	mostRead = 8 << 20
)

// client sends one request at a time, and each exactly once.
type client struct {
	http  *http.Client
	token string
}

// newClient makes a client whose requests have a connection each. net/http takes the Idempotency-Key of a POST as a permission to send it again,
// unasked and uncounted, when a connection that was kept turns out dead (http.Request, isReplayable); and HTTP/2 has reasons of its own.
// An agent that counts attempts must not have that, nor a redirect followed, which is a second request, nor a proxy that may do either.
func newClient(token string) client {
	return client{token: token, http: &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSNextProto:      map[string]func(string, *tls.Conn) http.RoundTripper{},
			Proxy:             nil,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       answerWithin,
	}}
}

// attempt sends an entry's request, once.
func (c client) attempt(ctx context.Context, e *Entry) Seen {
	request, err := http.NewRequestWithContext(ctx, e.Command.Method, e.URL+e.Command.Path, strings.NewReader(string(e.Command.Body)))
	if err != nil {
		return Seen{Reading: NotConnected, Detail: err.Error()}
	}
	request.GetBody = nil // without it net/http can't send the body again
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Agent-Run-Id", e.Run)
	if e.Ability != Operations {
		return c.do(request, e.Key, readStatus)
	}
	return c.do(request, e.Key, readWrite)
}

// lookUp asks for the operation of an entry's key.
func (c client) lookUp(ctx context.Context, e *Entry) Seen {
	return c.ask(ctx, e, "/v1/operations", e.Key, 0)
}

// poll asks for an operation, and to be answered when it has ended, or when so much time has passed.
func (c client) poll(ctx context.Context, e *Entry, operation string, held time.Duration) Seen {
	return c.ask(ctx, e, "/v1/operations/"+url.PathEscape(operation), "", held)
}

func (c client) ask(ctx context.Context, e *Entry, path, key string, held time.Duration) Seen {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL+path, nil)
	if err != nil {
		return Seen{Reading: NotConnected, Detail: err.Error()}
	}
	if held >= time.Second {
		request.Header.Set("Prefer", "wait="+strconv.Itoa(int(held.Seconds())))
	}
	return c.do(request, key, func(r received) Seen { return readQuestion(r, e.Run) })
}

// do sends one request and reads what comes of it.
func (c client) do(request *http.Request, key string, read func(received) Seen) Seen {
	connected := false
	request = request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected = true }, // before the first byte
	}))
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	return c.receive(request, &connected, read).clipped()
}

func (c client) receive(request *http.Request, connected *bool, read func(received) Seen) Seen {
	response, err := c.http.Do(request)
	if err != nil {
		if outer := (*url.Error)(nil); errors.As(err, &outer) {
			err = outer.Err // where to stands in the entry
		}
		if !*connected {
			return Seen{Reading: NotConnected, Detail: err.Error(), Effect: problem.EffectNone}
		}
		return Seen{Reading: NoAnswer, Detail: err.Error(), Effect: problem.EffectUnknown}
	}
	defer response.Body.Close()
	r := received{status: response.StatusCode, header: response.Header, at: time.Now()}
	r.body, err = io.ReadAll(io.LimitReader(response.Body, mostRead+1))
	switch {
	case err != nil:
		return r.seen().as(Unreadable, "status %d, and the body ends before its end: %v", r.status, err)
	case len(r.body) > mostRead:
		return r.seen().as(Unreadable, "status %d, and the body is longer than %d bytes", r.status, mostRead)
	}
	return read(r)
}

// mostErrors is how many violations are kept: whoever mends these sees the others next time.
const mostErrors = 10

// longestText is how much is kept of a text that a target says: a sentence or two for a person.
const longestText = 1000

// clipped is what was seen without texts that are too long to be kept.
func (s Seen) clipped() Seen {
	texts := []*string{&s.Detail, &s.Outcome, &s.Operation.ID, &s.Operation.State, &s.Operation.ApprovalID, &s.Operation.ReviewID}
	s.Errors = slices.Clone(s.Errors[:min(len(s.Errors), mostErrors)])
	for i := range s.Errors {
		texts = append(texts, &s.Errors[i].Pointer, &s.Errors[i].Detail)
	}
	for _, text := range texts {
		if len(*text) > longestText {
			*text = strings.ToValidUTF8((*text)[:longestText], "") + "…"
		}
	}
	return s
}

// String says what was seen to a person.
func (s Seen) String() string {
	text, said := words[s.Reading]
	if !said { // a code, or the state of an operation
		text = string(s.Reading)
	}
	if s.Status != 0 {
		text = fmt.Sprintf("%d %s", s.Status, text)
	}
	if s.Detail != "" {
		text += ": " + s.Detail
	}
	for _, v := range s.Errors {
		text += "; " + strings.TrimSpace(v.Pointer+" "+v.Detail) // without a pointer it is about the whole
	}
	return text
}
