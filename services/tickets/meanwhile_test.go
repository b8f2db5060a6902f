package tickets_test

import (
	"sync"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
)

// meanwhile lets somebody else change rows, has a request made that meets their transaction while it is open, and commits it. On PostgreSQL the request has read what
// was before and waits to write; on SQLite it waits with everything.
func meanwhile(t *testing.T, kind database.Kind, change string, args func(s running) []any, request func(s running) servertest.Answer) (running, servertest.Answer) {
	t.Helper()
	dbURL := dbtest.URL(t, kind)
	s := startOn(t, dbtest.Connect(t, dbURL, database.Options{LockTimeout: time.Minute}))
	other := dbtest.Connect(t, dbURL, database.Options{})
	values := args(s)
	var answer servertest.Answer
	var asked sync.WaitGroup
	err := other.InTx(t.Context(), func(tx database.Tx) error {
		if err := tx.Exec(change, values...).Error; err != nil {
			return err
		}
		asked.Go(func() { answer = request(s) })
		s.waitForRequests(t, 1)
		s.waitForWaiter(t, kind)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	asked.Wait()
	return s, answer
}

// waitForWaiter waits until a statement waits for somebody's lock. SQLite can't say.
func (r running) waitForWaiter(t *testing.T, kind database.Kind) {
	t.Helper()
	for waiting := 0; kind == database.Postgres && waiting == 0; {
		err := r.db.Read(t.Context()).Raw("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting).Error
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatOthersDoMeanwhile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		var id string
		made := func(s running) []any {
			id = s.newTicket(t, "k", "open").ID
			return []any{id}
		}
		const (
			resolve = "UPDATE tickets SET status = 'resolved', version = version + 1 WHERE account_id = 'acme' AND id = ?"
			closes  = "UPDATE tickets SET status = 'closed', version = version + 1, closed_at = updated_at WHERE account_id = 'acme' AND id = ?"
			comment = "UPDATE tickets SET comment_count = comment_count + 1 WHERE account_id = 'acme' AND id = ?"
		)

		t.Run("is seen by who decides by a version", func(t *testing.T) {
			s, a := meanwhile(t, kind, resolve, made, func(s running) servertest.Answer {
				return s.setStatus(t, id, "set", `{"status":"in_progress","expected_version":1}`)
			})
			expect(t, "the version that was", a, 409, problem.VersionMismatch)
			if got := s.now(t, id); got.Status != "resolved" || got.Version != 2 {
				t.Errorf("%+v", got)
			}
		})
		t.Run("is seen by who would leave what is closed", func(t *testing.T) {
			s, a := meanwhile(t, kind, closes, made, func(s running) servertest.Answer { return s.setStatus(t, id, "set", `{"status":"in_progress"}`) })
			expect(t, "closed", a, 409, problem.TicketClosed)
			if got := s.now(t, id); got.Status != "closed" || got.Version != 2 {
				t.Errorf("%+v", got)
			}
		})
		t.Run("is seen by who finds that done which they wanted", func(t *testing.T) {
			s, a := meanwhile(t, kind, resolve, made, func(s running) servertest.Answer { return s.setStatus(t, id, "set", `{"status":"resolved"}`) })
			if a.Status != 200 || changed(t, a) || ticketOf(t, a).Version != 2 || s.now(t, id).Version != 2 {
				t.Errorf("%s", a)
			}
		})
		t.Run("is counted by who comments", func(t *testing.T) {
			s, a := meanwhile(t, kind, comment, made, func(s running) servertest.Answer { return s.comment(t, id, "c", "t") })
			if got := s.now(t, id).CommentCount; a.Status != 201 || got != 2 {
				t.Errorf("counted %d: %s", got, a)
			}
		})
	})
}

// An alert that another process is about to take is not taken yet: if that one dies, it must come again.
func TestAnAlertThatAnotherIsAboutToTake(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		dbURL := dbtest.URL(t, kind)
		first := startOn(t, dbtest.Connect(t, dbURL, database.Options{LockTimeout: time.Minute}))
		second := startOn(t, dbtest.Connect(t, dbURL, database.Options{LockTimeout: 50 * time.Millisecond}))
		holder := dbtest.Connect(t, dbURL, database.Options{})
		body := group(fires("Disk"))
		var answer servertest.Answer
		var asked sync.WaitGroup
		err := holder.InTx(t.Context(), func(tx database.Tx) error {
			if err := lockTickets(tx, kind); err != nil {
				return err
			}
			asked.Go(func() { answer = first.notify(t, body) })
			first.waitForRequests(t, 1)
			first.waitForWaiter(t, kind)
			expect(t, "the second", second.notify(t, body), 503, problem.StoreUnavailable)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		asked.Wait()
		if answer.Status != 200 {
			t.Errorf("the first: %s", answer)
		}
		second.notified(t, "the second, again", body, receipt{Alerts: 1, Repeated: 1})
		second.healthy(t)
	})
}
