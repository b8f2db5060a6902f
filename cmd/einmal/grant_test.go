package main_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/einmal/einmal/e2e/harness"
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
		"UPDATE events SET principal = 'x'", "DELETE FROM events", "TRUNCATE events", "DROP TABLE events", "UPDATE segments SET first_index = 0", "DELETE FROM segments", "UPDATE markers SET events = '[]'",
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

// Whatever a service ever writes, it may: approvals, effects, reviews, what is due to be forgotten, seals.
func TestAGrantedRoleDoesAllThatAServiceDoes(t *testing.T) {
	server := dbtest.Server(t, pgserver.Options{})
	const name, role = "granted_payments", "einmal_service"
	if err := server.CreateDatabase(t.Context(), name, ""); err != nil {
		t.Fatal(err)
	}
	owner := dbtest.Connect(t, server.URL(name), database.Options{})
	if err := owner.Read(t.Context()).Exec("CREATE ROLE " + role + " LOGIN").Error; err != nil {
		t.Fatal(err)
	}
	if e := run(t, []string{"EINMAL_DATABASE_URL=" + server.URL(name)}, "migrate", "--service", "payments", "--grant", role); e.status != 0 {
		t.Fatalf("%+v", e)
	}
	u, err := url.Parse(server.URL(name))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	outside := start(t, "simulator")
	settings := []string{
		"EINMAL_DATABASE_URL=" + u.String(), "EINMAL_MIGRATE=false", "EINMAL_AUDIT_DIR=" + t.TempDir(), "EINMAL_PROVIDER_URL=http://" + outside.address,
		"EINMAL_APPROVAL_THRESHOLD=100", "EINMAL_EFFECT_DEADLINE=1s", "EINMAL_PROVIDER_TIMEOUT=200ms", "EINMAL_EFFECT_LEASE=1s", "EINMAL_RECONCILE_EVERY=50ms", "EINMAL_PURGE_EVERY=100ms", "EINMAL_SEAL_EVERY=100ms",
	}
	service := start(t, "payments", settings...)
	call := func(method, path, token, key, body string) harness.Answer {
		t.Helper()
		a := harness.Do(t.Context(), harness.Call{Base: "http://" + service.address, Method: method, Path: path, Token: token, Key: key, Body: body})
		if a.Err != nil || a.Status >= 300 {
			t.Fatalf("%s %s: %v", method, path, a)
		}
		return a
	}
	// What one asks for and another has agreed to, and what nobody knows until a person decides.
	for _, order := range []string{"agreed", "unknown"} {
		call("PUT", "/v1/orders/"+order, "demo-agent", "order-"+order, `{"amount":"120.00","currency":"EUR","payee":"p"}`)
	}
	pay := func(order string) {
		t.Helper()
		call("POST", "/v1/payments", "demo-agent", "pay-"+order, `{"order_id":"`+order+`","amount":"120.00","currency":"EUR"}`)
		var asked struct {
			Items []struct{ ID, Fingerprint string }
		}
		if err := json.Unmarshal(call("GET", "/v1/approvals?state=pending", "demo-approver", "", "").Body, &asked); err != nil || len(asked.Items) != 1 {
			t.Fatalf("%+v, %v", asked, err)
		}
		call("POST", "/v1/approvals/"+asked.Items[0].ID+"/decision", "demo-approver", "yes-"+order, `{"decision":"approve","fingerprint":"`+asked.Items[0].Fingerprint+`"}`)
	}
	count := func(of string) (n int) {
		t.Helper()
		if err := owner.Read(t.Context()).Raw("SELECT count(*) FROM " + of).Scan(&n).Error; err != nil {
			t.Fatal(err)
		}
		return n
	}
	pay("agreed")
	await(t, "the payment is made", func() bool { return count("effects WHERE state = 'succeeded'") == 1 })
	fault := func(method, body string) {
		t.Helper()
		if a := harness.Do(t.Context(), harness.Call{Base: "http://" + outside.address, Method: method, Path: "/_faults", Body: body}); a.Err != nil || a.Status >= 300 {
			t.Fatalf("faults: %v", a)
		}
	}
	for _, kind := range []string{"confirm", "retrieve", "cancel"} { // all that could tell
		fault("POST", `{"target":"psp","operation":"`+kind+`","when":"after","action":"lose","times":1000}`)
	}
	pay("unknown")
	await(t, "a person is asked", func() bool { return count("reviews WHERE state = 'open'") == 1 })
	fault("DELETE", "")
	await(t, "the question is answered", func() bool { return count("reviews WHERE state = 'resolved'") == 1 })
	if status := service.leave(t, syscall.SIGTERM); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	later := start(t, "payments", append(settings, "EINMAL_RESPONSE_RETENTION=1ms", "EINMAL_TOMBSTONE_RETENTION=1ms")...)
	await(t, "all keys are forgotten", func() bool { return count("operations") == 0 && count("unsealed") == 0 })
	if status := later.leave(t, syscall.SIGTERM); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	if e := run(t, settings, "audit", "verify", "--service", "payments"); e.status != 0 || !strings.Contains(e.out, "; 0 wait") {
		t.Errorf("%+v", e)
	}
	if n := count("events WHERE type = 'forgotten'"); n != 6 { // two orders, two payments, two decisions
		t.Errorf("%d events tell of a forgotten operation, want 6", n)
	}
	for _, said := range []string{service.out.String(), later.out.String()} {
		if strings.Contains(said, "42501") || strings.Contains(said, "permission denied") || strings.Contains(said, `"level":"ERROR"`) {
			t.Error(said)
		}
	}
}
