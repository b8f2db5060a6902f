package main

import (
	"context"
	"io"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/services/tickets"
)

type ticketsCmd struct {
	tickets.Config
}

func (t *ticketsCmd) Run(ctx context.Context, streams streams) error {
	return serveTickets(ctx, t.Config, streams.err, func(*tickets.Service) {})
}

// serveTickets runs the service until ctx ends. The process it is in, with others or alone, is nothing it knows of.
// listening is called when its address is taken: connections wait from then on.
func serveTickets(ctx context.Context, config tickets.Config, log io.Writer, listening func(*tickets.Service)) error {
	db, err := database.Open(ctx, config.DatabaseURL, database.Options{})
	if err != nil {
		return err
	}
	defer db.Close()

	if config.Migrate {
		if err := migrations.Up(ctx, db, tickets.Name); err != nil {
			return err
		}
	}
	service, err := tickets.New(config, tickets.Deps{DB: db, Log: config.Logger(log)})
	if err != nil {
		return err
	}
	if err := service.Listen(ctx); err != nil {
		return err
	}
	listening(service)
	return service.Serve(ctx)
}
