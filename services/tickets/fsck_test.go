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
	cases := map[string]damage{
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
		"a write that decides something and is open": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE operations SET type = 'operation.cancel' WHERE id = ?", id.plainOp)
				exec("UPDATE operations SET state = 'queued', response_status = 0, response_body = NULL, completed_at = NULL WHERE id = ?", id.plainOp)
				exec("DELETE FROM events WHERE operation_id = ? AND type = 'completed'", id.plainOp)
			},
			func(id ids) []string {
				return []string{"every ticket was made by a creation that succeeded: " + id.plain, "no local operation is open: " + id.plainOp}
			},
		},
		"a database that is healthy": {func(func(string, ...any), ids) {}, func(ids) []string { return nil }},
	}
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		s.seesDamages(t, s.healthyWith(t), cases)
	})
}

// anotherComment is a further comment like one that there is: its id, the operation that is to have made it, the one it is like.
const anotherComment = `INSERT INTO comments (account_id, ticket_id, id, author, body, operation_id, created_at)
	SELECT account_id, ticket_id, ?, author, body, ?, created_at FROM comments WHERE id = ?`

func TestFsckSeesTheViolationsOfCommentsAndStatuses(t *testing.T) {
	const (
		one     = "an operation that added a comment has exactly that one: "
		made    = "every comment was made by an operation that succeeded, about a ticket that there is: "
		counted = "a ticket counts its comments: "
		asked   = "a ticket's status was changed by operations only: "
		closed  = "a ticket is closed exactly while it has a time at which it was: "
	)
	cases := map[string]damage{
		"a comment that is lost": {
			func(exec func(string, ...any), id ids) { exec("DELETE FROM comments WHERE id = ?", id.comment) },
			func(id ids) []string { return []string{counted + id.event, one + id.commentOp} },
		},
		"a second comment of an operation": {
			func(exec func(string, ...any), id ids) { exec(anotherComment, "cmt_second", id.commentOp, id.comment) },
			func(id ids) []string { return []string{counted + id.event, one + id.commentOp} },
		},
		"a comment that nobody made": {
			func(exec func(string, ...any), id ids) { exec(anotherComment, "cmt_nobody", "op_nobody", id.comment) },
			func(id ids) []string { return []string{counted + id.event, made + "cmt_nobody"} },
		},
		"a comment of an operation that makes none": {
			func(exec func(string, ...any), id ids) { exec(anotherComment, "cmt_other", id.plainOp, id.comment) },
			func(id ids) []string { return []string{counted + id.event, made + "cmt_other"} },
		},
		"a comment at another ticket than was told": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE comments SET ticket_id = ? WHERE id = ?", id.plain, id.comment)
			},
			func(id ids) []string { return []string{counted + id.plain, counted + id.event} }, // in the order in which they were made
		},
		"a comment without its ticket": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE comments SET ticket_id = 'tkt_gone' WHERE id = ?", id.comment)
			},
			func(id ids) []string { return []string{counted + id.event, made + id.comment} },
		},
		"a comment of another account": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE comments SET account_id = 'globex' WHERE id = ?", id.comment)
			},
			func(id ids) []string {
				return []string{counted + id.event, one + id.commentOp, made + id.comment}
			},
		},
		"a count that is wrong": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE tickets SET comment_count = 2 WHERE id = ?", id.event)
			},
			func(id ids) []string { return []string{counted + id.event} },
		},
		"a status that changed without anybody's asking": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE tickets SET version = version + 1 WHERE id = ?", id.event)
			},
			func(id ids) []string { return []string{asked + id.event} },
		},
		"a status that changed and left the version": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE tickets SET status = 'resolved' WHERE id = ?", id.plain)
			},
			func(id ids) []string { return []string{asked + id.plain} },
		},
		"a ticket that is closed since no time": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE tickets SET closed_at = NULL WHERE id = ?", id.event)
			},
			func(id ids) []string { return []string{closed + id.event} },
		},
		"a ticket that was closed and is open": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE tickets SET status = 'open' WHERE id = ?", id.event)
			},
			func(id ids) []string { return []string{closed + id.event} },
		},
		"a database that is healthy": {func(func(string, ...any), ids) {}, func(ids) []string { return nil }},
	}
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		id := s.healthyWith(t)
		a := s.comment(t, id.event, "comment", "t")
		id.comment, id.commentOp = commentOf(t, a).ID, a.Header.Get("Operation-Id")
		s.setStatus(t, id.event, "close", `{"status":"closed"}`)
		s.seesDamages(t, id, cases)
	})
}

func TestFsckSeesTheViolationsOfMirrors(t *testing.T) {
	cases := map[string]damage{
		"a mirror of a ticket that does not know of it": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE tickets SET mirror_operation_id = '', mirror_reference = '' WHERE id = ?", id.plain)
			},
			func(id ids) []string { return []string{"a mirror has its ticket and its effect: " + id.plainMirror} },
		},
		"a mirror of a ticket of another account": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE operations SET resource_id = 'tkt_other' WHERE id = ?", id.plainMirror)
			},
			func(id ids) []string {
				return []string{"a mirror has its ticket and its effect: " + id.plainMirror, "a mirrored ticket has the mirror that it names: " + id.plain}
			},
		},
		"a mirror without its effect": {
			func(exec func(string, ...any), id ids) {
				exec("DELETE FROM effects WHERE operation_id = ?", id.plainMirror)
			},
			func(id ids) []string {
				return []string{"a mirror has its ticket and its effect: " + id.plainMirror, "a ticket and its mirror know the desk's ticket by the same name: " + id.plain}
			},
		},
		"a ticket that names a mirror which is none": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE tickets SET mirror_operation_id = ?, mirror_reference = '' WHERE id = ?", id.plainOp, id.plain)
			},
			func(id ids) []string {
				return []string{"a mirror has its ticket and its effect: " + id.plainMirror, "a mirrored ticket has the mirror that it names: " + id.plain}
			},
		},
		"another name of the desk's ticket": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE tickets SET mirror_reference = 'desk_other' WHERE id = ?", id.plain)
			},
			func(id ids) []string {
				return []string{"a ticket and its mirror know the desk's ticket by the same name: " + id.plain}
			},
		},
		"a name of the desk's ticket that is lost": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE tickets SET mirror_reference = '' WHERE id = ?", id.plain)
			},
			func(id ids) []string {
				return []string{"a ticket and its mirror know the desk's ticket by the same name: " + id.plain}
			},
		},
		"an effect that has ended otherwise than its operation": { // the checks of pkg/fsck are among ours
			func(exec func(string, ...any), id ids) {
				exec("UPDATE effects SET state = 'failed' WHERE operation_id = ?", id.plainMirror)
				exec("UPDATE tickets SET mirror_reference = '' WHERE id = ?", id.plain)
				exec("UPDATE effects SET id = 'eff_1' WHERE operation_id = ?", id.plainMirror)
			},
			func(ids) []string { return []string{"an operation and its effect end together: eff_1"} },
		},
		"a database that is healthy": {func(func(string, ...any), ids) {}, func(ids) []string { return nil }},
	}
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s, _ := mirroring(t, kind, "key")
		id := s.healthyWith(t)
		for _, ticket := range []string{id.plain, id.event} {
			s.ends(t, s.now(t, ticket).Mirror.OperationID, "succeeded")
		}
		s.globex().Send(t, "GET", "/v1/operations/"+id.theirMirror, "", "Prefer: wait=25")
		s.seesDamages(t, id, cases)
	})
}

// ids are the tickets and operations of a healthy database: plain and event were created, found met the ticket of event. Where
// there is a desk each ticket is mirrored.
type ids struct{ plain, event, plainOp, eventOp, foundOp, plainMirror, theirMirror, comment, commentOp string }

// damage is what somebody might do to that database, and what is then found, by what it is called and about what.
type damage struct {
	damage func(exec func(string, ...any), id ids)
	want   func(id ids) []string
}

// healthyWith fills a fresh database.
func (r running) healthyWith(t *testing.T) ids {
	t.Helper()
	plain := create(t, r.agent(), key("plain"), `{"project":"ops","title":"t"}`)
	event := create(t, r.agent(), key("event"), `{"project":"ops","title":"t","source_event_id":"e"}`)
	found := create(t, r.agent(), key("found"), `{"project":"ops","title":"t","source_event_id":"e"}`)
	theirs := create(t, r.globex(), key("plain"), `{"project":"ops","title":"t","source_event_id":"e"}`)
	create(t, r.agent(), key("plain"), `{"project":"ops","title":"t"}`)     // replayed
	create(t, r.agent(), key("plain"), `{"project":"ops","title":"other"}`) // conflict
	id := ids{
		plain: ticketOf(t, plain).ID, event: ticketOf(t, event).ID,
		plainOp: plain.Header.Get("Operation-Id"), eventOp: event.Header.Get("Operation-Id"), foundOp: found.Header.Get("Operation-Id"),
	}
	if m := ticketOf(t, plain).Mirror; m != nil {
		id.plainMirror, id.theirMirror = m.OperationID, ticketOf(t, theirs).Mirror.OperationID
	}
	return id
}

// seesDamages does each damage, holds fsck to what it must find, and repairs it.
func (r running) seesDamages(t *testing.T, id ids, cases map[string]damage) {
	t.Helper()
	r.healthy(t)
	dbtest.Unprotect(t, r.db)
	exec := func(statement string, args ...any) {
		if err := r.db.Read(t.Context()).Exec(statement, args...).Error; err != nil {
			t.Error(err)
		}
	}
	tables := []string{"operations", "events", "tickets", "effects", "comments"}
	for _, table := range tables {
		exec("CREATE TABLE kept_" + table + " AS SELECT * FROM " + table)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.damage(exec, id)
			var got []string
			for _, v := range r.fsck(t) {
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
