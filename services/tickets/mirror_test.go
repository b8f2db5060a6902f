package tickets_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
)

func TestATicketIsMirrored(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		for ability := range abilities {
			t.Run("once, at a desk whose ability is "+ability, func(t *testing.T) {
				t.Parallel() // each waits most of its time
				s, d := mirroring(t, kind, ability)
				made, id := s.mirrored(t, "k", "ops")
				op := s.ends(t, id, "succeeded")
				there := d.has(1)
				if op.Type != "ticket.mirror" || op.Target != "desk" || op.Effect != "applied" || op.EffectKey != there.EffectKey || op.Reference != there.Reference {
					t.Errorf("the operation is %+v, the desk has %+v", op, there)
				}
				if len(op.Attempts) != 1 || op.Attempts[0].Outcome != "confirmed" || op.Attempts[0].Reference != there.Reference {
					t.Errorf("attempts %+v", op.Attempts)
				}
				want := &mirror{id, "succeeded", there.Reference}
				if diff := cmp.Diff(want, s.now(t, made.ID).Mirror); diff != "" {
					t.Errorf("mirror (-want +got)\n%s", diff)
				}
				if op.Response.Status != 200 || !strings.Contains(string(op.Response.Body), made.ID) {
					t.Errorf("answered %d %s", op.Response.Status, op.Response.Body)
				}
				again := create(t, s.agent(), key("k"), `{"project":"ops","title":"Disk full"}`)
				if again.Outcome() != "replayed" || ticketOf(t, again).Mirror.State != "queued" {
					t.Errorf("the creation is not replayed as it was: %s", again)
				}
				d.has(1)
				s.healthy(t)
			})

			t.Run("once, where the answer got lost after it had happened, at a desk whose ability is "+ability, func(t *testing.T) {
				t.Parallel() // each waits most of its time
				s, d := mirroring(t, kind, ability)
				d.Arm(`{"target":"desk","operation":"send","when":"after","action":"reset","times":1}`)
				made, id := s.mirrored(t, "k", "ops")
				if ability == "none" { // nobody but a person can say
					op := s.becomes(t, id, "is with a person", func(op operation) bool { return op.ReviewID != "" })
					if op.State != "unknown" || op.Effect != "unknown" || op.NextAction != "ask_human" || op.RetryAfterSeconds != 60 || len(op.Attempts) != 1 ||
						!op.UpdatedAt.After(op.CreatedAt) {
						t.Errorf("the operation is %+v", op)
					}
					if got := s.now(t, made.ID).Mirror; got.State != "unknown" {
						t.Errorf("the ticket's mirror is %+v", got)
					}
				} else {
					op := s.ends(t, id, "succeeded")
					if there := d.has(1); op.Reference != there.Reference || op.Attempts[0].Outcome != "ambiguous" {
						t.Errorf("the operation is %+v, the desk has %+v", op, there)
					}
				}
				d.has(1)
				s.healthy(t)
			})

			t.Run("never, where the desk refuses it, at a desk whose ability is "+ability, func(t *testing.T) {
				t.Parallel() // each waits most of its time
				s, d := mirroring(t, kind, ability)
				made, id := s.mirrored(t, "k", "refused")
				op := s.ends(t, id, "failed")
				if diff := cmp.Diff([]string{"refused"}, op.outcomes()); diff != "" {
					t.Errorf("attempts %+v", op.Attempts)
				}
				if op.Effect != "none" || op.Response.Status != 409 || !strings.Contains(string(op.Response.Body), `"code":"`+string(problem.EffectRefused)+`"`) {
					t.Errorf("the operation is %+v, answered %s", op, op.Response.Body)
				}
				if got := s.now(t, made.ID); got.Status != "open" || got.Mirror.State != "failed" || got.Mirror.Reference != "" {
					t.Errorf("the ticket is %+v, its mirror %+v", got, got.Mirror)
				}
				d.has(0)
				s.healthy(t)
			})

			t.Run("when the desk has time again, at a desk whose ability is "+ability, func(t *testing.T) {
				t.Parallel() // each waits most of its time
				s, d := mirroring(t, kind, ability)
				d.Arm(`{"target":"desk","operation":"send","when":"before","action":"status","status":429,"times":1}`)
				_, id := s.mirrored(t, "k", "ops")
				op := s.ends(t, id, "succeeded")
				if diff := cmp.Diff([]string{"not_sent", "confirmed"}, op.outcomes()); diff != "" {
					t.Errorf("attempts (-want +got)\n%s", diff)
				}
				d.has(1)
				s.healthy(t)
			})
		}
	})
}

func TestWithoutADeskNothingIsMirrored(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		a := create(t, s.agent(), key("k"), `{"project":"ops","title":"t"}`)
		if ticketOf(t, a).Mirror != nil || s.count(t, "operations") != 1 || s.count(t, "effects") != 0 {
			t.Errorf("%s", a)
		}
	})
}

func TestOnlyANewTicketIsMirrored(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s, d := mirroring(t, kind, "key")
		body := `{"project":"ops","title":"t","source_event_id":"e"}`
		id := ticketOf(t, create(t, s.agent(), key("one"), body)).Mirror.OperationID
		s.ends(t, id, "succeeded")
		found := ticketOf(t, create(t, s.agent(), key("two"), body))
		if found.Disposition != "existing" || found.Mirror == nil || found.Mirror.OperationID != id || found.Mirror.State != "succeeded" {
			t.Errorf("found %+v with mirror %+v", found, found.Mirror)
		}
		d.has(1)
		if n := s.count(t, "effects"); n != 1 {
			t.Errorf("%d effects", n)
		}
		s.healthy(t)
	})
}

// Two tickets under one effect key are what a desk that keeps its word never has. The mirror has happened; a person hears of both.
func TestTwoTicketsOfOneMirrorAreAPersonsToSee(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s, d := mirroring(t, kind, "lookup", later)
		d.Arm(resets)
		_, id := s.mirrored(t, "k", "ops")
		op := s.becomes(t, id, "is unknown", func(op operation) bool { return op.State == "unknown" })
		d.open(op.EffectKey)
		s.reconcile(t, id, "r")
		op = s.ends(t, id, "succeeded")
		var open struct{ Items []review }
		s.agent().Send(t, "GET", "/v1/reviews?state=open", "").Decode(t, &open)
		if len(open.Items) != 1 || open.Items[0].Kind != "contradiction" || open.Items[0].OperationID != id {
			t.Fatalf("open reviews: %+v", open.Items)
		}
		says := open.Items[0].Evidence[0].Says
		for _, there := range d.ledger() {
			if !strings.Contains(says, there.Reference) {
				t.Errorf("the review says %q, and not %s", says, there.Reference)
			}
		}
		if op.Reference != d.ledger()[0].Reference {
			t.Errorf("the operation is %+v", op)
		}
		d.has(2)
		s.healthy(t)
	})
}

// A ticket without the effect that mirrors it would never come to the desk, and nobody would look for it.
func TestATicketAndItsMirrorCommitTogether(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s, d := mirroring(t, kind, "key")
		exec := func(statement string) {
			t.Helper()
			if _, err := s.db.SQL().ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		exec("ALTER TABLE effects RENAME TO effects_elsewhere")
		if a := create(t, s.agent(), key("k"), `{"project":"ops","title":"Disk full"}`); a.Status != 503 {
			t.Errorf("%s", a)
		}
		if tickets, operations := s.count(t, "tickets"), s.count(t, "operations"); tickets != 0 || operations != 0 {
			t.Fatalf("%d tickets and %d operations without an effect", tickets, operations)
		}
		exec("ALTER TABLE effects_elsewhere RENAME TO effects")
		_, id := s.mirrored(t, "k", "ops")
		s.ends(t, id, "succeeded")
		d.has(1)
		s.healthy(t)
	})
}
