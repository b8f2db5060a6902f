package simulator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// Each fault strikes one send, before or after its effect. A second send of the same key then finds the fault spent.
func TestFaults(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		w := start(t, kind)
		actions := []struct {
			action, more string
			check        func(answer) bool
		}{
			{"hang", "", func(a answer) bool { return errors.Is(a.err, context.Canceled) }},
			{"reset", "", func(a answer) bool { return errors.Is(a.err, syscall.ECONNRESET) }},
			{"lose", "", func(a answer) bool { return errors.Is(a.err, io.EOF) }},
			{"status", `,"status":500`, func(a answer) bool { return a.status == 500 && a.member("code") == "error" }},
			{"delay", `,"delay_ms":20`, func(a answer) bool { return a.status == 201 && !a.replayed() }},
		}
		for _, when := range []string{"before", "after"} {
			for _, c := range actions {
				t.Run(c.action+" strikes "+when+" the effect", func(t *testing.T) {
					key, effects, calls, armed := when+"-"+c.action, len(w.ledger()), len(w.calls()), len(w.fired())
					w.arm(fmt.Sprintf(`{"target":"desk","operation":"send","when":%q,"action":%q%s,"times":1}`, when, c.action, c.more))

					ctx, leave := context.WithCancel(t.Context())
					defer leave()
					answered := make(chan answer, 1)
					go func() {
						answered <- w.do(ctx, writeToken, "POST", "/desk/v1/tickets", body, "Idempotency-Key", key)
					}()
					eventually(t, "the fault strikes", func() bool { return w.fired()[armed] == 1 })
					if c.action == "hang" {
						leave()
					}
					if a := <-answered; !c.check(a) {
						t.Errorf("the caller got %v", a)
					}
					if when == "after" || c.action == "delay" {
						effects++
					}
					w.checkEffects(effects)

					a := w.send(key)
					if a.status != 201 || a.replayed() != (when == "after" || c.action == "delay") {
						t.Errorf("the next send got %v, replayed %v", a, a.replayed())
					}
					if !a.replayed() {
						effects++
					}
					w.checkEffects(effects)
					got := w.calls()[calls:]
					if len(got) != 2 || !got[0].Faulted || got[1].Faulted || got[0].EffectKey != key || got[0].Kind != "send" {
						t.Errorf("calls: %v", got)
					}
					if got := w.fired()[armed]; got != 1 {
						t.Errorf("the fault fired %d times", got)
					}
				})
			}
		}
	})
}

func TestFaultsThatWait(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("a delayed send takes effect although its caller has left", func(t *testing.T) {
			w := start(t, kind)
			w.arm(`{"target":"desk","when":"before","action":"delay","delay_ms":300,"times":1}`)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			left := make(chan answer, 1)
			go func() {
				left <- w.do(ctx, writeToken, "POST", "/desk/v1/tickets", body, "Idempotency-Key", "k")
			}()
			eventually(t, "the send arrives", func() bool { return len(w.calls()) == 1 })
			leave()
			if a := <-left; !errors.Is(a.err, context.Canceled) {
				t.Errorf("got %v", a)
			}
			eventually(t, "it takes effect", func() bool { return len(w.ledger()) == 1 })
		})

		t.Run("a send that is delayed keeps its key in progress, and a server that stops forgets it", func(t *testing.T) {
			w := start(t, kind)
			w.arm(`{"target":"desk","when":"before","action":"delay","delay_ms":3600000,"times":1}`)
			first := make(chan answer, 1)
			go func() { first <- w.send("k") }()
			eventually(t, "the send arrives", func() bool { return len(w.calls()) == 1 })
			check(t, w.send("k"), 409, "in_progress")
			check(t, w.send("other"), 201, "")
			w.abilities(`{"target":"desk","keys":"ignore","lookup":true,"close":true}`)
			check(t, w.send("k"), 201, "")

			w.restart()
			if a := <-first; a.err == nil {
				t.Errorf("the delayed send got %v", a)
			}
			w.checkEffects(2)
			check(t, w.send("k"), 201, "")
		})

		t.Run("a request that hangs ends when the caller leaves", func(t *testing.T) {
			w := start(t, kind)
			w.arm(`{"target":"desk","when":"after","action":"hang","times":1}`)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			go w.do(ctx, writeToken, "POST", "/desk/v1/tickets", body, "Idempotency-Key", "k")
			eventually(t, "it hangs", hangs)
			if a := w.send("k"); !a.replayed() {
				t.Errorf("a send of a key whose answer hangs got %v", a)
			}
			leave()
			eventually(t, "it ends", func() bool { return !hangs() })
		})

		t.Run("a request that hangs ends when the server stops", func(t *testing.T) {
			w := start(t, kind)
			w.arm(`{"target":"desk","when":"before","action":"hang","times":1}`)
			ended := make(chan answer, 1)
			go func() { ended <- w.lookUp("k") }()
			eventually(t, "it hangs", hangs)
			w.stop()
			if a := <-ended; !errors.Is(a.err, io.EOF) {
				t.Errorf("got %v", a)
			}
		})
	})
}

// hangs reports whether a request is held by a fault.
func hangs() bool { return countStacks("(*Service).strike") > 0 }

func TestWhichRequestsAFaultStrikes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("those of its operation, as often as it is armed, the first armed first", func(t *testing.T) {
			w := start(t, kind)
			w.arm(`{"target":"desk","operation":"lookup","when":"before","action":"status","status":503,"times":2}`)
			w.arm(`{"target":"desk","when":"before","action":"status","status":429,"times":2}`)
			var got []int
			for _, a := range []answer{w.send("k"), w.lookUp("k"), w.lookUp("k"), w.close("k"), w.lookUp("k")} {
				got = append(got, a.status)
			}
			if diff := cmp.Diff([]int{429, 503, 503, 429, 200}, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]int64{2, 2}, w.fired()); diff != "" {
				t.Error(diff)
			}
		})

		t.Run("after: neither strangers nor requests that are turned away", func(t *testing.T) {
			w := start(t, kind)
			w.send("used")
			w.close("closed")
			w.arm(`{"target":"desk","when":"after","action":"reset","times":1}`)
			check(t, w.do(t.Context(), "wrong", "POST", "/desk/v1/tickets", body, "Idempotency-Key", "k"), 401, "unauthorized")
			check(t, w.sendBody("k", `{"title":""}`), 400, "invalid")
			check(t, w.sendBody("used", `{"title":"another"}`), 422, "key_reused")
			check(t, w.send("closed"), 409, "closed")
			if diff := cmp.Diff([]int64{0}, w.fired()); diff != "" {
				t.Error(diff)
			}
			if a := w.send("k"); !errors.Is(a.err, syscall.ECONNRESET) {
				t.Errorf("got %v", a)
			}
			w.checkEffects(2)
		})

		t.Run("before: not strangers", func(t *testing.T) {
			w := start(t, kind)
			w.arm(`{"target":"desk","when":"before","action":"reset","times":1}`)
			check(t, w.do(t.Context(), "wrong", "POST", "/desk/v1/tickets", body, "Idempotency-Key", "k"), 401, "unauthorized")
			if diff := cmp.Diff([]int64{0}, w.fired()); diff != "" {
				t.Error(diff)
			}
		})

		t.Run("after: a refusal, a replay, a look-up and a close, whose answers are lost", func(t *testing.T) {
			w := start(t, kind)
			w.send("k")
			w.arm(`{"target":"desk","when":"after","action":"lose","times":4}`)
			for _, a := range []answer{w.sendBody("no", `{"title":"t","project":"refused"}`), w.send("k"), w.lookUp("k"), w.close("unused")} {
				if !errors.Is(a.err, io.EOF) {
					t.Errorf("got %v", a)
				}
			}
			check(t, w.sendBody("no", `{"title":"t","project":"refused"}`), 422, "refused")
			check(t, w.send("unused"), 409, "closed")
			w.checkEffects(1)
		})

		t.Run("no more than it is armed for, however many arrive at once", func(t *testing.T) {
			w := start(t, kind)
			w.arm(`{"target":"desk","when":"after","action":"status","status":500,"times":5}`)
			statuses := make(chan int, 32)
			for i := range 32 {
				go func() { statuses <- w.send(fmt.Sprintf("k%d", i)).status }()
			}
			struck := 0
			for range 32 {
				if <-statuses == 500 {
					struck++
				}
			}
			if fired := w.fired()[0]; struck != 5 || fired != 5 {
				t.Errorf("%d requests were struck, %d are counted, want 5", struck, fired)
			}
			w.checkEffects(32)
		})

		t.Run("none when disarmed", func(t *testing.T) {
			w := start(t, kind)
			w.arm(`{"target":"desk","when":"before","action":"reset","times":1}`)
			if a := w.do(t.Context(), "", "DELETE", "/_faults", ""); a.status != http.StatusNoContent {
				t.Errorf("got %v", a)
			}
			check(t, w.send("k"), 201, "")
			if got := w.fired(); len(got) != 0 {
				t.Errorf("%d faults are listed", len(got))
			}
		})
	})
}

func TestStatusFaultsLookReal(t *testing.T) {
	w := start(t, database.SQLite)
	headers := map[int]string{307: "Location", 429: "Retry-After", 503: "Retry-After"}
	for _, status := range []int{307, 401, 429, 500, 503, 599} {
		w.arm(fmt.Sprintf(`{"target":"desk","when":"before","action":"status","status":%d,"times":1}`, status))
		a := w.send("k")
		check(t, a, status, "error")
		if want := headers[status]; want != "" && a.header.Get(want) == "" {
			t.Errorf("%d without %s", status, want)
		}
	}
	w.checkEffects(0)
}

func TestFaultsThatCannotBeArmed(t *testing.T) {
	w := start(t, database.SQLite)
	cases := []struct{ body, says string }{
		{``, "not one JSON object: it ends too early"},
		{`[]`, "begins with something else"},
		{`null`, "begins with something else"},
		{`{"target":"desk","target":"desk"}`, "stands twice"},
		{`{"target":"desk"} {}`, "syntax error"},
		{`{"target":"desk","when":"after","action":"hang"}`, "times is missing"},
		{`{"target":"desk","action":"hang"}`, "when, times are missing"},
		{`{"target":"desk","when":"after","action":"hang","times":1,"fired":1}`, "fired is not a member"},
		{`{"target":"desk","when":"after","action":"hang","Times":1}`, "Times is not a member"},
		{`{"target":"desk","when":"after","action":"hang","times":"1"}`, "times cannot have this value"},
		{`{"target":"desk","when":"after","action":"hang","times":1,"operation":null}`, "operation must not be null"},
		{`{"target":"moon","when":"after","action":"hang","times":1}`, `no target "moon"`},
		{`{"target":"desk","operation":"capture","when":"after","action":"hang","times":1}`, "send, lookup, close"},
		{`{"target":"desk","when":"during","action":"hang","times":1}`, "before or after"},
		{`{"target":"desk","when":"after","action":"burn","times":1}`, "hang, reset, status, delay, lose"},
		{`{"target":"desk","when":"after","action":"duplicate","times":1}`, "webhooks"},
		{`{"target":"desk","when":"after","action":"reorder","times":1}`, "webhooks"},
		{`{"target":"desk","when":"after","action":"half","times":1}`, "roll out"},
		{`{"target":"desk","when":"after","action":"other_digest","times":1}`, "roll out"},
		{`{"target":"desk","when":"after","action":"status","times":1}`, "300 and 599"},
		{`{"target":"desk","when":"after","action":"status","status":200,"times":1}`, "300 and 599"},
		{`{"target":"desk","when":"after","action":"hang","status":500,"times":1}`, "status is for"},
		{`{"target":"desk","when":"after","action":"delay","times":1}`, "delay_ms must be"},
		{`{"target":"desk","when":"after","action":"hang","delay_ms":5,"times":1}`, "delay_ms is for"},
		{`{"target":"desk","when":"after","action":"hang","times":0}`, "times must be"},
	}
	for _, c := range cases {
		a := w.do(t.Context(), "", "POST", "/_faults", c.body)
		if check(t, a, 400, "invalid"); !strings.Contains(a.member("detail"), c.says) {
			t.Errorf("%s: %q does not say %q", c.body, a.member("detail"), c.says)
		}
	}
	if got := w.fired(); len(got) != 0 {
		t.Errorf("%d faults were armed", len(got))
	}
}

// Once the effect is durable its key is not in progress any more, however long the answer takes.
func TestDelayedAnswersHoldNothing(t *testing.T) {
	w := start(t, database.SQLite)
	w.arm(`{"target":"desk","operation":"send","when":"after","action":"delay","delay_ms":3600000,"times":1}`)
	first := make(chan answer, 1)
	go func() { first <- w.send("k") }()
	eventually(t, "it takes effect", func() bool { return len(w.ledger()) == 1 })
	eventually(t, "its answer is delayed", hangs)
	again, found, closed := w.send("k"), w.lookUp("k"), w.close("k")
	if !again.replayed() || !strings.Contains(found.body, again.member("reference")) || closed.member("happened") != "true" {
		t.Errorf("send %v, lookup %v, close %v", again, found, closed)
	}
	w.stop()
	if a := <-first; !errors.Is(a.err, io.EOF) {
		t.Errorf("the delayed answer: %v", a)
	}
}
