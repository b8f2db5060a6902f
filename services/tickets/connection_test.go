package tickets_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/services/tickets"
)

// RB-107: slow and fast requests share connections, and each gets its own answer.
func TestAnswersAreNeverMixed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		url := dbtest.URL(t, kind)
		s := startOn(t, dbtest.Connect(t, url, database.Options{LockTimeout: time.Minute}), func(c *tickets.Config) { c.WaitBudget = 10 * time.Millisecond })
		holder := dbtest.Connect(t, url, database.Options{})

		const slow, rounds = 6, 6
		var callers sync.WaitGroup
		mine := func(i, round int) (title, id string) {
			return fmt.Sprintf("title %d.%d", i, round), fmt.Sprintf("request-%d.%d", i, round)
		}
		writes := func(i int, round int) {
			title, id := mine(i, round)
			a := s.agent().Send(t, "POST", "/v1/tickets", `{"project":"ops","title":"`+title+`"}`, key("k%d.%d", i, round), "X-Request-Id: "+id)
			if got := ticketOf(t, a); a.Status != 201 || got.Title != title || a.Header.Get("X-Request-Id") != id {
				t.Errorf("%s, %s was answered %v %s", id, title, a.Header, a)
			}
		}
		err := holder.InTx(t.Context(), func(tx database.Tx) error {
			if err := lockTickets(tx, kind); err != nil {
				return err
			}
			for i := range slow {
				callers.Go(func() { writes(i, 0) }) // each waits until the lock is free
			}
			s.waitForRequests(t, slow)
			for round := range rounds {
				title, id := mine(0, 0)
				again := s.agent().Send(t, "POST", "/v1/tickets", `{"project":"ops","title":"`+title+`"}`, key("k0.0"), "X-Request-Id: again-"+id)
				expect(t, "a retry of a slow one", again, 409, problem.OperationInProgress)
				live := s.agent().Send(t, "GET", "/healthz", "", fmt.Sprintf("X-Request-Id: live-%d", round))
				if strings.TrimSpace(string(live.Body)) != `{"status":"ok"}` || live.Header.Get("X-Request-Id") != fmt.Sprintf("live-%d", round) {
					t.Errorf("healthz was answered %v %s", live.Header, live)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		callers.Wait()
		for i := range slow {
			callers.Go(func() {
				for round := 1; round <= rounds; round++ {
					writes(i, round)
					s.agent().Send(t, "GET", "/healthz", "")
				}
			})
		}
		callers.Wait()
		if n := s.count(t, "tickets"); n != slow*(rounds+1) {
			t.Errorf("%d tickets", n)
		}
		s.healthy(t)
	})
}

// lockTickets makes writers wait until tx ends. On SQLite, whoever writes has done so already.
func lockTickets(tx database.Tx, kind database.Kind) error {
	if kind == database.SQLite {
		return nil
	}
	return tx.Exec("LOCK TABLE tickets IN EXCLUSIVE MODE").Error
}

// waitForRequests waits until n requests are being answered, beside the one that asks.
func (r running) waitForRequests(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for want := fmt.Sprintf("einmal_http_requests_in_flight{service=%q} %d\n", "tickets", n+1); ; {
		response, err := http.Get(r.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || ctx.Err() != nil {
			t.Fatalf("waiting for %s: %v", want, err)
		}
		if strings.Contains(string(text), want) {
			return
		}
	}
}

func TestOddRequests(t *testing.T) {
	s := start(t, database.SQLite)
	const body = `{"project":"ops","title":"t"}`

	t.Run("are answered as HTTP has it", func(t *testing.T) {
		agent := s.agent()
		expect(t, "an empty body", agent.Send(t, "POST", "/v1/tickets", "", key("k"), "Content-Type: application/json"), 400, problem.MalformedBody)
		expect(t, "no body, no type", agent.Send(t, "POST", "/v1/tickets", "", key("k")), 415, problem.UnsupportedMediaType)
		for _, method := range []string{"PUT", "PATCH", "DELETE", "TRACE", "BREW", "get"} {
			a := agent.Send(t, method, "/v1/tickets", body, key("k"))
			expect(t, method, a, 405, problem.MethodNotAllowed)
			if a.Header.Get("Allow") == "" {
				t.Errorf("%s: no Allow", method)
			}
		}
		for _, path := range []string{"/", "/v1", "/v1/tickets/", "/v1//tickets", "/v1/tickets/1/2", "/v1/tickets;x", "/V1/tickets", "/%ff"} {
			expect(t, path, agent.Send(t, "POST", path, body, key("k")), 404, problem.RouteNotFound)
		}
		if a := agent.Send(t, "OPTIONS", "/v1/tickets", ""); a.Status != 204 || !strings.Contains(a.Header.Get("Allow"), "POST") {
			t.Errorf("OPTIONS: %s %v", a, a.Header)
		}
		for _, path := range []string{"/v1/tickets", "/v1/operations", "/readyz", "/docs", "/openapi.json"} {
			if a := agent.Send(t, "HEAD", path, ""); a.Status != 200 || len(a.Body) > 0 {
				t.Errorf("HEAD %s: %s", path, a)
			}
		}
		if n := s.count(t, "operations"); n != 0 {
			t.Errorf("%d operations", n)
		}
	})

	t.Run("in chunks are as good as others", func(t *testing.T) {
		request, err := s.agent().Request(t, "POST", "/v1/tickets", io.MultiReader(strings.NewReader(body[:5]), strings.NewReader(body[5:])), key("chunks"))
		if err != nil {
			t.Fatal(err)
		}
		if a, err := s.Exchange(t, request); err != nil || a.Status != 201 {
			t.Errorf("%s, %v", a, err)
		}
	})

	t.Run("do not disturb those behind them on the connection", func(t *testing.T) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		head := "POST /v1/tickets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer demo-agent\r\nContent-Type: application/json\r\n"
		for _, request := range []string{
			fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body),                                                 // no key: 400, body unread
			fmt.Sprintf("%sIdempotency-Key: p\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", head, len(body), body), // 415, body unread
			fmt.Sprintf("%sIdempotency-Key: p\r\nContent-Length: %d\r\n\r\n%s", head, len(body), body),                           // 201
			"GET /v1/tickets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer demo-agent\r\n\r\n",
		} {
			fmt.Fprint(conn, request)
		}
		reader := bufio.NewReader(conn)
		for _, want := range []int{400, 415, 201, 200} {
			response, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatalf("want %d: %v", want, err)
			}
			text, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("%d %s, want %d", response.StatusCode, text, want)
			}
		}
	})
	s.healthy(t)
}
