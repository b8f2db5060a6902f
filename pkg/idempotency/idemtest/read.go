package idemtest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

func testRead(t *testing.T, l *lab) {
	x := idempotency.New(l.db, idempotency.Options{})

	t.Run("an operation is found by its key and by its id, by its own account only", func(t *testing.T) {
		one, two := l.caller(t), l.caller(t)
		var w work
		want := one.do(x, one.request("k", 1), w.apply).Operation
		byKey, keyErr := x.ByKey(t.Context(), one.account, "k")
		byID, idErr := x.ByID(t.Context(), one.account, want.ID)
		if diff := cmp.Diff([]idempotency.Operation{want, want}, []idempotency.Operation{byKey, byID}); diff != "" || keyErr != nil || idErr != nil {
			t.Error(diff, keyErr, idErr)
		}
		if op, err := x.ByKey(t.Context(), two.account, "k"); !errors.Is(err, idempotency.ErrNotFound) {
			t.Errorf("by key: %s, %v", op.ID, err)
		}
		if op, err := x.ByID(t.Context(), two.account, want.ID); !errors.Is(err, idempotency.ErrNotFound) {
			t.Errorf("by id: %s, %v", op.ID, err)
		}
	})
	t.Run("what has not committed is not found", func(t *testing.T) {
		c := l.caller(t)
		var w work
		c.do(x, c.request("k", 1), w.failing(&idempotency.Refusal{Answer: refused()}))
		if op, err := x.ByKey(t.Context(), c.account, "k"); !errors.Is(err, idempotency.ErrNotFound) {
			t.Errorf("by key: %s, %v", op.ID, err)
		}
		if op, err := x.ByID(t.Context(), c.account, "op_none"); !errors.Is(err, idempotency.ErrNotFound) {
			t.Errorf("by id: %s, %v", op.ID, err)
		}
	})
	t.Run("a list is newest first, one's own, and goes on where the page before has ended", func(t *testing.T) {
		one, two := l.caller(t), l.caller(t)
		var w work
		var want []string
		for i := range 7 {
			want = append(want, one.do(x, one.request(key("k", i), 1), w.apply).Operation.ID)
			two.do(x, two.request(key("k", i), 1), w.apply)
		}
		slices.Reverse(want)
		var got []string
		for before := ""; ; before = got[len(got)-1] {
			page, err := x.List(t.Context(), one.account, before, 3)
			if err != nil || len(page) > 3 {
				t.Fatalf("%d operations, %v", len(page), err)
			}
			if len(page) == 0 {
				break
			}
			for _, op := range page {
				got = append(got, op.ID)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a database that does not answer in time is busy, not empty", func(t *testing.T) {
		c := l.caller(t)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_, byKey := x.ByKey(over, c.account, "k")
		_, byID := x.ByID(over, c.account, "op_1")
		_, list := x.List(over, c.account, "", 1)
		for _, err := range []error{byKey, byID, list} {
			if !errors.Is(err, database.ErrBusy) || errors.Is(err, idempotency.ErrNotFound) {
				t.Errorf("got %v, want ErrBusy", err)
			}
		}
	})
}
