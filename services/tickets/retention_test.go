package tickets_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/tickets"
)

// forgets serves from the same database with retentions that end at once, until of all operations but these nothing is left.
func (r running) forgets(t *testing.T, kept int64) {
	t.Helper()
	replica := startOn(t, r.db, func(c *tickets.Config) {
		c.ResponseRetention, c.TombstoneRetention, c.PurgeEvery = time.Millisecond, time.Millisecond, 10*time.Millisecond
	})
	for end := time.After(20 * time.Second); r.count(t, "operations") > kept; {
		select {
		case <-end:
			t.Fatalf("%d operations are left", r.count(t, "operations"))
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := replica.Stop(); err != nil {
		t.Error(err)
	}
}

func TestAForgottenKey(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		r, d := mirroring(t, kind, "key")
		const event = `{"project":"ops","title":"Disk full","source_event_id":"e"}`
		first := ticketOf(t, create(t, r.agent(), key("k"), event))
		r.ends(t, first.Mirror.OperationID, "succeeded")
		plain := ticketOf(t, create(t, r.agent(), key("plain"), `{"project":"ops","title":"Disk full"}`))
		r.ends(t, plain.Mirror.OperationID, "succeeded")
		for i, status := range []string{"in_progress", "resolved", "open"} {
			r.agent().Send(t, "PUT", "/v1/tickets/"+first.ID+"/status", `{"status":"`+status+`"}`, key("s%d", i))
			r.agent().Send(t, "POST", "/v1/tickets/"+first.ID+"/comments", `{"body":"c"}`, key("c%d", i))
		}
		first = ticketOf(t, r.agent().Send(t, "GET", "/v1/tickets/"+first.ID, ""))
		r.healthy(t)
		r.forgets(t, 0)

		t.Run("leaves what was made as it was", func(t *testing.T) {
			r.healthy(t)
			after := ticketOf(t, r.agent().Send(t, "GET", "/v1/tickets/"+first.ID, ""))
			if diff := cmp.Diff(first, after); diff != "" || after.Mirror.State != "succeeded" {
				t.Error(diff)
			}
			violations, err := tickets.Ledger.Against(t.Context(), r.db, d.URL)
			if err != nil || len(violations) > 0 {
				t.Error(violations, err)
			}
		})
		t.Run("is new, and its event has its ticket", func(t *testing.T) {
			again := create(t, r.agent(), key("k"), event)
			if got := ticketOf(t, again); again.Status != 200 || got.Disposition != "existing" || got.ID != first.ID {
				t.Errorf("%s", again)
			}
			if n := r.count(t, "tickets"); n != 2 {
				t.Errorf("%d tickets", n)
			}
			d.has(2)
			r.healthy(t)
		})
		t.Run("leaves a trace that cannot be made by hand", func(t *testing.T) {
			dbtest.Unprotect(t, r.db)
			for _, statement := range []string{
				"DELETE FROM events WHERE type = 'forgotten' AND operation_id = (SELECT operation_id FROM tickets WHERE id = '" + first.ID + "')",
				"UPDATE events SET from_state = 'queued' WHERE type = 'forgotten' AND operation_id = (SELECT operation_id FROM tickets WHERE id = '" + plain.ID + "')",
			} {
				if err := r.db.Read(t.Context()).Exec(statement).Error; err != nil {
					t.Fatal(err)
				}
			}
			found := map[string]bool{}
			for _, v := range r.fsck(t) {
				found[v.Check] = true
			}
			for _, check := range []string{"every first event has its operation", "every ticket was made by a creation that succeeded", "what is forgotten had ended, and is gone"} {
				if !found[check] {
					t.Errorf("not seen: %s", check)
				}
			}
		})
	})
}

func TestAKeyIsNotForgottenBeforeItsMirror(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		r, d := mirroring(t, kind, "none")
		d.Arm(`{"target":"desk","operation":"send","when":"after","action":"reset","times":1}`)
		made := ticketOf(t, create(t, r.agent(), key("k"), `{"project":"ops","title":"t"}`))
		r.becomes(t, made.Mirror.OperationID, "is with a person", func(op operation) bool { return op.ReviewID != "" })
		r.agent().Send(t, "PUT", "/v1/tickets/"+made.ID+"/status", `{"status":"closed"}`, key("s"))
		r.forgets(t, 2)
		if n := r.count(t, "operations"); n != 2 {
			t.Fatalf("%d operations are left, want the creation and its mirror", n)
		}
		expect(t, "the creation again", create(t, r.agent(), key("k"), `{"project":"ops","title":"t"}`), 410, "idempotency-key-expired")
		r.healthy(t)
		d.has(1)
	})
}
