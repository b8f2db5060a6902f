package main_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

func TestFsck(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		url := dbtest.URL(t, kind)
		setting := []string{"EINMAL_DATABASE_URL=" + url}
		service := start(t, "tickets", setting...)
		service.create(t, "key-1")
		service.create(t, "key-2")

		t.Run("finds nothing beside a running service, and names what it has looked for", func(t *testing.T) {
			if e := run(t, setting, "fsck"); e.status != 0 || e.err != "" || !strings.Contains(e.out, "holds: every effect has its operation") ||
				!strings.Contains(e.out, "tickets: every invariant holds") {
				t.Errorf("%+v", e)
			}
		})
		t.Run("says so when there is no ledger where it is told to look", func(t *testing.T) {
			checkRefused(t, run(t, setting, "fsck", "--ledger", "http://127.0.0.1:1"), 1, "ledger", "simulator")
		})

		service.leave(t, syscall.SIGTERM)
		db := dbtest.Connect(t, url, database.Options{})
		if err := db.Read(t.Context()).Exec("DELETE FROM tickets WHERE operation_id = (SELECT id FROM operations WHERE idempotency_key = 'key-1')").Error; err != nil {
			t.Fatal(err)
		}

		t.Run("says what is wrong, where, and what to do", func(t *testing.T) {
			e := run(t, setting, "fsck")
			checkRefused(t, e, 1, "1 violation")
			for _, want := range []string{"violated: ", "where: account acme, op_", "do: "} {
				if !strings.Contains(e.out, want) {
					t.Errorf("stdout does not say %q:\n%s", want, e.out)
				}
			}
		})
	})

	t.Run("refuses a database that is not there, and does not make it", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "mistyped.db")
		for range 2 {
			checkRefused(t, run(t, []string{"EINMAL_DATABASE_URL=sqlite:" + path}, "fsck"), 1, path, "EINMAL_DATABASE_URL")
		}
	})
}

func TestMigrateAndFsckKnowEachService(t *testing.T) {
	for _, service := range []string{"tickets", "payments", "deployments"} {
		setting := []string{"EINMAL_DATABASE_URL=sqlite:" + filepath.Join(t.TempDir(), service+".db")}
		for _, role := range []string{"migrate", "fsck"} {
			if e := run(t, setting, role, "--service", service); e.status != 0 || !strings.Contains(e.out, service+":") {
				t.Errorf("%s of %s: %+v", role, service, e)
			}
		}
	}
}

func TestMigrate(t *testing.T) {
	setting := []string{"EINMAL_DATABASE_URL=sqlite:" + filepath.Join(t.TempDir(), "tickets.db")}
	if e := run(t, setting, "migrate"); e.status != 0 || strings.Contains(e.out, " 0 migrations") {
		t.Errorf("the first time: %+v", e)
	}
	if e := run(t, setting, "migrate"); e.status != 0 || !strings.Contains(e.out, " 0 migrations") {
		t.Errorf("the second time: %+v", e)
	}
	if e := run(t, setting, "fsck"); e.status != 0 {
		t.Errorf("fsck: %+v", e)
	}
}
