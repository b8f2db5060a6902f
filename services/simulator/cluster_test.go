package simulator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/simulator"
)

// rolloutTime is that of the simulators of these tests; their clocks are moved on rather than waited for.
const rolloutTime = time.Hour

// artifact names an artifact by a digest that is the digit, many times.
func artifact(digit string) string { return "app@sha256:" + strings.Repeat(digit, 64) }

// rollOut begins a rollout in acme's prod.
func (w *world) rollOut(key string, token int, digit string) answer {
	return w.rollOutOf("web", key, token, digit)
}

func (w *world) rollOutOf(service, key string, token int, digit string) answer {
	body := fmt.Sprintf(`{"account":"acme","environment":"prod","service":%q,"artifact":%q}`, service, artifact(digit))
	return w.do(w.t.Context(), writeToken, "POST", "/cluster/v1/rollouts", body, "Idempotency-Key", key, "Fencing-Token", fmt.Sprint(token))
}

func (w *world) stopRollout(key, of string, token int) answer {
	body := fmt.Sprintf(`{"account":"acme","environment":"prod","rollout":%q}`, of)
	return w.do(w.t.Context(), writeToken, "POST", "/cluster/v1/stops", body, "Idempotency-Key", key, "Fencing-Token", fmt.Sprint(token))
}

func (w *world) closeRollout(key string, floor int) answer {
	body := fmt.Sprintf(`{"account":"acme","environment":"prod","floor":%d}`, floor)
	return w.do(w.t.Context(), writeToken, "POST", "/cluster/v1/effects/"+key+"/close", body)
}

// rollout is a rollout as callers read it.
type rollout struct {
	Reference, State, Artifact, Runs string
	EffectKey                        string `json:"effect_key"`
	Floor, Token                     int
	EndedAt                          string `json:"ended_at"`
}

// rollouts are those that a look-up shows.
func (w *world) rollouts(query string) (all []rollout) {
	w.t.Helper()
	a := w.do(w.t.Context(), readToken, "GET", "/cluster/v1/rollouts?"+query, "")
	var list struct{ Items []rollout }
	if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.status != 200 {
		w.t.Fatalf("look up: %v", a)
	}
	return list.Items
}

// is holds the one rollout of a key to a state and to what runs.
func (w *world) is(key, state, runs string) rollout {
	w.t.Helper()
	all := w.rollouts("effect_key=" + key)
	if len(all) != 1 || all[0].State != state || all[0].Runs != runs {
		w.t.Fatalf("rollouts of %s: %+v, want one that is %s, and running %q", key, all, state, runs)
	}
	return all[0]
}

func (w *world) clusterLedger() []simulator.Effect {
	return read[simulator.Effect](w, "/_ledger?target=cluster")
}

func TestARollout(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		w := start(t, kind)

		t.Run("runs over time, and is there once for a key", func(t *testing.T) {
			first := w.rollOut("one", 1, "a")
			check(t, first, 202, "")
			w.is("one", "running", "")
			if ends := w.clusterLedger()[0].EndedAt; ends != nil {
				t.Errorf("it has ended at %v", ends)
			}
			again := w.rollOut("one", 7, "a")
			if again.status != 202 || again.body != first.body || !again.replayed() {
				t.Errorf("again %v", again)
			}
			check(t, w.rollOut("one", 8, "b"), 422, "key_reused")
			w.restart()
			w.is("one", "running", "")
			w.pass(rolloutTime)
			done := w.is("one", "succeeded", artifact("a"))
			if by := w.rollouts("reference=" + done.Reference); len(by) != 1 || by[0].EffectKey != "one" || by[0].EndedAt == "" {
				t.Errorf("by reference: %+v", by)
			}
			want := []simulator.Effect{{
				Target: "cluster", Kind: "rollout", EffectKey: "one", Reference: done.Reference, Account: "acme", Environment: "prod",
				Digest: "sha256:" + strings.Repeat("a", 64), Token: 1,
			}}
			if diff := cmp.Diff(want, w.clusterLedger(), cmpopts.IgnoreFields(simulator.Effect{}, "At", "StartedAt", "EndedAt")); diff != "" {
				t.Error(diff)
			}
			if e := w.clusterLedger()[0]; e.EndedAt.Sub(*e.StartedAt) != rolloutTime {
				t.Errorf("from %v to %v", e.StartedAt, e.EndedAt)
			}
		})

		t.Run("takes a token that nobody has begun one with, nor raised the floor above", func(t *testing.T) {
			a := w.rollOut("two", 1, "b")
			check(t, a, 409, "below_floor")
			if a.member("floor") != "2" || !strings.Contains(a.member("detail"), "below floor 2") {
				t.Errorf("%v", a)
			}
			check(t, w.closeRollout("two", 5), 200, "")
			check(t, w.rollOut("two", 4, "b"), 409, "below_floor")
			check(t, w.closeRollout("two", 3), 200, "") // it never sinks
			check(t, w.rollOut("two", 4, "b"), 409, "below_floor")
			check(t, w.rollOut("two", 5, "b"), 202, "")
		})

		t.Run("does not begin while another goes on in the environment", func(t *testing.T) {
			a := w.rollOut("three", 9, "c")
			check(t, a, 409, "busy")
			if !strings.Contains(a.body, `"effect_key":"two"`) {
				t.Errorf("it does not say which: %v", a)
			}
			elsewhere := `{"account":"acme","environment":"staging","service":"web","artifact":"` + artifact("c") + `"}`
			check(t, w.do(t.Context(), writeToken, "POST", "/cluster/v1/rollouts", elsewhere, "Idempotency-Key", "four", "Fencing-Token", "1"), 202, "")
			w.pass(rolloutTime)
			check(t, w.rollOut("three", 9, "c"), 202, "")
			w.pass(rolloutTime)
			w.is("three", "succeeded", artifact("c"))
		})

		t.Run("is refused for good, or fails, for the services that are for that", func(t *testing.T) {
			check(t, w.rollOutOf("refused", "no", 20, "d"), 422, "refused")
			check(t, w.rollOutOf("failing", "sick", 21, "d"), 202, "")
			w.pass(rolloutTime)
			w.is("sick", "failed", "")
		})

		t.Run("is refused if it is malformed", func(t *testing.T) {
			for _, body := range []string{
				`{}`, `{"account":"acme","environment":"prod","service":"web"}`,
				`{"account":"acme","environment":"prod","service":"web","artifact":"app:latest"}`,
				`{"account":"a b","environment":"prod","service":"web","artifact":"a@b"}`,
				`{"account":"acme","environment":"prod","service":"","artifact":"a@b"}`,
			} {
				check(t, w.do(t.Context(), writeToken, "POST", "/cluster/v1/rollouts", body, "Idempotency-Key", "bad", "Fencing-Token", "99"), 400, "invalid")
			}
			good := `{"account":"acme","environment":"prod","service":"web","artifact":"a@b"}`
			check(t, w.do(t.Context(), writeToken, "POST", "/cluster/v1/rollouts", good, "Idempotency-Key", "bad"), 400, "invalid")
			check(t, w.do(t.Context(), writeToken, "POST", "/cluster/v1/rollouts", good, "Idempotency-Key", "bad", "Fencing-Token", "0"), 400, "invalid")
			check(t, w.do(t.Context(), readToken, "POST", "/cluster/v1/rollouts", good, "Idempotency-Key", "bad", "Fencing-Token", "99"), 401, "unauthorized")
			check(t, w.closeRollout("bad", 0), 400, "invalid")
		})
	})
}

func TestACloseOfARollout(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		w := start(t, kind)
		a := w.closeRollout("one", 2)
		check(t, a, 200, "")
		if a.member("floor") != "2" || a.member("rollout") != "" || a.member("running") != "" {
			t.Errorf("of none: %v", a)
		}
		check(t, w.rollOut("one", 1, "a"), 409, "below_floor")
		check(t, w.rollOut("one", 2, "a"), 202, "")
		if a := w.closeRollout("other", 3); !strings.Contains(a.member("running"), "one") || a.member("rollout") != "" {
			t.Errorf("of another: %v", a)
		}
		if a := w.closeRollout("one", 3); !strings.Contains(a.member("rollout"), "running") {
			t.Errorf("of one that goes on: %v", a)
		}
		w.pass(rolloutTime)
		w.is("one", "succeeded", artifact("a"))
	})
}

func TestAStop(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		w := start(t, kind)
		w.rollOut("one", 1, "a")
		w.pass(rolloutTime)
		w.rollOut("two", 2, "b")

		t.Run("breaks a rollout off, once, and what ran before runs", func(t *testing.T) {
			w.pass(rolloutTime / 2)
			a := w.stopRollout("stop", "two", 2)
			check(t, a, 200, "")
			if a.member("state") != "stopped" {
				t.Errorf("%v", a)
			}
			if again := w.stopRollout("stop", "two", 2); again.body != a.body || !again.replayed() {
				t.Errorf("again %v", again)
			}
			w.is("two", "stopped", artifact("a"))
			all := w.clusterLedger()
			if len(all) != 3 || all[2].Kind != "stop" || all[2].EffectKey != "stop" || all[1].EndedAt.Sub(*all[1].StartedAt) >= rolloutTime {
				t.Errorf("%+v", all)
			}
		})
		t.Run("that comes too late says so", func(t *testing.T) {
			if a := w.stopRollout("late", "one", 1); a.status != 200 || a.member("state") != "succeeded" {
				t.Errorf("%v", a)
			}
		})
		t.Run("that comes before its rollout keeps it from beginning", func(t *testing.T) {
			if a := w.stopRollout("early", "three", 5); a.status != 200 || a.member("state") != "never_started" || a.member("floor") != "6" {
				t.Errorf("%v", a)
			}
			check(t, w.rollOut("three", 5, "c"), 409, "below_floor")
			if n := len(w.clusterLedger()); n != 3 {
				t.Errorf("%d effects", n)
			}
		})
		t.Run("that goes half-way leaves some of both", func(t *testing.T) {
			w.rollOut("four", 6, "d")
			w.arm(`{"target":"cluster","operation":"stop","when":"after","action":"half","times":1}`)
			if a := w.stopRollout("half", "four", 6); a.member("state") != "partial" {
				t.Errorf("%v", a)
			}
			w.is("four", "partial", "mixed")
		})
		t.Run("leaves a fault to the rollouts that only they can suffer", func(t *testing.T) {
			w.rollOut("five", 7, "e")
			w.arm(`{"target":"cluster","when":"after","action":"other_digest","times":1}`)
			if a := w.stopRollout("clean", "five", 7); a.member("state") != "stopped" {
				t.Errorf("%v", a)
			}
			if diff := cmp.Diff([]int64{1, 0}, w.fired()); diff != "" {
				t.Error(diff)
			}
		})
	})
}

func TestFaultsOfRollouts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		w := start(t, kind)
		arm := func(action string) {
			w.arm(`{"target":"cluster","operation":"send","when":"after","action":"` + action + `","times":1}`)
		}
		arm("other_digest")
		w.rollOut("one", 1, "a")
		w.pass(rolloutTime)
		if got := w.rollouts("effect_key=one")[0]; got.State != "succeeded" || got.Artifact != artifact("a") || got.Runs == artifact("a") || got.Runs == "" {
			t.Errorf("another digest: %+v", got)
		}
		arm("half")
		arm("reset")
		if a := w.rollOut("two", 2, "b"); a.err == nil {
			t.Errorf("not reset: %v", a)
		}
		w.pass(rolloutTime)
		w.is("two", "partial", "mixed")
		if diff := cmp.Diff([]int64{1, 1, 1}, w.fired()); diff != "" {
			t.Error(diff)
		}
		for body, says := range map[string]string{
			`{"target":"desk","when":"after","action":"half","times":1}`:                    "which is for targets that roll out",
			`{"target":"cluster","when":"later","action":"half","times":1}`:                 "when must be before or after",
			`{"target":"cluster","when":"after","action":"duplicate","times":1}`:            "webhooks",
			`{"target":"cluster","operation":"x","when":"after","action":"hang"}`:           "times is missing",
			`{"target":"moon","when":"after","action":"other_digest","times":1}`:            "there is no target",
			`{"target":"cluster","operation":"x","when":"after","action":"hang","times":1}`: "send, lookup, close, stop",
		} {
			if a := w.do(t.Context(), "", "POST", "/_faults", body); a.status != 400 || !strings.Contains(a.member("detail"), says) {
				t.Errorf("%s: %v", body, a)
			}
		}
	})
}

func TestAbilitiesOfTheCluster(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		w := start(t, kind)
		w.abilities(`{"target":"cluster","keys":"ignore","lookup":false,"close":false}`)
		check(t, w.rollOut("one", 1, "a"), 202, "")
		check(t, w.rollOut("one", 2, "a"), 409, "busy")
		w.pass(rolloutTime)
		check(t, w.rollOut("one", 1, "a"), 409, "below_floor") // a copy of the first
		check(t, w.rollOut("one", 2, "a"), 202, "")            // a second effect: only its caller could know
		check(t, w.do(t.Context(), readToken, "GET", "/cluster/v1/rollouts?effect_key=one", ""), 501, "not_offered")
		check(t, w.closeRollout("one", 2), 501, "not_offered")
		w.abilities(`{"target":"cluster","keys":"honour","lookup":true,"lag_ms":3600000,"close":true}`)
		if got := w.rollouts("effect_key=one"); len(got) != 1 {
			t.Errorf("the index shows %+v before its time", got)
		}
		w.pass(2 * rolloutTime)
		if got := w.rollouts("effect_key=one"); len(got) != 2 {
			t.Errorf("the index shows %+v", got)
		}
	})
}

func TestRolloutsThatRace(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		w := start(t, kind)
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() { w.rollOut(fmt.Sprint("key-", i), i+1, "a") })
		}
		wg.Wait()
		if all := w.clusterLedger(); len(all) != 1 {
			t.Errorf("%d began at once: %+v", len(all), all)
		}
	})
}
