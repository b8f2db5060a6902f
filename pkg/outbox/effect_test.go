package outbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
)

func TestEffectKey(t *testing.T) {
	key := Key("einmal", "tickets", "acme", "k-1", "mirror")
	t.Run("never changes between releases", func(t *testing.T) {
		if key != "f33e81146bd5562b634db2d130aa8081c0edac7d9094e389b74c0cebca72aa43" {
			t.Errorf("%s: targets know what was sent under the former one", key)
		}
	})
	t.Run("is another if anything is that the caller intends", func(t *testing.T) {
		seen := map[string]bool{key: true}
		for _, other := range []string{
			Key("other", "tickets", "acme", "k-1", "mirror"), Key("einmal", "payments", "acme", "k-1", "mirror"),
			Key("einmal", "tickets", "acm", "k-1", "mirror"), Key("einmal", "tickets", "acme", "k-2", "mirror"),
			Key("einmal", "tickets", "acme", "k-1", "authorize"), Key("einmal", "tickets", "acmek-1", "", "mirror"),
		} {
			if seen[other] {
				t.Errorf("twice: %s", other)
			}
			seen[other] = true
		}
	})
}

func TestEnqueue(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		s := set(t, keyed)
		t.Run("makes a queued effect due, under a key that the operation's id is no part of", func(t *testing.T) {
			e := s.accept("k")
			until := e.CreatedAt.Add(24 * time.Hour) // as the policy has it
			want := Effect{
				AccountID: s.account, ID: e.ID, OperationID: e.OperationID, IdempotencyKey: "k", Type: catalogue.TicketMirror, Target: s.target.Name,
				EffectKey: Key("test", "tickets", s.account, "k", "mirror"), Command: []byte("k"),
				State: idempotency.Queued, NextAt: &e.CreatedAt, Deadline: &until, CreatedAt: e.CreatedAt, UpdatedAt: e.CreatedAt,
			}
			if diff := cmp.Diff(want, e); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("does not make one due that waits for a person", func(t *testing.T) {
			e := s.acceptIn(idempotency.AwaitingApproval, s.account, "waits", catalogue.TicketMirror)
			if e.NextAt != nil || e.State != idempotency.AwaitingApproval {
				t.Errorf("%+v", e)
			}
			s.ok(s.box.send(t.Context(), s.target, e))
			if s.desk.called(kindSend) != 0 {
				t.Error("sent")
			}
		})
		t.Run("marks the types that the catalogue gives priority", func(t *testing.T) {
			if e := s.acceptOf(s.account, "first", catalogue.DeploymentCancel); !e.Priority {
				t.Errorf("%+v", e)
			}
		})
		t.Run("refuses an operation that is not accepted", func(t *testing.T) {
			for _, state := range []idempotency.State{idempotency.Running, idempotency.Unknown, idempotency.Succeeded, ""} {
				err := s.inTx(func(tx database.Tx) error {
					return s.box.Enqueue(tx, idempotency.Operation{AccountID: s.account, ID: "op_x", State: state}, s.target.Name, "mirror", nil)
				})
				if err == nil {
					t.Errorf("took one that is %q", state)
				}
			}
		})
		t.Run("refuses a target that this process does not serve, and says so", func(t *testing.T) {
			op := idempotency.Operation{AccountID: s.account, ID: "op_x", IdempotencyKey: "x", State: idempotency.Queued}
			for name, write := range map[string]func(database.Tx, idempotency.Operation, string, string, []byte) error{"Enqueue": s.box.Enqueue, "Wait": s.box.Wait} {
				err := s.inTx(func(tx database.Tx) error { return write(tx, op, "dekc", "mirror", []byte("{}")) })
				if !errors.Is(err, ErrNotServed) || !strings.Contains(err.Error(), `"dekc"`) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
		t.Run("refuses a second effect of one operation", func(t *testing.T) {
			e := s.accept("once")
			err := s.inTx(func(tx database.Tx) error {
				op := idempotency.Operation{AccountID: e.AccountID, ID: e.OperationID, IdempotencyKey: "once", State: idempotency.Queued}
				return s.box.Enqueue(tx, op, s.target.Name, "another", []byte("{}"))
			})
			if err == nil {
				t.Error("took it")
			}
		})
	})
}

func TestNewRefuses(t *testing.T) {
	s := newStage(t, dbtest.URL(t, database.SQLite), keyed)
	for name, spoil := range map[string]func(*Deps, *Target){
		"a lease that ends before a call does":       func(_ *Deps, t *Target) { t.Lease = t.Timeout },
		"calls without an end":                       func(_ *Deps, t *Target) { t.Timeout = 0 },
		"a key window that is over before a call is": func(_ *Deps, t *Target) { t.Ability.KeyWindow = t.Timeout },
		"a floor that can't be closed":               func(_ *Deps, t *Target) { t.Ability = Ability{Floor: true} },
		"no attempts":                                func(_ *Deps, t *Target) { t.MaxAttempts = 0 },
		"no looks":                                   func(_ *Deps, t *Target) { t.MaxAsks = 0 },
		"no time between looks":                      func(_ *Deps, t *Target) { t.AskEvery = 0 },
		"no place for sends":                         func(_ *Deps, t *Target) { t.Sends = Limit{} },
		"no place for sends with priority":           func(_ *Deps, t *Target) { t.PrioritySends = Limit{} },
		"no place for looks":                         func(_ *Deps, t *Target) { t.Asks = Limit{} },
		"nobody to call":                             func(_ *Deps, t *Target) { t.Provider = nil },
		"nobody to settle":                           func(_ *Deps, t *Target) { t.Settle = nil },
		"looking for due effects without any pause":  func(d *Deps, _ *Target) { d.PollEvery = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			deps, target := Deps{DB: s.db, Exec: s.exec, PollEvery: time.Second}, s.target
			if _, err := New(deps, target); err != nil {
				t.Fatal(err)
			}
			spoil(&deps, &target)
			if _, err := New(deps, target); err == nil {
				t.Error("took it")
			}
		})
	}
}

// What clients see of an operation is its row and its effect, read one after the other.
func TestDescribe(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		t.Run("puts the effect's state in place of an open operation's", func(t *testing.T) {
			for _, c := range []struct {
				state   idempotency.State
				inDoubt bool
			}{{idempotency.AwaitingApproval, false}, {idempotency.Queued, false}, {idempotency.Queued, true}, {idempotency.Running, true}, {idempotency.Unknown, true}} {
				s := set(t, keyed)
				e := s.reach(c.state, c.inDoubt)
				op := s.operation(e)
				if op.State != c.state || op.Effect.InDoubt != c.inDoubt || op.Effect.Target != s.target.Name || op.Effect.Key != e.EffectKey {
					t.Errorf("%s: %s %+v", c.state, op.State, op.Effect)
				}
				list, err := s.exec.List(t.Context(), s.account, "", 10)
				if err != nil || len(list) != 1 || list[0].State != c.state {
					t.Errorf("%s in a list: %+v, %v", c.state, list, err)
				}
			}
		})
		t.Run("tells another attempt with the key the same, also one with another command", func(t *testing.T) {
			s := set(t, keyed)
			s.reach(idempotency.Unknown, true)
			again, other := request(s.account, "k", catalogue.TicketMirror), request(s.account, "k", catalogue.TicketMirror)
			other.Command.Path = "/v1/other"
			for want, req := range map[idempotency.Outcome]idempotency.Request{idempotency.OutcomeInProgress: again, idempotency.OutcomeConflict: other} {
				result, err := s.exec.Do(t.Context(), req, nil)
				if err != nil || result.Outcome != want || result.Operation.State != idempotency.Unknown {
					t.Errorf("%s %s, %v", result.Outcome, result.Operation.State, err)
				}
			}
		})
		t.Run("tells of each send what came of it", func(t *testing.T) {
			for finding, want := range map[Finding]string{Verdict: "refused", Refused: "refused", NotSent: "not_sent", Ambiguous: "ambiguous", Confirmed: "confirmed"} {
				s := set(t, keyed)
				s.desk.onSend = func(Effect) Evidence { return Evidence{Finding: finding, Says: "as told", Reference: "D-1"} }
				e := s.send(s.accept("k"))
				sends := s.operation(e).Effect.Sends
				if len(sends) != 1 || sends[0].Outcome != want || sends[0].EndedAt == nil || (sends[0].Error == "") != (finding == Confirmed) {
					t.Errorf("%s: %+v", finding, sends)
				}
			}
		})
	})
	t.Run("never makes an operation final that has no answer: it settled between the two reads", func(t *testing.T) {
		for _, state := range []idempotency.State{idempotency.Succeeded, idempotency.Failed, idempotency.Canceled} {
			op := idempotency.Operation{ID: "op_1", State: idempotency.Queued}
			describe(&op, Effect{OperationID: "op_1", State: state}, nil)
			if op.State.Final() {
				t.Errorf("%s with status %d", op.State, op.ResponseStatus)
			}
		}
	})
	t.Run("leaves final operations as they are", func(t *testing.T) {
		op := idempotency.Operation{ID: "op_1", State: idempotency.Failed}
		describe(&op, Effect{OperationID: "op_1", State: idempotency.Failed}, []Attempt{{OperationID: "op_1", ID: "try_1"}, {OperationID: "op_2"}})
		if op.State != idempotency.Failed || len(op.Effect.Sends) != 1 {
			t.Errorf("%+v", fmt.Sprint(op))
		}
	})
}
