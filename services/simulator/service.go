package simulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
)

// Name is the simulator's name in logs and of its migrations.
const Name = "simulator"

// readHeaderTimeout ends connections on which no request comes. Bodies have no limit of time: slow callers exist outside.
const readHeaderTimeout = 10 * time.Second

// Deps is what the simulator is given.
type Deps struct {
	DB  *database.DB // migrated, or to be: /readyz says so. The caller closes it after Serve.
	Log *slog.Logger
}

// Service is the simulator.
type Service struct {
	config     Config
	db         *database.DB
	log        *slog.Logger
	tokens     tokens
	inProgress inProgress
	batches    batches
	webhooks   *webhooks
	http       *http.Server
	listener   net.Listener
	stopping   chan struct{} // closed when no more work is begun: what hangs or waits ends
}

// New puts the simulator together. An error says which setting is wrong.
func New(config Config, deps Deps) (*Service, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("configure %s: %w", Name, err)
	}
	log := deps.Log.With(slog.String("service", Name))
	s := &Service{
		config: config, db: deps.DB, log: log, tokens: newTokens(config),
		inProgress: inProgress{keys: map[[2]string]bool{}}, stopping: make(chan struct{}),
		batches: batches{db: deps.DB, jobs: make(chan job), quit: make(chan struct{})},
	}
	s.webhooks = newWebhooks(&s.batches, log, config)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("/", routeNotFound)
	s.controlRoutes(mux)
	s.deskRoutes(mux)
	s.pspRoutes(mux)
	s.clusterRoutes(mux)
	s.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: readHeaderTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return s, nil
}

// Listen takes the address, so that Addr is known before Serve.
func (s *Service) Listen(ctx context.Context) error {
	var network net.ListenConfig
	listener, err := network.Listen(ctx, "tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("listen for %s on %s %s: %w", Name, s.config.listenSetting(), s.config.Listen, err)
	}
	s.listener = listener
	return nil
}

// Addr is the address that Listen took.
func (s *Service) Addr() string { return s.listener.Addr().String() }

// Serve answers until ctx ends, and then drains: requests that hang or are delayed end without an answer, the others are
// finished.
func (s *Service) Serve(ctx context.Context) error {
	var work sync.WaitGroup
	work.Go(s.batches.run)
	defer work.Wait()
	defer close(s.batches.quit)
	delivering, end := context.WithCancel(ctx)
	defer end()
	work.Go(func() { s.webhooks.run(delivering) })

	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	s.log.LogAttrs(ctx, slog.LevelInfo, "listening", slog.String("address", s.Addr()))

	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", Name, err)
	case <-ctx.Done():
	}
	close(s.stopping)
	s.log.LogAttrs(ctx, slog.LevelInfo, "draining")
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.ShutdownGrace)
	defer cancel()
	if err := s.http.Shutdown(grace); err != nil {
		return errors.Join(fmt.Errorf("shut down %s: requests did not end within %s and were cut: %w", Name, s.config.ShutdownGrace, err), s.http.Close())
	}
	<-served // it has closed the listener
	return nil
}

// healthz says that the process lives.
func (s *Service) healthz(w http.ResponseWriter, _ *http.Request) {
	Answer{Status: http.StatusOK, Body: []byte(`{"status":"ok"}`)}.write(w)
}

// readyz says whether requests can be served: not without the database, not before it is migrated, not while draining.
func (s *Service) readyz(w http.ResponseWriter, r *http.Request) {
	select {
	case <-s.stopping:
		Answer{Status: http.StatusServiceUnavailable, Body: []byte(`{"status":"draining"}`)}.write(w)
		return
	default:
	}
	if err := errors.Join(s.db.Ping(r.Context()), migrations.Complete(r.Context(), s.db, Name)); err != nil {
		s.log.LogAttrs(r.Context(), slog.LevelWarn, "not ready", slog.String("error", err.Error()))
		Answer{Status: http.StatusServiceUnavailable, Body: []byte(`{"status":"not ready"}`)}.write(w)
		return
	}
	Answer{Status: http.StatusOK, Body: []byte(`{"status":"ready"}`)}.write(w)
}

func routeNotFound(w http.ResponseWriter, r *http.Request) {
	turnedAway(http.StatusNotFound, codeRouteNotFound, "There is no route "+r.Method+" "+r.URL.Path+".").write(w)
}
