package faults_test

import (
	"testing"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/database/pgserver"
	"github.com/einmal/einmal/pkg/idempotency/idemtest"
)

// What package idempotency promises about a COMMIT whose answer is lost (docs/protocol.md, rule 8), with a proxy that loses it.
func TestLostCommits(t *testing.T) {
	server := dbtest.Server(t, pgserver.Options{})

	t.Run("are found out", func(t *testing.T) {
		fresh, lose := behindProxy(t, server, "contract")
		idemtest.LostCommits(t, fresh, lose)
	})
	t.Run("are found out among everything else that may happen", func(t *testing.T) {
		fresh, lose := behindProxy(t, server, "model")
		idemtest.Model(t, fresh, lose)
	})
}

// behindProxy is a database whose answers to COMMITs can be lost.
func behindProxy(t *testing.T, server *pgserver.Server, name string) (idemtest.Fresh, idemtest.Lose) {
	t.Helper()
	must(t, server.CreateDatabase(t.Context(), name, ""))
	proxy, through := newProxy(t, server.URL(name))
	connect := func(t testing.TB, options database.Options) *database.DB {
		db, err := database.Open(t.Context(), through, options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	must(t, migrations.Up(t.Context(), connect(t, database.Options{}), "tickets"))
	armed := 0
	t.Cleanup(func() {
		if proxy.Fired() != armed || armed == 0 {
			t.Errorf("%d answers were to be lost, %d were", armed, proxy.Fired())
		}
	})
	return func(testing.TB) idemtest.Connect { return connect }, func(done bool) {
		armed++
		if done {
			proxy.AtCommit(faults.CutAfterCommit, "insert into operations")
		} else {
			proxy.AtCommit(faults.CutBeforeCommit, "insert into operations")
		}
	}
}
