package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// measureRequests measures the kinds of request on one kind of database and adds them to the report.
func measureRequests(ctx context.Context, s settings, kind database.Kind, report *report) (err error) {
	if len(s.variants) == 0 {
		return nil
	}
	storage, err := newStorage(ctx, kind, s.slowCommit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storage.remove()) }()
	bare, err := startBare(ctx, storage.bareURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	tickets, err := startTickets(ctx, storage.ticketsURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tickets.close()) }()

	unsealed, err := startTickets(ctx, storage.unsealedURL, sealNothing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unsealed.close()) }()

	if err := compare(ctx, bare, tickets); err != nil {
		return err
	}
	all := targets{bare, tickets, unsealed}
	if err := fill(ctx, all); err != nil {
		return err
	}
	for round := range s.rounds {
		fmt.Fprintf(os.Stderr, "%s: round %d of %d\n", kind, round+1, s.rounds)
		for _, conns := range s.conns {
			// Back to back, and each round in another order: no variant always runs after the same one.
			first := round % len(s.variants)
			for _, v := range slices.Concat(s.variants[first:], s.variants[:first]) {
				m, err := measure(ctx, v, v.target(all), conns, s.duration)
				if err != nil {
					return fmt.Errorf("%s with %d connections: %w", v.name, conns, err)
				}
				report.add(kind, conns, v.name, m)
			}
		}
	}
	if report.Versions[kind], err = version(ctx, tickets.db); err != nil {
		return err
	}
	return errors.Join(tickets.fsck(ctx), unsealed.fsck(ctx))
}

// Some thousand rows, before anything is measured.
const (
	fillers = 8
	filling = time.Second
)

// fill brings the databases to where a service is after its first minutes. PostgreSQL plans a statement for a connection once,
// and on tables without statistics it can't tell a good index from a bad one; autovacuum cures that within a minute, by the
// statistics that ANALYZE makes here.
func fill(ctx context.Context, all targets) error {
	for _, v := range variants {
		if v.leaves.Tickets == 0 {
			continue
		}
		if _, err := measure(ctx, v, v.target(all), fillers, filling); err != nil {
			return fmt.Errorf("fill: %s: %w", v.name, err)
		}
	}
	for _, t := range []*target{all.bare, all.tickets, all.unsealed} {
		if t.db.Kind() != database.Postgres {
			continue
		}
		if err := t.db.Read(ctx).Exec("ANALYZE").Error; err != nil {
			return fmt.Errorf("fill: %w", err)
		}
	}
	return nil
}

// version is what the database says that it is.
func version(ctx context.Context, db *database.DB) (version string, err error) {
	query := "SHOW server_version"
	if db.Kind() == database.SQLite {
		query = "SELECT sqlite_version()"
	}
	return version, db.Read(ctx).Raw(query).Scan(&version).Error
}
