package retention_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/retention"
	"github.com/einmal/einmal/pkg/review"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const (
	response  = 30 * 24 * time.Hour
	tombstone = 400 * 24 * time.Hour
	day       = 24 * time.Hour
)

// place is a service's database, whose time a test moves.
type place struct {
	t    *testing.T
	url  string
	now  atomic.Int64
	db   *database.DB
	log  *audit.Log
	exec *idempotency.Executor
	runs atomic.Int64 // of operations
}

func open(t *testing.T, kind database.Kind) *place {
	t.Helper()
	p := &place{t: t, url: dbtest.URL(t, kind)}
	p.now.Store(time.Date(2026, 5, 6, 7, 8, 9, 123456000, time.UTC).UnixMicro())
	p.db = p.connect()
	p.log = audit.Open(p.db)
	t.Cleanup(p.log.Close)
	p.exec = p.executor(response, tombstone)
	return p
}

func (p *place) connect() *database.DB {
	return dbtest.Connect(p.t, p.url, database.Options{Clock: func() time.Time { return time.UnixMicro(p.now.Load()) }})
}

func (p *place) executor(response, tombstone time.Duration) *idempotency.Executor {
	return idempotency.New(p.db, idempotency.Options{
		ResponseRetention: response, TombstoneRetention: tombstone, Forgotten: retention.Forgotten(p.db), Record: p.log.Record, Note: p.log.Note,
	})
}

func (p *place) purger(changes ...func(*retention.Deps)) *retention.Purger {
	deps := retention.Deps{
		DB: p.db, Log: slog.New(slog.DiscardHandler), Service: "things", Record: p.log.Record, Response: response, Tombstone: tombstone, Every: time.Minute,
	}
	for _, change := range changes {
		change(&deps)
	}
	return retention.New(deps)
}

// settings are other retentions.
func settings(response, tombstone time.Duration) func(*retention.Deps) {
	return func(d *retention.Deps) { d.Response, d.Tombstone = response, tombstone }
}

func (p *place) advance(d time.Duration) { p.now.Add(d.Microseconds()) }

// round is what one round of a purger does.
func (p *place) round(purger *retention.Purger) (expired, forgotten int64) {
	p.t.Helper()
	done, err := purger.Round(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return done["expired"], done["forgotten"]
}

func (p *place) wantRound(purger *retention.Purger, expired, forgotten int64) {
	p.t.Helper()
	if e, f := p.round(purger); e != expired || f != forgotten {
		p.t.Fatalf("%d expired and %d forgotten, want %d and %d", e, f, expired, forgotten)
	}
}

// do makes an attempt of acme whose work is to end in a state.
func (p *place) do(key string, state idempotency.State) idempotency.Result {
	p.t.Helper()
	return p.doWith(p.exec, "acme", key, state)
}

func (p *place) doWith(x *idempotency.Executor, account, key string, state idempotency.State) idempotency.Result {
	p.t.Helper()
	result, err := x.Do(p.t.Context(), idempotency.Request{
		Key: idempotency.Key(key), Type: "thing.create", Command: idempotency.Command{Account: account, Method: "POST", Path: "/v1/things", Body: 1},
	}, func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
		p.runs.Add(1)
		answer := idempotency.Answer{State: state, Resource: idempotency.Resource{Type: "thing", ID: "thing-" + key}}
		if state.Final() {
			answer.Status, answer.Body = 201, []byte(`{"id":1}`)
		}
		return answer, nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

func (p *place) settle(op idempotency.Operation) {
	p.t.Helper()
	err := p.db.InTx(p.t.Context(), func(tx database.Tx) error {
		return p.exec.Settle(tx, op, idempotency.Queued, idempotency.Answer{State: idempotency.Succeeded, Status: 201, Body: []byte(`{}`)})
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) wantOutcome(got idempotency.Result, want idempotency.Outcome) {
	p.t.Helper()
	if got.Outcome != want {
		p.t.Fatalf("outcome %q, want %q", got.Outcome, want)
	}
}

func (p *place) wantRuns(want int64) {
	p.t.Helper()
	if n := p.runs.Load(); n != want {
		p.t.Fatalf("ran %d times, want %d", n, want)
	}
}

func (p *place) count(query string, args ...any) (n int) {
	p.t.Helper()
	if err := p.db.Read(p.t.Context()).Raw("SELECT count(*) FROM "+query, args...).Scan(&n).Error; err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *place) exec1(statement string, args ...any) {
	p.t.Helper()
	if err := p.db.Read(p.t.Context()).Exec(statement, args...).Error; err != nil {
		p.t.Fatal(err)
	}
}

// uuid7 is a key that tells when it was made.
func (p *place) uuid7(age time.Duration) string {
	return idempotency.NewID("k", time.UnixMicro(p.now.Load()).Add(-age))[len("k_"):]
}

func TestLife(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("an answer becomes a tombstone, a tombstone nothing, each at its time and no sooner", func(t *testing.T) {
			p := open(t, kind)
			purger := p.purger()
			first := p.do("k", idempotency.Succeeded).Operation
			p.advance(response)
			p.wantRound(purger, 0, 0)
			p.advance(time.Second)
			p.wantRound(purger, 1, 0)
			if n := p.count("operations WHERE response_body IS NULL AND response_expired_at IS NOT NULL AND fingerprint <> '' AND id = ? AND state = 'succeeded'", first.ID); n != 1 {
				t.Error("the tombstone is not what it must be")
			}
			p.wantOutcome(p.do("k", idempotency.Succeeded), idempotency.OutcomeExpired)
			p.wantRound(purger, 0, 0)
			p.advance(tombstone + day)
			p.wantRound(purger, 0, 0)
			p.wantOutcome(p.do("k", idempotency.Succeeded), idempotency.OutcomeExpired)
			p.advance(time.Second)
			p.wantRound(purger, 0, 1)
			p.wantRuns(1)
			if n := p.count("events WHERE type = 'forgotten' AND operation_id = ? AND from_state = 'succeeded' AND reference = 'thing-k'", first.ID); n != 1 {
				t.Errorf("%d events tell that it was forgotten", n)
			}
			p.wantOutcome(p.do("k", idempotency.Succeeded), idempotency.OutcomeExecuted) // as the policy says
		})
		t.Run("a failure and a cancelation go the same way", func(t *testing.T) {
			p := open(t, kind)
			p.do("k", idempotency.Failed)
			p.advance(response + time.Second)
			p.wantRound(p.purger(), 1, 0)
			p.advance(tombstone + day + time.Second)
			p.wantRound(p.purger(), 0, 1)
		})
		t.Run("what is open never goes, however old; its time runs from its final answer", func(t *testing.T) {
			for _, state := range []string{"queued", "running", "unknown", "awaiting_approval"} {
				p := open(t, kind)
				op := p.do("k", idempotency.Queued).Operation
				p.exec1("UPDATE operations SET state = ?", state)
				p.advance(10 * tombstone)
				p.wantRound(p.purger(), 0, 0)
				p.wantOutcome(p.do("k", idempotency.Queued), idempotency.OutcomeInProgress)
				p.settle(op)
				p.advance(response)
				p.wantRound(p.purger(), 0, 0)
				p.wantOutcome(p.do("k", idempotency.Queued), idempotency.OutcomeReplayed)
				p.advance(time.Second)
				p.wantRound(p.purger(), 1, 0)
				p.wantRuns(1)
			}
		})
		t.Run("nothing open goes even if its row says that it has expired", func(t *testing.T) {
			p := open(t, kind)
			p.do("k", idempotency.Queued)
			p.exec1("UPDATE operations SET response_expired_at = created_at")
			p.advance(10 * tombstone)
			p.wantRound(p.purger(), 0, 0)
			if n := p.count("operations"); n != 1 {
				t.Error("it is gone")
			}
		})
		t.Run("an open review keeps the tombstone, and its resolution lets it go", func(t *testing.T) {
			p := open(t, kind)
			op := p.do("k", idempotency.Succeeded).Operation
			var id string
			p.inTx(func(tx database.Tx) (err error) {
				id, err = review.Open(tx, review.Question{AccountID: "acme", Kind: review.Contradiction, OperationID: op.ID})
				return err
			})
			p.advance(response + time.Second)
			p.wantRound(p.purger(), 1, 0)
			p.advance(tombstone + day + time.Second)
			p.wantRound(p.purger(), 0, 0)
			p.wantOutcome(p.do("k", idempotency.Succeeded), idempotency.OutcomeExpired)
			p.inTx(func(tx database.Tx) error {
				_, err := review.Resolve(tx, "acme", id, "somebody", "", review.Evidence{Says: "it is right"})
				return err
			})
			p.wantRound(p.purger(), 0, 1)
		})
		t.Run("what is followed by another operation stays until that has gone", func(t *testing.T) {
			p := open(t, kind)
			following := func(key idempotency.Key) idempotency.Key { return "mirror:" + key }
			purger := p.purger(func(d *retention.Deps) { d.Following = following })
			p.do("k", idempotency.Succeeded)
			second := p.do("mirror:k", idempotency.Queued).Operation
			p.do("alone", idempotency.Succeeded)
			p.advance(response + time.Second)
			p.wantRound(purger, 2, 0)
			p.advance(10 * tombstone)
			p.wantRound(purger, 0, 1)
			p.settle(second)
			p.advance(response + time.Second)
			p.wantRound(purger, 1, 0)
			p.wantOutcome(p.do("k", idempotency.Succeeded), idempotency.OutcomeExpired)
			p.advance(tombstone + day + time.Second)
			p.wantRound(purger, 0, 1)
			p.wantRound(purger, 0, 1)
			p.wantRuns(3)
		})
		t.Run("of an effect stays what late evidence is compared with, and of its sends nothing", func(t *testing.T) {
			p := open(t, kind)
			for _, account := range []string{"acme", "globex"} {
				op := p.doWith(p.exec, account, "k", idempotency.Succeeded).Operation
				p.exec1(`INSERT INTO effects (account_id, id, operation_id, idempotency_key, type, target, effect_key, command, state, fence, leased_by, attempts, asks,
					priority, reference, review_id, created_at, updated_at)
					VALUES (?, ?, ?, 'k', 'thing.create', 'desk', 'key', 'secret', 'succeeded', 1, '', 1, 0, false, 'REF-1', '', ?, ?)`,
					account, "eff_1", op.ID, op.CreatedAt, op.CreatedAt)
				p.exec1(`INSERT INTO attempts (account_id, id, operation_id, effect_id, kind, fence, started_at, outcome, error, reference)
					VALUES (?, 'att_1', ?, 'eff_1', 'send', 1, ?, 'confirmed', '', 'REF-1')`, account, op.ID, op.CreatedAt)
			}
			p.advance(response + time.Second)
			p.round(p.purger())
			p.exec1("DELETE FROM operations WHERE account_id = 'globex'") // another's is nobody's business here
			p.advance(tombstone + day + time.Second)
			p.wantRound(p.purger(), 0, 1)
			if n := p.count("effects WHERE account_id = 'acme' AND idempotency_key = '' AND length(command) = 0 AND state = 'succeeded' AND reference = 'REF-1' AND effect_key = 'key'"); n != 1 {
				t.Error("the effect is not what it must be")
			}
			if n := p.count("effects WHERE account_id = 'globex' AND idempotency_key = 'k'"); n != 1 {
				t.Error("another account's effect was cleared")
			}
			got := []int{p.count("attempts WHERE account_id = 'acme'"), p.count("attempts WHERE account_id = 'globex'")}
			if diff := cmp.Diff([]int{0, 1}, got); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("lists go on over what is gone", func(t *testing.T) {
			p := open(t, kind)
			var ids []string
			for i := range 6 {
				ids = append(ids, p.do(fmt.Sprint("k", i), idempotency.Succeeded).Operation.ID)
				p.advance(time.Second)
			}
			p.advance(response)
			p.round(p.purger())
			p.exec1("UPDATE operations SET response_expired_at = created_at WHERE id IN ?", ids[2:5])
			p.advance(tombstone - response)
			p.wantRound(p.purger(settings(response, tombstone-10*day)), 0, 3)
			page, err := p.exec.List(t.Context(), "acme", ids[3], 10) // a cursor that names one that is gone
			if err != nil || len(page) != 2 || page[0].ID != ids[1] || page[1].ID != ids[0] {
				t.Errorf("%v, %v", page, err)
			}
		})
	})
}

func (p *place) inTx(fn func(tx database.Tx) error) {
	p.t.Helper()
	if err := p.db.InTx(p.t.Context(), fn); err != nil {
		p.t.Fatal(err)
	}
}

func TestRun(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("ends when it is told to, in the middle of its work, and leaves each row whole", func(t *testing.T) {
			p := open(t, kind)
			for i := range 300 {
				p.do(fmt.Sprint("k", i), idempotency.Succeeded)
			}
			p.advance(response + time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				p.purger().Run(ctx)
			}()
			for p.count("operations WHERE response_expired_at IS NOT NULL") == 0 {
			}
			cancel()
			select {
			case <-ended:
			case <-time.After(5 * time.Second):
				t.Fatal("it goes on")
			}
			if n := p.count("operations WHERE (response_body IS NULL) <> (response_expired_at IS NOT NULL)"); n != 0 {
				t.Errorf("%d rows are half of each", n)
			}
		})
	})
}
