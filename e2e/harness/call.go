package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Call is one HTTP request.
type Call struct {
	Base   string // http://127.0.0.1:8081
	Method string
	Path   string
	Token  string
	Key    string // Idempotency-Key, not sent when empty
	Header http.Header
	Body   string
	Reader io.Reader // a body in place of Body, of unknown length
}

// Answer is what a caller got: an answer, or in Err why it got none.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Err    error
}

// client opens a connection for each request. net/http sends a POST that carries an Idempotency-Key again, unasked, when a kept connection
// turns out dead: a caller who counts attempts must not have that.
var client = &http.Client{
	Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true, ExpectContinueTimeout: 10 * time.Second},
	CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	},
	Timeout: 60 * time.Second, // longer than any wait of a service, so that a hang is told as one
}

// Do sends the request once and waits for the answer.
func Do(ctx context.Context, c Call) Answer {
	ctx, done := c.recorded(ctx)
	answer := c.send(ctx)
	done(answer)
	return answer
}

func (c Call) send(ctx context.Context) Answer {
	var body io.Reader
	switch {
	case c.Reader != nil:
		body = c.Reader
	case c.Body != "":
		body = strings.NewReader(c.Body)
	}
	request, err := http.NewRequestWithContext(ctx, c.Method, c.Base+c.Path, body)
	if err != nil {
		return Answer{Err: err}
	}
	for name, values := range c.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	if _, said := request.Header["Content-Type"]; body != nil && !said {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if c.Key != "" {
		request.Header.Set("Idempotency-Key", c.Key)
	}
	response, err := client.Do(request)
	if err != nil {
		return Answer{Err: err}
	}
	return read(response)
}

// Raw sends bytes as they are, which may be no proper request, and reads an answer.
func Raw(ctx context.Context, address string, request []byte) Answer {
	ctx, done := recordedRaw(ctx, address, request)
	answer := sendRaw(ctx, address, request)
	done(answer)
	return answer
}

func sendRaw(ctx context.Context, address string, request []byte) Answer {
	ctx, cancel := context.WithTimeout(ctx, client.Timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return Answer{Err: err}
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if _, err := conn.Write(request); err != nil {
		return Answer{Err: err}
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return Answer{Err: err}
	}
	return read(response)
}

// Outcome is the Idempotency-Outcome of the answer.
func (a Answer) Outcome() string { return a.Header.Get("Idempotency-Outcome") }

// Text is a member of the JSON object in the body, "" if it isn't there or is no text.
func (a Answer) Text(member string) string {
	text, _ := a.member(member).(string)
	return text
}

// Is tells whether a member of the JSON object in the body is this number, text, truth or null.
func (a Answer) Is(member string, want any) bool { return a.member(member) == want }

// Same tells whether two answers have the same status, place and bytes.
func (a Answer) Same(b Answer) bool {
	return a.Status == b.Status && a.Header.Get("Location") == b.Header.Get("Location") && bytes.Equal(a.Body, b.Body)
}

// String is for messages.
func (a Answer) String() string {
	if a.Err != nil {
		return a.Err.Error()
	}
	const most = 300 // enough for a problem document's code and detail
	body := string(a.Body)
	if len(body) > most {
		body = body[:most] + "…"
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s %s", a.Status, a.Outcome(), body))
}

func (a Answer) member(name string) any {
	var object map[string]any
	if json.Unmarshal(a.Body, &object) != nil {
		return nil
	}
	return object[name]
}

func read(response *http.Response) Answer {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return Answer{Status: response.StatusCode, Header: response.Header, Body: body, Err: err}
}
