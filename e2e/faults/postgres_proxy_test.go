package faults_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/database/pgserver"
)

func TestPostgresProxy(t *testing.T) {
	server := dbtest.Server(t, pgserver.Options{})
	direct := connect(t, server.URL("postgres"))
	_, err := direct.Exec(t.Context(), "CREATE TABLE tickets (id text PRIMARY KEY); CREATE TABLE notes (id text)")
	must(t, err)
	stored := func(id string) bool {
		var n int
		must(t, direct.QueryRow(t.Context(), "SELECT count(*) FROM tickets WHERE id = $1", id).Scan(&n))
		return n == 1
	}

	// The ways in which a driver may send one and the same transaction.
	for name, insert := range map[string]func(ctx context.Context, conn *pgx.Conn, table, id string) error{
		"statement by statement": insertByStatement,
		"in one pipeline":        insertInPipeline,
	} {
		t.Run(name, func(t *testing.T) {
			proxy, through := newProxy(t, server.URL("postgres"))

			t.Run("passes what no fault waits for", func(t *testing.T) {
				conn := connect(t, through)
				for _, id := range []string{name + "1", name + "2", name + "3"} { // from the second on, statements are known by name
					must(t, insert(t.Context(), conn, "tickets", id))
					if !stored(id) {
						t.Fatalf("%s is not stored", id)
					}
				}
				if proxy.Fired() != 0 {
					t.Fatalf("%d faults, want none", proxy.Fired())
				}
			})
			t.Run("cuts before the COMMIT and nothing has happened", func(t *testing.T) {
				conn := connect(t, through)
				must(t, insert(t.Context(), conn, "tickets", name+"prepared"))
				trap := proxy.AtCommit(faults.CutBeforeCommit, "INTO tickets")
				must(t, insert(t.Context(), conn, "notes", "not waited for"))
				if err := insert(t.Context(), conn, "tickets", name+"before"); err == nil {
					t.Fatal("the client was told of a success")
				}
				must(t, trap.Wait(t.Context()))
				if stored(name + "before") {
					t.Fatal("the row is stored")
				}
			})
			t.Run("cuts after the COMMIT and nobody is told", func(t *testing.T) {
				conn := connect(t, through)
				trap := proxy.AtCommit(faults.CutAfterCommit, "into TICKETS")
				if err := insert(t.Context(), conn, "tickets", name+"after"); err == nil {
					t.Fatal("the client was told of a success")
				}
				must(t, trap.Wait(t.Context()))
				if !stored(name + "after") {
					t.Fatal("the row is not stored")
				}
				must(t, insert(t.Context(), connect(t, through), "tickets", name+"once only"))
			})
			t.Run("loses the server at the COMMIT", func(t *testing.T) {
				conn := connect(t, through)
				trap := proxy.AtCommit(faults.LoseServerAtCommit, "tickets")
				if err := insert(t.Context(), conn, "tickets", name+"lost"); err == nil {
					t.Fatal("the client was told of a success")
				}
				must(t, trap.Wait(t.Context()))
				if !stored(name + "lost") {
					t.Fatal("the row is not stored")
				}
				if _, err := pgx.Connect(t.Context(), through); err == nil {
					t.Fatal("the server can be reached")
				}
				proxy.Accept()
				connect(t, through)
			})
			t.Run("holds the COMMIT with its transaction idle until it is released", func(t *testing.T) {
				conn := connect(t, through)
				trap := proxy.AtCommit(faults.HoldCommit, "tickets")
				done := make(chan error)
				go func() { done <- insert(t.Context(), conn, "tickets", name+"held") }()
				must(t, trap.Wait(t.Context()))
				await(t, "the transaction counts as idle", func() bool { return idleInTransaction(t, direct) == 1 })
				if stored(name + "held") {
					t.Fatal("the row is stored while its COMMIT is held")
				}
				trap.Release()
				must(t, <-done)
				if !stored(name + "held") {
					t.Fatal("the row is not stored")
				}
				must(t, insert(t.Context(), conn, "tickets", name+"on the same connection"))
			})
			t.Run("ends the transaction of a client that dies while its COMMIT is held", func(t *testing.T) {
				conn := connect(t, through)
				trap := proxy.AtCommit(faults.HoldCommit, "tickets")
				ctx, die := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- insert(ctx, conn, "tickets", name+"orphan") }()
				must(t, trap.Wait(t.Context()))
				die()
				if err := <-done; err == nil {
					t.Fatal("the client was told of a success")
				}
				must(t, conn.PgConn().Conn().Close())
				await(t, "the transaction is gone", func() bool { return idleInTransaction(t, direct) == 0 })
				if stored(name + "orphan") {
					t.Fatal("the row is stored")
				}
			})
			t.Run("refuses and accepts connections", func(t *testing.T) {
				conn := connect(t, through)
				before := proxy.Fired()
				proxy.Refuse()
				if _, err := conn.Exec(t.Context(), "SELECT 1"); err == nil {
					t.Fatal("an open connection survived")
				}
				if _, err := pgx.Connect(t.Context(), through); err == nil {
					t.Fatal("a new connection was accepted")
				}
				if proxy.Fired() < before+2 {
					t.Fatalf("counted %d faults, want at least 2", proxy.Fired()-before)
				}
				proxy.Accept()
				connect(t, through)
			})
		})
	}
}

func insertByStatement(ctx context.Context, conn *pgx.Conn, table, id string) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "INSERT INTO "+table+" VALUES ($1)", id); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func insertInPipeline(ctx context.Context, conn *pgx.Conn, table, id string) error {
	batch := &pgx.Batch{}
	batch.Queue("begin")
	batch.Queue(`INSERT INTO "`+table+`" VALUES ($1)`, id)
	batch.Queue("commit")
	return conn.SendBatch(ctx, batch).Close()
}

func newProxy(t *testing.T, server string) (*faults.PostgresProxy, string) {
	t.Helper()
	proxy, err := faults.NewPostgresProxy(server)
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	through, err := proxy.Through(server)
	must(t, err)
	return proxy, through
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func idleInTransaction(t *testing.T, conn *pgx.Conn) int {
	t.Helper()
	var n int
	must(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'").Scan(&n))
	return n
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for ever until %s", what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
