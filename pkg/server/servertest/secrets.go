package servertest

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	// shortestBody is the shortest body that is looked for as a whole. What is shorter, as {} and null, stands in many a text by chance.
	shortestBody = 8

	// shortestText is the shortest key, and string of a body, that is looked for. Services have words of their own that are nearly as long
	// (source_event_id). Keys of Key and tokens of Token are found whatever their length.
	shortestText = 16

	// longestText is how much of a text is looked for. Who tells a body cut short tells how it begins.
	longestText = 64

	// mostTexts bounds the strings of one body that are looked for: a batch of a hundred thousand has no other fields than its first ones.
	mostTexts = 100
)

// Secrets is what a test has sent to a service, and what the service must not tell: bearer tokens, keys and bodies. A [Server] notes every
// exchange in it and holds problem documents to it at once. At the end of the test neither the log nor the events may have any of it.
//
// A text of a body that also stands in the path of a request is the name of a resource, which may be told.
type Secrets struct {
	// Log is what the service is to log to, at every level.
	Log *slog.Logger

	mu    sync.Mutex
	sent  map[string]secret // by their texts
	paths strings.Builder
	log   bytes.Buffer
}

// secret says what a text is, and in which kind of place it may be told after all.
type secret struct {
	what   string
	named  bool // where a path has it, it is the name of a resource
	told   kind
	quoted string // as it stands in an error that quotes it
}

// KeepSecrets looks at what was told at the end of the test, when the services that were started later have ended. A service without a
// database has none to look at.
func KeepSecrets(t testing.TB, dbs ...*sql.DB) *Secrets {
	t.Helper()
	s := &Secrets{sent: map[string]secret{}}
	s.Keep(mark, "a token or a key")
	s.Log = slog.New(slog.NewJSONHandler(s, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: legible}))
	t.Cleanup(func() {
		t.Helper()
		places := logged(s.Logged())
		for _, db := range dbs {
			events, err := eventsOf(context.WithoutCancel(t.Context()), db)
			if err != nil {
				t.Errorf("read events to look for secrets: %v", err)
			}
			places = append(places, events...)
		}
		s.Keep("Bearer ", "an Authorization header") // not before: a problem says that one is to be sent
		s.check(t, places)
	})
	return s
}

// legible spells what the JSON handler would encode otherwise, as bytes in Base64.
func legible(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindAny {
		if b, ok := a.Value.Any().([]byte); ok {
			return slog.String(a.Key, string(b))
		}
		return slog.String(a.Key, fmt.Sprintf("%+v", a.Value.Any()))
	}
	return a
}

// Keep adds a text that must not be told, and what it is.
func (s *Secrets) Keep(text, what string) { s.keep(text, secret{what: what}) }

func (s *Secrets) keep(text string, is secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// What is sent in two places, and may be told of one of them, does not say which of them it is told of.
	if text != "" && s.sent[text].told == "" {
		quoted := strconv.Quote(text)
		is.quoted = quoted[1 : len(quoted)-1]
		s.sent[text] = is
	}
}

// Sent notes a request, and the body that it was sent with.
func (s *Secrets) Sent(request *http.Request, body []byte) {
	s.mu.Lock()
	fmt.Fprintln(&s.paths, request.URL.Path)
	s.mu.Unlock()
	for _, value := range request.Header.Values("Authorization") {
		_, token, _ := strings.Cut(value, " ")
		if isSecret(token) && !strings.HasPrefix(token, "demo-") { // those are names of principals, which are told
			s.Keep(token, "a token")
		}
	}
	for _, value := range request.Header.Values("Idempotency-Key") {
		if key := strings.Trim(value, `" `); isSecret(key) {
			s.Keep(key, "a key")
		}
	}
	if len(body) >= shortestBody {
		s.Keep(cut(string(body)), "a body")
	}
	var members any
	if json.Unmarshal(body, &members) != nil {
		return // its text is all there is
	}
	n := 0
	walk("", members, func(pointer, text string) {
		if n++; n <= mostTexts && len(text) >= shortestText {
			s.keep(cut(text), secret{what: "the body's " + pointer, named: true, told: mayTell(request.URL.Path, pointer)})
		}
	})
}

// isSecret tells whether a token or a key is to be looked for by itself: not what is too short for that, nor what is found by its mark.
func isSecret(text string) bool { return len(text) >= shortestText && !strings.Contains(text, mark) }

func cut(text string) string { return text[:min(len(text), longestText)] }

// mayTell is the kind of place in which services tell this text of a body, because the contract has it so.
func mayTell(path, pointer string) kind {
	for _, may := range []struct {
		path, pointer string
		in            kind
	}{
		{"/decision", "/fingerprint", inEvent},        // it names what was asked, as the operation's events do
		{"/decision", "/reason", inProblem},           // the final answer to whoever has asked says why it was a no
		{"/v1/deployments", "/artifact", inProblem},   // the final answer of a failure says what runs
		{"/v1/hooks/psp", "/data/object/id", inEvent}, // it is the reference that the operation's events tell
	} {
		if strings.HasSuffix(path, may.path) && pointer == may.pointer {
			return may.in
		}
	}
	return ""
}

// Write takes lines of JSON, for a service whose log is to be as it is in production.
func (s *Secrets) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(line)
}

// Logged is what the service has logged so far, as lines of JSON.
func (s *Secrets) Logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// check fails the test for each place that tells a secret.
func (s *Secrets) check(t testing.TB, places []place) {
	t.Helper()
	var text strings.Builder
	for _, p := range places {
		text.WriteString(p.text)
		text.WriteByte('\n')
	}
	all := text.String()
	s.mu.Lock()
	defer s.mu.Unlock()
	for text, is := range s.sent {
		if !is.in(all, text) || is.named && strings.Contains(s.paths.String(), text) {
			continue
		}
		told := map[string]bool{}
		for _, p := range places {
			if !told[p.name] && is.told != p.kind && is.in(p.text, text) {
				t.Errorf("%s tells %s, %.6q…", p.name, is.what, text)
				told[p.name] = true // a log that tells it a thousand times is told of once
			}
		}
	}
}

func (is secret) in(all, text string) bool {
	return strings.Contains(all, text) || is.quoted != text && strings.Contains(all, is.quoted)
}
