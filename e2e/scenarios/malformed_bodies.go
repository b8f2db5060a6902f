package scenarios

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/harness"
)

// maxBody is the contract's limit of a body.
const maxBody = 1 << 20

var malformedBodies = Scenario{
	Name:    "malformed_bodies",
	Promise: "What is not a valid command is refused before anything is claimed, with everything that is wrong; two spellings of one command are one.",
	run: func(s *Stage) int {
		service := s.Serve("")
		key := s.NewKey()

		// All under one key: none of them may use it up.
		refused := s.refuseBodies(service, key) + s.refuseMedia(service, key) + s.refuseSizes(service, key)
		s.Check(s.Count("SELECT count(*) FROM operations") == 0, "a refused body left an operation")
		s.Executed("the key after all that", s.Create(service.URL(), key, s.NewTicket().JSON()))

		spellings := s.agreeOnSpellings(service)
		sizes := s.acceptSizes(service)
		s.Notef("%d bodies were refused, %d spellings of one command were one, %d bodies of up to 1 MiB arrived whole", refused, spellings, sizes)
		return 2 + sizes
	},
}

// refuseBodies sends bodies that are no JSON object (400) or no valid command (422), and returns how many.
func (s *Stage) refuseBodies(service *harness.Service, key string) int {
	malformed, invalid := malformedJSON(), s.invalidCommands()
	for what, body := range malformed {
		s.Problem("a body that is "+what, s.Create(service.URL(), key, body), http.StatusBadRequest, "malformed-body")
	}
	// An empty body is one, not a broken connection.
	empty := s.Do(harness.Call{Base: service.URL(), Method: http.MethodPost, Path: "/v1/tickets", Key: key, Reader: strings.NewReader("")})
	s.Problem("no body", empty, http.StatusBadRequest, "malformed-body")

	for body, places := range invalid {
		what := "the command " + shorten(body)
		answer := s.Create(service.URL(), key, body)
		s.Problem(what, answer, http.StatusUnprocessableEntity, "validation-failed")
		for _, place := range places {
			s.Check(strings.Contains(string(answer.Body), `"`+place+`"`), "%s: no error names %s: %v", what, place, answer)
		}
	}
	return len(malformed) + 1 + len(invalid)
}

// refuseMedia sends a good body as something else than plain JSON.
func (s *Stage) refuseMedia(service *harness.Service, key string) int {
	headers := []http.Header{
		{"Content-Type": {"text/plain"}},
		{"Content-Type": {"application/x-www-form-urlencoded"}},
		{"Content-Type": {"application/json-patch+json"}},
		{"Content-Type": {""}},
		{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}},
		{"Content-Type": {"application/json"}, "Content-Encoding": {"identity"}},
	}
	for _, header := range headers {
		answer := s.Do(harness.Call{Base: service.URL(), Method: http.MethodPost, Path: "/v1/tickets", Key: key, Header: header, Body: s.NewTicket().JSON()})
		s.Problem(fmt.Sprint("a body sent as ", header), answer, http.StatusUnsupportedMediaType, "unsupported-media-type")
	}
	for _, method := range []string{http.MethodHead, http.MethodOptions, http.MethodPatch} {
		answer := s.Do(harness.Call{Base: service.URL(), Method: method, Path: "/v1/tickets", Key: key})
		s.Check(answer.Err == nil && answer.Status < http.StatusInternalServerError, "%s: got %v", method, answer)
	}
	return len(headers)
}

// refuseSizes sends bodies above the limit, with and without saying how long they are.
func (s *Stage) refuseSizes(service *harness.Service, key string) int {
	sizes := []int{maxBody + 1, 10 * maxBody}
	for _, size := range sizes {
		body := padded(s.NewTicket(), size)
		call := harness.Call{Base: service.URL(), Method: http.MethodPost, Path: "/v1/tickets", Key: key}

		announced := call
		announced.Body, announced.Header = body, http.Header{"Expect": {"100-continue"}} // asks before it sends
		s.Problem(fmt.Sprint(size, " bytes, announced"), s.Do(announced), http.StatusRequestEntityTooLarge, "body-too-large")

		// Who sends more than a service reads may find the connection closed before it has read the answer. What counts is that nothing was
		// claimed, at which our caller looks.
		streamed := call
		streamed.Reader = io.MultiReader(strings.NewReader(body)) // net/http knows how long a strings.Reader is
		if answer := s.Do(streamed); answer.Err == nil {
			s.Problem(fmt.Sprint(size, " bytes, streamed"), answer, http.StatusRequestEntityTooLarge, "body-too-large")
		}
	}
	return 2 * len(sizes)
}

// agreeOnSpellings sends one command in many spellings under one key, and returns how many.
func (s *Stage) agreeOnSpellings(service *harness.Service) int {
	key := s.NewKey()
	spellings := []string{
		`{"project":"ops","title":"Größe","labels":{"a":"1","b":"2"}}`,
		`{"labels":{"b":"2","a":"1"},"title":"Größe","project":"ops"}`,
		" {\n\t\"project\" : \"ops\" ,\r\n \"title\":\"Größe\",\"labels\":{ \"a\":\"1\",\"b\":\"2\"} }\n",
		`{"\u0070roject":"op\u0073","title":"Gr\u00f6\u00dfe","labels":{"a":"1","\u0062":"2"}}`,
		`{"project":"ops","title":"Größe","labels":{"a":"1","b":"2"},"priority":"normal","description":""}`,
	}
	created := s.Create(service.URL(), key, spellings[0])
	s.Executed("the first spelling", created)
	for _, spelling := range spellings[1:] {
		s.Replayed("the spelling "+spelling, s.Create(service.URL(), key, spelling), created)
	}
	// Text is compared as sent: what only looks the same is another command.
	decomposed := strings.ReplaceAll(spellings[0], "ö", "o\u0308")
	s.Problem("a text that only looks the same", s.Create(service.URL(), key, decomposed), http.StatusUnprocessableEntity, "idempotency-key-reused")
	return len(spellings)
}

// acceptSizes sends bodies up to the limit in every way a body can be sent, and returns how many tickets they made.
func (s *Stage) acceptSizes(service *harness.Service) int {
	for _, size := range []int{maxBody - 1, maxBody} {
		body, key := padded(s.NewTicket(), size), s.NewKey()
		created := s.Create(service.URL(), key, body)
		s.Executed(fmt.Sprint(size, " bytes"), created)
		chunked := s.Do(harness.Call{
			Base: service.URL(), Method: http.MethodPost, Path: "/v1/tickets", Key: key, Reader: io.MultiReader(strings.NewReader(body)),
		})
		s.Replayed("the same without saying how long", chunked, created)
	}
	body, key := s.NewTicket().JSON(), s.NewKey()
	trickled := s.Do(harness.Call{Base: service.URL(), Method: http.MethodPost, Path: "/v1/tickets", Key: key, Reader: &trickle{rest: body}})
	s.Executed("a body that trickles in", trickled)
	s.Replayed("the same in one piece", s.Create(service.URL(), key, body), trickled)
	return 3
}

// padded is a command of exactly size bytes: JSON allows any amount of white space.
func padded(t ticket, size int) string {
	body := t.JSON()
	return body + strings.Repeat(" ", size-len(body))
}

// trickle is a body that arrives byte by byte.
type trickle struct{ rest string }

func (t *trickle) Read(p []byte) (int, error) {
	if t.rest == "" {
		return 0, io.EOF
	}
	time.Sleep(2 * time.Millisecond) // a slow line, not a condition that we wait for
	p[0] = t.rest[0]
	t.rest = t.rest[1:]
	return 1, nil
}

func shorten(text string) string {
	const most = 80
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
