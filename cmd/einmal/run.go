package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/einmal/einmal/services/deployments"
	"github.com/einmal/einmal/services/payments"
	"github.com/einmal/einmal/services/simulator"
	"github.com/einmal/einmal/services/tickets"
)

type runCmd struct {
	Data string `default:"data" placeholder:"DIR" help:"Where the embedded databases are, one for each service."`

	DeploymentsListen string `env:"EINMAL_DEPLOYMENTS_LISTEN" default:"127.0.0.1:8083" placeholder:"HOST:PORT" help:"Address of the deployments service."`
	PaymentsListen    string `env:"EINMAL_PAYMENTS_LISTEN" default:"127.0.0.1:8082" placeholder:"HOST:PORT" help:"Address of the payments service; EINMAL_LISTEN is that of tickets."`
	SimulatorListen   string `env:"EINMAL_SIMULATOR_LISTEN" default:"127.0.0.1:8090" placeholder:"HOST:PORT" help:"Address of the outside world, which is simulated unless EINMAL_PROVIDER_URL names a real one."`

	RolloutTime time.Duration `env:"EINMAL_ROLLOUT_TIME" default:"300ms" help:"How long a rollout at the simulated cluster takes."`

	tickets.Config `set:"tickets_database=" set:"audit_dir="` //nolint:staticcheck // kong reads every tag set, one variable each
	payments.Provider
	deployments.Cluster
}

// Help is what einmal run --help says beyond the list of settings.
func (r *runCmd) Help() string {
	return "EINMAL_DATABASE_URL names the databases of all services at once: its database name is the beginning of theirs. " +
		"postgres://localhost/einmal stands for einmal_tickets, einmal_payments, einmal_deployments and, unless EINMAL_PROVIDER_URL is set, einmal_simulator on that server, which must be there. Without it they are DIR/einmal_tickets.db and so on."
}

func (r *runCmd) Run(ctx context.Context, streams streams) error {
	r.AuditDir = cmp.Or(r.AuditDir, filepath.Join(r.Data, "audit"))
	if r.ProviderURL != "" {
		return r.serve(ctx, streams, func() {})
	}
	url, err := r.serviceURL(simulator.Name)
	if err != nil {
		return err
	}
	if r.WebhookSecret == "" {
		r.WebhookSecret = rand.Text() // of this run: both who signs and who checks are in it
	}
	// The outside world outlives the services, as it does elsewhere: what they have under way when they are told to leave
	// still gets its answer. It begins when they listen: until then its connections wait, and nobody hears of a start that fails.
	outside, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	ended, answers, begin := make(chan error, 1), make(chan string, 1), make(chan struct{})
	go func() {
		ended <- serveSimulator(outside, simulator.Config{
			Listen: r.SimulatorListen, ListenSetting: "EINMAL_SIMULATOR_LISTEN", DatabaseURL: url, Migrate: r.Migrate,
			Token: r.ProviderToken, ReadToken: r.ProviderReadToken, ShutdownGrace: r.ShutdownGrace, LogLevel: r.LogLevel, RolloutTime: r.RolloutTime,
			PSPWebhookURL: r.hookURL(), PSPWebhookSecret: r.WebhookSecret,
		}, streams.err, func(address string) error {
			answers <- address
			select {
			case <-begin:
				return nil
			case <-outside.Done():
				return errNotBegun
			}
		})
	}()
	select {
	case err := <-ended:
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("set EINMAL_SIMULATOR_LISTEN to a free address, or EINMAL_PROVIDER_URL to what answers there: %w", err)
		}
		return err
	case address := <-answers:
		r.ProviderURL = "http://" + address
		fmt.Fprintf(streams.out, "outside     http://%s  a ticket desk, a payment provider and a cluster, simulated; POST /_faults makes them fail, GET /_ledger is what really happened\n", address)
	}
	err = r.serve(ctx, streams, func() { close(begin) })
	end()
	if ending := <-ended; !errors.Is(ending, errNotBegun) {
		err = errors.Join(err, ending)
	}
	return err
}

// errNotBegun is how one ends when another does not listen.
var errNotBegun = errors.New("not begun")

// serve runs the services until ctx ends, or one of them fails. listening is called when all their addresses are taken.
func (r *runCmd) serve(ctx context.Context, streams streams, listening func()) error {
	desk, err := r.ticketsConfig()
	if err != nil {
		return err
	}
	till, err := r.paymentsConfig()
	if err != nil {
		return err
	}
	crane, err := r.deploymentsConfig()
	if err != nil {
		return err
	}
	services := []struct {
		name, databaseURL string
		serve             func(ctx context.Context, listening func(address string) error) error
	}{
		{tickets.Name, desk.DatabaseURL, func(ctx context.Context, listening func(string) error) error {
			return serveTickets(ctx, desk, streams.err, listening)
		}},
		{payments.Name, till.DatabaseURL, func(ctx context.Context, listening func(string) error) error {
			return servePayments(ctx, till, streams.err, listening)
		}},
		{deployments.Name, crane.DatabaseURL, func(ctx context.Context, listening func(string) error) error {
			return serveDeployments(ctx, crane, streams.err, listening)
		}},
	}
	// None begins before all have their addresses: nobody hears of a start that fails.
	begin := make(chan struct{})
	var taken sync.WaitGroup
	taken.Add(len(services))
	addresses := make([]string, len(services))
	group, ctx := errgroup.WithContext(ctx)
	for i, s := range services {
		group.Go(func() error {
			return s.serve(ctx, func(address string) error {
				addresses[i] = address
				taken.Done()
				select {
				case <-begin:
					return nil
				case <-ctx.Done():
					return errNotBegun
				}
			})
		})
	}
	go func() { // which waits for ever if a start fails, and the process ends
		taken.Wait()
		for i, s := range services {
			fmt.Fprintf(streams.out, "%-11s http://%s/docs  on %s\n", s.name, addresses[i], redacted(s.databaseURL))
		}
		listening()
		fmt.Fprintln(streams.out, "The README shows what to send. Ctrl-C ends it.")
		close(begin)
	}()
	if err := group.Wait(); !errors.Is(err, errNotBegun) {
		return err
	}
	return nil // told to leave before it began
}

func (r *runCmd) ticketsConfig() (tickets.Config, error) {
	config := r.Config
	var err error
	config.DatabaseURL, err = r.serviceURL(tickets.Name)
	return config, err
}

// paymentsConfig is what the settings say to payments, too.
func (r *runCmd) paymentsConfig() (payments.Config, error) {
	config := payments.Config{
		Config: r.Config.Config, Settings: r.Settings, Sealing: r.Sealing, Provider: r.Provider, Migrate: r.Migrate,
		ProviderURL: r.ProviderURL, ProviderToken: r.ProviderToken, ProviderReadToken: r.ProviderReadToken, Namespace: r.Namespace,
		ProviderTimeout: r.ProviderTimeout, EffectLease: r.EffectLease, ReconcileEvery: r.ReconcileEvery, KeyWindow: r.KeyWindow,
	}
	config.Listen, config.ListenSetting = r.PaymentsListen, "EINMAL_PAYMENTS_LISTEN"
	var err error
	config.DatabaseURL, err = r.serviceURL(payments.Name)
	return config, err
}

// deploymentsConfig is what they say to deployments.
func (r *runCmd) deploymentsConfig() (deployments.Config, error) {
	config := deployments.Config{
		Config: r.Config.Config, Settings: r.Settings, Sealing: r.Sealing, Cluster: r.Cluster, Migrate: r.Migrate,
		ProviderURL: r.ProviderURL, ProviderToken: r.ProviderToken, ProviderReadToken: r.ProviderReadToken, Namespace: r.Namespace,
		ProviderTimeout: r.ProviderTimeout, EffectLease: r.EffectLease, ReconcileEvery: r.ReconcileEvery, KeyWindow: r.KeyWindow,
	}
	config.Listen, config.ListenSetting = r.DeploymentsListen, "EINMAL_DEPLOYMENTS_LISTEN"
	var err error
	config.DatabaseURL, err = r.serviceURL(deployments.Name)
	return config, err
}

// hookURL is where the simulated provider sends its events: nowhere if nobody knows yet which port payments will have.
func (r *runCmd) hookURL() string {
	if _, port, err := net.SplitHostPort(r.PaymentsListen); err != nil || port == "0" {
		return ""
	}
	return "http://" + r.PaymentsListen + "/v1/hooks/psp"
}

// serviceURL is the database of one service.
func (r *runCmd) serviceURL(service string) (string, error) {
	return serviceURL(cmp.Or(r.DatabaseURL, "sqlite:"+filepath.Join(r.Data, "einmal")), service)
}

// serviceURL is the database of one service among those that prefix names.
func serviceURL(prefix, service string) (string, error) {
	if path, ok := strings.CutPrefix(prefix, "sqlite:"); ok {
		return "sqlite:" + strings.TrimSuffix(path, ".db") + "_" + service + ".db", nil
	}
	u, err := url.Parse(prefix)
	if err != nil || strings.Trim(u.Path, "/") == "" {
		return "", fmt.Errorf("EINMAL_DATABASE_URL must name a database, as in sqlite:./data/einmal or postgres://localhost/einmal")
	}
	u.Path += "_" + service
	return u.String(), nil
}

// redacted is a URL without its password, for people to read.
func redacted(databaseURL string) string {
	u, err := url.Parse(databaseURL)
	if err != nil || u.User == nil {
		return databaseURL
	}
	return u.Redacted()
}
