package agent_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/einmal/einmal/pkg/agent"
)

// keptAlive answers the first request of each connection, and, when a second one has come on it, closes it without an answer. It counts requests.
func keptAlive(t *testing.T) (url string, requests *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	requests = &atomic.Int64{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				reader := bufio.NewReader(conn)
				for n := 0; n < 2; n++ {
					request, err := http.ReadRequest(reader)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, request.Body)
					requests.Add(1)
					if n == 0 {
						_, _ = io.WriteString(conn, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nIdempotency-Outcome: executed\r\nOperation-Id: op_1\r\nContent-Length: 2\r\n\r\n{}")
					}
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String(), requests
}

func TestNothingIsSentTwiceUnasked(t *testing.T) {
	t.Run("net/http does so with a POST that has a key, on a connection that was kept", func(t *testing.T) {
		url, requests := keptAlive(t)
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		for range 2 {
			request, err := http.NewRequest(http.MethodPost, url, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Idempotency-Key", "key-1")
			response, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		if n := requests.Load(); n != 3 {
			t.Errorf("%d requests, want 3 of 2 round trips: is there still something to prevent?", n)
		}
	})
	t.Run("an agent does not", func(t *testing.T) {
		url, requests := keptAlive(t)
		w := newWork(t, &target{url: url})
		w.one(create)
		w.one(`{"step":"second","path":"/v1/x"}`)
		if n := requests.Load(); n != 2 {
			t.Errorf("%d requests of 2 attempts", n)
		}
	})
}

func TestRedirectsAndProxiesAreNotFollowed(t *testing.T) {
	elsewhere := newTarget(t, done("executed"))
	for _, status := range []int{301, 302, 303, 307, 308} {
		w := newWork(t, newTarget(t, says(status, "text/plain", "", "Location", elsewhere.url+"/v1/tickets")))
		w.ends(w.one(within(create, `{"attempts":2}`)), agent.Unknown, 2)
	}
	if _, writes := elsewhere.arrived(); writes != 0 || elsewhere.questioned() != 0 {
		t.Errorf("%d writes and %d questions were redirected", writes, elsewhere.questioned())
	}
	if agent.HTTP().Transport.(*http.Transport).Proxy != nil {
		t.Error("a proxy of the environment would be used")
	}
}

func TestWhatIsSent(t *testing.T) {
	requests := make(chan *http.Request, 1)
	w := newWork(t, newTarget(t, func(w http.ResponseWriter, r *http.Request) { requests <- r; done("executed")(w, r) }))
	r := w.one(create)
	got := <-requests
	for name, want := range map[string]string{
		"Idempotency-Key": r.Key, "Authorization": "Bearer secret", "Agent-Run-Id": "run-1", "Content-Type": "application/json",
	} {
		if value := got.Header.Values(name); len(value) != 1 || value[0] != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
	if got.Method != http.MethodPost || got.RequestURI != "/v1/tickets" || got.ContentLength != int64(len(r.Command.Body)) {
		t.Errorf("%s %s with %d bytes", got.Method, got.RequestURI, got.ContentLength)
	}
	if len(r.Key) != 36 || r.Key[14] != '7' {
		t.Errorf("the key %s is no UUIDv7", r.Key)
	}
}

// When the first byte of a request arrives, its attempt is in the journal.
func TestTheJournalIsWrittenFirst(t *testing.T) {
	var w *work
	var seen []agent.Request
	x := newTarget(t, func(rw http.ResponseWriter, r *http.Request) {
		entries, err := agent.Read(w.path)
		if err != nil || len(entries) != 1 || entries[0].Key != r.Header.Get("Idempotency-Key") {
			t.Errorf("the journal has %+v, %v", entries, err)
			return
		}
		seen = entries[0].Requests
		done("executed")(rw, r)
	})
	w = newWork(t, x)
	w.one(create)
	if len(seen) != 1 || seen[0].Kind != agent.AttemptRequest || seen[0].Seen.Reading != agent.Interrupted {
		t.Errorf("when the request had arrived, the journal had the requests %+v", seen)
	}
}
