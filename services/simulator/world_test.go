package simulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/simulator"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const (
	writeToken = "write"
	readToken  = "read"

	// patience is for conditions that hold within milliseconds; on a busy machine, within seconds.
	patience = 20 * time.Second
)

// world is a running simulator.
type world struct {
	t           *testing.T
	databaseURL string
	base        string
	end         func() error
	ahead       *atomic.Int64 // how far its clock is ahead of ours, in nanoseconds
}

// start starts a simulator on a fresh database; it ends with the test.
func start(t *testing.T, kind database.Kind) *world {
	t.Helper()
	url := dbtest.URL(t, kind)
	w := &world{t: t, databaseURL: url, ahead: &atomic.Int64{}}
	w.begin()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) begin() {
	w.t.Helper()
	db, err := database.Open(w.t.Context(), w.databaseURL, database.Options{
		Clock: func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := migrations.Up(w.t.Context(), db, simulator.Name); err != nil {
		w.t.Fatal(err)
	}
	config := simulator.Config{Listen: "127.0.0.1:0", Token: writeToken, ReadToken: readToken, RolloutTime: rolloutTime, ShutdownGrace: patience}
	service, err := simulator.New(config, simulator.Deps{DB: db, Log: config.Logger(io.Discard)})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := service.Listen(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.base = "http://" + service.Addr()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- service.Serve(ctx) }()
	w.end = sync.OnceValue(func() error {
		cancel()
		return errors.Join(<-served, db.Close())
	})
}

// stop tells the simulator to leave and waits until it has.
func (w *world) stop() {
	w.t.Helper()
	if err := w.end(); err != nil {
		w.t.Error(err)
	}
}

func (w *world) restart() {
	w.t.Helper()
	w.stop()
	w.begin()
}

// pass lets time pass.
func (w *world) pass(d time.Duration) { w.ahead.Add(int64(d)) }

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return fmt.Sprintf("%d %s", a.status, a.body)
}

// member is a member of the answer's body, as text.
func (a answer) member(name string) string {
	var members map[string]any
	if err := json.Unmarshal([]byte(a.body), &members); err != nil || members[name] == nil {
		return ""
	}
	return fmt.Sprint(members[name])
}

func (a answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

// client makes a connection for each request: a reused one that breaks would make net/http send again by itself.
var client = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (w *world) do(ctx context.Context, token, method, path, body string, headers ...string) answer {
	request, err := http.NewRequestWithContext(ctx, method, w.base+path, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text), err}
}

const body = `{"title":"Disk full","project":"ops","external_id":"tkt_1","account":"acme"}`

func (w *world) send(key string) answer { return w.sendBody(key, body) }

func (w *world) sendBody(key, body string) answer {
	return w.do(w.t.Context(), writeToken, "POST", "/desk/v1/tickets", body, "Idempotency-Key", key)
}

func (w *world) lookUp(key string) answer {
	return w.do(w.t.Context(), readToken, "GET", "/desk/v1/tickets?effect_key="+key, "")
}

func (w *world) close(key string) answer {
	return w.do(w.t.Context(), writeToken, "POST", "/desk/v1/effects/"+key+"/close", "")
}

func (w *world) abilities(body string) {
	w.t.Helper()
	if a := w.do(w.t.Context(), "", "POST", "/_abilities", body); a.status != http.StatusOK {
		w.t.Fatalf("set abilities: %v", a)
	}
}

func (w *world) arm(body string) {
	w.t.Helper()
	if a := w.do(w.t.Context(), "", "POST", "/_faults", body); a.status != http.StatusCreated {
		w.t.Fatalf("arm fault: %v", a)
	}
}

// read fetches one of the lists of the control routes.
func read[T any](w *world, path string) []T {
	w.t.Helper()
	a := w.do(w.t.Context(), "", "GET", path, "")
	var items []T
	if err := json.Unmarshal([]byte(a.body), &items); err != nil || a.status != http.StatusOK {
		w.t.Fatalf("GET %s: %v", path, a)
	}
	return items
}

func (w *world) ledger() []simulator.Effect { return read[simulator.Effect](w, "/_ledger?target=desk") }

func (w *world) calls() []simulator.Call { return read[simulator.Call](w, "/_calls?target=desk") }

// fired is how often each fault struck, in the order in which they were armed.
func (w *world) fired() []int64 {
	fired := []int64{}
	for _, f := range read[simulator.Fault](w, "/_faults") {
		fired = append(fired, f.Fired)
	}
	return fired
}

// checkEffects compares how many effects there are.
func (w *world) checkEffects(want int) {
	w.t.Helper()
	if got := w.ledger(); len(got) != want {
		w.t.Errorf("%d effects, want %d: %v", len(got), want, got)
	}
}

func check(t *testing.T, a answer, status int, code string) {
	t.Helper()
	if a.err != nil || a.status != status || a.member("code") != code {
		t.Errorf("got %v, want %d %s", a, status, code)
	}
}

// countStacks counts the goroutines that are in a function.
func countStacks(function string) int {
	stacks := make([]byte, 4<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), function+"(")
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("%s: not within %s", what, patience)
		case <-tick.C:
		}
	}
}
