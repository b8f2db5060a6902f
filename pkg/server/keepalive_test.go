package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/server"
)

// RB-107: slow and fast requests take turns on a few connections, and slow ones end well, end badly, panic, or are given up
// by their callers. Whatever happens, an answer belongs to the request it is the answer to.
func TestAnswersBelongToTheirRequests(t *testing.T) {
	const callers, rounds = 4, 200
	const (
		endsWell = iota
		isLong   // too long for net/http's buffer: it leaves while the handler runs
		isAbandoned
		fails
		panics
		endings
	)
	entered := map[string]chan struct{}{}
	release := map[string]chan struct{}{}
	for caller := range callers {
		for round := range rounds {
			id := fmt.Sprintf("slow-%d-%d", caller, round)
			entered[id], release[id] = make(chan struct{}), make(chan struct{})
		}
	}
	ending := func(id string) int {
		var caller, round int
		if _, err := fmt.Sscanf(id, "slow-%d-%d", &caller, &round); err != nil {
			panic(err) // made above
		}
		return (caller + round) % endings
	}
	s := start(t, func(e *echo.Echo) {
		e.POST("/v1/slow", func(c echo.Context) error {
			id := server.RequestID(c)
			close(entered[id])
			<-release[id]
			switch ending(id) {
			case isLong:
				return c.String(http.StatusAccepted, strings.Repeat(id+" ", 5000))
			case fails:
				return fmt.Errorf("claim: %w", database.ErrBusy)
			case panics:
				panic(id)
			}
			return c.String(http.StatusAccepted, id+" ")
		}, mayWrite)
		e.GET("/v1/fast", func(c echo.Context) error { return c.String(http.StatusOK, server.RequestID(c)+" ") }, mayRead)
	})
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: callers + 2, MaxIdleConnsPerHost: callers + 2}}
	defer client.CloseIdleConnections()

	fast := func(id string) {
		a, err := s.try(t.Context(), client, "GET", "/v1/fast", asAgent, "X-Request-Id: "+id)
		if err != nil || a.status != 200 || a.header.Get("X-Request-Id") != id || a.body != id+" " {
			t.Errorf("%s: %d %q of %q: %v", id, a.status, a.body, a.header.Get("X-Request-Id"), err)
		}
	}
	slow := func(ctx context.Context, id string) {
		a, err := s.try(ctx, client, "POST", "/v1/slow", asAgent, "X-Request-Id: "+id)
		want := map[int]int{endsWell: 202, isLong: 202, fails: 503, panics: 500}[ending(id)]
		switch {
		case ending(id) == isAbandoned:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: abandoned, and yet %d %q: %v", id, a.status, a.body, err)
			}
		case err != nil || a.status != want || a.header.Get("X-Request-Id") != id:
			t.Errorf("%s: %d of %q, want %d: %v", id, a.status, a.header.Get("X-Request-Id"), want, err)
		case want == 202 && strings.ReplaceAll(a.body, id+" ", "") != "":
			t.Errorf("%s: somebody else's words: %q", id, a.body)
		case want != 202 && strings.Contains(a.body, "slow-") || want == 202 && a.body == "":
			t.Errorf("%s: %q", id, a.body)
		}
	}

	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for round := range rounds {
				id := fmt.Sprintf("slow-%d-%d", caller, round)
				ctx, hangUp := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); slow(ctx, id) }()
				<-entered[id]
				fast(fmt.Sprintf("fast-%d-%d-before", caller, round))
				if ending(id) == isAbandoned {
					hangUp()
					<-done
					fast(fmt.Sprintf("fast-%d-%d-abandoned", caller, round))
				}
				close(release[id])
				<-done
				fast(fmt.Sprintf("fast-%d-%d-after", caller, round))
				hangUp()
			}
		})
	}
	all.Wait()
}
