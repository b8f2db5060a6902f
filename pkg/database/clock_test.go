package database_test

import (
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// near is how far a measured clock may be off on a machine that is busy with tests.
const near = 100 * time.Millisecond

func TestNow(t *testing.T) {
	t.Run("is PostgreSQL's clock, however wrong ours is", func(t *testing.T) {
		home := dbtest.URL(t, database.Postgres)
		admin := dbtest.Connect(t, home, database.Options{})
		exec(t, admin, "CREATE SCHEMA elsewhere")
		// Found before PostgreSQL's own, for who asks for that search path: one machine whose clock is off by 90 s.
		exec(t, admin, `CREATE FUNCTION elsewhere.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
			AS $$ SELECT pg_catalog.clock_timestamp() - interval '90 seconds' $$`)
		db := dbtest.Connect(t, home+"&search_path=elsewhere,public,pg_catalog", database.Options{})
		if off := time.Since(db.Now()) - 90*time.Second; off.Abs() > near {
			t.Errorf("off by %v", off)
		}
		err := db.InTx(t.Context(), func(tx database.Tx) error {
			if off := time.Since(tx.Now) - 90*time.Second; off.Abs() > near {
				t.Errorf("in a transaction: off by %v", off)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	t.Run("is not off by the time that connecting took", func(t *testing.T) {
		db := dbtest.Connect(t, behindSlowDoor(t, dbtest.URL(t, database.Postgres), 4*near), database.Options{})
		if off := time.Since(db.Now()); off.Abs() > near {
			t.Errorf("off by %v", off)
		}
	})
	t.Run("is not off by the wait for a connection of a pool that is used up", func(t *testing.T) {
		db := dbtest.OpenWith(t, database.Postgres, database.Options{MaxConns: 1})
		conn, err := db.SQL().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(4*near, func() { conn.Close() })
		now, err := database.ReadClock(t.Context(), db)
		if off := time.Since(now); err != nil || off.Abs() > near {
			t.Errorf("off by %v, error %v", off, err)
		}
	})
	t.Run("is the injected clock where there is one, in UTC and whole microseconds", func(t *testing.T) {
		dbtest.Each(t, func(t *testing.T, kind database.Kind) {
			at := time.Date(2031, 5, 6, 7, 8, 9, 123_456_789, time.FixedZone("", 3600))
			db := dbtest.OpenWith(t, kind, database.Options{Clock: func() time.Time { return at }})
			if got, want := db.Now(), time.Date(2031, 5, 6, 6, 8, 9, 123_456_000, time.UTC); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	})
}

// behindSlowDoor is the same database, each connection to which takes a while to be made.
func behindSlowDoor(t *testing.T, database string, delay time.Duration) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			time.AfterFunc(delay, func() {
				defer client.Close()
				backend, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer backend.Close()
				go io.Copy(backend, client) //nolint:errcheck // ends with the connection
				io.Copy(client, backend)    //nolint:errcheck // ends with the connection
			})
		}
	}()
	u.Host = listener.Addr().String()
	return u.String()
}
