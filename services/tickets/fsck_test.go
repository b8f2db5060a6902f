package tickets_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// another is a further ticket like one that there is: its id, the operation that is to have made it, the one it is like.
const another = `INSERT INTO tickets (account_id, id, project, title, description, priority, labels, source_event_id, status, version, comment_count, operation_id, created_at, updated_at)
	SELECT account_id, ?, project, title, description, priority, labels, NULL, status, version, comment_count, ?, created_at, updated_at FROM tickets WHERE account_id = 'acme' AND id = ?`

func TestFsckSeesEachOfItsViolations(t *testing.T) {
	// The tickets and operations of a healthy database: plain and event were created, found met the ticket of event.
	type ids struct{ plain, event, plainOp, eventOp, foundOp string }

	cases := map[string]struct {
		damage func(exec func(string, ...any), id ids)
		want   func(id ids) []string
	}{
		"an operation that is open": {
			func(exec func(string, ...any), id ids) {
				exec(`INSERT INTO operations (account_id, idempotency_key, id, type, state, fingerprint, route, principal, agent_run, request_id, resource_type, resource_id, resource_href,
						response_status, response_location, created_at, updated_at)
					SELECT account_id, 'open', 'op_open', type, 'queued', fingerprint, route, principal, agent_run, request_id, '', '', '', 0, '', created_at, updated_at FROM operations WHERE id = ?`, id.plainOp)
				exec(`INSERT INTO events (account_id, id, type, at, principal, agent_run, request_id, operation_id, attempt_id, key_hash, fingerprint, route, effect_key, reference, from_state, to_state)
					SELECT account_id, 'evt_open', type, at, principal, agent_run, request_id, 'op_open', attempt_id, key_hash, fingerprint, route, effect_key, reference, from_state, to_state
					FROM events WHERE operation_id = ? AND type = 'attempted'`, id.plainOp)
			},
			func(ids) []string { return []string{"no local operation is open: op_open"} },
		},
		"a ticket that is lost": {
			func(exec func(string, ...any), id ids) { exec("DELETE FROM tickets WHERE id = ?", id.plain) },
			func(id ids) []string {
				return []string{"a creation that made a ticket has exactly that one: " + id.plainOp}
			},
		},
		"a ticket of an event that is lost": {
			func(exec func(string, ...any), id ids) { exec("DELETE FROM tickets WHERE id = ?", id.event) },
			func(id ids) []string {
				return []string{"a creation that found a ticket made none: " + id.foundOp, "a creation that made a ticket has exactly that one: " + id.eventOp}
			},
		},
		"a second ticket of a creation": {
			func(exec func(string, ...any), id ids) { exec(another, "tkt_second", id.plainOp, id.plain) },
			func(id ids) []string {
				return []string{"a creation that made a ticket has exactly that one: " + id.plainOp}
			},
		},
		"another ticket than was told": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE tickets SET id = 'tkt_other' WHERE id = ?", id.plain)
			},
			func(id ids) []string {
				return []string{"a creation that made a ticket has exactly that one: " + id.plainOp}
			},
		},
		"a ticket of another account than was told": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE tickets SET account_id = 'globex' WHERE id = ?", id.plain)
			},
			func(id ids) []string {
				return []string{"a creation that made a ticket has exactly that one: " + id.plainOp, "every ticket was made by a creation that succeeded: " + id.plain}
			},
		},
		"a found ticket that is about no event": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE tickets SET source_event_id = NULL WHERE id = ?", id.event)
			},
			func(id ids) []string { return []string{"a creation that found a ticket made none: " + id.foundOp} },
		},
		"a ticket of a creation that found one": {
			func(exec func(string, ...any), id ids) { exec(another, "tkt_second", id.foundOp, id.plain) },
			func(id ids) []string {
				return []string{"a creation that found a ticket made none: " + id.foundOp, "every ticket was made by a creation that succeeded: tkt_second"}
			},
		},
		"a ticket that nobody made": {
			func(exec func(string, ...any), id ids) { exec(another, "tkt_nobody", "op_nobody", id.plain) },
			func(ids) []string { return []string{"every ticket was made by a creation that succeeded: tkt_nobody"} },
		},
		"two tickets of an event": {
			func(exec func(string, ...any), id ids) {
				exec("DROP INDEX IF EXISTS tickets_source_event") // what the others do needs none
				exec("UPDATE tickets SET source_event_id = 'e' WHERE id = ?", id.plain)
			},
			func(id ids) []string {
				return []string{"an event has one ticket in a project: " + min(id.plain, id.event)}
			},
		},
		"a database that is healthy": {func(func(string, ...any), ids) {}, func(ids) []string { return nil }},
	}
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		plain := create(t, s.agent(), key("plain"), `{"project":"ops","title":"t"}`)
		event := create(t, s.agent(), key("event"), `{"project":"ops","title":"t","source_event_id":"e"}`)
		found := create(t, s.agent(), key("found"), `{"project":"ops","title":"t","source_event_id":"e"}`)
		create(t, s.globex(), key("plain"), `{"project":"ops","title":"t","source_event_id":"e"}`)
		create(t, s.agent(), key("plain"), `{"project":"ops","title":"t"}`)     // replayed
		create(t, s.agent(), key("plain"), `{"project":"ops","title":"other"}`) // conflict
		s.healthy(t)
		id := ids{ticketOf(t, plain).ID, ticketOf(t, event).ID, plain.Header.Get("Operation-Id"), event.Header.Get("Operation-Id"), found.Header.Get("Operation-Id")}
		exec := func(statement string, args ...any) {
			if err := s.db.Read(t.Context()).Exec(statement, args...).Error; err != nil {
				t.Error(err)
			}
		}
		tables := []string{"operations", "events", "tickets"}
		for _, table := range tables {
			exec("CREATE TABLE kept_" + table + " AS SELECT * FROM " + table)
		}
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				c.damage(exec, id)
				var got []string
				for _, v := range s.fsck(t) {
					got = append(got, v.Check+": "+v.ID)
				}
				slices.Sort(got)
				if diff := cmp.Diff(c.want(id), got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				for _, table := range tables {
					exec("DELETE FROM " + table)
					exec("INSERT INTO " + table + " SELECT * FROM kept_" + table)
				}
			})
		}
	})
}

// It reads one snapshot: beside traffic it finds no half-done work.
func TestFsckBesideTraffic(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		var writers sync.WaitGroup
		for i := range 4 {
			writers.Go(func() {
				for j := range 10 {
					create(t, s.agent(), key("k%d-%d", i, j), `{"project":"ops","title":"t","source_event_id":"e`+string(rune('0'+j))+`"}`)
				}
			})
		}
		done := make(chan struct{})
		go func() { writers.Wait(); close(done) }()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			s.healthy(t)
		}
		if n := s.count(t, "tickets"); n != 10 {
			t.Errorf("%d tickets", n)
		}
	})
}
