package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/fsck"
	"github.com/einmal/einmal/services/deployments"
	"github.com/einmal/einmal/services/payments"
	"github.com/einmal/einmal/services/tickets"
)

// checks are what must always be true of the database of each service.
var checks = map[string]func(context.Context, *database.DB) ([]fsck.Violation, error){
	tickets.Name:     tickets.Fsck,
	payments.Name:    payments.Fsck,
	deployments.Name: deployments.Fsck,
}

type fsckCmd struct {
	storage
}

func (f *fsckCmd) Run(ctx context.Context, streams streams) error {
	// Opening would make the file, and an empty database has nothing wrong with it.
	if path, embedded := strings.CutPrefix(f.url(), "sqlite:"); embedded {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("there is no database: %w; set EINMAL_DATABASE_URL", err)
		}
	}
	db, err := database.Open(ctx, f.url(), database.Options{})
	if err != nil {
		return err
	}
	defer db.Close()

	if err := migrations.Complete(ctx, db, f.Service); err != nil {
		return err
	}
	violations, err := checks[f.Service](ctx, db)
	if err != nil {
		return err
	}
	for _, v := range violations {
		fmt.Fprintf(streams.out, "violated: %s\n   where: account %s, %s\n      do: %s\n", v.Check, v.Account, v.ID, v.Advice)
	}
	if len(violations) > 0 {
		return fmt.Errorf("%d violations in %s", len(violations), f.Service)
	}
	fmt.Fprintf(streams.out, "%s: every invariant holds\n", f.Service)
	return nil
}
