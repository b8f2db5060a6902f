package outbox

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
)

// lines are what a log says, line by line.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func TestOpenEffectsOfATargetThatIsNotServed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := newStage(t, dbtest.URL(t, kind), unable)
		s.send(s.accept("done"))
		s.accept("queued")
		s.acceptOf(s.account, "first", catalogue.DeploymentCancel)
		s.desk.onSend = always(Ambiguous)
		unknown := s.send(s.accept("unknown"))
		waits := s.acceptIn(idempotency.AwaitingApproval, s.account, "waits", catalogue.TicketMirror)

		said := make(lines, 8)
		other := s.target
		other.Name = "another desk"
		box, err := New(Deps{DB: s.db, Exec: s.exec, Log: slog.New(slog.NewTextHandler(said, nil)), Record: s.record, Service: "tickets", PollEvery: time.Minute}, other)
		s.ok(err)
		t.Run("are warned of at the start, with their number", func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { box.Run(ctx); close(ended) }()
			line := <-said
			stop()
			<-ended
			if !strings.Contains(line, "WARN") || !strings.Contains(line, s.target.Name) || !strings.Contains(line, "effects=3") || len(said) != 0 {
				t.Errorf("%s, and %d lines more", line, len(said))
			}
		})
		t.Run("can't be canceled or decided by this process, and stay as they are", func(t *testing.T) {
			for _, e := range []Effect{unknown, waits} {
				before := s.now(e)
				canceled := s.inTx(func(tx database.Tx) error { _, err := box.Cancel(tx, e.AccountID, e.OperationID); return err })
				decided := s.inTx(func(tx database.Tx) error { return box.Decide(tx, e.AccountID, e.OperationID, idempotency.Failed, "") })
				if !errors.Is(canceled, ErrNotServed) || !errors.Is(decided, ErrNotServed) {
					t.Errorf("%s: %v, %v", e.State, canceled, decided)
				}
				if diff := cmp.Diff(before, s.now(e)); diff != "" {
					t.Error(diff)
				}
			}
		})
	})
}
