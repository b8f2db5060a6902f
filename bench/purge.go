package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/retention"
	"github.com/einmal/einmal/services/tickets"
)

// purged is what one round of purging did to those who create tickets meanwhile.
type purged struct {
	perSecond    float64       // keys
	quiet, while time.Duration // p99 of creations without and with it, in windows of equal length
	quiet50      time.Duration // p50
	while50      time.Duration
}

// seeded is how long ago the operations ended that are purged: beyond any retention.
const seeded = 1000 * 24 * time.Hour

// measurePurge measures creations beside a purge and adds them to the report. Half of the keys lose their answer, half are forgotten.
func measurePurge(ctx context.Context, s settings, kind database.Kind, report *report) (err error) {
	storage, err := newStorage(ctx, kind, s.slowCommit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storage.remove()) }()
	never := func(c *tickets.Config) { c.PurgeEvery = 24 * time.Hour }
	service, err := startTickets(ctx, storage.ticketsURL, never)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.close()) }()
	log := audit.Open(service.db)
	defer log.Close()
	purger := retention.New(retention.Deps{
		DB: service.db, Log: slog.New(slog.DiscardHandler), Service: "bench", Record: log.Record, Response: 30 * 24 * time.Hour, Tombstone: 400 * 24 * time.Hour, Every: time.Hour,
	})
	if report.Versions[kind], err = version(ctx, service.db); err != nil {
		return err
	}
	for round := range s.rounds {
		for _, conns := range s.conns {
			fmt.Fprintf(os.Stderr, "%s: purge %d of %d, %d callers\n", kind, round+1, s.rounds, conns)
			p, err := purgeBeside(ctx, service, purger, conns, s.expired, s.duration, fmt.Sprintf("seed-%d-%d", round, conns))
			if err != nil {
				return fmt.Errorf("purge: %w", err)
			}
			report.addPurged(kind, conns, s.expired, p)
		}
	}
	return nil
}

// purgeBeside measures a quiet window, windows for as long as a purge goes on, and a quiet one again.
func purgeBeside(ctx context.Context, t *target, purger *retention.Purger, conns, keys int, window time.Duration, name string) (p purged, err error) {
	if err := seed(ctx, t.db, keys, name); err != nil {
		return p, err
	}
	callers := make([]*caller, 0, conns)
	defer func() {
		for _, c := range callers {
			c.close()
		}
	}()
	for range conns {
		connection, err := dial(t.addr)
		if err != nil {
			return p, err
		}
		callers = append(callers, &caller{client: connection, among: conns})
	}
	create := variants[slices.IndexFunc(variants, func(v variant) bool { return v.name == "create" })]
	var quiet, while []measurement
	measure := func(into *[]measurement) error {
		m, err := drive(ctx, create, t, callers, window)
		*into = append(*into, m)
		return err
	}
	if err := errors.Join(measure(&quiet), measure(&quiet)); err != nil {
		return p, err
	}
	quiet = quiet[1:] // the first warms up
	began, ended := time.Now(), make(chan error, 1)
	go func() {
		done, err := purger.Round(ctx)
		if got := done["expired"] + done["forgotten"]; err == nil && got != int64(keys) {
			err = fmt.Errorf("%d keys were purged, want %d", got, keys)
		}
		ended <- err
	}()
	for over := false; !over; {
		if err := measure(&while); err != nil {
			return p, errors.Join(err, <-ended)
		}
		select {
		case err := <-ended:
			if err != nil {
				return p, err
			}
			over = true
		default:
		}
	}
	p.perSecond = float64(keys) / time.Since(began).Seconds()
	if len(while) > 1 {
		while = while[:len(while)-1] // in a part of the last it was over
	}
	if err := measure(&quiet); err != nil {
		return p, err
	}
	p.quiet, p.quiet50 = medianOf(quiet)
	p.while, p.while50 = medianOf(while)
	return p, nil
}

// medianOf is the median of the windows' percentiles.
func medianOf(windows []measurement) (p99, p50 time.Duration) {
	of := func(value func(measurement) time.Duration) time.Duration {
		var all []time.Duration
		for _, m := range windows {
			all = append(all, value(m))
		}
		slices.Sort(all)
		return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
	}
	return of(func(m measurement) time.Duration { return m.p99 }), of(func(m measurement) time.Duration { return m.p50 })
}

// seed writes operations that have ended long ago, each with an answer as a ticket's is; every second one is a tombstone that is due.
func seed(ctx context.Context, db *database.DB, keys int, name string) error {
	numbers := fmt.Sprintf("generate_series(1, %d) AS n", keys)
	if db.Kind() == database.SQLite {
		numbers = fmt.Sprintf("(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < %d) SELECT n FROM c)", keys)
	}
	at := db.Now().Add(-seeded)
	body := strings.Repeat("x", 600)
	return db.InTx(ctx, func(tx database.Tx) error {
		err := tx.Exec(`INSERT INTO operations (account_id, idempotency_key, id, type, state, fingerprint, route, principal, agent_run, request_id, resource_type, resource_id,
				resource_href, response_status, response_location, response_body, created_at, updated_at, completed_at, response_expired_at)
			SELECT 'acme', CAST(? AS text) || n, CAST(? AS text) || n, 'ticket.create', 'succeeded', 'v1:0', 'POST /v1/tickets', 'seed', '', '', 'ticket', '', '', 201, '',
				CASE WHEN n % 2 = 0 THEN CAST(? AS `+bytea(db)+`) END, CAST(? AS `+moment(db)+`), CAST(? AS `+moment(db)+`), CAST(? AS `+moment(db)+`), CASE WHEN n % 2 = 1 THEN CAST(? AS `+moment(db)+`) END
			FROM `+numbers, name+"-", "op_"+name+"-", body, at, at, at, at).Error
		if err != nil {
			return fmt.Errorf("seed: %w", err)
		}
		return nil
	})
}

// bytea and moment are types in the words of a database. SQLite keeps a time as the text that it is given.
func bytea(db *database.DB) string {
	if db.Kind() == database.SQLite {
		return "blob"
	}
	return "bytea"
}

func moment(db *database.DB) string {
	if db.Kind() == database.SQLite {
		return "text"
	}
	return "timestamptz"
}
