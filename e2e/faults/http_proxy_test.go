package faults_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/e2e/faults"
)

// counter is a service that answers each request with its number.
type counter struct {
	mu     sync.Mutex
	bodies []string
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies = append(c.bodies, r.Header.Get("Idempotency-Key")+" "+string(body))
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "answer %d", len(c.bodies))
}

func (c *counter) received() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bodies
}

func TestHTTPProxy(t *testing.T) {
	a, b := &counter{}, &counter{}
	serverA, serverB := httptest.NewServer(a), httptest.NewServer(b)
	defer serverA.Close()
	defer serverB.Close()
	proxy, err := faults.NewHTTPProxy(serverA.URL, serverB.URL)
	must(t, err)
	defer proxy.Close()

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	post := func(body string) string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL()+"/v1/tickets", strings.NewReader(body))
		must(t, err)
		request.Header.Set("Idempotency-Key", "k")
		response, err := client.Do(request)
		if err != nil {
			return "no answer"
		}
		defer response.Body.Close()
		received, err := io.ReadAll(response.Body)
		must(t, err)
		return fmt.Sprint(response.StatusCode, " ", string(received))
	}

	proxy.Next(faults.LoseRequest, faults.LoseAnswer)
	got := []string{post("lost"), post("answered in vain"), post("passed")}
	proxy.Next(faults.Resend)
	got = append(got, post("sent to both"))

	if diff := cmp.Diff([]string{"no answer", "no answer", "201 answer 2", "201 answer 3"}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"k answered in vain", "k passed", "k sent to both"}, a.received()); diff != "" {
		t.Errorf("requests at the first target (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"k sent to both"}, b.received()); diff != "" {
		t.Errorf("requests at the second target (-want +got):\n%s", diff)
	}
	var lost []string
	for _, answer := range proxy.Lost() {
		lost = append(lost, string(answer.Body))
	}
	if diff := cmp.Diff([]string{"answer 1", "answer 1"}, lost); diff != "" {
		t.Errorf("lost answers (-want +got):\n%s", diff)
	}
	if proxy.Fired() != 3 {
		t.Errorf("%d faults, want 3", proxy.Fired())
	}
}

func TestHTTPProxyHoldsRequests(t *testing.T) {
	service := &counter{}
	server := httptest.NewServer(service)
	defer server.Close()
	proxy, err := faults.NewHTTPProxy(server.URL)
	must(t, err)
	defer proxy.Close()

	// post sends a request whose caller gives up as soon as it stands at the proxy.
	post := func(body string) {
		ctx, giveUp := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, proxy.URL(), strings.NewReader(body))
		must(t, err)
		proxy.Next(faults.HoldRequest)
		gone := make(chan error, 1)
		go func() {
			response, err := http.DefaultClient.Do(request)
			if err == nil {
				response.Body.Close()
			}
			gone <- err
		}()
		for proxy.Held() == 0 {
			<-time.After(time.Millisecond)
		}
		giveUp()
		if err := <-gone; err == nil {
			t.Fatalf("%q was answered while it was held", body)
		}
	}
	post("lost")
	proxy.Drop()
	post("late")
	if got := service.received(); len(got) > 0 {
		t.Fatalf("the service has received %q while they were held", got)
	}
	proxy.Deliver()
	if diff := cmp.Diff([]string{" late"}, service.received()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if lost := proxy.Lost(); len(lost) != 1 || string(lost[0].Body) != "answer 1" || proxy.Fired() != 2 || proxy.Held() != 0 {
		t.Errorf("lost answers %v, %d faults, %d held, want one answer, 2 and 0", lost, proxy.Fired(), proxy.Held())
	}
}
