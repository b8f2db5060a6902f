package scenarios

import (
	"errors"
	"net/http"
	"os"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/pkg/money"
	"github.com/einmal/einmal/services/simulator"
)

// approver may decide for the agent's account; boss and both are others that services know who are given Stage.People: both may ask
// as well.
const (
	approver = "demo-approver"
	boss     = "boss"
	both     = "both"
	stranger = "stranger" // of another account
)

// threshold is from where on a person is asked about a payment, in major units, and large an amount of that.
const (
	threshold = 10000
	large     = "10000.00"
)

// People are the settings of a service that knows more people than the demo's.
func (s *Stage) People() []string {
	const tokens = "" + // printf %s TOKEN | sha256sum
		"a5e7c002443743c5836758c7d1cd8ddefd9fcf2061daa0efaac683fb99966057 boss acme approver\n" +
		"ff7772053abf7d817d6eec229a09e14f0d1552f1cb0aeedb2ac73784ac2d2e39 both acme agent,approver\n" +
		"8aca4f36774f82a67c507cb9c96679482e2cc767f2d38502269557a566b092fb stranger globex approver\n"
	file, err := os.CreateTemp("", "einmal-tokens-")
	s.must(err)
	s.closers = append(s.closers, func() error { return os.Remove(file.Name()) })
	_, err = file.WriteString(tokens)
	s.must(errors.Join(err, file.Close()))
	return []string{"EINMAL_TOKENS_FILE=" + file.Name(), "EINMAL_DEMO=1"}
}

// Approval reads the question about an operation, as whoever decides it sees it.
func (s *Stage) Approval(replica *harness.Service, operation string) harness.Answer {
	id := s.Text("SELECT approval_id FROM effects WHERE operation_id = $1", operation)
	s.Check(id != "", "operation %s asks nobody", operation)
	return s.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/approvals/" + id, Token: approver})
}

// Decide sends a decision once.
func (s *Stage) Decide(replica *harness.Service, token, key string, approval harness.Answer, decision string) harness.Answer {
	return s.Do(harness.Call{
		Base: replica.URL(), Method: http.MethodPost, Path: "/v1/approvals/" + approval.Text("id") + "/decision", Token: token, Key: key,
		Body: encode(map[string]string{"decision": decision, "fingerprint": approval.Text("fingerprint")}),
	})
}

// Approve lets a person say yes to an operation, which must wait for it.
func (s *Stage) Approve(replica *harness.Service, operation string) {
	approval := s.Approval(replica, operation)
	s.Check(approval.Text("state") == "pending", "the question is %v, want it open", approval)
	answer := s.Decide(replica, approver, s.NewKey(), approval, "approve")
	s.Check(answer.Err == nil && answer.Status == http.StatusOK && answer.Text("state") == "approved" && answer.Text("approved_by") == approver, "the yes: got %v, want it approved", answer)
}

// waits tells whether an answer is that of an operation that waits for a person.
func waits(a harness.Answer) bool {
	return a.Status == http.StatusAccepted && a.Text("state") == "awaiting_approval" && a.Text("next_action") == "ask_human" && a.Text("approval_id") != ""
}

// validSend is that a send of an effect under the key $1 began while a person had said yes to exactly its operation.
const validSend = `EXISTS (SELECT 1 FROM approvals a JOIN operations o ON o.account_id = a.account_id AND o.id = a.operation_id
	WHERE a.account_id = e.account_id AND a.id = e.approval_id AND o.id = e.operation_id AND a.approved AND a.fingerprint = o.fingerprint
	AND a.decided_by <> o.principal AND a.decided_at <= t.started_at AND a.expires_at > t.started_at)`

// checkApprovals ends the scenario if an effect is in the ledger that was sent without the yes that the policy asks for.
func (s *Stage) checkApprovals() {
	switch {
	case s.psp != nil:
		s.checkMayPay(s.psp.Ledger())
	case s.cluster != nil:
		unasked := s.Count(`SELECT count(*) FROM effects e JOIN deployments d ON d.account_id = e.account_id AND d.operation_id = e.operation_id
			JOIN environments v ON v.account_id = d.account_id AND v.name = d.environment
			WHERE e.approval_id = '' AND (d.kind = 'rollback' OR v.approval_required)`)
		s.Check(unasked == 0, "%d rollouts asked nobody", unasked)
		s.checkSends(s.cluster.Ledger())
	}
}

func (s *Stage) checkMayPay(ledger []simulator.Effect) {
	for _, e := range ledger {
		amount, err := money.FromMinor(e.AmountMinor, e.Currency)
		s.must(err)
		unit := int64(1)
		for range amount.Currency.Exponent() {
			unit *= 10
		}
		if e.Kind == authorized && e.AmountMinor >= threshold*unit {
			unasked := s.Count("SELECT count(*) FROM effects WHERE effect_key = $1 AND approval_id = ''", e.EffectKey)
			s.Check(unasked == 0, "nobody was asked about the authorising of %s %s", amount, e.Currency)
		}
	}
	unasked := s.Count(`SELECT count(*) FROM refunds r JOIN effects e ON e.account_id = r.account_id AND e.operation_id = r.operation_id
		WHERE e.approval_id = '' AND EXISTS (SELECT 1 FROM refunds b JOIN operations o ON o.account_id = b.account_id AND o.id = b.operation_id
			WHERE b.account_id = r.account_id AND b.payment_id = r.payment_id AND b.number < r.number AND o.state NOT IN ('failed', 'canceled'))`)
	s.Check(unasked == 0, "%d refunds asked nobody beside others of their payment", unasked)
	s.checkSends(ledger)
}

// checkSends ends the scenario unless whatever asked a person, and is in the ledger, was only sent while it had their yes.
func (s *Stage) checkSends(ledger []simulator.Effect) {
	for _, e := range ledger {
		const sends = "SELECT count(*) FROM attempts t JOIN effects e ON e.account_id = t.account_id AND e.id = t.effect_id WHERE t.kind = 'send' AND e.effect_key = $1 AND e.approval_id <> ''"
		all, valid := s.Count(sends, e.EffectKey), s.Count(sends+" AND "+validSend, e.EffectKey)
		s.Check(all == valid, "%d of the %d sends of %s %s had a yes", valid, all, e.Kind, e.EffectKey)
	}
}
