package fsck_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/fsck"
)

// told is a ledger that tells these entries, one at each reading; of the last it goes on telling.
func told(t *testing.T, ledgers ...string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/_ledger" || r.URL.Query().Get("target") != "shop" {
			t.Errorf("asked for %s", r.URL)
		}
		fmt.Fprint(w, ledgers[0])
		if len(ledgers) > 1 {
			ledgers = ledgers[1:]
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAgainst(t *testing.T) {
	const (
		once    = "what has succeeded is in the ledger, once: acme eff_1"
		owned   = "every entry of the ledger has its effect here: "
		notDone = "what failed or was canceled is not in the ledger, or was undone, or a person was asked: acme eff_1"
		other   = "the ledger tells what was asked for: account, amount, digest: acme eff_1"
	)
	entry := func(kind, key, more string) string {
		return fmt.Sprintf(`{"kind":%q,"effect_key":%q,"reference":"R","account":"acme","amount_minor":5%s}`, kind, key, more)
	}
	pay := entry("pay", "k1", "")
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		db := dbtest.Open(t, kind)
		for name, c := range map[string]struct {
			state, asked string
			ledgers      []string
			want         []string
		}{
			"what has succeeded, and is there":           {"succeeded", "", []string{pay}, nil},
			"what has succeeded, and is not":             {"succeeded", "", []string{""}, []string{once}},
			"what was done to the same by somebody else": {"succeeded", "", []string{entry("pay", "k2", "")}, nil},
			"twice":                                     {"succeeded", "", []string{pay + "," + pay}, []string{"nothing is in the ledger twice: acme pay k1"}},
			"what is unknown, and is not there":         {"unknown", "", []string{""}, nil},
			"what is unknown, and is":                   {"unknown", "", []string{pay}, nil},
			"what has failed, and is not there":         {"failed", "", []string{""}, nil},
			"what has failed, and is there":             {"failed", "", []string{pay}, []string{notDone}},
			"what was canceled, and is there":           {"canceled", "", []string{pay}, []string{notDone}},
			"what has failed, is there, and was undone": {"failed", "", []string{pay + "," + entry("undo", "k1", `,"parent":"R"`)}, nil},
			"what has failed, and a person was asked":   {"failed", "contradiction", []string{pay}, nil},
			"what nobody here has done":                 {"succeeded", "", []string{pay + "," + strings.Replace(entry("pay", "k9", ""), `"R"`, `"S"`, 1)}, []string{owned + "acme pay k9 S"}},
			"another amount":                            {"succeeded", "", []string{strings.Replace(pay, "5", "6", 1)}, []string{other}},
			"another account":                           {"unknown", "", []string{strings.Replace(pay, "acme", "globex", 1)}, []string{other}},
			"another digest":                            {"succeeded", "", []string{entry("pay", "k1", `,"digest":"sha256:0"`)}, []string{other}},
			"the same digest":                           {"succeeded", "", []string{entry("pay", "k1", `,"digest":"sha256:1"`)}, nil},
			"what happened while it was looked":         {"succeeded", "", []string{"", pay + "," + strings.Replace(entry("pay", "k9", ""), `"R"`, `"S"`, 1)}, nil},
		} {
			t.Run(name, func(t *testing.T) {
				if err := db.Read(t.Context()).Exec("DELETE FROM reviews").Error; err != nil {
					t.Fatal(err)
				}
				if c.asked != "" {
					err := db.Read(t.Context()).Exec(`INSERT INTO reviews (account_id, id, kind, operation_id, owner, evidence, state, opened_at, due_at, resolved_by)
						VALUES ('acme', 'rev_1', ?, 'op_1', 'operator', '[]', 'open', '2026-01-01', '2026-01-01', '')`, c.asked).Error
					if err != nil {
						t.Fatal(err)
					}
				}
				ledger := fsck.Ledger{Target: "shop", Undo: "undo", SQL: `SELECT 'acme' AS account_id, 'eff_1' AS id, 'op_1' AS operation_id, 'k1' AS effect_key, 'R' AS reference,
					'pay' AS kind, '` + c.state + `' AS state, 5 AS amount_minor, 'app@sha256:1' AS artifact`}
				for i := range c.ledgers {
					c.ledgers[i] = "[" + c.ledgers[i] + "]"
				}
				violations, err := ledger.Against(t.Context(), db, told(t, c.ledgers...))
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, v := range violations {
					if v.Advice == "" {
						t.Errorf("%s gives no advice", v.Check)
					}
					got = append(got, v.Check+": "+v.Account+" "+v.ID)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	})
	t.Run("what is no ledger is told, and how to name one", func(t *testing.T) {
		db := dbtest.Open(t, database.SQLite)
		nothing := httptest.NewServer(http.NotFoundHandler())
		defer nothing.Close()
		for _, url := range []string{nothing.URL, "http://127.0.0.1:1", ":", told(t, "<html>")} {
			_, err := fsck.Ledger{Target: "shop", SQL: "SELECT 1"}.Against(t.Context(), db, url)
			if err == nil || !strings.Contains(err.Error(), "ledger") {
				t.Errorf("%s: error %v", url, err)
			}
		}
	})
}
