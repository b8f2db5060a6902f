package audit_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

var full = idempotency.Event{
	Type: idempotency.Completed, At: time.Date(2026, 5, 6, 7, 8, 9, 123456000, time.UTC), Account: "acme", Principal: "demo-agent",
	AgentRun: "run-1", RequestID: "req-1", OperationID: "op_1", AttemptID: "att_1", KeyHash: idempotency.Key("secret-key").Hash(),
	Fingerprint: "v1:ab", Route: "POST /v1/tickets", From: idempotency.Queued, To: idempotency.Succeeded,
}

func event(t idempotency.EventType) idempotency.Event {
	e := full
	e.Type = t
	return e
}

// row is a row of events as it is in the database, without its id.
type row struct {
	AccountID, Type                                        string
	At                                                     time.Time
	Principal, AgentRun, RequestID, OperationID, AttemptID string
	KeyHash, Fingerprint, Route, EffectKey, Reference      string
	FromState, ToState                                     string
}

func TestRecord(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		db := dbtest.Open(t, kind)
		t.Run("commits with the transaction that it tells of, every member in its column", func(t *testing.T) {
			log := openOn(t, db)
			if err := db.InTx(t.Context(), func(tx database.Tx) error { return log.Record(tx, event("attempted"), full) }); err != nil {
				t.Fatal(err)
			}
			var got []row
			if err := db.Read(t.Context()).Table("events").Order("type").Find(&got).Error; err != nil {
				t.Fatal(err)
			}
			for i := range got {
				got[i].At = got[i].At.UTC()
			}
			want := row{
				AccountID: "acme", Type: "attempted", At: full.At, Principal: "demo-agent", AgentRun: "run-1", RequestID: "req-1",
				OperationID: "op_1", AttemptID: "att_1", KeyHash: full.KeyHash, Fingerprint: "v1:ab", Route: "POST /v1/tickets",
				FromState: "queued", ToState: "succeeded",
			}
			second := want
			second.Type = "completed"
			if diff := cmp.Diff([]row{want, second}, got); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("vanishes with it", func(t *testing.T) {
			log := openOn(t, db)
			no := errors.New("no")
			err := db.InTx(t.Context(), func(tx database.Tx) error { return errors.Join(log.Record(tx, full), no) })
			if !errors.Is(err, no) || count(t, db) != 0 {
				t.Errorf("error %v, %d events, want 0", err, count(t, db))
			}
		})
		t.Run("that fails, fails the transaction", func(t *testing.T) {
			db, log := open(t, kind, database.Options{})
			exec(t, db, "CREATE TABLE things (id text PRIMARY KEY)")
			exec(t, db, "DROP TABLE events")
			err := db.InTx(t.Context(), func(tx database.Tx) error {
				if err := tx.Exec("INSERT INTO things VALUES ('1')").Error; err != nil {
					t.Error(err)
				}
				return log.Record(tx, full)
			})
			var things int
			if scan := db.Read(t.Context()).Raw("SELECT count(*) FROM things").Scan(&things).Error; scan != nil {
				t.Fatal(scan)
			}
			if err == nil || errors.Is(err, database.ErrCommitUnknown) || things != 0 {
				t.Errorf("error %v, %d rows, want a definite failure and 0", err, things)
			}
		})
		t.Run("of no events does nothing", func(t *testing.T) {
			log := openOn(t, db)
			if err := db.InTx(t.Context(), func(tx database.Tx) error { return log.Record(tx) }); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestNote(t *testing.T) {
	// Those of attempts that were told no, or not yet. Whoever hears that, finds it in the events.
	told := []idempotency.EventType{idempotency.InProgress, idempotency.Conflict, idempotency.Expired, idempotency.Denied}
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		db := dbtest.OpenWith(t, kind, database.Options{LockTimeout: 20 * time.Second})
		for _, eventType := range told {
			t.Run(string(eventType)+" is written when Note returns", func(t *testing.T) {
				log := openOn(t, db)
				log.Note(t.Context(), event(eventType))
				if n := count(t, db); n != 1 {
					t.Errorf("%d events, want 1", n)
				}
			})
		}
		t.Run("writes what a caller was told who has left", func(t *testing.T) {
			log := openOn(t, db)
			gone, leave := context.WithCancel(t.Context())
			leave()
			log.Note(gone, event(idempotency.Denied))
			log.Close()
			if n := count(t, db); n != 1 {
				t.Errorf("%d events, want 1", n)
			}
		})
		t.Run("does not hold up an answer while the database is busy, and is written all the same", func(t *testing.T) {
			// SQLite's only writer is busy for as long as an operation's transaction is open, which is just when its
			// duplicates are told that it is in progress.
			log := openOn(t, db)
			const slow = 2 * time.Second
			err := db.InTx(t.Context(), func(tx database.Tx) error {
				if err := tx.Exec(lockEvents(kind)).Error; err != nil {
					return err
				}
				start := time.Now()
				var callers sync.WaitGroup
				for range 64 {
					callers.Go(func() { log.Note(t.Context(), event(idempotency.InProgress)) })
				}
				callers.Wait()
				if took := time.Since(start); took > slow {
					t.Errorf("answers were held up for %v", took)
				}
				return nil
			})
			log.Close()
			if n := count(t, db); err != nil || n != 64 {
				t.Errorf("%d events, want 64; error %v", n, err)
			}
		})
		t.Run("writes replays in batches, all of them by Close", func(t *testing.T) {
			log := openOn(t, db)
			const replays = 1500
			var callers sync.WaitGroup
			for range 30 {
				callers.Go(func() {
					for range replays / 30 {
						log.Note(t.Context(), event(idempotency.Replayed))
					}
				})
			}
			callers.Wait()
			log.Close()
			if n := count(t, db); n != replays {
				t.Errorf("%d events, want %d", n, replays)
			}
			if kind != database.Postgres {
				return
			}
			var transactions int
			if err := db.Read(t.Context()).Raw("SELECT count(DISTINCT xmin::text) FROM events").Scan(&transactions).Error; err != nil {
				t.Fatal(err)
			}
			if transactions > replays/100 {
				t.Errorf("%d transactions for %d events", transactions, replays)
			}
		})
		t.Run("loses nothing when more replays wait than the backlog holds", func(t *testing.T) {
			log := openOn(t, db)
			const replays = 5000 // a batch that is being written, a full backlog, and more
			var callers sync.WaitGroup
			err := db.InTx(t.Context(), func(tx database.Tx) error {
				if err := tx.Exec(lockEvents(kind)).Error; err != nil {
					return err
				}
				sent := make(chan struct{}, replays)
				for range 100 {
					callers.Go(func() {
						for range replays / 100 {
							log.Note(t.Context(), event(idempotency.Replayed))
							sent <- struct{}{}
						}
					})
				}
				for range 4000 { // as many go through as the backlog holds; the others wait, now or soon
					<-sent
				}
				return nil
			})
			callers.Wait()
			log.Close()
			if n := count(t, db); err != nil || n != replays {
				t.Errorf("%d events, want %d; error %v", n, replays, err)
			}
		})
		t.Run("writes a replay soon, though nothing follows", func(t *testing.T) {
			log := openOn(t, db)
			log.Note(t.Context(), event(idempotency.Replayed))
			for end := time.Now().Add(10 * time.Second); count(t, db) == 0; {
				if time.Now().After(end) {
					t.Fatal("not written within 10 s")
				}
			}
		})
	})
}

func TestClose(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		db := dbtest.OpenWith(t, kind, database.Options{LockTimeout: 20 * time.Second})
		t.Run("does not lose or trip over events that are noted meanwhile or later", func(t *testing.T) {
			log := openOn(t, db)
			const each = 20
			var callers sync.WaitGroup
			for _, eventType := range []idempotency.EventType{idempotency.Replayed, idempotency.Conflict} {
				for range 4 {
					callers.Go(func() {
						for range each {
							log.Note(t.Context(), event(eventType))
						}
					})
				}
			}
			log.Close()
			callers.Wait()
			if n := count(t, db); n != 8*each {
				t.Errorf("%d events, want %d", n, 8*each)
			}
		})
		t.Run("may be called again", func(t *testing.T) {
			log := openOn(t, db)
			log.Close()
			log.Close()
		})
		t.Run("leaves no goroutine behind", func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			db := dbtest.Open(t, kind)
			log := audit.Open(db)
			log.Note(t.Context(), event(idempotency.Replayed))
			log.Close()
			db.Close()
			goleak.VerifyNone(t, before)
		})
	})
}

func TestADatabaseThatFails(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		for _, eventType := range []idempotency.EventType{idempotency.Replayed, idempotency.Denied} {
			t.Run("is logged for "+string(eventType)+", without keys or who used them", func(t *testing.T) {
				logged := captureLog(t)
				db, log := open(t, kind, database.Options{})
				exec(t, db, "DROP TABLE events")
				log.Note(t.Context(), event(eventType))
				log.Close()
				text := logged()
				if !strings.Contains(text, "events not written") || !strings.Contains(text, "count=1") {
					t.Errorf("logged %q, want that 1 event was not written", text)
				}
				for _, secret := range []string{full.KeyHash, "secret-key", "demo-agent", "v1:ab"} {
					if strings.Contains(text, secret) {
						t.Errorf("the log holds %q: %s", secret, text)
					}
				}
			})
		}
		t.Run("and is closed already, when the last attempts end, is logged and no panic", func(t *testing.T) {
			logged := captureLog(t)
			db, log := open(t, kind, database.Options{})
			log.Close()
			db.Close()
			log.Note(t.Context(), event(idempotency.Replayed))
			log.Note(t.Context(), event(idempotency.Denied))
			if n := strings.Count(logged(), "events not written"); n != 2 {
				t.Errorf("%d lines, want 2", n)
			}
		})
	})
}

// PostgreSQL keeps every text that a connection has prepared, and pgx prepares them all: a text for each number of events
// would come to hundreds of megabytes.
func TestFewStatementsServeEveryNumberOfEvents(t *testing.T) {
	db, log := open(t, database.Postgres, database.Options{MaxConns: 1})
	want := 0
	for n := range 34 {
		want += n
		if err := db.InTx(t.Context(), func(tx database.Tx) error { return log.Record(tx, slices.Repeat([]idempotency.Event{full}, n)...) }); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, db); n != want {
		t.Errorf("%d events, want %d", n, want)
	}
	var statements int
	err := db.Read(t.Context()).Raw("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'INSERT%'").Scan(&statements).Error
	if err != nil || statements > 2*6 { // of events and of their markers
		t.Errorf("%d statements prepared, want at most 12; error %v", statements, err)
	}
}

// lockEvents is a statement that keeps others from writing events for as long as its transaction is open.
func lockEvents(kind database.Kind) string {
	if kind == database.Postgres {
		return "LOCK TABLE events IN SHARE MODE"
	}
	return "DELETE FROM events" // whoever writes at all is the only writer
}

func open(t testing.TB, kind database.Kind, options database.Options) (*database.DB, *audit.Log) {
	t.Helper()
	db := dbtest.OpenWith(t, kind, options)
	return db, openOn(t, db)
}

// openOn opens a log on a database that other tests have used, after emptying it.
func openOn(t testing.TB, db *database.DB) *audit.Log {
	t.Helper()
	dbtest.Unprotect(t, db)
	exec(t, db, "DELETE FROM events")
	exec(t, db, "DELETE FROM markers")
	log := audit.Open(db)
	t.Cleanup(log.Close)
	return log
}

func count(t testing.TB, db *database.DB) (n int) {
	t.Helper()
	if err := db.Read(t.Context()).Raw("SELECT count(*) FROM events").Scan(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}

func exec(t testing.TB, db *database.DB, statement string) {
	t.Helper()
	if _, err := db.SQL().ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// captureLog collects what is logged until the end of the test; what it returns tells it.
func captureLog(t *testing.T) func() string {
	t.Helper()
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	var mu sync.Mutex
	var text bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(lockedWriter{&mu, &text}, nil)))
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}

type lockedWriter struct {
	mu   *sync.Mutex
	text *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}
