// Package servertest runs a service for its tests the way its callers meet it: on a port of its own, through real connections,
// and held to its own OpenAPI document. Every exchange that goes through a [Client] is checked against it; see [Server.Exchange].
// What a client has sent of tokens, keys and bodies must be told nowhere; see [Secrets].
package servertest

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
)

// Service is what is served: one of the services, or a server.Server with routes of a test.
type Service interface {
	Listen(ctx context.Context) error
	Addr() string
	Serve(ctx context.Context) error
}

// Server is a service that answers until its test ends.
type Server struct {
	URL string // http://127.0.0.1:…

	// Stop ends the service as SIGTERM does and returns what Serve returned; again, the same.
	Stop func() error

	client   *http.Client
	secrets  *Secrets
	document *document // nil: undocumented
}

// Start serves until the test ends, and fails it if the service does not leave in peace. The document at /openapi.json is what
// exchanges are checked against, and must be a valid one. The service must log to the secrets' log.
func Start(t testing.TB, service Service, secrets *Secrets) *Server {
	t.Helper()
	s := StartUndocumented(t, service, secrets)
	answer := s.get(t, "/openapi.json")
	var err error
	if s.document, err = documentOf(answer); err != nil {
		t.Fatalf("read /openapi.json: %v", err)
	}
	return s
}

// StartUndocumented is Start for routes that only a test has, and that no document describes.
func StartUndocumented(t testing.TB, service Service, secrets *Secrets) *Server {
	t.Helper()
	if err := service.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- service.Serve(ctx) }()

	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}
	s := &Server{
		URL:    "http://" + service.Addr(),
		Stop:   sync.OnceValue(func() error { cancel(); return <-served }),
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},

		secrets: secrets,
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := s.Stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
		if secrets.Logged() == "" { // it would have said where it listens
			t.Error("the service logs somewhere else than to the secrets' log")
		}
	})
	return s
}

// As is a client that shows the Token of a principal; without one it shows none.
func (s *Server) As(principal string) Client {
	if principal == "" {
		return Client{s, ""}
	}
	return s.With(Token(principal))
}

// With is a client that shows this token.
func (s *Server) With(token string) Client { return Client{s, token} }

func (s *Server) get(t testing.TB, path string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d %s, %v", path, response.StatusCode, body, err)
	}
	return body
}
