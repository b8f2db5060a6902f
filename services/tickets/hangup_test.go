package tickets_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// hangUp sends the beginning of a creation, or all of it, and closes the connection without reading.
func (r running) hangUp(t *testing.T, key, body string, sent int) (conn net.Conn) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	request := fmt.Sprintf("POST /v1/tickets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer demo-agent\r\nContent-Type: application/json\r\n%s\r\nContent-Length: %d\r\n\r\n%s", key, len(body), body)
	if sent < 0 {
		sent += len(request) + 1 // -1: all
	}
	if _, err := conn.Write([]byte(request[:sent])); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestACallerThatHangsUp(t *testing.T) {
	const body = `{"project":"ops","title":"t"}`

	t.Run("in the middle of the work leaves all of it", func(t *testing.T) {
		dbtest.Each(t, func(t *testing.T, kind database.Kind) {
			url := dbtest.URL(t, kind)
			s := startOn(t, dbtest.Connect(t, url, database.Options{LockTimeout: time.Minute}))
			holder := dbtest.Connect(t, url, database.Options{})
			if err := holder.InTx(t.Context(), func(tx database.Tx) error {
				if err := lockTickets(tx, kind); err != nil {
					return err
				}
				caller := s.hangUp(t, key("k"), body, -1)
				s.waitForRequests(t, 1)
				return caller.Close()
			}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for s.agent().Send(t, "GET", "/v1/operations", "", key("k")).Status != 200 { // nobody repeats it
				if ctx.Err() != nil {
					t.Fatal("the work was not finished")
				}
			}
			if n := s.count(t, "tickets"); n != 1 {
				t.Errorf("%d tickets", n)
			}
			s.healthy(t)
		})
	})

	t.Run("at any byte leaves nothing or all, and its retry is safe", func(t *testing.T) {
		dbtest.Each(t, func(t *testing.T, kind database.Kind) {
			s := start(t, kind)
			cuts := []int{1, 20, 60, 100, 150, -2, -20, -1, -1, -1}
			for i, cut := range cuts {
				s.hangUp(t, key("k%d", i), body, cut).Close()
			}
			for i := range cuts {
				first := create(t, s.agent(), key("k%d", i), body)
				again := create(t, s.agent(), key("k%d", i), body)
				if first.Status != 201 || again.Outcome() != "replayed" || string(again.Body) != string(first.Body) {
					t.Errorf("cut %d: %s, %s", cuts[i], first, again)
				}
			}
			if n := s.count(t, "tickets"); n != int64(len(cuts)) {
				t.Errorf("%d tickets of %d keys", n, len(cuts))
			}
			s.healthy(t)
		})
	})
}
