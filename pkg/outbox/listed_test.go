package outbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// What waits for a person is looked at all day, among all that was ever asked, which is never purged.
func TestWhatWaitsForAPersonIsFoundByAnIndex(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		db := dbtest.Open(t, kind)
		numbers, explain, no := "generate_series(1, 5000) AS n", "EXPLAIN ", "false"
		if kind == database.SQLite {
			numbers, explain, no = "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000) SELECT n FROM c)", "EXPLAIN QUERY PLAN ", "0"
		}
		fill := []string{
			`INSERT INTO reviews (account_id, id, kind, operation_id, owner, evidence, state, opened_at, due_at, resolved_by, resolved_at)
				SELECT 'acme', 'rev_' || n, 'unknown', 'op_' || n, 'operator', '[]', CASE n WHEN 7 THEN 'open' ELSE 'resolved' END, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, '', CURRENT_TIMESTAMP FROM ` + numbers,
			`INSERT INTO approvals (account_id, id, operation_id, idempotency_key, fingerprint, world_version, requested_by, facts, consequence, state, decided_by, approved, reason, created_at, expires_at)
				SELECT 'acme', 'apr_' || n, 'op_' || n, 'k' || n, 'v1:', '', 'agent', '{}', '', CASE n WHEN 7 THEN 'pending' ELSE 'expired' END, '', ` + no + `, '', CURRENT_TIMESTAMP, CURRENT_TIMESTAMP FROM ` + numbers,
		}
		exec := func(statements ...string) {
			for _, statement := range statements {
				if err := db.Read(t.Context()).Exec(statement).Error; err != nil {
					t.Fatal(err)
				}
			}
		}
		goesBy := func(index, query string, args ...any) {
			var plan []map[string]any
			if err := db.Read(t.Context()).Raw(explain+query, args...).Scan(&plan).Error; err != nil {
				t.Fatal(err)
			}
			if text := fmt.Sprint(plan); !strings.Contains(text, index) || strings.Contains(text, "Seq Scan") {
				t.Errorf("%s does not go by %s: %s", query, index, text)
			}
		}
		exec(fill...)
		// As it is while nobody has gathered statistics: what ends an effect reads the reviews about that, not all open ones.
		goesBy("reviews_op", "SELECT * FROM reviews WHERE account_id = ? AND operation_id = ? AND kind = ? AND state = ?", "acme", "op_7", "unknown", "open")
		if kind == database.Postgres { // on embedded SQLite nobody does
			exec("ANALYZE")
		}
		for query, index := range map[string]string{
			"SELECT * FROM reviews WHERE account_id = ? AND state = 'open' ORDER BY id DESC LIMIT 50":                                 "reviews_listed",
			"SELECT * FROM reviews WHERE account_id = ? AND state = 'open' AND due_at <= CURRENT_TIMESTAMP ORDER BY id DESC LIMIT 50": "reviews_listed",
			"SELECT kind, count(*) FROM reviews WHERE state = 'open' GROUP BY kind":                                                   "reviews_",
			"SELECT * FROM approvals WHERE account_id = ? AND state = 'pending' ORDER BY id DESC LIMIT 50":                            "approvals_listed",
			"SELECT count(*) FROM approvals WHERE state = 'pending'":                                                                  "approvals_",
			"SELECT * FROM approvals WHERE account_id = ? AND state = 'pending' AND id < ? ORDER BY id DESC LIMIT 50":                 "approvals_listed",
		} {
			goesBy(index, query, []any{"acme", "a"}[:strings.Count(query, "?")]...)
		}
	})
}
