package main

import (
	"context"
	"io"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/services/payments"
)

type paymentsCmd struct {
	payments.Config
}

func (c *paymentsCmd) Run(ctx context.Context, streams streams) error {
	return servePayments(ctx, c.Config, streams.err, alone)
}

// servePayments runs the service until ctx ends; see serve.
func servePayments(ctx context.Context, config payments.Config, log io.Writer, listening func(address string) error) error {
	return serve(ctx, payments.Name, config.DatabaseURL, config.Migrate, func(db *database.DB) (service, error) {
		return payments.New(config, payments.Deps{DB: db, Log: config.Logger(log)})
	}, listening)
}
