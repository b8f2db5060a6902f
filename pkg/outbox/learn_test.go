package outbox

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

func TestLearn(t *testing.T) {
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		learn := func(s *stage, e Effect, reference string) bool {
			s.t.Helper()
			ours, err := Learn(context.Background(), s.db, e, reference)
			s.ok(err)
			return ours
		}

		t.Run("who holds the effect notes what it is about to move, and may say it again", func(t *testing.T) {
			s := set(t, keyed)
			taken := s.take(s.accept("k"))
			for range 2 {
				if !learn(s, taken, "D-1") {
					t.Error("not noted")
				}
			}
			if e := s.now(taken); e.Reference != "D-1" || e.State != idempotency.Running || e.LeasedBy != taken.LeasedBy {
				t.Errorf("noted in %+v", e)
			}
			if e := s.sent(taken, Evidence{Finding: Confirmed, Reference: "D-1"}); e.State != idempotency.Succeeded {
				t.Errorf("ended as %+v", e)
			}
		})

		t.Run("who has lost the effect to somebody that asks does not", func(t *testing.T) {
			s := set(t, keyed)
			taken := s.take(s.accept("k"))
			s.clock.advance(s.target.Lease)
			s.takeToAsk(taken)
			if learn(s, taken, "D-1") {
				t.Error("noted under an old fence")
			}
			if e := s.now(taken); e.Reference != "" {
				t.Errorf("known as %q", e.Reference)
			}
		})

		t.Run("another name than the one that is known does not take its place", func(t *testing.T) {
			s := set(t, keyed)
			taken := s.take(s.accept("k"))
			if !learn(s, taken, "D-1") || learn(s, taken, "D-2") {
				t.Error("want the first noted and the second not")
			}
			if e := s.now(taken); e.Reference != "D-1" {
				t.Errorf("known as %q", e.Reference)
			}
		})

		t.Run("what is learned outlives a send that came to nothing", func(t *testing.T) {
			s := set(t, keyed)
			taken := s.take(s.accept("k"))
			learn(s, taken, "D-1")
			e := s.sent(taken, Evidence{Finding: NotSent})
			s.clock.advance(longestWait)
			if again := s.take(e); again.Reference != "D-1" {
				t.Errorf("taken again as %+v", again)
			}
		})
	})
}

func TestWhatIsNotWhatWasAskedForGoesToAPerson(t *testing.T) {
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		t.Run("whether a send shows it or a look", func(t *testing.T) {
			s := set(t, keyed)
			s.desk.onSend, s.desk.onLookup = always(Different), always(Different)
			e := s.send(s.accept("k"))
			if e.State != idempotency.Unknown || e.NextAt != nil || e.ReviewID == "" {
				t.Errorf("after the send: %+v", e)
			}
			s.desk.onSend = always(Ambiguous)
			e = s.send(s.accept("l"))
			s.clock.advance(s.target.AskEvery)
			if e = s.ask(e); e.State != idempotency.Unknown || e.NextAt != nil || e.ReviewID == "" {
				t.Errorf("after the look: %+v", e)
			}
			if n := len(s.reviews(review.Unknown)); n != 2 {
				t.Errorf("%d reviews", n)
			}
			if sends := s.operation(e).Effect.Sends; len(sends) != 1 || sends[0].Outcome != "ambiguous" {
				t.Errorf("clients see %+v", sends)
			}
		})
	})
}

func TestWhatAFailedCallShows(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, c := range []struct {
		name      string
		err       error
		send, ask Finding
	}{
		{"a connection that was never made", refused, NotSent, Ambiguous},
		{"one that was lost", &net.OpError{Op: "read", Err: errors.New("reset")}, Ambiguous, Ambiguous},
		{"half an answer", io.ErrUnexpectedEOF, Ambiguous, Ambiguous},
		{"no answer in time", context.DeadlineExceeded, Ambiguous, Ambiguous},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := FailedSend(c.err); got.Finding != c.send || got.Says == "" {
				t.Errorf("a send: %+v", got)
			}
			if got := FailedAsk(c.err); got.Finding != c.ask || got.Says == "" {
				t.Errorf("another call: %+v", got)
			}
		})
	}
}
