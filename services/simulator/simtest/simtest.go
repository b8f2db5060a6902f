// Package simtest runs a simulator for the tests of what calls it.
package simtest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/simulator"
)

// token may ask the targets for anything. The services show it by default.
const token = "demo-provider"

// Simulator is the outside world of a test: the truth about what was done there.
type Simulator struct {
	T      *testing.T // fails when something can't be asked
	URL    string     // http://127.0.0.1:…
	client servertest.Client
}

// Start runs a simulator on a database of its own until the test ends. It sends no webhooks.
func Start(t *testing.T, kind database.Kind, changes ...func(*simulator.Config)) Simulator {
	t.Helper()
	db := dbtest.Connect(t, dbtest.URL(t, kind), database.Options{})
	if err := migrations.Up(t.Context(), db, simulator.Name); err != nil {
		t.Fatal(err)
	}
	// What hangs ends at once when it is told to leave; on a busy machine, the rest takes seconds.
	config := simulator.Config{Listen: "127.0.0.1:0", Token: token, ReadToken: "demo-provider-read", ShutdownGrace: 25 * time.Second}
	for _, change := range changes {
		change(&config)
	}
	secrets := servertest.KeepSecrets(t)
	secrets.Keep(config.Token, "the token of those who call it")
	service, err := simulator.New(config, simulator.Deps{DB: db, Log: slog.New(slog.NewJSONHandler(secrets, nil))}) // at debug it names calls by their keys
	if err != nil {
		t.Fatal(err)
	}
	server := servertest.StartUndocumented(t, service, secrets)
	return Simulator{t, server.URL, server.With(token)}
}

// Do asks it for something that it must do, and decodes the answer into what into points to, unless that is nil.
func (s Simulator) Do(method, path, body string, into any, headers ...string) {
	s.T.Helper()
	answer := s.client.Send(s.T, method, path, body, headers...)
	if answer.Status/100 != 2 {
		s.T.Fatalf("%s %s: %s", method, path, answer)
	}
	if into != nil {
		answer.Decode(s.T, into)
	}
}

// Arm makes a fault strike calls that come from now on.
func (s Simulator) Arm(fault string) {
	s.T.Helper()
	s.Do("POST", "/_faults", fault, nil)
}

// Disarm forgets all faults.
func (s Simulator) Disarm() {
	s.T.Helper()
	s.Do("DELETE", "/_faults", "", nil)
}

// Abilities makes a target able to do some things and no others.
func (s Simulator) Abilities(abilities string) {
	s.T.Helper()
	s.Do("POST", "/_abilities", abilities, nil)
}

// Ledger is what really happened at a target.
func (s Simulator) Ledger(target string) (all []simulator.Effect) {
	s.T.Helper()
	s.Do("GET", "/_ledger?target="+target, "", &all)
	return all
}

// Calls are the requests that a target has received.
func (s Simulator) Calls(target string) (all []simulator.Call) {
	s.T.Helper()
	s.Do("GET", "/_calls?target="+target, "", &all)
	return all
}
