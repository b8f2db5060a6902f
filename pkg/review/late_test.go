package review_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

func overdue(t *testing.T, db *database.DB) []review.Review {
	t.Helper()
	all, err := review.Overdue(t.Context(), db, db.Now(), 100)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEscalate(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		var at atomic.Pointer[time.Time]
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		at.Store(&now)
		db := dbtest.OpenWith(t, kind, database.Options{Clock: func() time.Time { return *at.Load() }})
		hours := func(n int) { now := now.Add(time.Duration(n) * time.Hour); at.Store(&now) }

		slow := open(t, db, question("op_1", says("reset"))) // eight hours
		next := now.Add(time.Second)                         // so that their ids are in the order of their opening
		at.Store(&next)
		urgent := question("op_2", says("reset"))
		urgent.Type = catalogue.DeploymentCreate // one
		soon := open(t, db, urgent)
		resolved := open(t, db, question("op_3", says("reset")))
		if _, err := resolve(db, resolved, "alice"); err != nil {
			t.Fatal(err)
		}

		t.Run("finds what is due by its type, and nothing before", func(t *testing.T) {
			hours(0)
			if all := overdue(t, db); len(all) != 0 {
				t.Errorf("%+v", all)
			}
			hours(2)
			if all := overdue(t, db); len(all) != 1 || all[0].ID != soon {
				t.Errorf("%+v", all)
			}
			hours(8)
			if all := overdue(t, db); len(all) != 2 || all[0].ID != soon || all[1].ID != slow {
				t.Errorf("%+v", all)
			}
		})
		t.Run("lists what is overdue, page by page, newest first", func(t *testing.T) {
			hours(8)
			late := review.Filter{Overdue: db.Now()}
			first, err := review.List(t.Context(), db, account, late, "", 1)
			if err != nil || len(first) != 1 || first[0].ID != soon {
				t.Fatalf("%+v, %v", first, err)
			}
			rest, err := review.List(t.Context(), db, account, late, first[0].ID, 10)
			if err != nil || len(rest) != 1 || rest[0].ID != slow {
				t.Errorf("%+v, %v", rest, err)
			}
		})
		t.Run("is done once by any number of replicas, and not again after a restart", func(t *testing.T) {
			hours(8)
			late := overdue(t, db)[0]
			var told atomic.Int64
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					mine := false
					err := db.InTx(context.Background(), func(tx database.Tx) (err error) {
						mine, err = review.Escalate(tx, late)
						return err
					})
					if err != nil {
						t.Error(err)
					}
					if mine {
						told.Add(1)
					}
				})
			}
			all.Wait()
			if told.Load() != 1 {
				t.Errorf("told %d times", told.Load())
			}
			r := get(t, db, soon)
			if r.EscalatedAt == nil || !r.EscalatedAt.Equal(db.Now()) || r.State != review.StateOpen {
				t.Errorf("%+v", r)
			}
			if left := overdue(t, db); len(left) != 1 || left[0].ID != slow {
				t.Errorf("%+v", left)
			}
		})
		t.Run("is not done of what was resolved since it was read", func(t *testing.T) {
			hours(8)
			late := overdue(t, db)[0]
			if _, err := resolve(db, late.ID, "alice"); err != nil {
				t.Fatal(err)
			}
			err := db.InTx(t.Context(), func(tx database.Tx) error {
				mine, err := review.Escalate(tx, late)
				if mine {
					t.Error("told of it")
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	})
}

// Evidence against a person's word is asked about together with it.
func TestContradictionOfAPerson(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		db := dbtest.Open(t, kind)
		id := open(t, db, question("op_1", says("reset")))
		if _, err := resolveAs(db, id, "alice", idempotency.Failed); err != nil {
			t.Fatal(err)
		}
		against := question("op_1", says("it is there"))
		against.Kind = review.Contradiction
		r := get(t, db, open(t, db, against))
		if diff := cmp.Diff([]string{"said in " + id + " that it has failed: seen", "it is there"}, said(r)); diff != "" {
			t.Error(diff)
		}
		if r.Evidence[0].Source != "alice" {
			t.Errorf("%+v", r.Evidence[0])
		}
		if first := get(t, db, id); first.State != review.StateResolved || first.ResolvedAs != idempotency.Failed {
			t.Errorf("%+v", first)
		}

		of := question("op_2", says("it is there twice")) // nobody has said anything of this one
		of.Kind = review.Contradiction
		if diff := cmp.Diff([]string{"it is there twice"}, said(get(t, db, open(t, db, of)))); diff != "" {
			t.Error(diff)
		}
	})
}

// What comes in about an operation reaches whoever is asked how it ends.
func TestAdd(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		db := dbtest.Open(t, kind)
		unknown := open(t, db, question("op_1", says("reset")))
		late := question("op_1", says("late"))
		late.Kind = review.Deadline
		deadline := open(t, db, late)
		for _, operation := range []string{"op_1", "op_1", "op_2"} {
			err := db.InTx(t.Context(), func(tx database.Tx) error { return review.Add(tx, account, operation, says("a webhook")) })
			if err != nil {
				t.Fatal(err)
			}
		}
		for id, first := range map[string]string{unknown: "reset", deadline: "late"} {
			if diff := cmp.Diff([]string{first, "a webhook"}, said(get(t, db, id))); diff != "" {
				t.Error(diff)
			}
		}
	})
}
