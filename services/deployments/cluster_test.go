package deployments_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/simulator"
)

// cluster is a simulated cluster: the truth about what was rolled out.
type cluster struct {
	t   *testing.T
	url string
}

// startCluster runs a simulator whose rollouts take so long, until the test ends.
func startCluster(t *testing.T, kind database.Kind, rolloutTime time.Duration) cluster {
	t.Helper()
	db := dbtest.Connect(t, dbtest.URL(t, kind), database.Options{})
	if err := migrations.Up(t.Context(), db, simulator.Name); err != nil {
		t.Fatal(err)
	}
	config := simulator.Config{
		Listen: "127.0.0.1:0", Token: "demo-provider", ReadToken: "demo-provider-read", RolloutTime: rolloutTime, ShutdownGrace: patience,
	}
	service, err := simulator.New(config, simulator.Deps{DB: db, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- service.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("cluster: %v", err)
		}
	})
	return cluster{t, "http://" + service.Addr()}
}

// arm makes a fault strike the next call of a kind.
func (c cluster) arm(operation, when, action, more string) {
	c.t.Helper()
	c.do("POST", "/_faults", `{"target":"cluster","operation":"`+operation+`","when":"`+when+`","action":"`+action+`","times":1`+more+`}`, nil)
}

// disarm forgets all faults.
func (c cluster) disarm() {
	c.t.Helper()
	c.do("DELETE", "/_faults", "", nil)
}

// ignoresKeys makes the cluster break its promise.
func (c cluster) ignoresKeys() {
	c.t.Helper()
	c.do("POST", "/_abilities", `{"target":"cluster","keys":"ignore","lookup":true,"close":true}`, nil)
}

// ledger is what really happened, of a kind.
func (c cluster) ledger(kind string) (of []simulator.Effect) {
	c.t.Helper()
	var all []simulator.Effect
	c.do("GET", "/_ledger?target=cluster", "", &all)
	for _, e := range all {
		if e.Kind == kind {
			of = append(of, e)
		}
	}
	return of
}

// rolledOut holds the ledger to rollouts of images with these digits, in this order.
func (c cluster) rolledOut(digits ...string) {
	c.t.Helper()
	var got []string
	for _, e := range c.ledger("rollout") {
		got = append(got, e.Digest[len(e.Digest)-1:])
	}
	if strings.Join(got, " ") != strings.Join(digits, " ") {
		c.t.Errorf("the cluster has rolled out %q, want %q", got, digits)
	}
}

// oneAtATime holds the ledger to what must always be true: no two rollouts overlap in an environment, and no token goes back.
func (c cluster) oneAtATime() {
	c.t.Helper()
	last := map[string]simulator.Effect{}
	for _, e := range c.ledger("rollout") {
		place := e.Account + "/" + e.Environment
		before, found := last[place]
		if found && (before.EndedAt == nil || before.EndedAt.After(*e.StartedAt)) {
			c.t.Errorf("two rollouts overlap in %s: %+v, %+v", place, before, e)
		}
		if found && e.Token <= before.Token {
			c.t.Errorf("token %d comes after %d in %s", e.Token, before.Token, place)
		}
		last[place] = e
	}
}

func (c cluster) do(method, path, body string, into any) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if into != nil {
		err = errors.Join(err, json.Unmarshal(text, into))
	}
	if err != nil || response.StatusCode >= 300 {
		c.t.Fatalf("%s %s: %d %s, %v", method, path, response.StatusCode, text, err)
	}
}
