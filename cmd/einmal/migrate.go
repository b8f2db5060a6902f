package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
)

// storage names the database of one service, for the roles that work on it without serving.
type storage struct {
	DatabaseURL string `env:"EINMAL_DATABASE_URL" placeholder:"URL" help:"sqlite:PATH or postgres://…; default the service's own, as in ${tickets_database}."`
	Service     string `enum:"tickets,payments,deployments" default:"tickets" help:"Which service's tables it holds: ${enum}."`
}

// url is the database that is meant.
func (s storage) url() string { return cmp.Or(s.DatabaseURL, embedded(s.Service)) }

// embedded is the database of a service for which nobody names another.
func embedded(service string) string { return "sqlite:./data/einmal_" + service + ".db" }

type migrateCmd struct {
	storage
	Grant string `placeholder:"ROLE" help:"On PostgreSQL, let the role do what the service does and no more: it can't change or remove what has happened. The service then connects as that role, with EINMAL_MIGRATE=false."`
}

func (m *migrateCmd) Run(ctx context.Context, streams streams) error {
	db, err := database.Open(ctx, m.url(), database.Options{})
	if err != nil {
		return err
	}
	defer db.Close()

	pending, err := migrations.Pending(ctx, db, m.Service)
	if err != nil {
		return err
	}
	if err := migrations.Up(ctx, db, m.Service); err != nil {
		return err
	}
	fmt.Fprintf(streams.out, "%s: %d migrations were pending, none is now\n", m.Service, pending)
	if m.Grant == "" {
		return nil
	}
	if err := migrations.Grant(ctx, db, m.Grant); err != nil {
		return err
	}
	fmt.Fprintf(streams.out, "%s: %s may do what the service does, and cannot change what has happened\n", m.Service, m.Grant)
	return nil
}
