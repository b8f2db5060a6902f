package idemtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// settle lets a few settlers end an open operation at once: one does.
func (m *model) settle(t *rapid.T) {
	f := m.some(t, func(op idempotency.Operation) bool { return !op.State.Final() })
	answers := []idempotency.Answer{created(), refused(), created()}[:rapid.IntRange(1, 3).Draw(t, "settlers")]
	errs := make([]error, len(answers))
	var all sync.WaitGroup
	for i, answer := range answers {
		all.Go(func() {
			errs[i] = m.pools[i%2].InTx(context.Background(), func(tx database.Tx) error {
				return m.replicas[i%2].Settle(tx, f.operation, f.operation.State, answer)
			})
		})
	}
	all.Wait()
	before := f.operation
	for i, err := range errs {
		switch {
		case err != nil && !errors.Is(err, idempotency.ErrStateChanged):
			t.Fatal(err)
		case err == nil && f.operation.State.Final():
			t.Fatalf("two settlers of %s won", before.ID)
		case err == nil:
			now := m.now()
			op := &f.operation
			op.State, op.ResponseStatus, op.ResponseLocation, op.ResponseBody = answers[i].State, answers[i].Status, answers[i].Location, answers[i].Body
			op.Resource, op.UpdatedAt, op.CompletedAt = answers[i].Resource, now, &now
		}
	}
	if !f.operation.State.Final() {
		t.Fatalf("nobody settled %s", before.ID)
	}
}

func (m *model) timePasses(t *rapid.T) {
	m.clock.advance(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(20*time.Hour)).Draw(t, "by")))
}

// dropBody is what a purge does to an answer past its retention; here also to others.
func (m *model) dropBody(t *rapid.T) {
	f := m.some(t, func(op idempotency.Operation) bool { return op.State.Final() && op.ResponseExpiredAt == nil })
	now := m.now()
	err := m.db.Read(context.Background()).Exec("UPDATE operations SET response_body = NULL, response_expired_at = ? WHERE account_id = ? AND id = ?",
		now, f.operation.AccountID, f.operation.ID).Error
	if err != nil {
		t.Fatal(err)
	}
	f.operation.ResponseBody, f.operation.ResponseExpiredAt = nil, &now
}

// check holds the database against the oracle: every operation and nothing else, every effect and no other.
func (m *model) check(t *rapid.T) {
	want, got := []idempotency.Operation{}, []idempotency.Operation{}
	wantEffects := map[identity]int{}
	for id, f := range m.oracle.facts {
		want = append(want, f.operation)
		if f.effects > 0 {
			wantEffects[id] = f.effects
		}
	}
	if err := m.db.Read(context.Background()).Where("account_id IN ?", m.accounts).Find(&got).Error; err != nil {
		t.Fatal(err)
	}
	byID := func(a, b idempotency.Operation) int { return strings.Compare(a.ID, b.ID) }
	slices.SortFunc(want, byID)
	slices.SortFunc(got, byID)
	if diff := cmp.Diff(want, got, sameBytes); diff != "" {
		t.Fatalf("operations (-oracle +database):\n%s", diff)
	}
	var effects []struct {
		AccountID      string
		IdempotencyKey idempotency.Key
	}
	err := m.db.Read(context.Background()).Raw("SELECT account_id, idempotency_key FROM idemtest_effects WHERE account_id IN ?", m.accounts).Scan(&effects).Error
	if err != nil {
		t.Fatal(err)
	}
	gotEffects := map[identity]int{}
	for _, e := range effects {
		gotEffects[identity{e.AccountID, e.IdempotencyKey}]++
	}
	if diff := cmp.Diff(wantEffects, gotEffects, cmp.AllowUnexported(identity{})); diff != "" {
		t.Fatalf("effects (-oracle +database):\n%s", diff)
	}
}

// some draws an operation that has a property, or ends the step if there is none.
func (m *model) some(t *rapid.T, has func(op idempotency.Operation) bool) *fact {
	var ids []string
	facts := map[string]*fact{}
	for id, f := range m.oracle.facts {
		if has(f.operation) {
			name := id.account + " " + string(id.key)
			ids, facts[name] = append(ids, name), f
		}
	}
	if len(ids) == 0 {
		t.Skip()
	}
	slices.Sort(ids) // the same draw must find the same operation
	return facts[rapid.SampledFrom(ids).Draw(t, "operation")]
}

// now is the clock as the database keeps it.
func (m *model) now() time.Time { return m.clock.read().UTC().Truncate(time.Microsecond) }
