package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/einmal/einmal/services/tickets"
)

type runCmd struct {
	Data string `default:"data" placeholder:"DIR" help:"Where the embedded databases are, one for each service."`

	tickets.Config `set:"tickets_database="`
}

// Help is what einmal run --help says beyond the list of settings.
func (r *runCmd) Help() string {
	return "EINMAL_DATABASE_URL names the databases of all services at once: its database name is the beginning of theirs. " +
		"postgres://localhost/einmal stands for einmal_tickets on that server. Without it they are DIR/einmal_tickets.db and so on."
}

func (r *runCmd) Run(ctx context.Context, streams streams) error {
	config := r.Config
	var err error
	config.DatabaseURL, err = serviceURL(cmp.Or(r.DatabaseURL, "sqlite:"+filepath.Join(r.Data, "einmal")), tickets.Name)
	if err != nil {
		return err
	}
	return serveTickets(ctx, config, streams.err, func(service *tickets.Service) {
		fmt.Fprintf(streams.out, "tickets  http://%s/docs  on %s\n", service.Addr(), redacted(config.DatabaseURL))
		fmt.Fprintln(streams.out, "The README shows what to send. Ctrl-C ends it.")
	})
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
