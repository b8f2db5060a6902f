package faults_test

import (
	"testing"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/database/pgserver"
	"github.com/einmal/einmal/pkg/idempotency"
)

// docs/protocol.md rule 8: the claim that looks for a lost COMMIT waits for it.
func TestALostCommitThatIsUnderWayIsAwaited(t *testing.T) {
	server := dbtest.Server(t, pgserver.Options{})
	must(t, server.CreateDatabase(t.Context(), "underway", ""))
	proxy, through := newProxy(t, server.URL("underway"))
	open := func(url string) *database.DB {
		db, err := database.Open(t.Context(), url, database.Options{})
		must(t, err)
		t.Cleanup(func() { db.Close() })
		return db
	}
	db, direct := open(through), open(server.URL("underway"))
	must(t, migrations.Up(t.Context(), direct, migrations.Shared))

	x := idempotency.New(db, idempotency.Options{})
	trap := proxy.AtCommit(faults.CutUnderWay, "insert into operations")
	runs := 0
	type ended struct {
		result idempotency.Result
		err    error
	}
	done := make(chan ended, 1)
	go func() {
		result, err := x.Do(t.Context(), idempotency.Request{
			Key: "k", Type: "thing.create", Command: idempotency.Command{Account: "a", Method: "POST", Path: "/things", Body: map[string]int{}},
		}, func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
			runs++
			return idempotency.Answer{State: idempotency.Succeeded, Status: 201, Body: []byte("{}")}, nil
		})
		done <- ended{result, err}
	}()
	must(t, trap.Wait(t.Context()))
	for waiting := 0; waiting == 0 && len(done) == 0; {
		must(t, direct.Read(t.Context()).Raw("SELECT count(*) FROM pg_stat_activity WHERE datname = 'underway' AND wait_event_type = 'Lock'").Scan(&waiting).Error)
	}
	trap.Release()
	if end := <-done; end.err != nil || end.result.Outcome != idempotency.OutcomeExecuted || runs != 1 {
		t.Errorf("%s, %v, ran %d times; want it executed, once", end.result.Outcome, end.err, runs)
	}
}
