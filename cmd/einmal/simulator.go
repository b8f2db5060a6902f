package main

import (
	"context"
	"io"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/services/simulator"
)

type simulatorCmd struct {
	simulator.Config
}

func (s *simulatorCmd) Run(ctx context.Context, streams streams) error {
	return serveSimulator(ctx, s.Config, streams.err, func(*simulator.Service) error { return nil })
}

// serveSimulator runs the simulator until ctx ends; see serveTickets. Unless listening returns nil it never answers.
func serveSimulator(ctx context.Context, config simulator.Config, log io.Writer, listening func(*simulator.Service) error) error {
	db, err := database.Open(ctx, config.DatabaseURL, database.Options{})
	if err != nil {
		return err
	}
	defer db.Close()

	if config.Migrate {
		if err := migrations.Up(ctx, db, simulator.Name); err != nil {
			return err
		}
	}
	service, err := simulator.New(config, simulator.Deps{DB: db, Log: config.Logger(log)})
	if err != nil {
		return err
	}
	if err := service.Listen(ctx); err != nil {
		return err
	}
	if err := listening(service); err != nil {
		return err
	}
	return service.Serve(ctx)
}
