package scenarios

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/einmal/einmal/e2e/harness"
)

var malformedKeys = Scenario{
	Name:    "malformed_keys",
	Promise: "A key that is missing or malformed is refused with 400 and leaves nothing; both spellings of a good one name one key.",
	run: func(s *Stage) int {
		service := s.Serve("")
		refused := s.refuseMalformedKeys(service)
		s.Check(s.Count("SELECT count(*) FROM operations") == 0, "a refused key left an operation")

		accepted := s.acceptKeys(service)
		s.Check(s.Count("SELECT count(*) FROM operations") == accepted, "want %d operations", accepted)
		s.Notef("%d malformed keys were refused, %d odd but good ones were kept to the letter", refused, accepted)
		return accepted
	},
}

// refuseMalformedKeys sends every kind of malformed key, as bytes on the wire, and returns how many there are.
func (s *Stage) refuseMalformedKeys(service *harness.Service) int {
	invalid := map[string]string{
		"empty":                      "",
		"spaces":                     "   ",
		"empty quoted":               `""`,
		"256 random characters":      s.text(256),
		"8 KiB of random characters": s.text(8192),
		"8 KiB of one character":     strings.Repeat("a", 8192),
		"a space inside":             "a b",
		"a space inside, quoted":     `"a b"`,
		"Latin-1":                    "na\xefve",
		"UTF-8":                      "naïve",
		"an emoji":                   "key-🎫",
		"a tab inside":               "a\tb",
		"a quotation mark inside":    `a"b`,
		"a backslash inside":         `a\b`,
		"a list":                     "a,b",
		"a list of quoted keys":      `"a", "b"`,
		"parameters":                 `"a";v=1`,
		"no closing quotation mark":  `"a`,
		"a wrong escape":             `"a\n"`,
		"reserved for mirrors":       "mirror:abc",
		"reserved for Alertmanager":  "am:abc",
		"reserved for the provider":  "psp:abc",
		"reserved, quoted":           `"am:abc"`,
	}
	for what, key := range invalid {
		answer := s.createRaw(service, "Idempotency-Key: "+key+"\r\n")
		s.Problem("key: "+what, answer, http.StatusBadRequest, "idempotency-key-invalid")
		s.Check(strings.Contains(answer.Text("detail"), "Idempotency-Key"), "key: %s: the problem names no header: %v", what, answer)
	}
	s.Problem("no key", s.createRaw(service, ""), http.StatusBadRequest, "idempotency-key-missing")
	s.Problem("two keys", s.createRaw(service, "Idempotency-Key: a\r\nIdempotency-Key: a\r\n"), http.StatusBadRequest, "idempotency-key-invalid")

	// What is no header at all is refused before any handler is asked, and in the same form.
	broken := map[string]string{"NUL": "a\x00b", "a control character": "a\x01b", "a bare line feed": "a\nb"}
	for what, key := range broken {
		answer := s.createRaw(service, "Idempotency-Key: "+key+"\r\n")
		s.Problem("key: "+what, answer, http.StatusBadRequest, "malformed-request")
		s.Check(strings.Contains(answer.Text("detail"), "Idempotency-Key"), "key: %s: the problem names no header: %v", what, answer)
	}
	return len(invalid) + 2 + len(broken)
}

// acceptKeys uses good keys that look odd, each in both spellings, and returns how many there are.
func (s *Stage) acceptKeys(service *harness.Service) int {
	keys := []string{"abc", "../x", "a/b?c=d#e", "%0a", "{}", "Mirror:x", s.text(255)}
	body := s.NewTicket().JSON()
	for _, key := range keys {
		created := s.Create(service.URL(), key, body)
		s.Executed("key "+key, created)
		s.Replayed("key "+key+", quoted", s.Create(service.URL(), `"`+key+`"`, body), created)
		known := s.OperationOf(service.URL(), key)
		s.Check(known.Text("id") == created.Header.Get("Operation-Id"), "the operation of key %s is %v", key, known)
		s.Check(s.TicketsOf(key) == 1, "key %s is stored otherwise, or not once", key)
	}
	// Only a quoted key can contain these.
	created := s.Create(service.URL(), `"a\"b\\c,d"`, body)
	s.Executed("a key with everything escaped", created)
	s.Check(s.TicketsOf(`a"b\c,d`) == 1, "the escaped key is not stored unescaped")
	return len(keys) + 1
}

// createRaw sends a creation with these header lines as they are.
func (s *Stage) createRaw(service *harness.Service, headers string) harness.Answer {
	body := s.NewTicket().JSON()
	return s.heard(harness.Raw(s.ctx, service.Address(), fmt.Appendf(nil,
		"POST /v1/tickets HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n%s",
		service.Address(), agent, len(body), headers, body)))
}

// text is n random letters and digits.
func (s *Stage) text(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[s.rand.IntN(len(letters))]
	}
	return string(b)
}
