package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/einmal/einmal/pkg/idempotency"
)

// The limits of a connection. They are no settings: nothing about a deployment makes other values right.
const (
	// A client sends its headers at once; whoever trickles them is not one.
	readHeaderTimeout = 5 * time.Second

	// A whole request. 1 MiB of body arrives in this time at 35 kB/s. It does not run while a handler works: net/http ends
	// it with the body.
	readTimeout = 30 * time.Second

	// How long a handler may take on purpose: `Prefer: wait=30`, the wait budget, and some work.
	longestAnswer = 50 * time.Second

	// From the end of the headers to the end of the answer: it must hold the body and the longest answer, and leave a slow
	// reader some time. When it passes, the connection is cut without an answer.
	writeTimeout = readTimeout + longestAnswer + 10*time.Second

	// Longer than the minute after which common load balancers drop an idle connection: if we closed first, a write could
	// meet the closing and leave its sender in doubt.
	idleTimeout = 2 * time.Minute

	// Room for keys and tokens far beyond the limits, so that they are refused by name (400, 401) and not by size (431).
	maxHeaderBytes = 64 << 10
)

// Service is what a service brings with it.
type Service struct {
	Name   string // in logs and metrics
	Log    *slog.Logger
	Checks []Check // what /readyz asks

	// Paths that need no bearer token, because their callers prove themselves otherwise, as by a signature. They are not
	// limited by account either.
	Public []string

	// LongestAnswer is how long a handler may take on purpose, `Prefer: wait` included. New refuses what the connection's
	// time-outs would cut.
	LongestAnswer time.Duration
}

// Server is the HTTP side of one service. Several can live in one process: none has global state.
type Server struct {
	service    Service
	config     Config
	echo       *echo.Echo
	http       *http.Server
	listener   unreadListener
	identities identities
	demo       bool
	limits     limits
	denials    limits // of events about refused attempts
	noteDenied func(ctx context.Context, e idempotency.Event)
	metrics    metrics
	registry   *prometheus.Registry
	inFlight   atomic.Int64
	draining   atomic.Bool
	leaving    chan struct{}
}

// New returns a server that answers health, metrics and problem pages. The service adds its routes to Echo(), then calls
// Run. An error says which setting is wrong and what to set.
func New(config Config, service Service) (*Server, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("configure %s: %w", service.Name, err)
	}
	if service.LongestAnswer > longestAnswer {
		return nil, fmt.Errorf("configure %s: answers may take %s, a connection allows %s; lower EINMAL_WAIT_BUDGET", service.Name, service.LongestAnswer, longestAnswer)
	}
	known, demo, err := configuredIdentities(config)
	if err != nil {
		return nil, fmt.Errorf("configure %s: %w", service.Name, err)
	}
	s := &Server{
		service:    service,
		config:     config,
		echo:       echo.New(),
		identities: known,
		demo:       demo,
		limits:     newLimits(config, known),
		denials:    newDenials(known),
		registry:   prometheus.NewRegistry(),
		leaving:    make(chan struct{}),
	}
	s.metrics = newMetrics(s.registry, service.Name, &s.inFlight)
	s.echo.Pre(s.observe, s.authenticate)
	s.echo.Use(s.route)
	s.addHealth()
	s.addProblemPages()
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(service.Log.Handler(), slog.LevelWarn),
	}
	return s, nil
}

// Leaving is closed when requests in progress must come to their end: who only waits is to be answered now.
func (s *Server) Leaving() <-chan struct{} { return s.leaving }

// Echo is where the service adds its routes, each with Require.
func (s *Server) Echo() *echo.Echo { return s.echo }

// Demo reports whether the published demo tokens are accepted.
func (s *Server) Demo() bool { return s.demo }

// Registry is where the service adds its own metrics.
func (s *Server) Registry() *prometheus.Registry { return s.registry }

// Routes lists every route as "METHOD /path", for catalogue.CheckRoutes.
func (s *Server) Routes() []string {
	var all []string
	for _, r := range s.echo.Routes() {
		if r.Method != echo.RouteNotFound { // not a method, but how echo notes a handler for unknown paths
			all = append(all, r.Method+" "+r.Path)
		}
	}
	return all
}

// ServeHTTP answers one request. HEAD is GET without its body, which net/http leaves out.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		get := *r // a copy, since net/http looks at the original to see what it must leave out
		get.Method = http.MethodGet
		r = &get
	}
	s.echo.ServeHTTP(w, r)
}
