package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/services/simulator"
)

// Outside is a target in the outside world of a scenario, simulated by a process of its own. Its ledger holds what really happened, its
// calls what really arrived.
type Outside struct {
	*harness.Service
	stage  *Stage
	target string
	struck int // by faults that were disarmed since
}

// outside starts a simulated target. A stage has one.
func (s *Stage) outside(target string, settings ...string) *Outside {
	s.Check(s.world == nil, "the stage has an outside world already")
	service, err := s.lab.Serve(s.ctx, harness.Settings{Role: "simulator", DatabaseURL: s.lab.EmbeddedURL("simulator"), Env: settings})
	s.must(err)
	s.world = &Outside{Service: service, stage: s, target: target}
	s.counters = append(s.counters, s.world)
	return s.world
}

// Can makes the target have these abilities.
func (o *Outside) Can(abilities simulator.Abilities) {
	abilities.Target = o.target
	if abilities.KeyWindowMS == 0 {
		abilities.KeyWindowMS = 24 * 3600 * 1000 // the target's own default
	}
	o.post("/_abilities", abilities, http.StatusOK)
}

// Arm arms a fault.
func (o *Outside) Arm(fault simulator.Misfortune) {
	fault.Target = o.target
	fault.Times = max(fault.Times, 1)
	o.post("/_faults", fault, http.StatusCreated)
}

// Down makes every call of these kinds fail, until Disarm.
func (o *Outside) Down(operations ...string) {
	for _, operation := range operations {
		o.Arm(simulator.Misfortune{Operation: operation, When: simulator.Before, Action: simulator.Status, Status: 500, Times: always})
	}
}

// Disarm forgets all faults.
func (o *Outside) Disarm() {
	o.struck = o.Fired()
	answer := harness.Do(o.stage.ctx, harness.Call{Base: o.URL(), Method: http.MethodDelete, Path: "/_faults"})
	o.stage.Check(answer.Status == http.StatusNoContent, "disarm the faults of the %s: %v", o.target, answer)
}

// Fired is how many requests faults have struck.
func (o *Outside) Fired() int { return o.struck + o.armedFired() }

// AwaitFired waits until the faults that are armed have struck so many requests.
func (o *Outside) AwaitFired(n int) {
	o.stage.Await(fmt.Sprintf("faults have struck %d requests", n), func() bool { return o.armedFired() >= n })
}

func (o *Outside) armedFired() (n int) {
	var armed []simulator.Fault
	if o.get(context.WithoutCancel(o.stage.ctx), "/_faults", &armed) != nil {
		return 0 // for the results, it may be dead; what must have happened is awaited
	}
	for _, fault := range armed {
		n += int(fault.Fired)
	}
	return n
}

// Ledger are the effects that really happened.
func (o *Outside) Ledger() (effects []simulator.Effect) {
	o.stage.must(o.get(o.stage.ctx, "/_ledger", &effects))
	return effects
}

// Effects are those under one effect key.
func (o *Outside) Effects(effectKey string) (effects []simulator.Effect) {
	for _, e := range o.Ledger() {
		if e.EffectKey == effectKey {
			effects = append(effects, e)
		}
	}
	return effects
}

// Calls is how many requests of a kind arrived with this effect key.
func (o *Outside) Calls(kind, effectKey string) int {
	n := 0
	for _, call := range o.calls() {
		if call.Kind == kind && call.EffectKey == effectKey {
			n++
		}
	}
	return n
}

func (o *Outside) calls() (calls []simulator.Call) {
	o.stage.must(o.get(o.stage.ctx, "/_calls", &calls))
	return calls
}

func (o *Outside) get(ctx context.Context, path string, into any) error {
	answer := harness.Do(ctx, harness.Call{Base: o.URL(), Method: http.MethodGet, Path: path})
	if answer.Err != nil || answer.Status != http.StatusOK {
		return fmt.Errorf("ask the %s for %s: %v", o.target, path, answer)
	}
	return json.Unmarshal(answer.Body, into)
}

func (o *Outside) post(path string, body any, status int) {
	text, err := json.Marshal(body)
	o.stage.must(err)
	answer := harness.Do(o.stage.ctx, harness.Call{Base: o.URL(), Method: http.MethodPost, Path: path, Body: string(text)})
	o.stage.Check(answer.Err == nil && answer.Status == status, "direct the %s, %s %s: %v", o.target, path, text, answer)
}
