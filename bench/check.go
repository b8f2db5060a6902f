package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/einmal/einmal/pkg/fsck"
	"github.com/einmal/einmal/services/tickets"
)

// eventsWithin is how long the service may take to write the events of replays, which it does in batches of its own: they wait
// a tenth of a second for each other, and the measurement after should not pay for them.
const eventsWithin = 10 * time.Second

// check compares the rows with what was asked for: as many tickets as creations were answered, and none of anything else.
func (t *target) check(ctx context.Context) error {
	timeout := time.After(eventsWithin)
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		rows, err := t.count(ctx)
		if err != nil {
			return err
		}
		if rows == t.sent {
			return nil
		}
		rest := rows
		rest.Events = t.sent.Events
		if rest != t.sent || rows.Events > t.sent.Events {
			return fmt.Errorf("the rows of %s are not what was answered: %+v instead of %+v", t.name, rows, t.sent)
		}
		select {
		case <-tick.C:
		case <-timeout:
			return fmt.Errorf("events of %s are missing: %+v instead of %+v", t.name, rows, t.sent)
		}
	}
}

func (t *target) count(ctx context.Context) (rows tally, err error) {
	err = t.db.Read(ctx).Raw(`SELECT (SELECT count(*) FROM tickets) AS tickets, (SELECT count(*) FROM operations) AS operations,
		(SELECT count(*) FROM events) AS events`).Scan(&rows).Error
	if err != nil {
		err = fmt.Errorf("count rows of %s: %w", t.name, err)
	}
	return rows, err
}

// fsck is what einmal fsck checks.
func (t *target) fsck(ctx context.Context) error {
	violations, err := fsck.Run(ctx, t.db, tickets.Checks()...)
	if err != nil {
		return fmt.Errorf("fsck: %w", err)
	}
	for _, v := range violations {
		err = errors.Join(err, fmt.Errorf("fsck: %s: %s %s", v.Check, v.Account, v.ID))
	}
	return err
}

// compare sends one ticket to both services and fails if the bare one answers or stores anything else than the other, apart from
// the ids and times: it would not be the same work.
func compare(ctx context.Context, bare, tickets *target) error {
	var answers, rows [2]map[string]any
	for i, t := range []*target{bare, tickets} {
		connection, err := dial(t.addr)
		if err != nil {
			return err
		}
		defer connection.close()
		a, err := connection.post(newKey(), ticket)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(a.body, &answers[i]); err != nil || a.status != 201 {
			return fmt.Errorf("%s answered %d: %s", t.name, a.status, a.body)
		}
		if err := t.db.Read(ctx).Table("tickets").Take(&rows[i]).Error; err != nil {
			return fmt.Errorf("read the row of %s: %w", t.name, err)
		}
		if t == tickets {
			t.sent = t.sent.plus(aCreation)
		} else {
			t.sent = t.sent.plus(tally{Tickets: 1})
		}
		for _, own := range []string{"id", "operation_id", "created_at", "updated_at"} {
			for _, m := range []map[string]any{answers[i], rows[i]} {
				if _, there := m[own]; there {
					m[own] = "its own"
				}
			}
		}
	}
	if !reflect.DeepEqual(answers[0], answers[1]) || !maps.Equal(rows[0], rows[1]) {
		return fmt.Errorf("the bare service is another: it answers %v and stores %v, not %v and %v", answers[0], rows[0], answers[1], rows[1])
	}
	return nil
}
