package fsck_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/fsck"
	"github.com/einmal/einmal/pkg/idempotency"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// kept is a healthy database: an operation of each kind of end, and what several attempts at each leave behind.
type kept struct {
	db *database.DB
	id map[string]string // by key: done, refused, open, expired
}

func keep(t *testing.T, kind database.Kind) kept {
	t.Helper()
	db := dbtest.Open(t, kind)
	log := audit.Open(db)
	exec := idempotency.New(db, idempotency.Options{Record: log.Record, Note: log.Note})
	k := kept{db, map[string]string{}}
	attempt := func(key, account string, apply idempotency.Apply) {
		t.Helper()
		result, err := exec.Do(t.Context(), idempotency.Request{
			Key: idempotency.Key(key), Type: "thing.create", Command: idempotency.Command{Account: account, Method: "POST", Path: "/v1/things", Body: key},
		}, apply)
		if err != nil {
			t.Fatal(err)
		}
		if account == "acme" {
			k.id[key] = result.Operation.ID
		}
	}
	done := func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
		return idempotency.Answer{State: idempotency.Succeeded, Status: 201, Body: []byte(`{}`)}, nil
	}
	refused := func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
		return idempotency.Answer{}, &idempotency.Refusal{Answer: idempotency.Answer{State: idempotency.Failed, Status: 409, Body: []byte(`{}`)}, Final: true}
	}
	open := func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
		return idempotency.Answer{State: idempotency.Queued}, nil
	}
	for range 2 {
		for _, account := range []string{"acme", "globex"} {
			attempt("done", account, done)
			attempt("refused", account, refused)
			attempt("open", account, open)
			attempt("expired", account, done)
		}
	}
	log.Close()
	k.exec(t, "UPDATE operations SET response_body = NULL, response_expired_at = ? WHERE idempotency_key = 'expired'", time.Now())
	return k
}

func (k kept) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if err := k.db.Read(t.Context()).Exec(statement, args...).Error; err != nil {
		t.Fatal(err)
	}
}

// found is what the checks say, as "name: account id".
func (k kept) found(t *testing.T) (all []string) {
	t.Helper()
	violations, err := fsck.Run(t.Context(), k.db, fsck.Operations...)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		if v.Advice == "" {
			t.Errorf("%s gives no advice", v.Check)
		}
		all = append(all, v.Check+": "+v.Account+" "+v.ID)
	}
	return all
}

// restorable remembers the tables and returns what puts them back.
func (k kept) restorable(t *testing.T) (restore func()) {
	t.Helper()
	dbtest.Unprotect(t, k.db)
	tables := []string{"operations", "events"}
	for _, table := range tables {
		k.exec(t, "CREATE TABLE kept_"+table+" AS SELECT * FROM "+table)
	}
	return func() {
		for _, table := range tables {
			k.exec(t, "DELETE FROM "+table)
			k.exec(t, "INSERT INTO "+table+" SELECT * FROM kept_"+table)
			k.exec(t, "DROP TABLE kept_"+table)
		}
	}
}

// again is a second event like the one of an operation.
const again = `INSERT INTO events (account_id, id, type, at, principal, agent_run, request_id, operation_id, attempt_id, key_hash, fingerprint, route, effect_key, reference, from_state, to_state)
	SELECT account_id, 'evt_again', ?, at, principal, agent_run, request_id, operation_id, attempt_id, key_hash, fingerprint, route, effect_key, reference, from_state, to_state
	FROM events WHERE account_id = 'acme' AND type = 'attempted' AND operation_id = ?`

func TestEachCheckSeesWhatItIsAbout(t *testing.T) {
	cases := map[string]struct {
		statement string
		args      func(id map[string]string) []any // by default, the id of the operation
		want      string
		of        string // the key of the operation
	}{
		"an answer that is lost": {
			"UPDATE operations SET response_body = NULL WHERE account_id = 'acme' AND id = ?", nil,
			"a final operation has its answer or is a tombstone", "done",
		},
		"a refusal that is lost": {
			"UPDATE operations SET response_body = NULL WHERE account_id = 'acme' AND id = ?", nil,
			"a final operation has its answer or is a tombstone", "refused",
		},
		"an answer of what is open": {
			"UPDATE operations SET response_body = 'x' WHERE account_id = 'acme' AND id = ?", nil,
			"an open operation has no answer", "open",
		},
		"a status of what is open": {
			"UPDATE operations SET response_status = 201 WHERE account_id = 'acme' AND id = ?", nil,
			"an open operation has no answer", "open",
		},
		"an end of what is open": {
			"UPDATE operations SET completed_at = created_at WHERE account_id = 'acme' AND id = ?", nil,
			"an open operation has no answer", "open",
		},
		"a tombstone with a body": {
			"UPDATE operations SET response_expired_at = created_at WHERE account_id = 'acme' AND id = ?", nil,
			"a tombstone keeps no body", "done",
		},
		"a first event that is lost": {
			"DELETE FROM events WHERE account_id = 'acme' AND type = 'attempted' AND operation_id = ?", nil,
			"every operation has exactly one first event", "open",
		},
		"two first events": {
			again, func(id map[string]string) []any { return []any{"attempted", id["done"]} },
			"every operation has exactly one first event", "done",
		},
		"a final event that is lost": {
			"DELETE FROM events WHERE account_id = 'acme' AND type = 'completed' AND operation_id = ?", nil,
			"every final operation has exactly one final event", "refused",
		},
		"two final events": {
			again, func(id map[string]string) []any { return []any{"completed", id["done"]} },
			"every final operation has exactly one final event", "done",
		},
		"two final events of two kinds": {
			again, func(id map[string]string) []any { return []any{"canceled", id["done"]} },
			"every final operation has exactly one final event", "done",
		},
		"a final event of what is open": {
			again, func(id map[string]string) []any { return []any{"completed", id["open"]} },
			"no open operation has a final event", "open",
		},
	}
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		k := keep(t, kind)
		if found := k.found(t); len(found) > 0 {
			t.Fatalf("healthy: %v", found)
		}
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				args := []any{k.id[c.of]}
				if c.args != nil {
					args = c.args(k.id)
				}
				defer k.restorable(t)()
				k.exec(t, c.statement, args...)
				if diff := cmp.Diff([]string{c.want + ": acme " + k.id[c.of]}, k.found(t)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	})
}

func TestAnOperationThatIsGoneIsSeenByItsEvent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		k := keep(t, kind)
		var event string
		k.db.Read(t.Context()).Raw("SELECT id FROM events WHERE account_id = 'acme' AND type = 'attempted' AND operation_id = ?", k.id["done"]).Scan(&event)
		k.exec(t, "DELETE FROM operations WHERE account_id = 'acme' AND id = ?", k.id["done"])
		if diff := cmp.Diff([]string{"every first event has its operation: acme " + event}, k.found(t)); diff != "" || event == "" {
			t.Errorf("event %q (-want +got)\n%s", event, diff)
		}
	})
}

func TestRun(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		k := keep(t, kind)

		t.Run("says which check can't be made", func(t *testing.T) {
			_, err := fsck.Run(t.Context(), k.db, fsck.Check{Name: "the moon is round", SQL: "SELECT account_id, id FROM moons"})
			if err == nil || !strings.Contains(err.Error(), "the moon is round") {
				t.Errorf("error %v", err)
			}
		})

		t.Run("changes nothing", func(t *testing.T) {
			_, _ = fsck.Run(t.Context(), k.db, fsck.Check{Name: "a wish", SQL: "DELETE FROM events RETURNING account_id, id"})
			if found := k.found(t); len(found) > 0 {
				t.Error(found)
			}
		})
	})
}

// A service's first minute is one without statistics. PostgreSQL takes each table for small then, and a nested loop over thousands of
// rows and thousands of others takes minutes.
func TestNoCheckIsPlannedAsANestedLoop(t *testing.T) {
	db := keep(t, database.Postgres).db
	for _, check := range slices.Concat(fsck.Operations, fsck.Effects) {
		t.Run(check.Name, func(t *testing.T) {
			var plan []string
			err := db.Snapshot(t.Context(), func(read *gorm.DB) error {
				return read.Raw("EXPLAIN " + strings.ReplaceAll(check.SQL, "@past", "now()")).Scan(&plan).Error
			})
			if err != nil || len(plan) == 0 {
				t.Fatal(err)
			}
			if text := strings.Join(plan, "\n"); strings.Contains(text, "Nested Loop") {
				t.Error(text)
			}
		})
	}
}
