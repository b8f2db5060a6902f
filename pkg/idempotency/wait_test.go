package idempotency_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
)

func TestALostCommitIsRemembered(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		request := func(key idempotency.Key) idempotency.Request {
			return idempotency.Request{
				Key: key, Type: "thing.create",
				Command: idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/things", Body: struct{}{}},
			}
		}
		// As when both COMMITs, the attempt's and the one that looks for it, get no answer.
		lost := func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
			return idempotency.Answer{}, fmt.Errorf("commit: %w", database.ErrCommitUnknown)
		}
		done := func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
			return idempotency.Answer{State: idempotency.Succeeded, Status: 201, Body: []byte("{}")}, nil
		}
		fresh := func(t *testing.T) (*idempotency.Executor, *database.DB) {
			db := dbtest.Connect(t, dbtest.URL(t, kind), database.Options{})
			x := idempotency.New(db, idempotency.Options{})
			if _, err := x.Do(t.Context(), request("lost"), lost); !errors.Is(err, database.ErrCommitUnknown) {
				t.Fatalf("got %v, want ErrCommitUnknown", err)
			}
			return x, db
		}
		wantUnknown := func(t *testing.T, x *idempotency.Executor, key idempotency.Key, want bool) {
			t.Helper()
			_, err := x.Do(t.Context(), request(key), done)
			if !errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrCommitUnknown) != want {
				t.Errorf("%s: got %v; want ErrUnavailable, and that its COMMIT is unknown: %t", key, err, want)
			}
		}
		t.Run("however many operations came after it", func(t *testing.T) {
			x, db := fresh(t)
			idempotency.ForgetSeen(x)
			db.Close()
			wantUnknown(t, x, "lost", true)
			wantUnknown(t, x, "another", false)
		})
		t.Run("until the operation is seen committed, and then as long as any other", func(t *testing.T) {
			x, db := fresh(t)
			if got, err := x.Do(t.Context(), request("lost"), done); err != nil || got.Outcome != idempotency.OutcomeExecuted {
				t.Fatalf("got %s, %v", got.Outcome, err)
			}
			idempotency.ForgetSeen(x)
			db.Close()
			wantUnknown(t, x, "lost", false)
		})
	})
}
