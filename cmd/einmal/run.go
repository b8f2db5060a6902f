package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/einmal/einmal/services/simulator"
	"github.com/einmal/einmal/services/tickets"
)

type runCmd struct {
	Data string `default:"data" placeholder:"DIR" help:"Where the embedded databases are, one for each service."`

	SimulatorListen string `env:"EINMAL_SIMULATOR_LISTEN" default:"127.0.0.1:8090" placeholder:"HOST:PORT" help:"Address of the outside world, which is simulated unless EINMAL_PROVIDER_URL names a real one."`

	tickets.Config `set:"tickets_database="`
}

// Help is what einmal run --help says beyond the list of settings.
func (r *runCmd) Help() string {
	return "EINMAL_DATABASE_URL names the databases of all services at once: its database name is the beginning of theirs. " +
		"postgres://localhost/einmal stands for einmal_tickets on that server. Without it they are DIR/einmal_tickets.db and so on."
}

func (r *runCmd) Run(ctx context.Context, streams streams) error {
	if r.ProviderURL != "" {
		return r.serve(ctx, streams, func() {})
	}
	url, err := r.serviceURL(simulator.Name)
	if err != nil {
		return err
	}
	// The outside world outlives the services, as it does elsewhere: what they have under way when they are told to leave
	// still gets its answer. It begins when they listen: until then its connections wait, and nobody hears of a start that fails.
	outside, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	ended, answers, begin := make(chan error, 1), make(chan string, 1), make(chan struct{})
	go func() {
		ended <- serveSimulator(outside, simulator.Config{
			Listen: r.SimulatorListen, DatabaseURL: url, Migrate: r.Migrate,
			Token: r.ProviderToken, ReadToken: r.ProviderReadToken, ShutdownGrace: r.ShutdownGrace, LogLevel: r.LogLevel,
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
			err = fmt.Errorf("set EINMAL_SIMULATOR_LISTEN to a free address, or EINMAL_PROVIDER_URL to the desk that answers there: %w", err)
		}
		return err
	case address := <-answers:
		r.ProviderURL = "http://" + address
		fmt.Fprintf(streams.out, "desk     http://%s  simulated; POST /_faults makes it fail, GET /_ledger is what really happened\n", address)
	}
	err = r.serve(ctx, streams, func() { close(begin) })
	end()
	if ending := <-ended; !errors.Is(ending, errNotBegun) {
		err = errors.Join(err, ending)
	}
	return err
}

// errNotBegun is how the simulator ends when no service listens.
var errNotBegun = errors.New("not begun")

// serve runs the services until ctx ends. listening is called when their addresses are taken.
func (r *runCmd) serve(ctx context.Context, streams streams, listening func()) error {
	config := r.Config
	var err error
	if config.DatabaseURL, err = r.serviceURL(tickets.Name); err != nil {
		return err
	}
	return serveTickets(ctx, config, streams.err, func(address string) error {
		fmt.Fprintf(streams.out, "tickets  http://%s/docs  on %s\n", address, redacted(config.DatabaseURL))
		listening()
		fmt.Fprintln(streams.out, "The README shows what to send. Ctrl-C ends it.")
		return nil
	})
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
