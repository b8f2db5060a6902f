package e2e_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/e2e"
	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/scenarios"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/database/pgserver"
)

// dir is where built puts the binary.
var dir string

// built builds the einmal binary, once for all tests and inside of one: the cache of go test sees nothing of what was read before.
var built = sync.OnceValues(func() (string, error) { return harness.Build(context.Background(), dir) })

func binary(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMain(m *testing.M) {
	flag.Parse()
	err := flag.Set("test.parallel", strconv.Itoa(e2e.AtOnce))
	if err == nil {
		dir, err = os.MkdirTemp("", "einmal-binary-")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// TestScenarios plays what `einmal scenarios` plays, on both databases, and several at once: each has processes and a database of its own.
func TestScenarios(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Parallel()
		lab := open(t, kind)
		for _, scenario := range slices.Backward(scenarios.All()) { // the longest are last in the story, and are begun first
			if scenario.Only != "" && scenario.Only != kind {
				continue
			}
			t.Run(scenario.Name, func(t *testing.T) {
				if !scenario.Alone {
					t.Parallel()
				}
				outcome := scenario.Play(t.Context(), lab, 1)
				if outcome.Skipped != "" && os.Getenv("CI") == "" {
					t.Skipf("NOT PLAYED: %s", outcome.Skipped)
				}
				if outcome.Skipped != "" {
					t.Fatal(outcome.Skipped)
				}
				if outcome.Err != nil {
					t.Fatalf("%s\n%v\n%s", scenario.Promise, outcome.Err, outcome.Log)
				}
				t.Log(outcome.Detail)
			})
		}
	})
}

func TestRun(t *testing.T) {
	play := func(opts e2e.Options) (e2e.Results, string, error) {
		opts.Binary = binary(t)
		var out bytes.Buffer
		results, err := e2e.Run(t.Context(), opts, &out)
		return results, out.String(), err
	}

	t.Run("prints nothing but JSON when asked for JSON", func(t *testing.T) {
		results, out, err := play(e2e.Options{Names: []string{"other_account_same_key", "lost_request"}, Database: "sqlite", JSON: true, Seed: 7})
		if err != nil || results.Err() != nil {
			t.Fatal(err, results.Err())
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
		for _, scenario := range got["scenarios"].([]any) {
			s := scenario.(map[string]any)
			if s["detail"] == "" || s["seconds"].(float64) <= 0 {
				t.Errorf("a result without detail or time: %v", s)
			}
			s["detail"], s["seconds"] = "…", 1.0
		}
		want := map[string]any{
			"passed": 2.0, "failed": 0.0, "skipped": 0.0,
			"scenarios": []any{
				map[string]any{"name": "lost_request", "passed": true, "seconds": 1.0, "injected": 3.0, "effects": 1.0, "detail": "…"},
				map[string]any{"name": "other_account_same_key", "passed": true, "seconds": 1.0, "injected": nil, "effects": 2.0, "detail": "…"},
			},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	})
	t.Run("prints a line for each scenario and a table", func(t *testing.T) {
		_, out, err := play(e2e.Options{Names: []string{"lost_request"}, Database: "sqlite"})
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"passed lost_request", "scenario  ", "1 passed, 0 failed, 0 skipped"} {
			if !strings.Contains(out, part) {
				t.Errorf("no %q in\n%s", part, out)
			}
		}
		if strings.Contains(out, " …") {
			t.Errorf("there is no terminal, and something is cut:\n%s", out)
		}
	})
	t.Run("lists every scenario with its promise", func(t *testing.T) {
		_, out, err := play(e2e.Options{List: true})
		if err != nil || strings.Count(out, "\n") != len(scenarios.All()) {
			t.Fatalf("%v\n%s", err, out)
		}
	})
	t.Run("says why it skips what is about the other database", func(t *testing.T) {
		results, _, err := play(e2e.Options{Names: []string{"replica_five_minutes_ahead"}, Database: "sqlite"})
		if err != nil || results.Err() != nil || results.Skipped != 1 || !strings.Contains(results.Scenarios[0].Detail, "postgres") {
			t.Fatalf("got %+v, %v", results, err)
		}
	})
	t.Run("refuses a name that it doesn't know", func(t *testing.T) {
		if _, _, err := play(e2e.Options{Names: []string{"lost_respnse"}, Database: "sqlite"}); err == nil || !strings.Contains(err.Error(), "lost_respnse") {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("refuses a database that it doesn't know", func(t *testing.T) {
		if _, _, err := play(e2e.Options{Database: "mysql"}); err == nil || !strings.Contains(err.Error(), "mysql") {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("skips what was interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		results, err := e2e.Run(ctx, e2e.Options{Names: []string{"lost_request"}, Database: "sqlite", Binary: binary(t)}, &bytes.Buffer{})
		if err != nil || results.Skipped != 1 || results.Failed != 0 || results.Err() == nil {
			t.Fatalf("got %+v, %v", results, err)
		}
	})
}

// A server that somebody else runs is used, and left as it was.
func TestRunOnAnotherServer(t *testing.T) {
	server := open(t, database.Postgres).Server
	results, err := e2e.Run(t.Context(), e2e.Options{
		Names: []string{"lost_request", "store_down_fails_closed"}, Database: server.URL("postgres"), Binary: binary(t),
	}, &bytes.Buffer{})
	if err != nil || results.Err() != nil {
		t.Fatal(err, results.Err())
	}
	db, err := sql.Open("pgx", server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var left int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_database WHERE datname LIKE 'einmal%'").Scan(&left); err != nil || left > 0 {
		t.Fatalf("%d databases are left, %v", left, err)
	}
}

// open opens a laboratory. A machine without PostgreSQL skips its scenarios, loudly, unless CI is set.
func open(t *testing.T, kind database.Kind) *harness.Lab {
	t.Helper()
	lab, err := harness.New(t.Context(), harness.Options{Binary: binary(t), Database: string(kind)})
	if home := os.Getenv("EINMAL_TEST_POSTGRES"); errors.Is(err, pgserver.ErrNoBinaries) && home != "" {
		lab, err = harness.New(t.Context(), harness.Options{Binary: binary(t), Database: home})
	}
	if errors.Is(err, pgserver.ErrNoBinaries) && os.Getenv("CI") == "" {
		t.Skipf("NOT TESTED ON POSTGRESQL: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	return lab
}
