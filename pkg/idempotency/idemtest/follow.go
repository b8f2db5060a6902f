package idemtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

func testFollow(t *testing.T, l *lab) {
	x := idempotency.New(l.db, idempotency.Options{WaitBudget: time.Minute})
	queued := idempotency.Answer{State: idempotency.Queued, Resource: idempotency.Resource{Type: "mirror", ID: "1", Href: "/1"}}

	t.Run("a following operation commits with the one that claims it", func(t *testing.T) {
		c := l.caller(t)
		var w work
		var claimed idempotency.Operation
		c.do(x, c.request("k", 1), w.ending(func(tx database.Tx, _ idempotency.Operation) (idempotency.Answer, error) {
			op, won, err := x.Claim(tx, c.request("mirror:k", 1), queued)
			if !won || op.State != idempotency.Queued || op.Resource != queued.Resource || op.IdempotencyKey != "mirror:k" {
				t.Errorf("claimed %v: %+v", won, op)
			}
			claimed = op
			return created(), err
		}))
		c.wantRows("k", 1, 1)
		c.wantRows("mirror:k", 0, 1)
		if op := c.stored("mirror:k"); op.ID != claimed.ID || op.State != idempotency.Queued || !op.CreatedAt.Equal(c.stored("k").CreatedAt) {
			t.Errorf("stored %+v", op)
		}
		if c.stored("k").ID == claimed.ID {
			t.Error("both have one id")
		}
	})
	t.Run("and vanishes with it", func(t *testing.T) {
		c := l.caller(t)
		claim := func(tx database.Tx) {
			if _, won, err := x.Claim(tx, c.request("mirror:k", 1), queued); err != nil || !won {
				t.Errorf("claimed %v, %v", won, err)
			}
		}
		no := errors.New("no")
		for _, refusal := range []error{no, &idempotency.Refusal{Answer: refused()}, &idempotency.Refusal{Answer: refused(), Final: true}} {
			var w work
			_, err := x.Do(t.Context(), c.request("k", 1), w.ending(func(tx database.Tx, _ idempotency.Operation) (idempotency.Answer, error) {
				claim(tx)
				return idempotency.Answer{}, refusal
			}))
			if err != nil && !errors.Is(err, no) {
				t.Error(err)
			}
			c.wantRows("mirror:k", 0, 0)
		}
	})
	t.Run("a second claim of it changes nothing, in the same transaction and later", func(t *testing.T) {
		c := l.caller(t)
		for i := range 2 {
			err := l.db.InTx(t.Context(), func(tx database.Tx) error {
				for j := range 2 {
					op, won, err := x.Claim(tx, c.request("mirror:k", i+j), queued)
					if err != nil {
						return err
					}
					if first := i+j == 0; won != first || (op.ID != "") != first {
						t.Errorf("claim %d.%d: %v, %q", i, j, won, op.ID)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			c.wantRows("mirror:k", 0, 1)
		}
	})
	t.Run("of many operations that claim it at once one does, and all are executed", func(t *testing.T) {
		c := l.caller(t)
		replicas := l.replicas(t, 2, database.Options{LockTimeout: 10 * time.Second}, idempotency.Options{WaitBudget: time.Minute})
		wins := make([]bool, 16)
		var w work
		results := c.together(len(wins), func(i int) (idempotency.Result, error) {
			x := replicas[i%2]
			return x.Do(t.Context(), c.request(idempotency.Key(fmt.Sprint("k", i)), 1), w.ending(func(tx database.Tx, _ idempotency.Operation) (idempotency.Answer, error) {
				_, won, err := x.Claim(tx, c.request("mirror:k", 1), queued)
				wins[i] = won
				return created(), err
			}))
		})
		won := 0
		for i, r := range results {
			c.wantOutcome(r, idempotency.OutcomeExecuted)
			if wins[i] {
				won++
			}
		}
		if won != 1 {
			t.Errorf("%d claimed it", won)
		}
		c.wantRows("mirror:k", 0, 1)
	})
	t.Run("it is open until it is settled, and then replayed, as any other", func(t *testing.T) {
		c := l.caller(t)
		var op idempotency.Operation
		err := l.db.InTx(t.Context(), func(tx database.Tx) (err error) {
			op, _, err = x.Claim(tx, c.request("mirror:k", 1), queued)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		var w work
		c.wantOutcome(c.do(x, c.request("mirror:k", 1), w.apply), idempotency.OutcomeInProgress)
		if err := l.db.InTx(t.Context(), func(tx database.Tx) error { return x.Settle(tx, op, idempotency.Queued, created()) }); err != nil {
			t.Fatal(err)
		}
		c.wantOutcome(c.do(x, c.request("mirror:k", 1), w.apply), idempotency.OutcomeReplayed)
		c.wantRows("mirror:k", 0, 1)
	})
	t.Run("what is claimed can be settled in the same transaction, and is replayed", func(t *testing.T) {
		for _, initial := range []idempotency.State{idempotency.Queued, idempotency.AwaitingApproval} {
			c, end := l.caller(t), refused()
			var claimed idempotency.Operation
			var w work
			c.do(x, c.request("k", 1), w.ending(func(tx database.Tx, _ idempotency.Operation) (idempotency.Answer, error) {
				op, won, err := x.Claim(tx, c.request("mirror:k", 1), idempotency.Answer{State: initial, Resource: queued.Resource})
				if err != nil || !won {
					t.Errorf("claimed %v, %v", won, err)
				}
				claimed = op
				if err := x.Settle(tx, op, initial, end); err != nil {
					t.Error(err)
				}
				if err := x.Settle(tx, op, initial, refused()); !errors.Is(err, idempotency.ErrStateChanged) {
					t.Errorf("settled twice: %v", err)
				}
				return created(), nil
			}))
			c.wantRows("mirror:k", 0, 1)
			got := c.do(x, c.request("mirror:k", 1), w.apply)
			c.wantOutcome(got, idempotency.OutcomeReplayed)
			end.Resource = queued.Resource // what it was accepted with
			if diff := cmp.Diff(end, got.Answer); diff != "" || got.Operation.ID != claimed.ID {
				t.Errorf("%s answers (-settled +replayed):\n%s", got.Operation.ID, diff)
			}
		}
	})
	t.Run("its row is complete before anything else is written to it", func(t *testing.T) {
		c := l.caller(t)
		err := l.db.InTx(t.Context(), func(tx database.Tx) error {
			op, _, err := x.Claim(tx, c.request("mirror:k", 1), queued)
			if err != nil {
				return err
			}
			row, err := x.Row(tx, c.account, op.ID)
			if diff := cmp.Diff(op, row); diff != "" {
				t.Errorf("(-claimed +row):\n%s", diff)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	t.Run("nothing is claimed without a key", func(t *testing.T) {
		c := l.caller(t)
		err := l.db.InTx(t.Context(), func(tx database.Tx) error {
			_, _, err := x.Claim(tx, c.request("", 1), queued)
			return err
		})
		if !errors.Is(err, idempotency.ErrKeyMissing) {
			t.Errorf("got %v, want ErrKeyMissing", err)
		}
	})
}
