package idemtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// testIsolation repeats what depends on what a transaction sees, at the levels that somebody may have set for the database.
func testIsolation(t *testing.T, l *lab) {
	if !l.postgres() {
		return // SQLite has one level
	}
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run("at "+level+", 64 callers over two replicas are one execution", func(t *testing.T) {
			l.exec(t, fmt.Sprintf("DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET default_transaction_isolation TO %%L', current_database(), '%s'); END $$", level))
			c := l.caller(t)
			replicas := l.replicas(t, 2, database.Options{}, idempotency.Options{WaitBudget: time.Minute})
			var w work
			results := c.together(crowd, func(i int) (idempotency.Result, error) {
				return repeat(t.Context(), func() (idempotency.Result, error) { return replicas[i%2].Do(t.Context(), c.request("k", 1), w.apply) })
			})
			c.wantOneExecution("k", results)
		})
		t.Run("at "+level+", operations that read before they write lose races, and none of them is lost", func(t *testing.T) {
			c := l.caller(t)
			c.counter("n")
			x := idempotency.New(l.connect(t, database.Options{}), idempotency.Options{WaitBudget: time.Minute})
			var w work
			const operations = 16
			results := c.together(operations, func(i int) (idempotency.Result, error) {
				increment := w.ending(func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
					var n int
					if err := tx.Raw("SELECT n FROM idemtest_counters WHERE account_id = ?", op.AccountID).Scan(&n).Error; err != nil {
						return idempotency.Answer{}, err
					}
					return created(), tx.Exec("UPDATE idemtest_counters SET n = ? WHERE account_id = ?", n+1, op.AccountID).Error
				})
				return untilWon(func() (idempotency.Result, error) { return x.Do(t.Context(), c.request(key("k", i), 1), increment) })
			})
			for i, r := range results {
				c.wantOutcome(r, idempotency.OutcomeExecuted)
				c.wantRows(key("k", i), 1, 1)
			}
			c.wantCounter("n", operations)
			if w.runs.Load() == operations {
				t.Log("no race was lost; the level may not have been set")
			}
		})
	}
}
