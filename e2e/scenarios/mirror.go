package scenarios

import (
	"encoding/json"
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
)

// operator is a person of the agent's account who decides reviews.
const operator = "demo-operator"

// Mirror is the operation that brings a ticket to the desk.
type Mirror struct {
	Ticket    string // id of ours
	Operation string
	EffectKey string

	effects int // that the desk must have in the end
	least   int // sends that must have arrived there in the end, and
	most    int // may have
}

// Mirror creates a ticket, which is to be mirrored.
func (p *Part) Mirror(replica *harness.Service) *Mirror {
	return p.mirrorOf(p.Create(replica.URL(), p.NewKey(), p.NewTicket().JSON()))
}

// mirrorOf is the mirror of a ticket that was created with this answer.
func (p *Part) mirrorOf(answer harness.Answer) *Mirror {
	p.Executed("a ticket that is to be mirrored", answer)
	var created struct {
		Mirror struct {
			OperationID string `json:"operation_id"`
		}
	}
	p.must(json.Unmarshal(answer.Body, &created))
	m := &Mirror{Ticket: answer.Text("id"), Operation: created.Mirror.OperationID, most: always}
	m.EffectKey = p.Text("SELECT effect_key FROM effects WHERE operation_id = $1", m.Operation)
	p.mirrors = append(p.mirrors, m)
	return m
}

// Operation asks for the mirror's operation.
func (p *Part) Operation(replica *harness.Service, m *Mirror) harness.Answer {
	return p.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/operations/" + m.Operation})
}

// AwaitState waits until the operation is in a state.
func (p *Part) AwaitState(replica *harness.Service, m *Mirror, state string) {
	p.Await("the mirror is "+state, func() bool { return p.Operation(replica, m).Text("state") == state })
}

// Cancel asks for the operation to be withdrawn.
func (p *Part) Cancel(replica *harness.Service, m *Mirror) harness.Answer {
	return p.about(replica, m, "cancel")
}

// Reconcile asks for the desk to be asked now.
func (p *Part) Reconcile(replica *harness.Service, m *Mirror) harness.Answer {
	return p.about(replica, m, "reconcile")
}

func (p *Part) about(replica *harness.Service, m *Mirror, what string) harness.Answer {
	return p.Do(harness.Call{
		Base: replica.URL(), Method: http.MethodPost, Path: "/v1/operations/" + m.Operation + "/" + what, Key: p.NewKey(), Body: "{}",
	})
}

// Fate is what became of the first send, of which the service has heard nothing.
type Fate int

const (
	Happened     Fate = iota + 1 // the desk has the ticket
	CameToNought                 // it arrived, and nothing happened
	NeverArrived                 // it was lost on its way, and nothing will happen
)

// Ends waits until the mirror has ended as it must after that fate, and returns how many effects there are: what the desk can be asked about is found,
// what it may be sent again is sent again, and the rest goes to a person without a second send.
func (p *Part) Ends(replica *harness.Service, m *Mirror, first Fate) (effects int) {
	m.least = 1
	if first == NeverArrived {
		m.least = 0
	}
	m.most = m.least
	switch {
	case first == Happened && p.canAsk():
		return p.Succeeds(replica, m)
	case first == Happened:
		return p.InReview(replica, m, 1)
	case p.canResend():
		m.least++
		m.most = always
		return p.Succeeds(replica, m)
	}
	return p.InReview(replica, m, 0)
}

// EndsSomehow waits until the mirror has ended as it must, whatever became of its sends.
func (p *Part) EndsSomehow(replica *harness.Service, m *Mirror) (effects int) {
	if !p.canResend() {
		m.most = 1
	}
	if p.settled(replica, m).Text("state") == "succeeded" {
		return p.Succeeds(replica, m)
	}
	found := len(p.desk.Effects(m.EffectKey))
	p.Check(!p.canResend() && (found == 0 || !p.canAsk()), "a person was asked, although the desk has %d tickets and can be asked or sent to again", found)
	return p.InReview(replica, m, found)
}

// Succeeds waits until the mirror has succeeded, and ends the scenario unless the desk has the ticket once, under the reference that callers are told.
func (p *Part) Succeeds(replica *harness.Service, m *Mirror) (effects int) {
	op := p.settled(replica, m)
	p.Check(op.Text("state") == "succeeded" && op.Text("effect") == "applied", "the mirror has become %v, want it succeeded", op)
	found := p.desk.Effects(m.EffectKey)
	p.Check(len(found) == 1 && found[0].Reference == op.Text("reference"), "the desk has %v, want one ticket with reference %q", found, op.Text("reference"))
	ticket := p.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/tickets/" + m.Ticket})
	var told struct {
		Mirror struct{ State, Reference string }
	}
	p.Check(json.Unmarshal(ticket.Body, &told) == nil && told.Mirror.State == "succeeded" && told.Mirror.Reference == found[0].Reference,
		"the ticket says %v, want its mirror's reference %q", ticket, found[0].Reference)
	m.effects = 1
	return 1
}

// Canceled ends the scenario unless the mirror was withdrawn, and the desk has nothing of it.
func (p *Part) Canceled(replica *harness.Service, m *Mirror) {
	op := p.settled(replica, m)
	p.Check(op.Text("state") == "canceled" && op.Text("effect") == "none", "the mirror has become %v, want it canceled", op)
	found := p.desk.Effects(m.EffectKey)
	p.Check(len(found) == 0, "the mirror was canceled, and the desk has %v", found)
}

// InReview waits until a person is asked about the mirror, and ends the scenario unless the desk has so many tickets of it.
func (p *Part) InReview(replica *harness.Service, m *Mirror, effects int) int {
	op := p.settled(replica, m)
	p.Check(op.Text("state") == "unknown" && op.Text("effect") == "unknown" && op.Text("next_action") == "ask_human",
		"the mirror has become %v, want it unknown and with a person", op)
	review := p.Do(harness.Call{Base: replica.URL(), Method: http.MethodGet, Path: "/v1/reviews/" + op.Text("review_id")})
	p.Check(review.Status == http.StatusOK && review.Text("state") == "open" && review.Text("operation_id") == m.Operation,
		"the review is %v, want it open", review)
	found := p.desk.Effects(m.EffectKey)
	p.Check(len(found) == effects, "the desk has %v, want %d", found, effects)
	m.effects = effects
	return effects
}

// settled waits until the operation is final or with a person. The first look-up comes by itself; those after it are asked for, since by themselves they
// come at growing intervals.
func (p *Part) settled(replica *harness.Service, m *Mirror) (op harness.Answer) {
	p.Await("the mirror is final or with a person", func() bool {
		op = p.Operation(replica, m)
		switch op.Text("state") {
		case "succeeded", "failed", "canceled":
			return true
		case "unknown":
			if op.Text("review_id") != "" {
				return true
			}
			if p.can.Lookup && p.desk.Calls(lookUp, m.EffectKey) > 0 {
				p.Reconcile(replica, m)
			}
		}
		return false
	})
	return op
}

// checkMirrors ends the scenario unless every mirror is final or with a person, and nothing has changed at the desk since it was looked at.
func (s *Stage) checkMirrors() {
	if s.desk == nil {
		return
	}
	open := s.openEffects()
	s.Check(open == 0, "%d mirrors are neither final nor with a person", open)

	effects, sends := map[string]int{}, s.desk.sends()
	for _, e := range s.desk.Ledger() {
		effects[e.EffectKey]++
	}
	for _, m := range s.mirrors {
		s.Check(effects[m.EffectKey] == m.effects, "the desk has %d effects of %s, want %d as when the mirror had ended", effects[m.EffectKey], m.Operation, m.effects)
		s.Check(m.least <= sends[m.EffectKey] && sends[m.EffectKey] <= m.most, "%d sends of %s arrived, want %d to %d", sends[m.EffectKey], m.Operation, m.least, m.most)
	}
}

// openEffects is how many are neither final nor with a person.
func (s *Stage) openEffects() int {
	return s.Count(`SELECT count(*) FROM effects e WHERE e.state NOT IN ('succeeded', 'failed', 'canceled') AND NOT (e.state = 'unknown' AND EXISTS
		(SELECT 1 FROM reviews r WHERE r.account_id = e.account_id AND r.operation_id = e.operation_id AND r.id = e.review_id AND r.state = 'open'))`)
}
