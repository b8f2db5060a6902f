package pgserver_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/database/pgserver"
)

func TestServer(t *testing.T) {
	s := dbtest.Server(t, pgserver.Options{Durable: true, MaxConnections: 17, Env: []string{"EINMAL_WORD=einmal"}})

	t.Run("has the settings it was asked for", func(t *testing.T) {
		for setting, want := range map[string]string{"fsync": "on", "synchronous_commit": "on", "max_connections": "17"} {
			if got := query(t, s.URL("postgres"), "SHOW "+setting); got != want {
				t.Errorf("%s is %s, want %s", setting, got, want)
			}
		}
	})
	t.Run("has the environment it was asked for", func(t *testing.T) {
		query(t, s.URL("postgres"), "CREATE TABLE environment (word text)")
		query(t, s.URL("postgres"), "COPY environment FROM PROGRAM 'echo $EINMAL_WORD'")
		if got := query(t, s.URL("postgres"), "SELECT word FROM environment"); got != "einmal" {
			t.Fatalf("got %q, want einmal", got)
		}
	})
	t.Run("copies a template", func(t *testing.T) {
		must(t, s.CreateDatabase(t.Context(), "original", ""))
		query(t, s.URL("original"), "CREATE TABLE t AS SELECT 42 AS n")
		must(t, s.CreateDatabase(t.Context(), "copy", "original"))
		if got := query(t, s.URL("copy"), "SELECT n FROM t"); got != "42" {
			t.Fatalf("the copy has %q, want 42", got)
		}
	})
	t.Run("drops a database that is in use", func(t *testing.T) {
		must(t, s.CreateDatabase(t.Context(), "busy", ""))
		conn, err := pgconn.Connect(t.Context(), s.URL("busy"))
		must(t, err)
		defer conn.Close(context.Background())
		must(t, s.DropDatabase(t.Context(), "busy"))
		must(t, s.DropDatabase(t.Context(), "busy")) // again: there is none
	})
	t.Run("comes back on the same address with the same rows", func(t *testing.T) {
		must(t, s.CreateDatabase(t.Context(), "kept", ""))
		query(t, s.URL("kept"), "CREATE TABLE t AS SELECT 42 AS n")
		address := s.URL("kept")
		must(t, s.Halt())
		if conn, err := pgconn.Connect(t.Context(), address); err == nil {
			conn.Close(t.Context())
			t.Fatal("a halted server answers")
		}
		must(t, s.Resume(t.Context()))
		if got := query(t, address, "SELECT n FROM t"); got != "42" {
			t.Fatalf("got %q, want 42", got)
		}
	})
	t.Run("serves whoever knows its address as somebody else's server", func(t *testing.T) {
		other, err := pgserver.At(s.URL("postgres"))
		must(t, err)
		must(t, other.CreateDatabase(t.Context(), "made_from_afar", ""))
		if got := query(t, other.URL("made_from_afar"), "SELECT current_database()"); got != "made_from_afar" {
			t.Fatalf("got %q", got)
		}
		must(t, other.Stop())
		query(t, s.URL("made_from_afar"), "SELECT 1") // still there
	})
	t.Run("leaves nothing behind", func(t *testing.T) {
		dir := filepath.Dir(query(t, s.URL("postgres"), "SHOW data_directory"))
		must(t, s.Stop())
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("directory after Stop: %v, want none", err)
		}
		must(t, s.Stop())
	})
}

func TestServerForUnitTests(t *testing.T) {
	s := dbtest.Server(t, pgserver.Options{})
	if got := query(t, s.URL("postgres"), "SHOW fsync"); got != "off" {
		t.Fatalf("fsync is %s, want off", got)
	}
	if u, err := url.Parse(s.URL("x")); err != nil || u.Hostname() != "127.0.0.1" {
		t.Fatalf("%v %v: want an address on 127.0.0.1", u, err)
	}
}

// query returns the first column of the first row, if there is one.
func query(t *testing.T, address, statement string) string {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), address)
	must(t, err)
	defer conn.Close(context.Background())
	results, err := conn.Exec(t.Context(), statement).ReadAll()
	must(t, err)
	if len(results[0].Rows) == 0 {
		return ""
	}
	return string(results[0].Rows[0][0])
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
