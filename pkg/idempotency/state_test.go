package idempotency_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/idempotency"
)

// claimed is the state before the claim: no row.
const claimed idempotency.State = ""

var states = []idempotency.State{
	idempotency.AwaitingApproval, idempotency.Queued, idempotency.Running,
	idempotency.Succeeded, idempotency.Failed, idempotency.Canceled, idempotency.Unknown,
}

func TestTransitions(t *testing.T) {
	document := documentedTransitions(t)
	for _, from := range append([]idempotency.State{claimed}, states...) {
		for _, to := range append([]idempotency.State{claimed}, states...) {
			if got, want := from.CanBecome(to), slices.Contains(document[from], to); got != want {
				t.Errorf("%q can become %q: the code says %v, docs/protocol.md %v", from, to, got, want)
			}
		}
	}
	t.Run("terminal states lead nowhere, all others do", func(t *testing.T) {
		for _, from := range states {
			leads := slices.ContainsFunc(states, from.CanBecome)
			if leads == from.Final() {
				t.Errorf("%q: final %v, leads on %v", from, from.Final(), leads)
			}
		}
	})
	t.Run("a state that nobody knows is not final and leads nowhere", func(t *testing.T) {
		if odd := idempotency.State("odd"); odd.Final() || slices.ContainsFunc(states, odd.CanBecome) {
			t.Error("it is")
		}
	})
}

func TestEffect(t *testing.T) {
	for state, want := range map[idempotency.State]string{
		idempotency.AwaitingApproval: "none", idempotency.Queued: "none", idempotency.Running: "unknown", idempotency.Unknown: "unknown",
		idempotency.Succeeded: "applied", idempotency.Failed: "none", idempotency.Canceled: "none",
	} {
		if got := state.Effect(); got != want {
			t.Errorf("%q: %q, want %q", state, got, want)
		}
	}
}

// documentedTransitions reads "from → to | to   remark" out of the section States.
func documentedTransitions(t *testing.T) map[idempotency.State][]idempotency.State {
	t.Helper()
	text, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## States\n")
	section, _, _ = strings.Cut(section, "\n## ")
	line := regexp.MustCompile(`(?m)^    (\S+) → (\w+(?: \| \w+)*)(?:$|  )`)
	all := map[idempotency.State][]idempotency.State{}
	for _, m := range line.FindAllStringSubmatch(section, -1) {
		from := idempotency.State(m[1])
		if m[1] == "(claim)" {
			from = claimed
		}
		for to := range strings.SplitSeq(m[2], " | ") {
			all[from] = append(all[from], idempotency.State(to))
		}
	}
	if len(all) != 5 { // the claim and the four states that are not terminal
		t.Fatalf("read %v", all)
	}
	return all
}
