package payments

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/approval/approvalhttp"
	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/audit/audithttp"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/outbox/outboxhttp"
	"github.com/einmal/einmal/pkg/retention"
	"github.com/einmal/einmal/pkg/server"
)

// Name is the service's name in logs, metrics, the catalogue and the migrations.
const Name = "payments"

//go:embed openapi.yaml
var openAPI []byte

// Deps is what the service is given.
type Deps struct {
	DB  *database.DB // migrated, or to be: /readyz says so. The caller closes it after Run.
	Log *slog.Logger
}

// Service is the payments service.
type Service struct {
	server *server.Server
	events *audit.Log
	sealer *audit.Sealer
	outbox *outbox.Outbox
	purge  *retention.Purger
	hook   hook
	log    *slog.Logger
	asks   time.Duration // after which a person is asked about what is not ours
}

// New puts the service together. An error says which setting is wrong.
func New(config Config, deps Deps) (*Service, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("configure %s: %w", Name, err)
	}
	srv, err := server.New(config.Config, server.Service{
		Name: Name, Log: deps.Log, LongestAnswer: config.WaitBudget + idemhttp.MaxPreferWait, Public: []string{hookPath},
		Checks: []server.Check{
			{Name: "database", Run: deps.DB.Ping},
			{Name: "migrations", Run: func(ctx context.Context) error { return migrations.Complete(ctx, deps.DB, Name) }},
		},
	})
	if err != nil {
		return nil, err
	}
	sealer, err := audit.NewSealer(deps.DB, deps.Log, Name, config.Sealing)
	if err != nil {
		return nil, fmt.Errorf("configure %s: %w", Name, err)
	}
	events := audit.Open(deps.DB)
	srv.NoteDenied(events.Note)
	exec := idempotency.New(deps.DB, idempotency.Options{
		WaitBudget: config.WaitBudget, ResponseRetention: config.ResponseRetention, TombstoneRetention: config.TombstoneRetention,
		Forgotten: retention.Forgotten(deps.DB),
		Record:    events.Record, Note: events.Note, Describe: outbox.Describe(deps.DB), Guard: sealer.Guard,
	})
	rows := store{deps.DB}
	box, err := outbox.New(outbox.Deps{
		DB: deps.DB, Exec: exec, Log: deps.Log, Record: events.Record, Namespace: config.Namespace, Service: Name,
		LongestDeadline: config.EffectDeadline, ApprovalTTL: config.ApprovalTTL, PollEvery: config.ReconcileEvery,
	}, targets(config, deps.DB, settler{rows})...)
	purge := retention.New(retention.Deps{
		DB: deps.DB, Log: deps.Log, Service: Name, Record: events.Record,
		Response: config.ResponseRetention, Tombstone: config.TombstoneRetention, Every: config.PurgeEvery,
		Also: []retention.Step{{What: "unmatched", Remove: rows.forgetReviewed}},
	})
	s := &Service{
		server: srv, events: events, sealer: sealer, outbox: box, purge: purge, log: deps.Log, asks: config.UnmatchedAfter,
		hook: hook{exec, rows, box, config.WebhookSecret, config.HookAccount},
	}
	if err == nil {
		srv.Registry().MustRegister(box.Metrics(), purge.Metrics())
		waiter := idemhttp.Waiter{Executor: exec, Settled: box.Settled, Leaving: srv.Leaving()}
		err = s.routes(config, deps, exec, api{commands{exec, rows, box, config.PaymentMethod, config.ApprovalThreshold}, rows, waiter})
	}
	if err != nil {
		events.Close()
		return nil, err
	}
	return s, nil
}

// targets are what the provider is asked to do. Of each, it remembers keys, and its objects can be looked up.
func targets(config Config, db *database.DB, settle settler) []outbox.Target {
	provider := newPSP(config)
	keyed := outbox.Ability{Key: true, KeyWindow: config.KeyWindow, Lookup: true}
	closing := keyed
	closing.Close = true
	of := func(name, operation string, ability outbox.Ability, p outbox.Provider, settle func(database.Tx, outbox.Effect, outbox.End) (idempotency.Answer, error)) outbox.Target {
		entry, _ := catalogue.Lookup(operation) // without one there is no outbox
		return outbox.Target{
			Name: name, Types: []string{operation}, Ability: ability, Provider: p, Settle: settle,
			Timeout: config.ProviderTimeout, Lease: config.EffectLease, AskEvery: config.ReconcileEvery,
			MaxAttempts: entry.MaxAttempts, LongestWait: entry.LongestWait(), MaxAsks: maxAsks,
			Sends: outbox.Limit{Places: providerSends}, PrioritySends: outbox.Limit{Places: providerFirst}, Asks: outbox.Limit{Places: providerAsks},
		}
	}
	authorizing := of(targetAuthorize, catalogue.PaymentCreate, closing, authorizer{provider, db, config.Namespace}, settle.authorized)
	authorizing.World = settle.orderShown
	refunding := of(targetRefund, catalogue.RefundCreate, keyed, refunder{psp: provider}, settle.refunded)
	refunding.World = settle.refundsShown
	return []outbox.Target{
		authorizing,
		of(targetCapture, catalogue.PaymentCapture, keyed, capturer{psp: provider}, settle.captured),
		of(targetCancel, catalogue.PaymentCancel, keyed, canceler{psp: provider}, settle.canceled),
		refunding,
	}
}

// routes adds what the service answers, and checks that every write is in the catalogue.
func (s *Service) routes(config Config, deps Deps, exec *idempotency.Executor, a api) error {
	e := s.server.Echo()
	read := server.Require(server.Readers...)
	effects := outboxhttp.Handlers{DB: deps.DB, Executor: exec, Outbox: s.outbox, Caller: caller}
	approvals := approvalhttp.Handlers{DB: deps.DB, Executor: exec, Outbox: s.outbox, Caller: caller}

	operations := map[string]string{}
	add := func(routes []idemhttp.Route, roles ...server.Role) {
		for _, route := range routes {
			e.Add(route.Method, route.Path, route.Handler, server.Require(roles...))
			operations[route.Method+" "+route.Path] = route.Type
		}
	}
	writes, decisions := slices.Concat(a.writes(), effects.Writes()), effects.OperatorWrites()
	add(writes, server.Writers...)
	add(decisions, server.Operator)
	add(approvals.ApproverWrites(), server.Approver)
	e.Add(http.MethodPost, hookPath, s.hook.receive)

	e.GET("/v1/orders", a.listOrders, read)
	e.GET("/v1/orders/:id", a.getOrder, read)
	e.GET("/v1/payments", a.listPayments, read)
	e.GET("/v1/payments/:id", a.getPayment, read)
	e.GET("/v1/payments/:id/refunds", a.listRefunds, read)
	e.GET("/v1/payments/:id/refunds/:refund", a.getRefund, read)
	e.GET("/v1/approvals", approvals.List, read)
	e.GET("/v1/approvals/:id", approvals.Get, read)
	e.GET("/v1/reviews", effects.ListReviews, read)
	e.GET("/v1/reviews/:id", effects.GetReview, read)

	ops := idemhttp.Operations{Executor: exec, Caller: caller, Waiter: a.waiter}
	proofs := audithttp.Handlers{DB: deps.DB, Executor: exec, Sealer: s.sealer, Caller: caller, Auditor: auditor}
	e.GET("/v1/operations", ops.List, read)
	e.GET("/v1/operations/:id", ops.Get, read)
	e.GET("/v1/operations/:id/events", proofs.Events, read)
	e.GET("/v1/operations/:id/receipt", proofs.Receipt, read)
	e.POST("/v1/fingerprints", idemhttp.Fingerprints(slices.Concat(writes, decisions, approvals.ApproverWrites()), caller), read)

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

// Serve answers, brings effects out and drops what is past its retention until ctx ends; then it drains all, writes the events that were
// waiting, and seals them. Without a key to seal with it does not begin.
func (s *Service) Serve(ctx context.Context) error {
	if err := s.sealer.Begin(ctx); err != nil {
		s.events.Close()
		return fmt.Errorf("serve %s: %w", Name, err)
	}
	defer s.sealer.Finish(context.WithoutCancel(ctx))
	defer s.events.Close()
	var working sync.WaitGroup
	defer working.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	working.Go(func() { s.sealer.WhileOpen(ctx, s.outbox.Run) })
	working.Go(func() { s.sealer.WhileOpen(ctx, s.purge.Run) })
	working.Go(func() { s.sealer.Run(ctx) })
	working.Go(func() { s.sealer.WhileOpen(ctx, func(ctx context.Context) { s.hook.sweep(ctx, s.log, s.asks) }) })
	return s.server.Serve(ctx)
}
