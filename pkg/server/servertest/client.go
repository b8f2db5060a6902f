package servertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/einmal/einmal/pkg/problem"
)

// Client sends requests as one principal. It never fails a test fatally, so any goroutine may use it.
type Client struct {
	server *Server
	token  string
}

// Send makes one request and reads the answer to its end. Headers are "Name: value"; a body is JSON unless they say otherwise.
// A request without an answer is an error of the test, and answered with a zero Answer.
func (c Client) Send(t testing.TB, method, path, body string, headers ...string) Answer {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	request, err := c.Request(t, method, path, reader, headers...)
	if err != nil {
		t.Error(err)
		return Answer{}
	}
	request.ContentLength = int64(len(body))
	answer, err := c.server.Exchange(t, request)
	if err != nil {
		t.Error(err)
	}
	return answer
}

// Request makes a request for Exchange. A body is sent in chunks unless the caller sets its length, and is sent only once:
// net/http repeats a request with an Idempotency-Key on its own where it can read the body again, and who counts attempts must
// not have that.
func (c Client) Request(t testing.TB, method, path string, body io.Reader, headers ...string) (*http.Request, error) {
	if body != nil {
		body = struct{ io.Reader }{body}
	}
	request, err := http.NewRequestWithContext(t.Context(), method, c.server.URL+path, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	told := map[string]bool{}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		name = http.CanonicalHeaderKey(name)
		if !told[name] { // what the caller says replaces what is set above; saying it twice sends it twice
			request.Header.Del(name)
		}
		told[name] = true
		request.Header.Add(name, value)
	}
	return request, nil
}

// Exchange makes one request and checks it and its answer against the service's document:
//
//   - the answer is one that the document knows for this request: status, every header, body;
//   - a request that the document calls wrong is not answered with success;
//   - a problem document tells nothing that was sent and is a secret.
//
// An error says that there was no answer, or not all of it.
func (s *Server) Exchange(t testing.TB, request *http.Request) (Answer, error) {
	t.Helper()
	var sent transcript
	if request.Body != nil {
		request.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(request.Body, &sent), request.Body}
	}
	response, err := s.client.Do(request)
	s.secrets.Sent(request, sent.Bytes()) // also if there is no answer
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("read answer to %s %s: %w", request.Method, request.URL.Path, err)
	}
	answer := Answer{response.StatusCode, response.Header, body}
	if len(body) > 0 && response.Header.Get("Content-Type") == problem.ContentType {
		s.secrets.check(t, problemOf(body))
	}
	if s.document != nil {
		if err := s.document.check(request, sent.Bytes(), answer); err != nil {
			t.Errorf("%s %s answered %d %s\nwhich is not as openapi.yaml has it: %v", request.Method, request.URL, answer.Status, body, err)
		}
	}
	return answer, nil
}

// transcript keeps what was sent. An answer may come while the request is still being written.
type transcript struct {
	mu   sync.Mutex
	text []byte
}

func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, p...)
	return len(p), nil
}

// Bytes is what was sent so far.
func (s *transcript) Bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.text)
}

// Answer is a response that was read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Problem is the problem document that the answer must be.
func (a Answer) Problem(t testing.TB) problem.Problem {
	t.Helper()
	var p problem.Problem
	if err := json.Unmarshal(a.Body, &p); err != nil || a.Header.Get("Content-Type") != problem.ContentType {
		t.Errorf("no problem document but %s: %v", a, err)
	} else if p.Status != a.Status {
		t.Errorf("status %d with a problem of status %d", a.Status, p.Status)
	}
	return p
}

// Decode reads the JSON document that the answer must be.
func (a Answer) Decode(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, into); err != nil || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("no JSON document but %s: %v", a, err)
	}
}

// Outcome is what the service says became of a write.
func (a Answer) Outcome() string { return a.Header.Get("Idempotency-Outcome") }

// String is for messages.
func (a Answer) String() string {
	const most = 500 // a problem document
	return fmt.Sprintf("%d %s %.*s", a.Status, a.Outcome(), most, a.Body)
}
