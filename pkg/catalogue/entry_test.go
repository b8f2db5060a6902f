package catalogue_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/catalogue"
)

func TestEveryEntryIsAnswered(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+\.[a-z_]+$`)
	seen := map[string]bool{}
	for _, e := range catalogue.All() {
		if !name.MatchString(e.Type) || seen[e.Type] {
			t.Errorf("type %q is no noun.verb, or is there twice", e.Type)
		}
		seen[e.Type] = true
		for field, text := range map[string]string{
			"owner": e.Owner, "target": e.Target, "duplication_cost": e.DuplicationCost, "proof": e.Proof,
			"priority": e.Priority, "escalation": e.Escalation, "approval": e.Approval,
		} {
			if text == "" {
				t.Errorf("%s: %s is empty", e.Type, field)
			}
		}
		if !slices.Contains([]catalogue.Risk{catalogue.Repeatable, catalogue.Compensable, catalogue.Irreversible}, e.Risk) {
			t.Errorf("%s: risk %q", e.Type, e.Risk)
		}
		if !slices.Contains([]catalogue.DownstreamKey{catalogue.KeySent, catalogue.KeyLookup, catalogue.KeyNone}, e.DownstreamKey) {
			t.Errorf("%s: downstream_key %q", e.Type, e.DownstreamKey)
		}
		if e.Effects == nil || e.RetryOn == nil {
			t.Errorf("%s: effects or retry_on would be null in JSON", e.Type)
		}
		if (e.Target == "none") != (len(e.Effects) == 0) {
			t.Errorf("%s: target %q with effects %q", e.Type, e.Target, e.Effects)
		}
	}
}

// A client that follows the policy must be able to: neither zero attempts, nor a wait that outlives the deadline.
func TestBudgetsCanBeSpent(t *testing.T) {
	for _, e := range catalogue.All() {
		if e.MaxAttempts < 1 || e.DeadlineSeconds < 1 || e.LongestWaitSeconds < 1 || e.LongestWaitSeconds >= e.DeadlineSeconds {
			t.Errorf("%s: %d attempts within %d s, at most %d s apart", e.Type, e.MaxAttempts, e.DeadlineSeconds, e.LongestWaitSeconds)
		}
	}
}

func TestLookup(t *testing.T) {
	if e, ok := catalogue.Lookup(catalogue.TicketCreate); !ok || e.Owner != "tickets" {
		t.Errorf("ticket.create: %+v, %v", e, ok)
	}
	if _, ok := catalogue.Lookup("ticket.burn"); ok {
		t.Error("found an operation type that does not exist")
	}
	types := func(owner string) (all []string) {
		for _, e := range catalogue.Of(owner) {
			all = append(all, e.Type)
		}
		return all
	}
	everyones := []string{catalogue.OperationCancel, catalogue.OperationReconcile, catalogue.ApprovalDecide, catalogue.ReviewResolve}
	if diff := cmp.Diff(everyones, types("nobody")); diff != "" {
		t.Errorf("what every service answers (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(append([]string{catalogue.TicketCreate, catalogue.TicketComment, catalogue.TicketSetStatus, catalogue.TicketMirror}, everyones...), types("tickets")); diff != "" {
		t.Errorf("what tickets answers (-want +got)\n%s", diff)
	}
	rollouts := []string{catalogue.DeploymentCreate, catalogue.DeploymentCancel, catalogue.DeploymentRollback, catalogue.EnvironmentPut}
	if diff := cmp.Diff(append(rollouts, everyones...), types("deployments")); diff != "" {
		t.Errorf("what deployments answers (-want +got)\n%s", diff)
	}
	money := []string{catalogue.OrderPut, catalogue.PaymentCreate, catalogue.PaymentCapture, catalogue.PaymentCancel, catalogue.RefundCreate}
	if diff := cmp.Diff(append(money, everyones...), types("payments")); diff != "" {
		t.Errorf("what payments answers (-want +got)\n%s", diff)
	}
}
