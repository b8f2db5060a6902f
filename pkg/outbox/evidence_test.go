package outbox

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/review"
)

// What a target answers comes from outside. A text that the database refuses, or that has no end, must not keep an effect from
// being settled.
func TestEvidenceThatCanNotBeKept(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, set func(*testing.T, Ability) *stage) {
		for name, reference := range map[string]string{
			"with a U+0000": "D\x00-1", "that is no text": "D\xff-1", "without an end": strings.Repeat("D", 60_000),
		} {
			t.Run("a reference "+name+" is one that can't be read, and in the end a person is asked", func(t *testing.T) {
				s := set(t, keyed)
				confirmed := func(Effect) Evidence { return Evidence{Finding: Confirmed, Reference: reference, Says: "found"} }
				s.desk.onSend, s.desk.onLookup = confirmed, confirmed
				e := s.send(s.accept("k"))
				if e.State != idempotency.Unknown || !e.inDoubt() || e.Reference != "" {
					t.Fatalf("after the send: %+v", e)
				}
				for range s.target.MaxAsks {
					s.clock.advance(longestWait)
					e = s.ask(e)
				}
				if e.State != idempotency.Unknown || e.ReviewID == "" || len(s.reviews(review.Unknown)) != 1 {
					t.Errorf("%d reviews, %+v", len(s.reviews(review.Unknown)), e)
				}
			})
		}
		t.Run("what is told to run there is kept as far as it can be, and a person is asked", func(t *testing.T) {
			s := set(t, keyed)
			_, lock := s.locked()
			var ran []string
			lock.Learn = func(tx database.Tx, e Effect, ev Evidence) error { // as a service keeps it
				ran = append(ran, ev.Runs)
				return rowOf(e, tx.DB).Table("effects").UpdateColumn("shown", ev.Runs).Error
			}
			s.desk.onSend = func(Effect) Evidence {
				return Evidence{Finding: Different, Says: "something else runs", Runs: "a\x00b\xff" + strings.Repeat("ß", 60_000)}
			}
			e := s.send(s.accept("k"))
			if e.State != idempotency.Unknown || len(s.reviews(review.Unknown)) != 1 {
				t.Fatalf("%d reviews, %+v", len(s.reviews(review.Unknown)), e)
			}
			if last := ran[len(ran)-1]; len(last) > maxRuns || !utf8.ValidString(last) || !strings.HasPrefix(last, "a\ufffdb\ufffdß") {
				t.Errorf("%d bytes: %.20q", len(last), last)
			}
		})
		t.Run("what is for people is cut to what can be kept and read", func(t *testing.T) {
			s := set(t, keyed)
			s.desk.onSend = func(Effect) Evidence {
				return Evidence{Finding: Ambiguous, Says: "\x00\xff" + strings.Repeat("ß", 60_000)}
			}
			e := s.send(s.accept("k"))
			sends := s.operation(e).Effect.Sends
			if e.State != idempotency.Unknown || len(sends) != 1 {
				t.Fatalf("%d sends, %+v", len(sends), e)
			}
			if said := sends[0].Error; len(said) > maxSays || !utf8.ValidString(said) || !strings.HasPrefix(said, "\ufffd\ufffdß") {
				t.Errorf("%d bytes: %.20q", len(said), said)
			}
		})
	})
}
