package main

import (
	"context"
	"io"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/services/deployments"
)

type deploymentsCmd struct {
	deployments.Config
}

func (c *deploymentsCmd) Run(ctx context.Context, streams streams) error {
	return serveDeployments(ctx, c.Config, streams.err, alone)
}

// serveDeployments runs the service until ctx ends; see serve.
func serveDeployments(ctx context.Context, config deployments.Config, log io.Writer, listening func(address string) error) error {
	return serve(ctx, deployments.Name, config.DatabaseURL, config.Migrate, func(db *database.DB) (service, error) {
		return deployments.New(config, deployments.Deps{DB: db, Log: config.Logger(log)})
	}, listening)
}
