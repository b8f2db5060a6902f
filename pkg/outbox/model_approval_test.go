package outbox

import (
	"errors"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// consent is what a person has said to an effect that needs their yes.
type consent struct {
	answer  consentNo // of the approval
	until   when      // approved_until of the effect
	expires when      // of the approval
	moved   bool      // the world is not what they were shown any more
}

// given: they have said yes, it holds, and the world is as it was; or nobody need be asked.
func (c consent) given() bool {
	return c.answer == notNeeded || c.answer == saidYes && c.expires == ahead && !c.moved
}

// consentNo is the state of an approval in a byte.
type consentNo uint8

const (
	notNeeded consentNo = iota // there is none
	isAsked
	saidYes
	isOver // rejected, expired or stale: no step tells them apart
)

const modelApproval = "apr_model"

// openApproval puts the question beside the effect, and the operation that both are about.
func openApproval(tx database.Tx) error {
	op := idempotency.Operation{AccountID: "acme", IdempotencyKey: "k-1", ID: "op_model", Fingerprint: "v1:f", Principal: "agent", State: idempotency.AwaitingApproval}
	a := approval.Approval{AccountID: "acme", ID: modelApproval, OperationID: "op_model", Fingerprint: "v1:f", RequestedBy: "agent", State: approval.Pending, ExpiresAt: tx.Now}
	return errors.Join(tx.Create(&op).Error, tx.Create(&a).Error)
}

// putConsent writes the approval as a row has it, if it has one.
func (r *rows) putConsent(of consent) error {
	if r.moved = of.moved; of.answer == notNeeded {
		return nil
	}
	state := map[consentNo]approval.State{isAsked: approval.Pending, saidYes: approval.Approved, isOver: approval.Stale}[of.answer]
	expires := r.tx.Now
	if of.expires == ahead {
		expires = expires.Add(r.target.Lease)
	}
	return r.tx.Exec("UPDATE approvals SET state = ?, expires_at = ?, decided_by = ''", state, expires).Error
}

func (r *rows) getConsent() consent {
	a, err := approval.Get(r.tx.DB, "acme", modelApproval)
	if err != nil {
		r.t.Fatal(err)
	}
	of := consent{answer: isOver, expires: passed, moved: r.moved}
	if a.ExpiresAt.After(r.tx.Now) {
		of.expires = ahead
	}
	switch a.State {
	case approval.Pending:
		of.answer = isAsked
	case approval.Approved:
		of.answer = saidYes
	}
	return of
}

// approver answers the question, once, or finds it too late: (*Outbox).DecideApproval in statements; the sweep of expired questions ends it
// as they do who come too late.
func (m *protocol) approver(w world, add func(string, func(*world))) {
	if w.row.consent.answer != isAsked || w.row.state.final() {
		return
	}
	try := func(label string, statement func(tx database.Tx, e Effect) (bool, error)) {
		if after, changed := m.rows.statement(label, w.row, statement); changed {
			add(label, func(n *world) { n.becomes(after) })
		}
	}
	if w.row.consent.expires != ahead {
		try("approver: comes too late", func(tx database.Tx, e Effect) (bool, error) { return unapproved(tx, e) })
		return
	}
	decide := func(tx database.Tx, e Effect, yes bool) (bool, error) {
		a, err := approval.Get(tx.DB, e.AccountID, e.ApprovalID)
		if err == nil {
			_, err = approval.Decide(tx, a, approval.Decision{By: "boss", Approve: yes, Fingerprint: a.Fingerprint})
		}
		return err == nil, err
	}
	if !w.row.consent.moved {
		try("approver: says yes", func(tx database.Tx, e Effect) (bool, error) {
			if changed, err := approve(tx, e, &tx.Now); err != nil || !changed {
				return false, err
			}
			return decide(tx, e, true)
		})
	}
	try("approver: says no", func(tx database.Tx, e Effect) (bool, error) {
		if changed, err := unapproved(tx, e); err != nil || !changed {
			return false, err
		}
		return decide(tx, e, false)
	})
}

// takesAsShown is the take as a send makes it: it is undone if the world is not what the approver was shown.
func (m *protocol) takesAsShown(tx database.Tx, e Effect, t Target, r row) (bool, error) {
	take := func(tx database.Tx, by string) (bool, error) { return takeToSend(tx, e, t, by) }
	if m.rules.WorldInTake {
		take = t.unchanged(e, take)
	}
	changed, err := take(tx, leaseName(r.fence+1))
	if errors.Is(err, errNotAsShown) {
		m.rows.put(r)
		return false, nil
	}
	return changed, err
}

// world is what is there, as a target has it: the empty version is what the question was asked about.
func (r *rows) world(database.Tx, Effect) (string, error) {
	if r.moved {
		return "another", nil
	}
	return "", nil
}

// consentEnds is what time and others may do to a yes.
func (m *protocol) consentEnds(w world, add func(string, func(*world))) {
	if w.row.consent.answer == notNeeded || w.row.state.final() {
		return
	}
	all := func(n *world, change func(c *consent)) {
		for _, r := range []*row{&n.row, &n.workers[0].view, &n.workers[1].view} {
			if r.consent.answer != notNeeded {
				change(&r.consent)
			}
		}
	}
	if w.row.consent.expires == ahead {
		add("time: the approval expires", func(n *world) {
			all(n, func(c *consent) { c.until, c.expires = passed, passed })
		})
	}
	if !w.row.consent.moved && w.quiet() { // it rests on what can't change until a call has ended
		add("outside: the world is another", func(n *world) { all(n, func(c *consent) { c.moved = true }) })
	}
}
