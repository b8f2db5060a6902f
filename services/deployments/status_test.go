package deployments_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
)

// history is how a status resource changes, as somebody sees it who asks all the time.
type history struct {
	seen  map[string]bool
	pairs map[[2]string]bool
	last  string
}

// follow asks until the state is final, or with a person.
func (h *history) follow(t *testing.T, r running, d deployment) {
	t.Helper()
	h.last = ""
	await(t, "the deployment is over", func() bool {
		now := h.look(t, r, d)
		return idempotency.State(now.State).Final() || now.State == "unknown" && r.operation(t, d.OperationID).ReviewID != ""
	})
}

// look asks once.
func (h *history) look(t *testing.T, r running, d deployment) deployment {
	t.Helper()
	now := r.now(t, d.ID)
	if now.State != h.last {
		h.seen[now.State] = true
		if h.last != "" {
			h.pairs[[2]string{h.last, now.State}] = true
		}
		h.last = now.State
	}
	return now
}

// The states of the status resource are those of docs/protocol.md, and lead where its diagram says.
func TestTheStatusReachesEveryState(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := startAt(t, kind, startCluster(t, kind, 300*time.Millisecond))
		h := &history{map[string]bool{}, map[[2]string]bool{}, ""}

		h.follow(t, s, s.accepted(t, s.deploy(t, "succeeds", command("a", ""))))
		h.follow(t, s, s.accepted(t, s.deploy(t, "fails", `{"service":"failing","environment":"prod","artifact":"`+image("b")+`"}`)))

		slow := startAt(t, kind, startCluster(t, kind, patience))
		canceled := slow.accepted(t, slow.deploy(t, "canceled", command("e", "")))
		await(t, "the rollout goes on", func() bool { return len(slow.cluster.ledger("rollout")) == 1 })
		h.last = ""
		h.look(t, slow, slow.accepted(t, slow.deploy(t, "waits", command("d", queued))))
		slow.about(t, canceled.ID, "cancel", "cancel", nothing)
		h.follow(t, slow, canceled)

		s.cluster.arm("send", "after", "reset", "")
		s.cluster.Arm(`{"target":"cluster","operation":"close","when":"before","action":"status","status":500,"times":2}`)
		h.follow(t, s, s.accepted(t, s.deploy(t, "unknown", command("f", ""))))

		s.cluster.arm("send", "after", "half", "")
		h.follow(t, s, s.accepted(t, s.deploy(t, "half", command("0", ""))))

		asked := s.accepted(t, s.deploy(t, "asks", toProduction("1", "")))
		h.last = ""
		h.look(t, s, asked)
		s.decide(t, "yes", asked, "approve")
		h.follow(t, s, asked)

		want := []string{"awaiting_approval", "canceled", "failed", "queued", "running", "succeeded", "unknown"}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(h.seen))); diff != "" {
			t.Errorf("states that were seen (-want +got)\n%s", diff)
		}
		for pair := range h.pairs {
			if !leads(idempotency.State(pair[0]), idempotency.State(pair[1])) {
				t.Errorf("%s was followed by %s, to which no way leads", pair[0], pair[1])
			}
		}
		s.healthy(t)
	})
}

// leads reports whether one state can follow another, perhaps with some between them that nobody saw.
func leads(from, to idempotency.State) bool {
	between := []idempotency.State{from}
	for i := 0; i < len(between); i++ {
		for _, next := range []idempotency.State{idempotency.Queued, idempotency.Running, idempotency.Unknown} {
			if between[i].CanBecome(next) && !slices.Contains(between, next) {
				between = append(between, next)
			}
		}
	}
	return slices.ContainsFunc(between, func(s idempotency.State) bool { return s.CanBecome(to) })
}
