package review_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const account = "acme"

func says(text string) review.Evidence { return review.Evidence{Source: "desk", Says: text} }

func question(operation string, evidence ...review.Evidence) review.Question {
	return review.Question{AccountID: account, Kind: review.Unknown, OperationID: operation, Type: catalogue.TicketMirror, Evidence: evidence}
}

func open(t *testing.T, db *database.DB, q review.Question) (id string) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx database.Tx) (err error) {
		id, err = review.Open(tx, q)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func resolve(db *database.DB, id, by string) (review.Review, error) { return resolveAs(db, id, by, "") }

func resolveAs(db *database.DB, id, by string, as idempotency.State) (r review.Review, err error) {
	err = db.InTx(context.Background(), func(tx database.Tx) (err error) {
		r, err = review.Resolve(tx, account, id, by, as, review.Evidence{Source: by, At: tx.Now, Says: "seen"})
		return err
	})
	return r, err
}

func get(t *testing.T, db *database.DB, id string) review.Review {
	t.Helper()
	r, err := review.Get(db.Read(t.Context()), account, id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func said(r review.Review) (all []string) {
	for _, e := range r.Evidence {
		all = append(all, e.Says)
	}
	return all
}

func TestOpen(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		db := dbtest.OpenWith(t, kind, database.Options{Clock: func() time.Time { return now }})

		t.Run("asks a person, who has a working day", func(t *testing.T) {
			id := open(t, db, question("op_1", review.Evidence{Source: "desk", At: now, Says: "reset"}))
			want := review.Review{
				AccountID: account, ID: id, Kind: review.Unknown, OperationID: "op_1", Owner: "operator", State: review.StateOpen, Escalation: "an operator of the account",
				Evidence: []review.Evidence{{Source: "desk", At: now, Says: "reset"}}, OpenedAt: now, DueAt: now.Add(8 * time.Hour),
			}
			if diff := cmp.Diff(want, get(t, db, id)); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("adds to an open review of the same question what is new", func(t *testing.T) {
			id := open(t, db, question("op_2", says("reset")))
			for _, again := range []string{"no answer", "reset", "no answer"} {
				if other := open(t, db, question("op_2", says(again))); other != id {
					t.Fatalf("opened %s beside %s", other, id)
				}
			}
			if diff := cmp.Diff([]string{"reset", "no answer"}, said(get(t, db, id))); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("asks anew once the question was answered, and leaves the answer as it is", func(t *testing.T) {
			id := open(t, db, question("op_3", says("reset")))
			if _, err := resolve(db, id, "alice"); err != nil {
				t.Fatal(err)
			}
			before := get(t, db, id)
			if again := open(t, db, question("op_3", says("found"))); again == id {
				t.Error("reopened it")
			}
			if diff := cmp.Diff(before, get(t, db, id)); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("keeps apart what is of another kind, operation or account, or about nothing of ours", func(t *testing.T) {
			contradiction, other, stranger, unmatched := question("op_4", says("x")), question("op_5", says("x")), question("op_4", says("x")), question("", says("x"))
			contradiction.Kind = review.Contradiction
			stranger.AccountID = "other"
			ids := map[string]bool{}
			for _, q := range []review.Question{question("op_4", says("x")), contradiction, other, stranger, unmatched, unmatched} {
				ids[open(t, db, q)] = true
			}
			if len(ids) != 6 {
				t.Errorf("%d reviews, want 6", len(ids))
			}
		})
	})
}

// Of any number of callers at once, on any number of replicas, one opens a review and all are heard.
func TestOpenAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		const callers = 16
		db := dbtest.Open(t, kind)
		ids := make([]string, callers)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				err := db.InTx(context.Background(), func(tx database.Tx) (err error) {
					ids[i], err = review.Open(tx, question("op_1", says(fmt.Sprintf("%02d", i))))
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("opened %q", ids)
			}
		}
		if n := len(get(t, db, ids[0]).Evidence); n != callers {
			t.Errorf("heard %d of %d", n, callers)
		}
	})
}

func TestResolve(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		db := dbtest.Open(t, kind)
		t.Run("closes a review with what was seen", func(t *testing.T) {
			id := open(t, db, question("op_1", says("reset")))
			r, err := resolve(db, id, "alice")
			if err != nil || r.State != review.StateResolved || r.ResolvedBy != "alice" || r.ResolvedAt == nil {
				t.Errorf("%+v, %v", r, err)
			}
			if diff := cmp.Diff(r, get(t, db, id)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"reset", "seen"}, said(r)); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("succeeds for one of many at once", func(t *testing.T) {
			id := open(t, db, question("op_2", says("reset")))
			errs := make([]error, 16)
			var all sync.WaitGroup
			for i := range errs {
				all.Go(func() { _, errs[i] = resolve(db, id, fmt.Sprintf("person %d", i)) })
			}
			all.Wait()
			won := 0
			for i, err := range errs {
				switch {
				case err == nil:
					won++
					if r := get(t, db, id); r.ResolvedBy != fmt.Sprintf("person %d", i) || len(r.Evidence) != 2 {
						t.Errorf("%d has won: %+v", i, r)
					}
				case !errors.Is(err, review.ErrResolved):
					t.Error(err)
				}
			}
			if won != 1 {
				t.Errorf("%d have won", won)
			}
		})
		t.Run("loses no evidence that comes at the same time", func(t *testing.T) {
			id := open(t, db, question("op_3", says("reset")))
			var all sync.WaitGroup
			all.Go(func() {
				if _, err := resolve(db, id, "alice"); err != nil {
					t.Error(err)
				}
			})
			for i := range 8 {
				all.Go(func() {
					err := db.InTx(context.Background(), func(tx database.Tx) error {
						_, err := review.Open(tx, question("op_3", says(fmt.Sprint(i))))
						return err
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			reviews, err := review.List(t.Context(), db, account, review.Filter{}, "", 100)
			if err != nil {
				t.Fatal(err)
			}
			heard := map[string]bool{}
			for _, r := range reviews {
				for _, e := range r.Evidence {
					if r.OperationID == "op_3" {
						heard[e.Says] = true
					}
				}
			}
			if len(heard) != 10 { // the first, the eight, the person's
				t.Errorf("heard %v", heard)
			}
		})
		t.Run("finds nothing of another account", func(t *testing.T) {
			id := open(t, db, question("op_4", says("reset")))
			err := db.InTx(t.Context(), func(tx database.Tx) error {
				_, err := review.Resolve(tx, "other", id, "mallory", "", says("mine"))
				return err
			})
			if !errors.Is(err, review.ErrNotFound) || get(t, db, id).State != review.StateOpen {
				t.Errorf("got %v", err)
			}
			if _, err := review.Get(db.Read(t.Context()), "other", id); !errors.Is(err, review.ErrNotFound) {
				t.Errorf("got %v", err)
			}
		})
		t.Run("by later evidence closes the questions how it ends, and no other", func(t *testing.T) {
			id := open(t, db, question("op_5", says("reset")))
			late := question("op_5", says("late"))
			late.Kind = review.Deadline
			too := open(t, db, late)
			contradiction := question("op_5", says("twice"))
			contradiction.Kind = review.Contradiction
			stays := open(t, db, contradiction)
			err := db.InTx(t.Context(), func(tx database.Tx) error { return review.ResolveFor(tx, account, "op_5", "later evidence") })
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{id, too} {
				if r := get(t, db, id); r.State != review.StateResolved || r.ResolvedBy != "later evidence" || r.ResolvedAt == nil || r.ResolvedAs != "" {
					t.Errorf("%+v", r)
				}
			}
			if r := get(t, db, stays); r.State != review.StateOpen {
				t.Errorf("%+v", r)
			}
		})
	})
}

func TestList(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		db := dbtest.OpenWith(t, kind, database.Options{Clock: func() time.Time { now = now.Add(time.Millisecond); return now }})
		var ids []string // newest first
		for i := range 5 {
			ids = append([]string{open(t, db, question(fmt.Sprintf("op_%d", i), says("reset")))}, ids...)
		}
		stranger := question("op_1", says("reset"))
		stranger.AccountID = "other"
		open(t, db, stranger)
		if _, err := resolve(db, ids[1], "alice"); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name, state, before string
			limit               int
			want                []string
		}{
			{"has all of the account, newest first", "", "", 100, ids},
			{"has as many as asked for", "", "", 2, ids[:2]},
			{"goes on where the last page ended", "", ids[1], 2, ids[2:4]},
			{"ends", "", ids[4], 2, nil},
			{"has those of a state", review.StateResolved, "", 100, ids[1:2]},
			{"has those of a state from where the last page ended", review.StateOpen, ids[0], 2, ids[2:4]},
		} {
			t.Run(c.name, func(t *testing.T) {
				reviews, err := review.List(t.Context(), db, account, review.Filter{State: c.state}, c.before, c.limit)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, r := range reviews {
					got = append(got, r.ID)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	})
}
