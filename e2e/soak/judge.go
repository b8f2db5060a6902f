package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
)

// counted is what is in the database, looked at behind the service's back.
type counted struct{ tickets, open, resolved, comments, operations, replayed int }

func (s *soak) count(ctx context.Context) (c counted, err error) {
	for query, into := range map[string]*int{
		"SELECT count(*) FROM tickets":                                                      &c.tickets,
		"SELECT count(*) FROM tickets WHERE status IN ('open', 'in_progress')":              &c.open,
		"SELECT count(*) FROM tickets WHERE status = 'resolved'":                            &c.resolved,
		"SELECT count(*) FROM comments":                                                     &c.comments,
		"SELECT count(*) FROM operations WHERE idempotency_key LIKE 'am:%'":                 &c.operations,
		"SELECT count(*) FROM events WHERE type = 'replayed' AND route LIKE '%/v1/hooks/%'": &c.replayed,
	} {
		if *into, err = s.db.Count(ctx, query); err != nil {
			return c, err
		}
	}
	return c, nil
}

// events are what notifications have told of: each with whether any of them says that it is over.
type events map[string]bool

func (e events) add(n harness.Notification) error {
	var read struct {
		Alerts []struct{ Fingerprint, StartsAt, Status string }
	}
	if err := json.Unmarshal(n.Body, &read); err != nil {
		return fmt.Errorf("read a notification: %w", err)
	}
	for _, a := range read.Alerts {
		event := a.Fingerprint + "@" + a.StartsAt
		e[event] = e[event] || a.Status == "resolved"
	}
	return nil
}

// judge compares what was told with what is there, and prints both.
func (s *soak) judge(ctx context.Context, agents *agents, flapping *flapping) error {
	if err := s.service.Terminate(); err != nil {
		return err
	}
	told, taken, notifications, later, unanswered := events{}, events{}, 0, 0, 0
	for _, receiver := range s.receivers {
		if err := receiver.Close(); err != nil {
			return err
		}
		for _, n := range receiver.Notifications() {
			notifications++
			err := told.add(n)
			switch n.Status {
			case http.StatusOK:
				err = errors.Join(err, taken.add(n))
			case http.StatusServiceUnavailable:
				later++
			case 0:
				unanswered++
			default:
				err = errors.Join(err, fmt.Errorf("a notification was answered %d", n.Status))
			}
			if err != nil {
				return err
			}
		}
	}
	c, err := s.count(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d notifications of 2 Alertmanagers, %d of them without an answer, %d answered 503; %d kills\n", notifications, unanswered, later, s.kills)
	fmt.Printf("%d times an alert began; %d (fingerprint, startsAt) were told of, %d of them in notifications that were taken\n", flapping.begun, len(told), len(taken))
	fmt.Printf("%d tickets: %d resolved, %d open; %d alerts fire\n", c.tickets, c.resolved, c.open, flapping.firing())
	fmt.Printf("%d operations of alerts, %d repeats that were replayed; %d comments on %d tickets\n", c.operations, c.replayed, c.comments, agents.done())

	var wrong []error
	check := func(holds bool, format string, args ...any) {
		if !holds {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	check(s.kills > 0, "nothing was killed, so nothing was shown")
	check(maps.Equal(told, taken), "something was told of and never taken")
	check(c.tickets == len(told), "%d tickets, want %d", c.tickets, len(told))
	check(c.tickets == flapping.begun, "%d tickets, and alerts began %d times", c.tickets, flapping.begun)
	check(c.open == flapping.firing(), "%d tickets are open, and %d alerts fire", c.open, flapping.firing())
	check(c.comments == c.tickets, "%d comments on %d tickets", c.comments, c.tickets)
	resolved := 0
	for event, over := range told {
		found, err := s.db.Count(ctx, "SELECT count(*) FROM tickets WHERE source_event_id = $1", event)
		check(err == nil && found == 1, "%d tickets of %s, want 1 (%v)", found, event, err)
		matching, err := s.db.Count(ctx, "SELECT count(*) FROM tickets WHERE source_event_id = $1 AND comment_count = 1 AND (status = 'resolved') = $2", event, over)
		check(err == nil && matching == 1, "the ticket of %s has another status, or not one comment (%v)", event, err)
		if over {
			resolved++
		}
	}
	check(c.operations == len(told)+resolved, "%d operations of alerts, want %d", c.operations, len(told)+resolved)
	if err := s.db.Fsck(ctx, ""); err != nil {
		wrong = append(wrong, err)
	} else {
		fmt.Println("fsck found nothing")
	}
	return errors.Join(wrong...)
}
