package deployments

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"slices"
	"sync"

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
const Name = "deployments"

//go:embed openapi.yaml
var openAPI []byte

// Deps is what the service is given.
type Deps struct {
	DB  *database.DB // migrated, or to be: /readyz says so. The caller closes it after Run.
	Log *slog.Logger
}

// Service is the deployments service.
type Service struct {
	server *server.Server
	events *audit.Log
	sealer *audit.Sealer
	outbox *outbox.Outbox
	purge  *retention.Purger
	store  store
	log    *slog.Logger
}

// New puts the service together. An error says which setting is wrong.
func New(config Config, deps Deps) (*Service, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("configure %s: %w", Name, err)
	}
	srv, err := server.New(config.Config, server.Service{
		Name: Name, Log: deps.Log, LongestAnswer: config.WaitBudget + idemhttp.MaxPreferWait,
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
	settle := &settler{store: rows}
	box, err := outbox.New(outbox.Deps{
		DB: deps.DB, Exec: exec, Log: deps.Log, Record: events.Record, Namespace: config.Namespace, Service: Name,
		LongestDeadline: config.EffectDeadline, ApprovalTTL: config.ApprovalTTL, PollEvery: config.ReconcileEvery,
	}, targets(config, settle)...)
	settle.outbox = box
	purge := retention.New(retention.Deps{
		DB: deps.DB, Log: deps.Log, Service: Name, Record: events.Record,
		Response: config.ResponseRetention, Tombstone: config.TombstoneRetention, Every: config.PurgeEvery,
	})
	s := &Service{server: srv, events: events, sealer: sealer, outbox: box, purge: purge, store: rows, log: deps.Log}
	if err == nil {
		srv.Registry().MustRegister(box.Metrics(), purge.Metrics())
		waiter := idemhttp.Waiter{Executor: exec, Settled: box.Settled, Leaving: srv.Leaving()}
		err = s.routes(config, deps, exec, api{commands{exec, rows, box}, rows, waiter})
	}
	if err != nil {
		events.Close()
		return nil, err
	}
	return s, nil
}

// targets are what the cluster does for us: rollouts, and stops.
func targets(config Config, settle *settler) []outbox.Target {
	rolling, _ := catalogue.Lookup(catalogue.DeploymentCreate)
	stopping, _ := catalogue.Lookup(catalogue.DeploymentCancel)
	calls := newCluster(config)
	target := outbox.Target{
		Timeout: config.ProviderTimeout, Lease: config.EffectLease, AskEvery: config.ReconcileEvery, FollowEvery: config.FollowEvery, MaxAsks: maxAsks,
	}
	rollout, stop := target, target
	rollout.Types, stop.Types = []string{catalogue.DeploymentCreate, catalogue.DeploymentRollback}, []string{catalogue.DeploymentCancel}
	rollout.Name, rollout.Provider, rollout.Settle, rollout.Lock = clusterName, rollouts{calls}, settle.rolledOut, settle.lock()
	rollout.World, rollout.Approved = settle.shown, settle.approved
	rollout.Ability = outbox.Ability{Key: true, KeyWindow: config.KeyWindow, Lookup: true, Close: true, Floor: true}
	rollout.MaxAttempts, rollout.LongestWait = rolling.MaxAttempts, rolling.LongestWait()
	rollout.Sends, rollout.PrioritySends, rollout.Asks = outbox.Limit{Places: clusterSends}, outbox.Limit{Places: clusterFirst}, outbox.Limit{Places: clusterAsks}

	stop.Name, stop.Provider, stop.Settle, stop.Lock = stopsName, stops{calls}, settle.stopped, settle.stopLock()
	stop.Ability = outbox.Ability{Key: true, KeyWindow: config.KeyWindow, Lookup: true}
	stop.MaxAttempts, stop.LongestWait = stopping.MaxAttempts, stopping.LongestWait()
	stop.Sends, stop.PrioritySends, stop.Asks = outbox.Limit{Places: stopCalls}, outbox.Limit{Places: stopCalls}, outbox.Limit{Places: stopCalls}
	return []outbox.Target{rollout, stop}
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
	writes, decisions := slices.Concat(a.writes(), effects.Writes()), slices.Concat(a.operatorWrites(), effects.OperatorWrites())
	add(writes, server.Writers...)
	add(decisions, server.Operator)
	add(approvals.ApproverWrites(), server.Approver)

	e.GET("/v1/deployments", a.listDeployments, read)
	e.GET("/v1/deployments/:id", a.getDeployment, read)
	e.GET("/v1/environments", a.listEnvironments, read)
	e.GET("/v1/environments/:name", a.getEnvironment, read)
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
	if s.server.Demo() {
		s.declareDemo(ctx)
	}
	var working sync.WaitGroup
	defer working.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	working.Go(func() { s.sealer.WhileOpen(ctx, s.outbox.Run) })
	working.Go(func() { s.sealer.WhileOpen(ctx, s.purge.Run) })
	working.Go(func() { s.sealer.Run(ctx) })
	return s.server.Serve(ctx)
}

// declareDemo declares the environments that the demo's accounts have from the beginning. Those that are there stay as they are.
func (s *Service) declareDemo(ctx context.Context) {
	err := s.store.db.InTx(ctx, func(tx database.Tx) error {
		for _, account := range []string{"acme", "globex"} {
			for _, environment := range []string{"staging", "prod", "production"} {
				if _, err := s.store.declare(tx, account, environment, environment == "production"); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil { // not migrated yet, perhaps: /readyz says so
		s.log.WarnContext(ctx, "the demo's environments are not declared; an operator can do so", slog.Any("error", err))
	}
}
