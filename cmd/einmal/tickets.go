package main

import (
	"context"
	"io"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/services/tickets"
)

type ticketsCmd struct {
	tickets.Config
}

func (c *ticketsCmd) Run(ctx context.Context, streams streams) error {
	return serveTickets(ctx, c.Config, streams.err, alone)
}

// serveTickets runs the service until ctx ends; see serve.
func serveTickets(ctx context.Context, config tickets.Config, log io.Writer, listening func(address string) error) error {
	return serve(ctx, tickets.Name, config.DatabaseURL, config.Migrate, func(db *database.DB) (service, error) {
		return tickets.New(config, tickets.Deps{DB: db, Log: config.Logger(log)})
	}, listening)
}
