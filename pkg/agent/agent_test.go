package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/agent"
	"github.com/einmal/einmal/pkg/problem"
)

func TestDo(t *testing.T) {
	t.Run("an answer is the end of it", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed")))
		r := w.one(create)
		w.ends(r, agent.Executed, 1)
		if r.Response == nil || r.Response.Location != "/v1/tickets/tkt_1" || string(r.Response.Body) != `{"id":"tkt_1"}` || r.Effect != problem.EffectApplied {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("the same step again is answered from the journal", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed")))
		first := w.one(create)
		results, err := w.do(`{"body":{"title":"Disk full","project":"ops"},"path":"/v1/tickets","step":"create","method":"POST"}`)
		if err != nil || !results[0].Existing || results[0].Entry.Key != first.Key {
			t.Fatalf("got %+v, %v", results, err)
		}
		w.ends(results[0].Entry.Report(), agent.Executed, 1)
	})
	t.Run("a command without a name is its own name", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed")))
		w.one(`{"path":"/v1/tickets","body":{"a":1,"b":"x"}}`)
		r := w.one(`{"path":"/v1/tickets","body":{"b":"\u0078","a":1}}`)
		w.ends(r, agent.Executed, 1)
	})
	t.Run("a lost answer is looked up", func(t *testing.T) {
		x := newTarget(t, lost).shows(operation("succeeded", `,"effect":"applied","response":{"status":201,"location":"/v1/tickets/tkt_1","body":{"id":"tkt_1"}}`))
		w := newWork(t, x)
		r := w.one(create)
		w.ends(r, agent.Executed, 1)
		if r.Response == nil || r.Response.Status != http.StatusCreated || r.Response.Location != "/v1/tickets/tkt_1" {
			t.Errorf("got %+v, want the stored answer", r.Response)
		}
	})
	t.Run("a lost request is looked up and sent again under its key", func(t *testing.T) {
		w := newWork(t, newTarget(t, lost, done("executed")))
		w.ends(w.one(create), agent.Executed, 2)
	})
	t.Run("a replay is told from an execution", func(t *testing.T) {
		w := newWork(t, newTarget(t, lost, done("replayed")))
		w.ends(w.one(create), agent.Replayed, 2)
	})
	t.Run("what is accepted is asked for until it ends", func(t *testing.T) {
		x := newTarget(t, accepted).shows(operation("running", ""), operation("unknown", ""), operation("succeeded", `,"response":{"status":201,"body":{"id":"pay_1"}}`))
		w := newWork(t, x)
		w.ends(w.one(create), agent.Executed, 1)
		if n := x.questioned(); n != 3 {
			t.Errorf("asked %d times, want 3", n)
		}
	})
	t.Run("an operation that goes on has no answer, whatever its target says, so that the journal does not grow with every look", func(t *testing.T) {
		response := `,"response":{"status":201,"body":{"text":"` + strings.Repeat("x", 10_000) + `"}}`
		looks := slices.Repeat([]answer{operation("running", response)}, 20)
		w := newWork(t, newTarget(t, accepted).shows(append(looks, operation("succeeded", response))...))
		w.ends(w.one(create), agent.Executed, 1)
		if info, err := os.Stat(w.path); err != nil || info.Size() > 20_000 {
			t.Errorf("the journal has %d bytes, %v", info.Size(), err)
		}
	})
	t.Run("steps are done in turn, up to the first that is not", func(t *testing.T) {
		x := newTarget(t, done("executed"), final(problem.TicketClosed), done("executed"))
		w := newWork(t, x)
		results, err := w.do(create + "\n" + `{"step":"second","path":"/v1/x"}` + "\n" + `{"step":"third","path":"/v1/y"}`)
		if err != nil || len(results) != 2 || results[1].Entry.End.Outcome != agent.Refused {
			t.Fatalf("got %+v, %v", results, err)
		}
		if _, writes := x.arrived(); writes != 2 {
			t.Errorf("%d requests, want 2", writes)
		}
	})
}

func TestConflictStopsTheAgent(t *testing.T) {
	w := newWork(t, newTarget(t, refuse(problem.IdempotencyKeyReused, "Idempotency-Outcome", "conflict")))
	for range 3 {
		r := w.one(create)
		w.ends(r, agent.Conflict, 1)
		if r.ExitCode != 4 || !strings.Contains(r.Advice, "never choose another key") {
			t.Errorf("got %+v", r)
		}
	}
}

func TestBusinessFailureIsNotRetried(t *testing.T) {
	for name, x := range map[string]*target{
		"as the answer":        newTarget(t, final(problem.OrderNotPayable)),
		"as the stored answer": newTarget(t, refuse(problem.OrderNotPayable, "Idempotency-Outcome", "replayed")),
		"as the operation's end": newTarget(t, accepted).shows(operation("running", ""), operation("failed",
			`,"response":{"status":402,"body":{"code":"payment-declined","status":402,"detail":"declined"}}`)),
		"as a withdrawal": newTarget(t, accepted).shows(operation("canceled", "")),
		"as a failure of a code that is not known": newTarget(t, accepted).shows(operation("failed",
			`,"response":{"status":409,"body":{"code":"moon-too-bright","status":409,"detail":"it is"}}`)),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t, x)
			for range 2 {
				r := w.one(create)
				w.ends(r, agent.Refused, 1)
				if r.ExitCode != 2 || r.Effect != problem.EffectNone {
					t.Errorf("got %+v", r)
				}
			}
		})
	}
}

// What a target finds wrong with a request is what whoever mends it needs.
func TestARefusalSaysWhatIsWrong(t *testing.T) {
	many := make([]problem.Violation, 50)
	for i := range many {
		many[i] = problem.Violation{Pointer: fmt.Sprintf("/labels/%d", i), Detail: strings.Repeat("x", 5000)}
	}
	invalid := func(violations ...problem.Violation) answer {
		return func(w http.ResponseWriter, _ *http.Request) { problem.Invalid(violations...).Write(w) }
	}
	missing := problem.Violation{Pointer: "/title", Detail: "is missing"}

	w := newWork(t, newTarget(t, invalid(missing)))
	for range 2 {
		r := w.one(create)
		w.ends(r, agent.Refused, 1)
		if !slices.Equal(r.Requests[0].Seen.Errors, []problem.Violation{missing}) || !strings.Contains(r.Reason, "/title is missing") {
			t.Errorf("%+v: %s", r.Requests[0].Seen.Errors, r.Reason)
		}
	}
	t.Run("and no more than somebody can read", func(t *testing.T) {
		w := newWork(t, newTarget(t, invalid(many...)))
		r := w.one(create)
		w.ends(r, agent.Refused, 1)
		if seen := r.Requests[0].Seen; len(seen.Errors) != 10 || len(seen.Errors[9].Detail) > 1010 {
			t.Errorf("%d errors are kept", len(seen.Errors))
		}
	})
}

func TestAPersonIsAsked(t *testing.T) {
	t.Run("when a step names another command", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed")))
		w.one(create)
		_, err := w.do(strings.Replace(create, "Disk full", "Disk fuller", 1))
		if !errors.Is(err, agent.ErrStepChanged) || !strings.Contains(err.Error(), "Disk full") {
			t.Errorf("got %v", err)
		}
		w.ends(w.one(create), agent.Executed, 1)
	})
	t.Run("when two steps of one file have one name and two commands, of which none is sent", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed")))
		_, err := w.do(create + strings.Replace(create, "Disk full", "Disk fuller", 1))
		if _, writes := w.target.arrived(); !errors.Is(err, agent.ErrStepChanged) || writes != 0 {
			t.Errorf("got %v and %d requests", err, writes)
		}
	})
	t.Run("when the target has moved", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed")))
		w.one(create)
		w.target = newTarget(t, done("executed"))
		if _, err := w.do(create); !errors.Is(err, agent.ErrTargetChanged) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("when another retry mode is declared", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed")))
		w.one(create)
		if _, err := w.do(strings.TrimSuffix(create, "}") + `,"retry":"never"}`); !errors.Is(err, agent.ErrStepChanged) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("when approval does not come in time, and the same key goes on when it has", func(t *testing.T) {
		waiting := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Idempotency-Outcome", "accepted")
			w.Header().Set("Operation-Id", "op_1")
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, `{"id":"op_1","state":"awaiting_approval","approval_id":"apr_1","effect":"none","retry_after_seconds":60}`)
		}
		x := newTarget(t, waiting).shows(operation("awaiting_approval", `,"approval_id":"apr_1"`))
		w := newWork(t, x)
		r := w.one(create)
		w.ends(r, agent.NeedsPerson, 1)
		if r.ExitCode != 4 || r.Effect != problem.EffectNone || !strings.Contains(r.Advice, "apr_1") {
			t.Errorf("got %+v", r)
		}
		x.shows(operation("succeeded", `,"response":{"status":201}`))
		w.ends(w.one(create), agent.Executed, 1)

		// Who has approved and asks again is not told to wait for a minute.
		x = newTarget(t, waiting).shows(operation("succeeded", `,"response":{"status":201}`))
		w = newWork(t, x)
		w.ends(w.one(within(create, `{"deadline_seconds":5}`)), agent.NeedsPerson, 1)
		w.ends(w.one(create), agent.Executed, 1)
		if w.passed > time.Second {
			t.Errorf("it took %v", w.passed)
		}
	})
	t.Run("when approval was waited for, and what has come of that can't be seen", func(t *testing.T) {
		waiting := operation("awaiting_approval", `,"approval_id":"apr_1","effect":"none"`)
		for name, blind := range map[string]answer{"token": refuse(problem.Unauthenticated), "answer": lost, "store": refuse(problem.StoreUnavailable)} {
			x := newTarget(t, accepted).shows(waiting, waiting, blind)
			w := newWork(t, x)
			r := w.one(create)
			w.ends(r, agent.Unknown, 1)
			if r.ExitCode != 3 || r.Effect != problem.EffectUnknown || !strings.Contains(r.Advice, "apr_1") || strings.Contains(r.Advice, "Nothing has happened") {
				t.Errorf("no %s: %s, %s: %s", name, r.Outcome, r.Effect, r.Advice)
			}
			x.shows(operation("succeeded", `,"response":{"status":201}`))
			w.ends(w.one(create), agent.Executed, 1)
		}
	})
	t.Run("when the token is not accepted, and the same key goes on when it is", func(t *testing.T) {
		w := newWork(t, newTarget(t, refuse(problem.Unauthenticated), done("executed")))
		r := w.one(create)
		if w.ends(r, agent.NeedsPerson, 1); !strings.Contains(r.Advice, "EINMAL_AGENT_TOKEN") {
			t.Errorf("it is not said which token: %s", r.Advice)
		}
		w.ends(w.one(create), agent.Executed, 2)
	})
}

func TestBusinessRetryNamesItsPredecessor(t *testing.T) {
	const again = `{"step":"again","retry_of":"create","path":"/v1/tickets","body":{"project":"ops","title":"Disk full, again"}}`
	t.Run("and is allowed when that was refused", func(t *testing.T) {
		w := newWork(t, newTarget(t, final(problem.EffectRefused), done("executed")))
		first := w.one(create)
		second := w.one(again)
		if second.Outcome != agent.Executed || second.Key == first.Key || second.RetryOf != "create" {
			t.Errorf("got %+v", second)
		}
		if _, err := w.do(strings.Replace(again, `"again"`, `"once more"`, 1)); err == nil {
			t.Error("a name with a space was accepted")
		}
		if _, err := w.do(strings.Replace(again, `"again"`, `"once-more"`, 1)); !errors.Is(err, agent.ErrNotRefused) {
			t.Errorf("a second retry of one step: got %v", err)
		}
	})
	t.Run("and is not while that is unknown", func(t *testing.T) {
		w := newWork(t, newTarget(t, accepted).shows(operation("unknown", "")))
		w.ends(w.one(create), agent.Unknown, 1)
		results, err := w.do(again)
		if err != nil || len(results) != 1 || results[0].Entry.Step != "create" || results[0].Entry.End.Outcome != agent.Unknown {
			t.Errorf("got %+v, %v, want the open entry in the way", results, err)
		}
		w.ends(results[0].Entry.Report(), agent.Unknown, 1)
	})
	t.Run("and is not when that is done", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed")))
		w.ends(w.one(create), agent.Executed, 1)
		if _, err := w.do(again); !errors.Is(err, agent.ErrNotRefused) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("and is not of a step that there never was", func(t *testing.T) {
		w := newWork(t, newTarget(t, done("executed")))
		if _, err := w.do(again); !errors.Is(err, agent.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	})
}

func TestUnknownIsPolledThenHandedOver(t *testing.T) {
	x := newTarget(t, accepted).shows(operation("unknown", `,"effect":"unknown","review_id":"rev_1"`))
	w := newWork(t, x)
	r := w.one(within(create, `{"deadline_seconds":60}`))
	w.ends(r, agent.Unknown, 1)
	if r.ExitCode != 3 || r.Operation != (agent.Operation{ID: "op_1", State: "unknown", ReviewID: "rev_1"}) || r.Effect != problem.EffectUnknown {
		t.Errorf("got %+v", r)
	}
	if !strings.Contains(r.Advice, "Don't send it under another key") || !strings.Contains(r.Advice, r.Key) {
		t.Errorf("advice: %s", r.Advice)
	}
	asked := x.questioned()
	if asked < 20 {
		t.Errorf("asked %d times in a minute, want it polled", asked)
	}

	t.Run("and each restart asks once, and sends nothing", func(t *testing.T) {
		w.ends(w.one(create), agent.Unknown, 1)
		if again := x.questioned() - asked; again != 1 {
			t.Errorf("asked %d times, want once", again)
		}
		x.shows(operation("succeeded", `,"response":{"status":201,"body":{}}`))
		w.ends(w.one(create), agent.Executed, 1)
	})
}

// An operation that was seen and is gone is asked about by its key, under which somebody may have made it anew. Nothing is sent: a target that
// has forgotten it may have forgotten more.
func TestAnOperationThatHasVanished(t *testing.T) {
	x := newTarget(t, accepted, done("executed")).shows(operation("running", ""), refuse(problem.NotFound), refuse(problem.OperationNotFound), refuse(problem.NotFound), refuse(problem.OperationNotFound))
	w := newWork(t, x)
	for range 2 {
		r := w.one(create)
		w.ends(r, agent.Unknown, 1)
		if !strings.Contains(r.Reason, "op_1 was seen as running") || !strings.Contains(r.Reason, "set back") {
			t.Errorf("%s", r.Reason)
		}
	}
	x.shows(refuse(problem.NotFound), says(200, "application/json", `{"id":"op_2","state":"queued","agent_run":"run-1"}`),
		says(200, "application/json", `{"id":"op_2","state":"succeeded","agent_run":"run-1","response":{"status":201}}`))
	r := w.one(create)
	if w.ends(r, agent.Executed, 1); r.Operation.ID != "op_2" {
		t.Errorf("%+v", r.Operation)
	}
}

// A journal that can't be written sends nothing.
func TestNothingIsSentThatIsNotInTheJournal(t *testing.T) {
	w := newWork(t, newTarget(t, done("executed")))
	steps, err := agent.ParseSteps([]byte(create))
	if err != nil {
		t.Fatal(err)
	}
	w.agent(func(a *agent.Agent) {
		agent.Break(a)
		if _, err := a.Do(t.Context(), steps); err == nil || !strings.Contains(err.Error(), w.path) {
			t.Errorf("got %v, want an error about %s", err, w.path)
		}
	})
	if _, writes := w.target.arrived(); writes != 0 {
		t.Errorf("%d requests were sent", writes)
	}
}

// Whatever can't be journaled after something was sent: it may have happened, and nobody is told that nothing was sent.
func TestWhatWasSentIsNotForgottenWithTheJournal(t *testing.T) {
	steps, err := agent.ParseSteps([]byte(create))
	if err != nil {
		t.Fatal(err)
	}
	var broken *agent.Agent
	breaks := func(http.ResponseWriter, *http.Request) { agent.Break(broken) }
	for name, test := range map[string]struct {
		write answer
		left  int // lines of a journal that an earlier agent has left: of the header, the intention, the attempt, the answer and the end
	}{
		"its answer":               {write: breaks},
		"what a look has found":    {write: done("executed"), left: 3},
		"its end, by the next one": {write: done("executed"), left: 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t, newTarget(t, test.write).shows(operation("succeeded", "")))
			if test.left > 0 {
				w.one(create)
				text, err := os.ReadFile(w.path)
				if err != nil {
					t.Fatal(err)
				}
				write(t, w.path, text[:bounds(text)[test.left-1]])
			}
			w.agent(func(a *agent.Agent) {
				if broken = a; test.left > 0 {
					agent.Break(a)
				}
				if _, err := a.Do(t.Context(), steps); !errors.Is(err, agent.ErrUnrecorded) || !strings.Contains(err.Error(), w.path) {
					t.Errorf("got %v, want one that says that it may have happened, and %s", err, w.path)
				}
			})
			if _, writes := w.target.arrived(); writes != 1 {
				t.Errorf("%d requests, want 1", writes)
			}
		})
	}
}

func TestOpenEntriesAreSettledFirst(t *testing.T) {
	x := newTarget(t, lost, done("replayed"), done("executed"))
	w := newWork(t, x)
	ctx, cancel := context.WithCancel(t.Context())
	x.questions = []answer{func(w http.ResponseWriter, r *http.Request) { cancel(); lost(w, r) }, refuse(problem.OperationNotFound)}
	steps, err := agent.ParseSteps([]byte(create))
	if err != nil {
		t.Fatal(err)
	}
	w.agent(func(a *agent.Agent) {
		results, err := a.Do(ctx, steps)
		if err != nil || results[0].Entry.End.Outcome != agent.Unknown || !strings.Contains(results[0].Entry.End.Reason, "told to end") {
			t.Errorf("got %+v, %v", results, err)
		}
	})
	r := w.one(`{"step":"other","path":"/v1/x"}`)
	if r.Outcome != agent.Executed {
		t.Errorf("got %+v", r)
	}
	entries, err := agent.Read(w.path)
	if err != nil || len(entries) != 2 || entries[0].End.Outcome != agent.Replayed {
		t.Fatalf("got %+v, %v", entries, err)
	}
}

func TestOtherRunsAreNotWaitedFor(t *testing.T) {
	x := newTarget(t, accepted, done("executed")).shows(operation("awaiting_approval", `,"approval_id":"apr_1"`))
	w := newWork(t, x)
	var progress []string
	w.progress = func(_ *agent.Entry, what string) { progress = append(progress, what) }
	w.ends(w.one(create), agent.NeedsPerson, 1)
	if last := progress[len(progress)-1]; !strings.Contains(last, "apr_1") {
		t.Errorf("it says %q, and not which approval it waits for", last)
	}
	asked, passed := x.questioned(), w.passed

	w.run = "run-2"
	if r := w.one(`{"step":"other","path":"/v1/x"}`); r.Outcome != agent.Executed || x.questioned() != asked || w.passed-passed > time.Second {
		t.Errorf("%s after %v and %d questions about the other run", r.Outcome, w.passed-passed, x.questioned()-asked)
	}
	for run, want := range map[string]int{"run-2": 0, "run-1": 1, "": 1} {
		w.inTime(func(ctx context.Context, a *agent.Agent) {
			if results, err := a.Resume(ctx, run); err != nil || len(results) != want {
				t.Errorf("resume of run %q: %d results, %v", run, len(results), err)
			}
		})
	}
}

// What the agent writes holds no credentials.
func TestTheJournalHoldsNoToken(t *testing.T) {
	w := newWork(t, newTarget(t, done("executed")))
	w.one(create)
	text, err := os.ReadFile(w.path)
	if err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("%v, %s", err, text)
	}
}

// A token is for the targets that an agent was given with it.
func TestOpenEntriesOfOtherTargets(t *testing.T) {
	former := newTarget(t, lost)
	w := newWork(t, former)
	w.ends(w.one(within(create, `{"attempts":1}`)), agent.Unknown, 1)
	asked := former.questioned()

	w.target = newTarget(t, done("executed"))
	if r := w.one(`{"step":"other","path":"/v1/x"}`); r.Step != "create" || r.Outcome != agent.Unknown {
		t.Errorf("got %+v, want the open entry in the way", r)
	}
	if _, writes := former.arrived(); writes != 1 || former.questioned() != asked {
		t.Errorf("%d writes and %d questions went to a target that was not given", writes, former.questioned())
	}

	t.Run("are settled when somebody says so", func(t *testing.T) {
		former.shows(operation("succeeded", ""))
		var results []agent.Result
		var err error
		w.inTime(func(ctx context.Context, a *agent.Agent) { results, err = a.Resume(ctx, "") })
		if err != nil || len(results) != 1 || results[0].Entry.End.Outcome != agent.Executed {
			t.Errorf("got %+v, %v", results, err)
		}
	})
}
