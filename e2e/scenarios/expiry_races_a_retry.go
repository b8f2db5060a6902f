package scenarios

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/einmal/einmal/e2e/faults"
	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/pkg/idempotency"
)

var expiryRacesARetry = Scenario{
	Name:    "expiry_races_a_retry",
	Promise: "Retries that arrive while their keys are being dropped and forgotten, by two replicas of which one dies over it, get their answer or 410: never a second ticket, never a 500.",
	Injects: true,
	run: func(s *Stage) int {
		const callers, keysEach = 4, 15
		retention := []string{"EINMAL_RESPONSE_RETENTION=1s", "EINMAL_TOMBSTONE_RETENTION=2s"}
		replicas := []*harness.Service{s.keeping(retention...), s.keeping(retention...)}
		lossy := s.HTTPProxy(replicas[0])
		lossy.Next(faults.LoseAnswer)

		var replayed, expired, atOnce, unavailable, wrong atomic.Int64
		var last atomic.Pointer[harness.Answer]
		var stop atomic.Bool
		var all sync.WaitGroup
		for c := range callers {
			keys, bodies := make([]string, keysEach), make([]string, keysEach)
			for i := range keys {
				keys[i], bodies[i] = idempotency.NewID("", time.Now())[1:], s.NewTicket().JSON()
				first := lossy.URL()
				if c+i > 0 {
					first = replicas[c%2].URL()
				}
				s.Create(first, keys[i], bodies[i])
			}
			for _, replica := range replicas {
				all.Go(func() {
					for !stop.Load() {
						for i, key := range keys {
							switch a := s.Create(replica.URL(), key, bodies[i]); {
							case a.Err != nil || a.Status == http.StatusServiceUnavailable: // it was killed, or the database is busy
								unavailable.Add(1)
								s.Moment() // nobody listens
							case a.Status == http.StatusCreated && a.Outcome() == "replayed":
								replayed.Add(1)
							case a.Status == http.StatusGone && a.Text("code") == "idempotency-key-expired":
								expired.Add(1)
							case a.Status == http.StatusConflict && a.Text("code") == "operation-in-progress":
								atOnce.Add(1)
							default:
								wrong.Add(1)
								last.Store(&a)
							}
						}
					}
				})
			}
		}
		end := func() {
			stop.Store(true)
			all.Wait()
		}
		defer end() // also when it fails
		s.Await("tombstones are made", func() bool {
			return s.Count("SELECT count(*) FROM operations WHERE response_expired_at IS NOT NULL") > 0
		})
		s.Kill(replicas[1])
		s.must(replicas[1].Start(s.ctx))
		s.Await("all keys are forgotten", func() bool { return s.Count("SELECT count(*) FROM operations") == 0 })
		end()
		if a := last.Load(); a != nil {
			s.Failf("%d answers are none that a retry may get, the last of them %v", wrong.Load(), *a)
		}
		s.Check(expired.Load() > 0 && replayed.Load() > 0, "%d retries were replayed and %d expired: they did not meet the purge", replayed.Load(), expired.Load())
		s.Notef("%d replayed, %d expired, %d told to wait, %d not answered", replayed.Load(), expired.Load(), atOnce.Load(), unavailable.Load())
		return callers * keysEach
	},
}
