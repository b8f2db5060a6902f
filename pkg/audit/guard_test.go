package audit_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
)

func TestGuard(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("lets pass what is new, and what is as it was sealed", func(t *testing.T) {
			th := newThief(t, kind)
			if err := th.replica(t.TempDir()).Guard(t.Context()); err != nil {
				t.Error(err)
			}
			if err := th.replica(th.dir).Guard(t.Context()); err != nil {
				t.Error(err)
			}
		})
		for name, do := range map[string]func(th thief){
			"that is shorter": func(th thief) { th.cut(7, 2) },
			"that is empty":   func(th thief) { th.cut(0, 0) },
			"that went another way since": func(th thief) {
				th.cut(4, 1)
				th.record(9)
				th.sealElsewhere(t)
			},
			"that is another": func(th thief) { th.exec("UPDATE installation SET namespace = 'another'") },
		} {
			t.Run("refuses a database "+name+", until that is accepted", func(t *testing.T) {
				th := newThief(t, kind)
				do(th)
				sealer := th.replica(th.dir)
				if err := sealer.Guard(t.Context()); !errors.Is(err, idempotency.ErrRewound) {
					t.Fatalf("error %v", err)
				}
				th.record(1)
				if _, err := sealer.Seal(t.Context()); !errors.Is(err, idempotency.ErrRewound) {
					t.Errorf("it is sealed: error %v", err)
				}
				if name == "that is another" || name == "that went another way since" {
					return // its checkpoints are of another key or name
				}
				doubted := 0
				setAside, err := th.replica(th.dir).Accept(t.Context(), func(database.Tx) error { doubted++; return nil })
				if err != nil || doubted != 1 {
					t.Fatalf("%d times in doubt, error %v", doubted, err)
				}
				if _, err := os.Stat(setAside); err != nil {
					t.Error(err)
				}
				open, left := make(chan struct{}), context.CancelFunc(nil)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				left = cancel
				sealer.WhileOpen(ctx, func(context.Context) { close(open); left() })
				select {
				case <-open:
				default:
					t.Fatal("it does not open")
				}
				if err := sealer.SealAll(t.Context()); err != nil {
					t.Fatal(err)
				}
				if report := th.verify(); len(report.Findings) > 0 {
					t.Errorf("%+v", report)
				}
			})
		}
		t.Run("what is as it was sealed can't be accepted", func(t *testing.T) {
			th := newThief(t, kind)
			_, err := th.replica(th.dir).Accept(t.Context(), func(database.Tx) error { t.Error("effects are in doubt"); return nil })
			if !errors.Is(err, audit.ErrNothingToAccept) {
				t.Errorf("error %v", err)
			}
		})
		t.Run("shuts for a process that leaves sealing to another, too", func(t *testing.T) {
			th := newThief(t, kind)
			other, err := audit.NewSealer(th.db, slog.New(slog.DiscardHandler), "tickets", audit.Sealing{AuditDir: th.dir})
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Guard(t.Context()); err != nil {
				t.Fatal(err)
			}
			th.cut(7, 2)
			for end := time.After(20 * time.Second); !errors.Is(other.Guard(t.Context()), idempotency.ErrRewound); {
				select {
				case <-end:
					t.Fatal("it stays open")
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
		t.Run("shuts when the database is set back under a running service", func(t *testing.T) {
			th := newThief(t, kind)
			sealer := th.replica(th.dir)
			if err := sealer.Guard(t.Context()); err != nil {
				t.Fatal(err)
			}
			// A service sends and purges side by side, and neither may go on.
			const several = 2
			begun, ended := make(chan struct{}, several), make(chan struct{}, several)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for range several {
				go sealer.WhileOpen(ctx, func(ctx context.Context) {
					begun <- struct{}{}
					<-ctx.Done()
					ended <- struct{}{}
				})
			}
			for range several {
				<-begun
			}
			th.cut(7, 2)
			_, _ = sealer.Seal(ctx) // which notices
			for range several {
				select {
				case <-ended:
				case <-ctx.Done():
				}
			}
			if ctx.Err() != nil {
				t.Fatal("what runs goes on")
			}
			if err := sealer.Guard(t.Context()); !errors.Is(err, idempotency.ErrRewound) {
				t.Errorf("error %v", err)
			}
		})
	})
}

// sealElsewhere seals what is there by a key of its own, and returns where that is.
func (th thief) sealElsewhere(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	copyFile(t, th.dir+"/audit.key", dir+"/audit.key")
	if err := th.replica(dir).SealAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir
}
