package main

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/einmal/einmal/e2e/harness"
)

const (
	// lookEvery is how often the agents look for tickets that are new.
	lookEvery = time.Second

	// tryAgain is how long a request waits that got no final answer.
	tryAgain = 200 * time.Millisecond
)

// agents comment on every ticket once, and take every other one in hand, if it is still as they have seen it. They repeat each request until it has its answer, and
// then once more.
type agents struct {
	base string

	mu        sync.Mutex
	commented map[string]bool // by ticket
}

func newAgents(base string) *agents { return &agents{base: base, commented: map[string]bool{}} }

// done is how many tickets were commented on.
func (a *agents) done() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.commented)
}

func (a *agents) work(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		for _, id := range a.fresh(ctx) {
			if a.done()%2 == 0 {
				a.insist(ctx, http.MethodPut, "/v1/tickets/"+id+"/status", "take-"+id, `{"status":"in_progress","expected_version":1}`)
			}
			if a.insist(ctx, http.MethodPost, "/v1/tickets/"+id+"/comments", "comment-"+id, `{"body":"Looking at it."}`) {
				a.mu.Lock()
				a.commented[id] = true
				a.mu.Unlock()
			}
		}
	}
}

// fresh are the newest tickets that were not commented on, up to where one was.
func (a *agents) fresh(ctx context.Context) (ids []string) {
	for cursor := ""; ; {
		answer := harness.Do(ctx, harness.Call{Base: a.base, Method: http.MethodGet, Path: "/v1/tickets?limit=200" + cursor, Token: agent})
		var page struct {
			Items      []struct{ ID string }
			NextCursor string `json:"next_cursor"`
		}
		if answer.Err != nil || json.Unmarshal(answer.Body, &page) != nil {
			return ids // the service is away; the next look finds them
		}
		known := 0
		for _, item := range page.Items {
			a.mu.Lock()
			seen := a.commented[item.ID]
			a.mu.Unlock()
			if seen {
				known++
			} else {
				ids = append(ids, item.ID)
			}
		}
		if known == len(page.Items) || page.NextCursor == "" {
			return ids
		}
		cursor = "&cursor=" + page.NextCursor
	}
}

// insist sends a request until it is answered for good, and once more, as a caller does who did not hear. It reports whether it was answered.
func (a *agents) insist(ctx context.Context, method, path, key, body string) bool {
	answered := 0
	for ctx.Err() == nil {
		answer := harness.Do(ctx, harness.Call{Base: a.base, Method: method, Path: path, Token: agent, Key: key, Body: body})
		if answer.Err == nil && answer.Status < http.StatusInternalServerError && answer.Text("code") != "operation-in-progress" {
			if answered++; answered == 2 {
				return true
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(tryAgain):
		}
	}
	return false
}
