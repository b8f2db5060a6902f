package faults_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/einmal/einmal/e2e/faults"
)

func TestClosedDoor(t *testing.T) {
	service := &counter{}
	server := httptest.NewServer(service)
	defer server.Close()
	door, err := faults.NewClosedDoor(strings.TrimPrefix(server.URL, "http://"))
	must(t, err)
	defer door.Close()

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	post := func(ctx context.Context) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, door.URL(), strings.NewReader("body"))
		must(t, err)
		response, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		return string(answer), err
	}

	// Longer than a request takes, and shorter than the second after which a connection is tried again.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if answer, err := post(ctx); err == nil {
		t.Fatalf("a request came through the closed door: %q", answer)
	}
	if got := service.received(); len(got) > 0 || door.Came() > 0 {
		t.Fatalf("the service has received %q, want nothing", got)
	}
	door.Open()
	answer, err := post(t.Context())
	if err != nil || answer != "answer 1" {
		t.Fatalf("through the open door: got %q, %v, want the first answer", answer, err)
	}
	// The first caller's connection may be made as well, after it has given up.
	for since := time.Now(); door.Left() < door.Came() && time.Since(since) < 10*time.Second; {
		<-time.After(time.Millisecond)
	}
	if door.Came() < 1 || door.Left() != door.Came() {
		t.Fatalf("%d came and %d left, want one at least and as many", door.Came(), door.Left())
	}
}
