package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/fsck"
	"github.com/einmal/einmal/services/deployments"
	"github.com/einmal/einmal/services/payments"
	"github.com/einmal/einmal/services/tickets"
)

// checks are what must always be true of the database of each service, and ledgers how it stands to what is outside.
var (
	checks = map[string]func() []fsck.Check{
		tickets.Name:     tickets.Checks,
		payments.Name:    payments.Checks,
		deployments.Name: deployments.Checks,
	}
	ledgers = map[string]fsck.Ledger{
		tickets.Name:     tickets.Ledger,
		payments.Name:    payments.Ledger,
		deployments.Name: deployments.Ledger,
	}
)

type fsckCmd struct {
	storage
	Ledger string `placeholder:"URL" help:"Compare with the ledger of the simulator that answers here, too: what really happened outside."`
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
	all := checks[f.Service]()
	violations, err := fsck.Run(ctx, db, all...)
	if err == nil && f.Ledger != "" {
		var outside []fsck.Violation
		outside, err = ledgers[f.Service].Against(ctx, db, f.Ledger)
		all, violations = append(all, fsck.LedgerChecks...), append(violations, outside...)
	}
	if err != nil {
		return err
	}
	return f.tell(streams, all, violations)
}

// tell says of each check whether it holds, and of each violation where it is and what to do.
func (f *fsckCmd) tell(streams streams, all []fsck.Check, violations []fsck.Violation) error {
	for _, check := range all {
		if !slices.ContainsFunc(violations, func(v fsck.Violation) bool { return v.Check == check.Name }) {
			fmt.Fprintf(streams.out, "   holds: %s\n", check.Name)
		}
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
