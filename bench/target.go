package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/pgserver"
	"github.com/einmal/einmal/services/tickets"
)

// target is a service under load, and the database that it writes.
type target struct {
	name string
	addr string
	db   *database.DB
	sent tally // what has been asked of it so far

	leave func()
	ended chan error
}

// listener is what the two services have in common.
type listener interface {
	Listen(ctx context.Context) error
	Addr() string
	Serve(ctx context.Context) error
}

// startTickets starts the tickets service with the defaults of einmal tickets, changed by with.
func startTickets(ctx context.Context, databaseURL string, with ...func(*tickets.Config)) (*target, error) {
	return start(ctx, tickets.Name, databaseURL, database.Options{}, func(db *database.DB) (listener, error) {
		config, err := defaults()
		if err != nil {
			return nil, err
		}
		if config.AuditDir, err = os.MkdirTemp("", "einmal-bench-audit-"); err != nil {
			return nil, err
		}
		for _, change := range with {
			change(&config)
		}
		return tickets.New(config, tickets.Deps{DB: db, Log: config.Logger(io.Discard)})
	})
}

// sealNothing leaves sealing to a process that there is not.
func sealNothing(c *tickets.Config) { c.SealEvery = 0 }

// defaults are the settings of einmal tickets, which hold for the bare service, too, but for two: any port that is free, and no
// limit, since the callers are all of one account and without a pause.
func defaults() (config tickets.Config, err error) {
	parser, err := kong.New(&config, kong.Vars{"tickets_database": "", "audit_dir": ""})
	if err == nil {
		_, err = parser.Parse(nil)
	}
	config.Listen, config.RateLimit = "127.0.0.1:0", 0
	return config, err
}

func start(ctx context.Context, name, databaseURL string, options database.Options, build func(*database.DB) (listener, error)) (*target, error) {
	db, err := database.Open(ctx, databaseURL, options)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := migrations.Up(ctx, db, tickets.Name); err != nil {
		db.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	service, err := build(db)
	if err == nil {
		err = service.Listen(ctx)
	}
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	serving, leave := context.WithCancel(ctx)
	t := &target{name: name, addr: service.Addr(), db: db, leave: leave, ended: make(chan error, 1)}
	go func() { t.ended <- service.Serve(serving) }()
	return t, nil
}

// close drains the service and closes its database.
func (t *target) close() error {
	t.leave()
	return errors.Join(<-t.ended, t.db.Close())
}

// storage is where the databases of one kind are.
type storage struct {
	bareURL     string
	ticketsURL  string
	unsealedURL string
	remove      func() error
}

// newStorage makes an empty database for each service: rows of the bare one would be violations in the other, since nobody
// claimed them. On PostgreSQL both are in one private server, which waits for the disk as in production.
func newStorage(ctx context.Context, kind database.Kind, slowCommit bool) (*storage, error) {
	if kind == database.SQLite {
		dir, err := os.MkdirTemp("", "einmal-bench-")
		if err != nil {
			return nil, err
		}
		return &storage{
			bareURL:     "sqlite:" + filepath.Join(dir, "bare.db"),
			ticketsURL:  "sqlite:" + filepath.Join(dir, "tickets.db"),
			unsealedURL: "sqlite:" + filepath.Join(dir, "unsealed.db"),
			remove:      func() error { return os.RemoveAll(dir) },
		}, nil
	}
	postgres, err := pgserver.Start(ctx, pgserver.Options{Durable: true})
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"bare", "tickets", "unsealed"} {
		if err := postgres.CreateDatabase(ctx, name, ""); err != nil {
			return nil, errors.Join(err, postgres.Stop())
		}
	}
	settings := url.Values{}
	if slowCommit {
		// The process that flushes the log for a group waits 1 ms first: what a flush takes on a network disk. Committers that
		// come meanwhile share the flush, as they would there.
		settings.Set("commit_delay", "1000")
		settings.Set("commit_siblings", "0")
	}
	with := func(name string) string { return postgres.URL(name) + "&" + settings.Encode() }
	return &storage{bareURL: with("bare"), ticketsURL: with("tickets"), unsealedURL: with("unsealed"), remove: postgres.Stop}, nil
}
