package retention_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/fsck"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/retention"
)

// attempt is like do, for many goroutines: every answer but an error is fine, which is returned.
func (p *place) attempt(x *idempotency.Executor, key string) (idempotency.Result, error) {
	return x.Do(context.Background(), idempotency.Request{
		Key: idempotency.Key(key), Type: "thing.create", Command: idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/things", Body: 1},
	}, func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
		p.runs.Add(1)
		return idempotency.Answer{State: idempotency.Succeeded, Status: 201, Body: []byte(`{"id":1}`)}, nil
	})
}

func TestRaces(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("retries while answers are dropped and tombstones removed, by two replicas at once, never run again and never fail", func(t *testing.T) {
			p := open(t, kind)
			other := p.connect()
			const keys = 60
			var names []string
			for i := range keys {
				names = append(names, p.uuid7(0))
				p.do(names[i], idempotency.Succeeded)
			}
			purgers := []*retention.Purger{p.purger(), p.purger(func(d *retention.Deps) { d.DB = other })}
			for _, pass := range []time.Duration{response + time.Second, tombstone + day + time.Second} {
				p.advance(pass)
				var all sync.WaitGroup
				for _, purger := range purgers {
					all.Go(func() {
						if _, err := purger.Round(t.Context()); err != nil {
							t.Error(err)
						}
					})
				}
				for range 4 {
					all.Go(func() {
						x := p.executor(response, tombstone) // that has seen nothing
						for _, name := range names {
							result, err := p.attempt(x, name)
							if err != nil {
								t.Error(err)
							} else if result.Outcome != idempotency.OutcomeExpired {
								t.Errorf("outcome %q", result.Outcome)
							}
						}
					})
				}
				all.Wait()
				for _, purger := range purgers { // what one has left to the other
					p.round(purger)
				}
			}
			if n := p.count("operations"); n != 0 {
				t.Errorf("%d operations are left", n)
			}
			p.wantRuns(keys)
		})
		t.Run("a key that tells no age, forgotten under a retry, is expired or new, and never fails", func(t *testing.T) {
			p := open(t, kind)
			const keys = 60
			for i := range keys {
				p.do(fmt.Sprint("k", i), idempotency.Succeeded)
			}
			p.advance(response + time.Second)
			p.round(p.purger())
			p.advance(tombstone + day + time.Second)
			var all sync.WaitGroup
			all.Go(func() { p.round(p.purger()) })
			for range 4 {
				all.Go(func() {
					x := p.executor(response, tombstone)
					for i := range keys {
						result, err := p.attempt(x, fmt.Sprint("k", i))
						if err != nil {
							t.Error(err)
						}
						switch result.Outcome {
						case idempotency.OutcomeExpired, idempotency.OutcomeExecuted, idempotency.OutcomeReplayed, idempotency.OutcomeInProgress:
						default:
							t.Errorf("outcome %q", result.Outcome)
						}
					}
				})
			}
			all.Wait()
			if n := int64(p.count("operations WHERE response_body IS NOT NULL")); n != p.runs.Load()-keys || n > keys {
				t.Errorf("%d new operations, and the work ran %d times", n, p.runs.Load())
			}
		})
		t.Run("one that is new under its old key is not taken for the one before", func(t *testing.T) {
			p := open(t, kind)
			p.do("k", idempotency.Succeeded)
			p.advance(response + time.Second)
			p.round(p.purger())
			p.advance(tombstone + day + time.Second)
			p.wantRound(p.purger(), 0, 1)
			p.do("k", idempotency.Succeeded)
			p.wantRound(p.purger(), 0, 0)
			p.wantOutcome(p.do("k", idempotency.Succeeded), idempotency.OutcomeReplayed)
			p.wantRuns(2)
		})
		t.Run("fsck beside a purge finds nothing", func(t *testing.T) {
			p := open(t, kind)
			for i := range 200 {
				p.do(fmt.Sprint("k", i), idempotency.Succeeded)
			}
			p.advance(response + time.Second)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for _, pass := range []time.Duration{0, tombstone + day + time.Second} {
					p.advance(pass)
					if _, err := p.purger().Round(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}()
			defer func() { <-ended }()
			for over := false; !over; {
				select {
				case <-ended:
					over = true
				default:
				}
				violations, err := fsck.Run(t.Context(), p.db, append(fsck.Operations, fsck.Effects...)...)
				if err != nil || len(violations) > 0 {
					t.Errorf("%d violations, the first of %.300v; error %v", len(violations), violations, err)
					break
				}
			}
			if n := p.count("operations"); n != 0 {
				t.Errorf("%d operations are left", n)
			}
		})
	})
}

func TestSettings(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("a replica with longer retentions does not run again what one with shorter ones has forgotten", func(t *testing.T) {
			p := open(t, kind)
			older, newer := p.executor(response, tombstone), p.purger(settings(2*day, 10*day))
			key, ahead := p.uuid7(0), p.uuid7(-20*time.Hour) // made by a clock that is ahead
			p.do(key, idempotency.Succeeded)
			p.do(ahead, idempotency.Succeeded)
			p.advance(2*day + time.Second)
			p.wantRound(newer, 2, 0)
			p.wantOutcome(p.doWith(older, "acme", key, idempotency.Succeeded), idempotency.OutcomeExpired)
			p.advance(11*day + time.Second)
			p.wantRound(newer, 0, 2)
			for _, x := range []*idempotency.Executor{older, p.executor(response, tombstone)} {
				for _, k := range []string{key, ahead} {
					p.wantOutcome(p.doWith(x, "acme", k, idempotency.Succeeded), idempotency.OutcomeExpired)
				}
			}
			p.wantRuns(2)
		})
		t.Run("retentions that were shortened take what is due now, all of it", func(t *testing.T) {
			p := open(t, kind)
			const many = 1500 // more than one listing
			for i := range many {
				p.do(fmt.Sprint("k", i), idempotency.Succeeded)
			}
			p.do("open", idempotency.Queued)
			p.advance(2 * day)
			p.wantRound(p.purger(), 0, 0)
			p.wantRound(p.purger(settings(day, day)), many, 0)
			p.advance(2 * day)
			p.wantRound(p.purger(), 0, 0)
			p.wantRound(p.purger(settings(day, day)), 0, many)
			if n := p.count("operations"); n != 1 {
				t.Errorf("%d operations are left, want the open one", n)
			}
		})
		t.Run("a clock that jumps ahead costs answers, but no key that had its answer; one that is set back costs nothing", func(t *testing.T) {
			p := open(t, kind)
			p.do("k", idempotency.Succeeded)
			p.advance(50 * 365 * day)
			p.wantRound(p.purger(), 1, 0)
			p.wantRound(p.purger(), 0, 0)
			p.advance(-50 * 365 * day)
			p.wantRound(p.purger(), 0, 0)
			p.wantOutcome(p.do("k", idempotency.Succeeded), idempotency.OutcomeExpired)
			p.wantRuns(1)
		})
		t.Run("a purge that fails is told, and the next goes on", func(t *testing.T) {
			p := open(t, kind)
			no := errors.New("no")
			p.do("k", idempotency.Succeeded)
			p.advance(response + time.Second)
			p.round(p.purger())
			p.advance(tombstone + day + time.Second)
			failing := p.purger(func(d *retention.Deps) { d.Record = func(database.Tx, ...idempotency.Event) error { return no } })
			if _, err := failing.Round(t.Context()); !errors.Is(err, no) {
				t.Errorf("error %v", err)
			}
			if n := p.count("operations"); n != 1 {
				t.Error("it is gone, and no event says so")
			}
			p.wantRound(p.purger(), 0, 1)
		})
	})
}

// A round must not read a whole table, nor sort one. A restore brings no statistics: which rows are meant is by their key then, too.
func TestARoundGoesByIndexes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		p := open(t, kind)
		p.do("k", idempotency.Succeeded)
		numbers := "generate_series(1, 20000) AS n"
		if kind == database.SQLite {
			numbers = "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000) SELECT n FROM c)"
		}
		p.exec1(`INSERT INTO operations (account_id, idempotency_key, id, type, state, fingerprint, route, principal, agent_run, request_id, resource_type, resource_id,
				resource_href, response_status, response_location, response_body, created_at, updated_at, completed_at, response_expired_at)
			SELECT account_id, 'key-' || n, 'op_' || n, type, state, fingerprint, route, principal, agent_run, request_id, '', '', '', 200, '', response_body, created_at, updated_at,
				completed_at, CASE WHEN n % 2 = 0 THEN created_at END FROM operations, ` + numbers)
		wantPlan := func(index, query string, args ...any) {
			t.Helper()
			explain := "EXPLAIN "
			if kind == database.SQLite {
				explain = "EXPLAIN QUERY PLAN "
			}
			var lines []map[string]any
			if err := p.db.Read(t.Context()).Raw(explain+query, args...).Scan(&lines).Error; err != nil {
				t.Fatal(err)
			}
			plan := fmt.Sprint(lines)
			if !strings.Contains(plan, index) || strings.Contains(plan, "Sort") || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("it does not go by %s: %s", index, plan)
			}
		}
		now, byKey := time.Now().UTC(), "operations_pkey"
		if kind == database.SQLite {
			byKey = "(account_id=? AND idempotency_key=?)"
		}
		var keys []string
		for i := range 32 {
			keys = append(keys, fmt.Sprint("key-", i))
		}
		for _, statistics := range []string{"SELECT 1", "ANALYZE"} {
			p.exec1(statistics)
			wantPlan(byKey, retention.DropAnswers, now, "acme", keys, now)
			wantPlan(byKey, retention.RemoveTombstones, "acme", keys, now)
		}
		wantPlan("operations_to_expire", retention.ListAnswers, now, time.Time{}, "", "", now, 512)
		wantPlan("operations_to_forget", retention.ListTombstones, now, time.Time{}, "", "", 512)
	})
}
