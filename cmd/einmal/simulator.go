package main

import (
	"context"
	"io"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/services/simulator"
)

type simulatorCmd struct {
	simulator.Config
}

func (s *simulatorCmd) Run(ctx context.Context, streams streams) error {
	return serveSimulator(ctx, s.Config, streams.err, alone)
}

// serveSimulator runs the simulator until ctx ends; see serve.
func serveSimulator(ctx context.Context, config simulator.Config, log io.Writer, listening func(address string) error) error {
	return serve(ctx, simulator.Name, config.DatabaseURL, config.Migrate, func(db *database.DB) (service, error) {
		return simulator.New(config, simulator.Deps{DB: db, Log: config.Logger(log)})
	}, listening)
}
