package deployments

import (
	"log/slog"
	"testing"
	"time"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/outbox"
)

// A first stop ends by a person's word, a second one is on its way, and then the first one's worker wakes up with its answer.
func TestWhatAnEarlierStopHasShown(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		db := dbtest.Open(t, kind)
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		ok(migrations.Up(t.Context(), db, Name))
		settle := &settler{store: store{db}}
		exec := idempotency.New(db, idempotency.Options{ResponseRetention: time.Hour, WaitBudget: time.Second})
		box, err := outbox.New(outbox.Deps{ // nobody runs it: nothing is sent by itself
			DB: db, Exec: exec, Log: slog.New(slog.DiscardHandler), Record: func(database.Tx, ...idempotency.Event) error { return nil }, PollEvery: time.Hour,
		}, targets(Config{
			Cluster: Cluster{FollowEvery: time.Second}, ProviderTimeout: time.Second, EffectLease: time.Minute, ReconcileEvery: time.Second, KeyWindow: time.Hour,
		}, settle)...)
		ok(err)
		settle.outbox = box
		cs := commands{exec, settle.store, box}
		in := func(do func(tx database.Tx) error) { t.Helper(); ok(db.InTx(t.Context(), do)) }
		request := func(key, operationType string) idempotency.Request {
			return idempotency.Request{
				Key: idempotency.Key(key), Type: operationType, Command: idempotency.Command{Account: "acme", Method: "POST", Path: "/" + key, Body: map[string]any{}},
			}
		}
		unknown := func(operation string) {
			t.Helper()
			in(func(tx database.Tx) error {
				return tx.Exec("UPDATE effects SET state = 'unknown', doubt = 1, fence = 1, first_sent_at = ?, attempts = 1 WHERE operation_id = ?", tx.Now, operation).Error
			})
		}

		in(func(tx database.Tx) error { _, err := settle.store.declare(tx, "acme", "prod", false); return err })
		deployed, err := cs.deploy(t.Context(), request("d", catalogue.DeploymentCreate), &createDeployment{Service: "web", Environment: "prod", Artifact: "app@1", WhenLocked: reject})
		ok(err)
		unknown(deployed.Operation.ID)
		stop := func(key string) idempotency.Operation {
			t.Helper()
			result, err := cs.cancel(t.Context(), request(key, catalogue.DeploymentCancel), deployed.Operation.Resource.ID)
			ok(err)
			return result.Operation
		}
		first := stop("first")
		unknown(first.ID)
		in(func(tx database.Tx) error { return box.Decide(tx, "acme", first.ID, idempotency.Failed, "") })
		second := stop("second")

		in(func(tx database.Tx) error {
			return settle.stopLock().Learn(tx, outbox.Effect{AccountID: "acme", OperationID: first.ID}, outbox.Evidence{Finding: outbox.Confirmed, Floor: 7})
		})
		env, err := settle.store.environment(db.Read(t.Context()), "acme", "prod")
		ok(err)
		d, err := settle.store.byID(db.Read(t.Context()), "acme", deployed.Operation.Resource.ID)
		ok(err)
		if env.Floor != 7 || d.StopOperationID != second.ID {
			t.Errorf("%+v, %+v", env, d)
		}
	})
}
