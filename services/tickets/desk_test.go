package tickets_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/services/simulator"
	"github.com/einmal/einmal/services/simulator/simtest"
	"github.com/einmal/einmal/services/tickets"
)

// patience is for what happens within a second or two; on a busy machine, within many.
const patience = 25 * time.Second

// desk is a simulated desk: the truth about what was sent.
type desk struct{ simtest.Simulator }

// abilities are what a desk can do that EINMAL_DESK_ABILITY describes by the same name, and no more.
var abilities = map[string]string{
	"key":    `{"target":"desk","keys":"honour","lookup":true,"close":false}`,
	"close":  `{"target":"desk","keys":"ignore","lookup":false,"close":true}`,
	"lookup": `{"target":"desk","keys":"ignore","lookup":true,"close":false}`,
	"none":   `{"target":"desk","keys":"ignore","lookup":false,"close":false}`,
}

// startDesk runs a simulator with an ability until the test ends.
func startDesk(t *testing.T, kind database.Kind, ability string) desk {
	t.Helper()
	d := desk{simtest.Start(t, kind)}
	d.Abilities(abilities[ability])
	return d
}

// ledger is what really happened.
func (d desk) ledger() []simulator.Effect {
	d.T.Helper()
	return d.Ledger("desk")
}

// has holds the ledger to a number of tickets, and returns the first.
func (d desk) has(want int) (first simulator.Effect) {
	d.T.Helper()
	all := d.ledger()
	if len(all) != want {
		d.T.Errorf("the desk has %d tickets, want %d: %v", len(all), want, all)
	}
	if len(all) > 0 {
		first = all[0]
	}
	return first
}

// open opens a ticket under an effect key behind the service's back.
func (d desk) open(effectKey string) {
	d.T.Helper()
	d.Do("POST", "/desk/v1/tickets", `{"title":"t"}`, nil, "Idempotency-Key: "+effectKey)
}

// mirroring is a service with a desk, of which it is told the truth.
func mirroring(t *testing.T, kind database.Kind, ability string, changes ...func(*tickets.Config)) (running, desk) {
	t.Helper()
	d := startDesk(t, kind, ability)
	return start(t, kind, append([]func(*tickets.Config){func(c *tickets.Config) {
		c.ProviderURL, c.DeskAbility = d.URL, ability
		c.ReconcileEvery = 20 * time.Millisecond
	}}, changes...)...), d
}

// brisk does not wait long for a desk that hangs. Elsewhere a slow machine is not to be taken for one.
func brisk(c *tickets.Config) { c.ProviderTimeout, c.EffectLease = time.Second, 3*time.Second }

// operation is the resource as a client reads it.
type operation struct {
	ID, Type, State, Effect, Target, Reference string
	EffectKey                                  string    `json:"effect_key"`
	ReviewID                                   string    `json:"review_id"`
	NextAction                                 string    `json:"next_action"`
	RetryAfterSeconds                          int       `json:"retry_after_seconds"`
	CreatedAt                                  time.Time `json:"created_at"`
	UpdatedAt                                  time.Time `json:"updated_at"`
	Response                                   struct {
		Status int
		Body   json.RawMessage
	}
	Attempts []struct{ ID, Outcome, Error, Reference string }
}

func (op operation) outcomes() (all []string) {
	for _, a := range op.Attempts {
		all = append(all, a.Outcome)
	}
	return all
}

// mirrored creates a ticket and returns it with its mirror's operation.
func (r running) mirrored(t *testing.T, k, project string) (ticket, string) {
	t.Helper()
	a := create(t, r.agent(), key("%s", k), `{"project":"`+project+`","title":"Disk full"}`)
	made := ticketOf(t, a)
	if a.Status != 201 || made.Mirror == nil || made.Mirror.State != "queued" || made.Mirror.Reference != "" {
		t.Fatalf("created %s", a)
	}
	return made, made.Mirror.OperationID
}

func (r running) operation(t *testing.T, id string, headers ...string) (op operation) {
	t.Helper()
	r.agent().Send(t, "GET", "/v1/operations/"+id, "", headers...).Decode(t, &op)
	return op
}

// becomes waits until an operation is as it must be.
func (r running) becomes(t *testing.T, id, what string, holds func(operation) bool) (op operation) {
	t.Helper()
	deadline := time.After(patience)
	for {
		if op = r.operation(t, id); holds(op) {
			return op
		}
		select {
		case <-deadline:
			t.Fatalf("waited in vain until the operation %s: %+v", what, op)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ends waits for the end of an operation as a client does.
func (r running) ends(t *testing.T, id, state string) operation {
	t.Helper()
	op := r.operation(t, id, "Prefer: wait=25")
	if op.State != state {
		t.Errorf("the operation is %+v, want it %s", op, state)
	}
	return op
}

// now reads a ticket.
func (r running) now(t *testing.T, id string) ticket {
	t.Helper()
	return ticketOf(t, r.agent().Send(t, "GET", "/v1/tickets/"+id, ""))
}
