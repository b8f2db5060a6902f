package tickets

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/server"
)

// Name is the service's name in logs, metrics, the catalogue and the migrations.
const Name = "tickets"

//go:embed openapi.yaml
var openAPI []byte

// Deps is what the service is given.
type Deps struct {
	DB  *database.DB // migrated, or to be: /readyz says so. The caller closes it after Run.
	Log *slog.Logger
}

// Service is the tickets service.
type Service struct {
	server *server.Server
	events *audit.Log
}

// New puts the service together. An error says which setting is wrong.
func New(config Config, deps Deps) (*Service, error) {
	if err := config.Settings.Validate(); err != nil {
		return nil, fmt.Errorf("configure %s: %w", Name, err)
	}
	srv, err := server.New(config.Config, server.Service{
		Name: Name, Log: deps.Log, LongestAnswer: config.WaitBudget,
		Checks: []server.Check{
			{Name: "database", Run: deps.DB.Ping},
			{Name: "migrations", Run: func(ctx context.Context) error { return migrated(ctx, deps.DB) }},
		},
	})
	if err != nil {
		return nil, err
	}
	events := audit.Open(deps.DB)
	exec := idempotency.New(deps.DB, idempotency.Options{
		WaitBudget: config.WaitBudget, ResponseRetention: config.ResponseRetention,
		Record: events.Record, Note: events.Note,
	})
	s := &Service{server: srv, events: events}
	tickets := store{deps.DB}
	if err := s.routes(config, exec, api{commands{exec, tickets}, tickets}); err != nil {
		events.Close()
		return nil, err
	}
	return s, nil
}

// migrated fails while the database lacks a version of the schema.
func migrated(ctx context.Context, db *database.DB) error {
	pending, err := migrations.Pending(ctx, db, Name)
	if err == nil && pending > 0 {
		err = fmt.Errorf("%d migrations are missing; run einmal migrate", pending)
	}
	return err
}

// routes adds what the service answers, and checks that every write is in the catalogue.
func (s *Service) routes(config Config, exec *idempotency.Executor, a api) error {
	e := s.server.Echo()
	write, read := server.Require(server.Writers...), server.Require(server.Readers...)

	operations := map[string]string{}
	for _, route := range a.writes() {
		e.Add(route.Method, route.Path, route.Handler, write)
		operations[route.Method+" "+route.Path] = route.Type
	}
	e.GET("/v1/tickets", a.listTickets, read)
	e.GET("/v1/tickets/:id", a.getTicket, read)

	ops := idemhttp.Operations{Executor: exec, Caller: caller}
	e.GET("/v1/operations", ops.List, read)
	e.GET("/v1/operations/:id", ops.Get, read)
	e.POST("/v1/fingerprints", idemhttp.Fingerprints(a.writes(), caller), read)

	policy := catalogue.NewPolicy(config.Settings, catalogue.Of(Name))
	if err := s.server.PublishJSON("/.well-known/idempotency-policy", policy); err != nil {
		return err
	}
	if err := s.server.PublishOpenAPI(openAPI); err != nil {
		return err
	}
	if err := catalogue.CheckRoutes(s.server.Routes(), operations, catalogue.Exempt); err != nil {
		return fmt.Errorf("configure %s: %w", Name, err)
	}
	return nil
}

// Listen takes the address, so that Addr is known before Serve.
func (s *Service) Listen(ctx context.Context) error { return s.server.Listen(ctx) }

// Addr is the address that Listen took.
func (s *Service) Addr() string { return s.server.Addr() }

// Serve answers until ctx ends, drains, and writes the events that were waiting.
func (s *Service) Serve(ctx context.Context) error {
	defer s.events.Close()
	return s.server.Serve(ctx)
}
