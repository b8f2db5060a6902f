package scenarios

import (
	"time"

	"github.com/einmal/einmal/e2e/harness"
)

var twoReplicasDrainOneQueue = Scenario{
	Name:    "two_replicas_drain_one_queue",
	Promise: "Two replicas that are killed again and again bring a queue of thousands out, each effect once.",
	Injects: true,
	run: func(s *Stage) int {
		pace := patient
		pace.Timeout, pace.Lease = time.Second, 1500*time.Millisecond
		return s.EachAbility(everyAbility, pace, func(p *Part) int {
			if p.ability != byKey {
				return p.drain(300, 2)
			}
			return p.drain(10_000, 8)
		})
	},
}

// drain lets two replicas bring out a queue and kills them in turn, each at a random moment of its share of the work.
func (p *Part) drain(queue, kills int) (effects int) {
	p.Queue(queue)
	asked := p.withPerson()
	since := time.Now()
	replicas := []*harness.Service{p.Replica(p.desk.URL()), p.Replica(p.desk.URL())}
	for kill := range kills {
		sent := queue * (2*kill + 1) / (2 * kills) // the last kill is before the end
		p.AwaitDown("the queue is shorter", queue-sent, func() int { return p.Count("SELECT count(*) FROM effects WHERE state = 'queued'") })
		p.Moment()
		replica := replicas[kill%len(replicas)]
		p.Kill(replica)
		p.Restart(replica)
	}
	p.AwaitDown("everything is final or with a person", 0, func() int {
		if waiting := p.Text("SELECT coalesce(min(operation_id), '') FROM effects WHERE state = 'unknown' AND review_id = '' AND asks > 0"); waiting != "" {
			p.Reconcile(replicas[0], &Mirror{Operation: waiting}) // by itself it would be asked about at growing intervals
		}
		return p.openEffects()
	})
	took := time.Since(since)
	effects = len(p.desk.Ledger()) - p.found
	lost := queue - effects
	p.Check(lost == 0 || !p.canResend(), "the desk has %d of %d tickets", effects, queue)
	if !p.canResend() {
		p.sentOnce()
	}
	p.Notef("%d effects, %d kills, %.0f/s, %d with a person", effects, kills, float64(queue)/took.Seconds(), p.withPerson()-asked)
	return effects
}

// sentOnce ends the scenario if one of the part's effects was sent twice.
func (p *Part) sentOnce() {
	sends := p.desk.sends()
	for _, e := range p.desk.Ledger()[p.found:] {
		p.Check(sends[e.EffectKey] == 1, "%d sends of %s arrived at a desk that can't tell them apart", sends[e.EffectKey], e.EffectKey)
	}
}
