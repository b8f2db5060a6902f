package scenarios

import (
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/services/simulator"
)

var unknownReachesAPersonAndIsResolved = Scenario{
	Name:    "unknown_reaches_a_person_and_is_resolved",
	Promise: "A capture of which nothing can be learned is with a person, who sees every call that was made; one word of theirs ends it, once.",
	Injects: true,
	run: func(s *Stage) int {
		return s.EachKeys(brisk, func(t *Till) int {
			replica := t.Replica()
			paid := t.Done(replica, t.Pays(t.NewOrder(replica)))
			t.psp.Down(retrieve)
			t.psp.Next(capture, simulator.After, simulator.Reset)
			taken := t.Begin(replica, t.Captures(paid, "100.00"))
			op := t.ended(replica, taken)
			t.Check(op.Text("state") == "unknown" && op.Text("next_action") == "ask_human", "the capture has become %v, want it with a person", op)
			asked := t.Question(replica, op.Text("review_id"))
			t.Check(asked.Kind == "unknown" && asked.State == "open" && asked.says("send") && asked.says("lookup"), "the review is %+v, want it open, with every call", asked)
			t.Kill(replica)
			t.Restart(replica)

			key := t.NewKey()
			first := t.Resolves(replica, asked.ID, key, "succeeded", paid.Resource)
			t.Check(first.Status == http.StatusOK && first.Text("resolved_as") == "succeeded", "a person's word: got %v", first)
			t.Replayed("the same word again", t.Resolves(replica, asked.ID, key, "succeeded", paid.Resource), first)
			t.Problem("another word", t.Resolves(replica, asked.ID, t.NewKey(), "failed", ""), http.StatusConflict, "review-resolved")
			stranger := t.Do(harness.Call{
				Base: replica.URL(), Method: http.MethodPost, Path: "/v1/reviews/" + asked.ID + "/resolution", Token: "demo-globex-operator", Key: t.NewKey(),
				Body: `{"evidence":"mine"}`,
			})
			t.Check(stranger.Status == http.StatusNotFound, "another account's word: got %v, want 404", stranger)
			op = t.State(replica, taken)
			t.Check(op.Text("state") == "succeeded", "the capture has become %v, want it succeeded", op)
			return 2
		})
	},
}
