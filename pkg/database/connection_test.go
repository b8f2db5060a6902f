package database_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	neturl "net/url"
	"strings"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

func TestALostConnection(t *testing.T) {
	url := dbtest.URL(t, database.Postgres)
	admin := dbtest.Connect(t, url, database.Options{})
	for _, c := range []struct {
		name string
		work func(tx database.Tx) error
	}{
		{"before a statement", func(tx database.Tx) error {
			return errors.Join(terminate(tx, admin), tx.Exec(insertEvent, "1", tx.Now).Error)
		}},
		{"before a query", func(tx database.Tx) error {
			return errors.Join(terminate(tx, admin), tx.Raw("SELECT 1").Scan(new(int)).Error)
		}},
		{"before a query for one row", func(tx database.Tx) error {
			return errors.Join(terminate(tx, admin), tx.Raw("SELECT 1").Row().Scan(new(int)))
		}},
		{"before a statement whose failure is swallowed", func(tx database.Tx) error {
			err := terminate(tx, admin)
			_ = tx.Exec(insertEvent, "1", tx.Now)
			_ = tx.Exec(insertEvent, "2", tx.Now)
			return err
		}},
	} {
		t.Run(c.name+" means that nothing was committed", func(t *testing.T) {
			db := dbtest.Connect(t, url, database.Options{MaxConns: 1})
			if err := db.InTx(t.Context(), c.work); !errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrCommitUnknown) {
				t.Errorf("got %v, want ErrUnavailable", err)
			}
			if n := events(t, admin); n != 0 {
				t.Errorf("%d rows, want 0", n)
			}
			if err := db.Ping(t.Context()); err != nil {
				t.Errorf("the next use of the pool: %v", err)
			}
		})
	}
	for _, c := range []struct {
		name  string
		first func(tx database.Tx) error
	}{
		{"statement", func(tx database.Tx) error { return tx.Exec(insertEvent, "1", tx.Now).Error }},
		{"query", func(tx database.Tx) error { return tx.Raw("SELECT 1").Scan(new(int)).Error }},
		{"query for one row", func(tx database.Tx) error { return tx.Raw("SELECT 1").Row().Scan(new(int)) }},
		{"write at commit", func(tx database.Tx) error { return tx.AtCommit().Exec(insertEvent, "1", tx.Now).Error }},
	} {
		t.Run("that was idle is noticed by the first "+c.name, func(t *testing.T) {
			db := dbtest.Connect(t, url, database.Options{MaxConns: 1})
			err := db.InTx(t.Context(), func(tx database.Tx) error {
				// The connection is ours and idle: the transaction has not sent anything yet.
				exec(t, admin, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
				return c.first(tx)
			})
			if !errors.Is(err, database.ErrUnavailable) && !errors.Is(err, database.ErrCommitUnknown) {
				t.Errorf("got %v, want ErrUnavailable, or unknown where a COMMIT was under way", err)
			}
			if n := events(t, admin); n != 0 {
				t.Errorf("%d rows, want 0", n)
			}
		})
	}
	t.Run("to a session that was idle in its transaction for too long", func(t *testing.T) {
		db := dbtest.Connect(t, url+"&idle_in_transaction_session_timeout=50", database.Options{MaxConns: 1})
		err := db.InTx(t.Context(), func(tx database.Tx) error {
			var pid int
			if err := tx.Raw("SELECT pg_backend_pid()").Scan(&pid).Error; err != nil {
				return err
			}
			for n := 1; n > 0; {
				if err := admin.Read(t.Context()).Raw("SELECT count(*) FROM pg_stat_activity WHERE pid = ?", pid).Scan(&n).Error; err != nil {
					return err
				}
			}
			return tx.Exec(insertEvent, "1", tx.Now).Error
		})
		if !errors.Is(err, database.ErrUnavailable) || events(t, admin) != 0 {
			t.Errorf("got %v, want ErrUnavailable and no row", err)
		}
	})
}

// A machine that is gone does not refuse connections, it says nothing.
func TestOpenOfAServerThatSaysNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = database.Open(ctx, "postgres://"+listener.Addr().String()+"/x", database.Options{})
	if !errors.Is(err, database.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

func TestAPoolThatIsUsedUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		db := dbtest.OpenWith(t, kind, database.Options{MaxConns: 1})
		conn, err := db.SQL().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name string
			use  func(ctx context.Context) error
		}{
			{"a transaction", func(ctx context.Context) error { return db.InTx(ctx, func(database.Tx) error { return nil }) }},
			{"a read", func(ctx context.Context) error {
				return database.Classify(db.Read(ctx).Raw("SELECT 1").Scan(new(int)).Error)
			}},
			{"a ping", db.Ping},
		} {
			t.Run(c.name+" is busy as soon as its time is over", func(t *testing.T) {
				const patience = 50 * time.Millisecond
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- c.use(ctx) }()
				select {
				case err := <-ended:
					if !errors.Is(err, database.ErrBusy) {
						t.Errorf("got %v, want ErrBusy", err)
					}
				case <-time.After(20 * patience):
					t.Error("it still waits")
					conn.Close()
					<-ended
				}
			})
		}
		conn.Close()
	})
}

func TestALockIsAwaitedNoLongerThanTheContextLasts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		url := dbtest.URL(t, kind)
		one := dbtest.Connect(t, url, database.Options{})
		two := dbtest.Connect(t, url, database.Options{LockTimeout: 10 * time.Second})
		err := one.InTx(t.Context(), func(tx database.Tx) error {
			if err := tx.Exec(insertEvent, "1", tx.Now).Error; err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			start := time.Now()
			err := two.InTx(ctx, func(tx database.Tx) error { return tx.Exec(insertEvent, "1", tx.Now).Error })
			if !errors.Is(err, database.ErrBusy) || time.Since(start) > 5*time.Second {
				t.Errorf("got %v after %v, want ErrBusy at once", err, time.Since(start))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := two.InTx(t.Context(), func(tx database.Tx) error { return tx.Exec(insertEvent, "2", tx.Now).Error }); err != nil {
			t.Errorf("the next transaction: %v", err)
		}
	})
}

// A database that refuses is unavailable, for whichever reason: nothing was done, and nothing unforeseen has happened.
func TestADatabaseThatRefuses(t *testing.T) {
	for name, refuse := range map[string]string{
		"connections":           "ALTER DATABASE %s ALLOW_CONNECTIONS false",
		"writes":                "ALTER DATABASE %s SET default_transaction_read_only = on",
		"because it is renamed": "ALTER DATABASE %[1]s RENAME TO %[1]s_gone",
	} {
		t.Run(name+" is unavailable, and a ping says so", func(t *testing.T) {
			url := dbtest.URL(t, database.Postgres)
			u, err := neturl.Parse(url)
			if err != nil {
				t.Fatal(err)
			}
			target := strings.TrimPrefix(u.Path, "/")
			u.Path = "/postgres"
			db, admin := dbtest.Connect(t, url, database.Options{}), dbtest.Connect(t, u.String(), database.Options{})
			end := fmt.Sprintf("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s'", target)
			if strings.Contains(refuse, "RENAME") {
				defer func() { // so that it can be dropped by its name
					exec(t, admin, strings.ReplaceAll(end, target, target+"_gone"))
					exec(t, admin, fmt.Sprintf("ALTER DATABASE %[1]s_gone RENAME TO %[1]s", target))
				}()
			}
			if name == "because it is renamed" {
				exec(t, admin, end)
			}
			exec(t, admin, fmt.Sprintf(refuse, target))
			exec(t, admin, end)
			write := func() error {
				return db.InTx(t.Context(), func(tx database.Tx) error { return tx.Exec(insertEvent, "1", tx.Now).Error })
			}
			for range 3 { // the first may meet a connection that has died
				if err := write(); !errors.Is(err, database.ErrUnavailable) {
					t.Errorf("a write: %v, want ErrUnavailable", err)
				}
			}
			if err := db.Ping(t.Context()); !errors.Is(err, database.ErrUnavailable) {
				t.Errorf("a ping: %v, want ErrUnavailable", err)
			}
		})
	}
}
