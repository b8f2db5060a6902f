package main_test

import (
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/database/pgserver"
)

// A service that connects as a role which owns nothing works as ever, and can't change what has happened.
func TestMigrateGrants(t *testing.T) {
	server := dbtest.Server(t, pgserver.Options{})
	const name, role = "granted_tickets", "einmal_service"
	if err := server.CreateDatabase(t.Context(), name, ""); err != nil {
		t.Fatal(err)
	}
	owner := dbtest.Connect(t, server.URL(name), database.Options{})
	if err := owner.Read(t.Context()).Exec("CREATE ROLE " + role + " LOGIN").Error; err != nil {
		t.Fatal(err)
	}
	asOwner := []string{"EINMAL_DATABASE_URL=" + server.URL(name)}
	if e := run(t, asOwner, "migrate", "--grant", role); e.status != 0 || !strings.Contains(e.out, role) {
		t.Fatalf("%+v", e)
	}
	u, err := url.Parse(server.URL(name))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	settings := []string{"EINMAL_DATABASE_URL=" + u.String(), "EINMAL_MIGRATE=false", "EINMAL_AUDIT_DIR=" + t.TempDir()}
	service := start(t, "tickets", settings...)
	service.create(t, "key-1")
	if status := service.leave(t, syscall.SIGTERM); status != 0 {
		t.Fatalf("exit status %d\n%s", status, service.out.String())
	}
	if e := run(t, settings, "audit", "verify"); e.status != 0 || !strings.Contains(e.out, "all 2 sealed events") {
		t.Errorf("%+v", e)
	}
	connected := dbtest.Connect(t, u.String(), database.Options{})
	for _, statement := range []string{
		"UPDATE events SET principal = 'x'", "DELETE FROM events", "TRUNCATE events", "DROP TABLE events", "UPDATE leaves SET leaf_index = 0", "DELETE FROM leaves",
		"UPDATE audit_checkpoints SET note = ''", "DELETE FROM audit_checkpoints", "DELETE FROM audit_tree", "UPDATE installation SET namespace = 'x'",
		"CREATE TABLE mine (id integer)", "ALTER TABLE events DISABLE TRIGGER ALL",
	} {
		t.Run("it is refused "+statement, func(t *testing.T) {
			err := connected.Read(t.Context()).Exec(statement).Error
			if err == nil || !strings.Contains(err.Error(), "42501") { // insufficient privilege
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("a role to which nothing can be refused is not one to grant it to, nor one that is not there", func(t *testing.T) {
		checkRefused(t, run(t, asOwner, "migrate", "--grant", "postgres"), 1, "nothing can be refused to it")
		checkRefused(t, run(t, asOwner, "migrate", "--grant", "nobody"), 1, `no role "nobody"`)
	})
	t.Run("it may be said again", func(t *testing.T) {
		if e := run(t, asOwner, "migrate", "--grant", role); e.status != 0 {
			t.Errorf("%+v", e)
		}
	})
}
