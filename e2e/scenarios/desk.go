package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/services/simulator"
)

// Desk is the outside world of a scenario: a ticket desk, simulated by a process of its own. Its ledger holds what really happened, its calls
// what really arrived.
type Desk struct {
	*harness.Service
	stage  *Stage
	struck int // by faults that were disarmed since
}

// The kinds of calls to a desk.
const (
	send   = "send"
	lookUp = "lookup"
	shut   = "close"
)

// always is a number of times that no scenario comes to.
const always = 1_000_000

// Desk starts the desk. A stage has one.
func (s *Stage) Desk() *Desk {
	service, err := s.lab.Serve(s.ctx, harness.Settings{Role: "simulator", DatabaseURL: s.lab.EmbeddedURL("simulator")})
	s.must(err)
	s.desk = &Desk{Service: service, stage: s}
	s.counters = append(s.counters, s.desk)
	return s.desk
}

// Can makes the desk have these abilities.
func (d *Desk) Can(abilities simulator.Abilities) {
	abilities.Target = "desk"
	if abilities.KeyWindowMS == 0 {
		abilities.KeyWindowMS = 24 * 3600 * 1000 // the desk's own default
	}
	d.post("/_abilities", abilities, http.StatusOK)
}

// Arm arms a fault.
func (d *Desk) Arm(fault simulator.Misfortune) {
	fault.Target = "desk"
	fault.Times = max(fault.Times, 1)
	d.post("/_faults", fault, http.StatusCreated)
}

// NextSend arms a fault for the next send.
func (d *Desk) NextSend(when simulator.Moment, action simulator.Action) {
	d.Arm(simulator.Misfortune{Operation: send, When: when, Action: action})
}

// NextSendAnswered arms this answer, in place of the desk's own, for the next sends.
func (d *Desk) NextSendAnswered(when simulator.Moment, status int, times int64) {
	d.Arm(simulator.Misfortune{Operation: send, When: when, Action: simulator.Status, Status: status, Times: times})
}

// Disarm forgets all faults.
func (d *Desk) Disarm() {
	d.struck = d.Fired()
	answer := harness.Do(d.stage.ctx, harness.Call{Base: d.URL(), Method: http.MethodDelete, Path: "/_faults"})
	d.stage.Check(answer.Status == http.StatusNoContent, "disarm the desk's faults: %v", answer)
}

// Fired is how many requests faults have struck.
func (d *Desk) Fired() int { return d.struck + d.armedFired() }

// AwaitFired waits until the faults that are armed have struck so many requests.
func (d *Desk) AwaitFired(n int) {
	d.stage.Await(fmt.Sprintf("faults have struck %d requests", n), func() bool { return d.armedFired() >= n })
}

func (d *Desk) armedFired() (n int) {
	var armed []simulator.Fault
	if d.get(context.WithoutCancel(d.stage.ctx), "/_faults", &armed) != nil {
		return 0 // for the results, it may be dead; what must have happened is awaited
	}
	for _, fault := range armed {
		n += int(fault.Fired)
	}
	return n
}

// Ledger are the effects that really happened.
func (d *Desk) Ledger() (effects []simulator.Effect) {
	d.stage.must(d.get(d.stage.ctx, "/_ledger", &effects))
	return effects
}

// Effects are those under one effect key.
func (d *Desk) Effects(effectKey string) (effects []simulator.Effect) {
	for _, e := range d.Ledger() {
		if e.EffectKey == effectKey {
			effects = append(effects, e)
		}
	}
	return effects
}

// AwaitEffect waits until there is an effect under the key.
func (d *Desk) AwaitEffect(effectKey string) {
	d.stage.Await("the desk has the ticket", func() bool { return len(d.Effects(effectKey)) > 0 })
}

// Calls is how many requests of a kind arrived with this effect key.
func (d *Desk) Calls(kind, effectKey string) int {
	n := 0
	for _, call := range d.calls() {
		if call.Kind == kind && call.EffectKey == effectKey {
			n++
		}
	}
	return n
}

// sends is how many sends arrived, by effect key.
func (d *Desk) sends() map[string]int {
	n := map[string]int{}
	for _, call := range d.calls() {
		if call.Kind == send {
			n[call.EffectKey]++
		}
	}
	return n
}

func (d *Desk) calls() (calls []simulator.Call) {
	d.stage.must(d.get(d.stage.ctx, "/_calls", &calls))
	return calls
}

func (d *Desk) get(ctx context.Context, path string, into any) error {
	answer := harness.Do(ctx, harness.Call{Base: d.URL(), Method: http.MethodGet, Path: path})
	if answer.Err != nil || answer.Status != http.StatusOK {
		return fmt.Errorf("ask the desk for %s: %v", path, answer)
	}
	return json.Unmarshal(answer.Body, into)
}

func (d *Desk) post(path string, body any, status int) {
	text, err := json.Marshal(body)
	d.stage.must(err)
	answer := harness.Do(d.stage.ctx, harness.Call{Base: d.URL(), Method: http.MethodPost, Path: path, Body: string(text)})
	d.stage.Check(answer.Err == nil && answer.Status == status, "direct the desk, %s %s: %v", path, text, answer)
}
