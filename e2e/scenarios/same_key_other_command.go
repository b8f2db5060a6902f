package scenarios

import (
	"bytes"
	"net/http"

	"github.com/einmal/einmal/e2e/harness"
)

var sameKeyOtherCommand = Scenario{
	Name:    "same_key_other_command",
	Promise: "A key names one command: another one is refused with 422, while the first still runs and ever after.",
	Injects: true,
	run: func(s *Stage) int {
		gate := s.Gate()
		first, second := s.Serve(gate.URL), s.Serve("")
		key, body := s.NewKey(), s.NewTicket().JSON()
		other := ticket{Project: "ops", Title: "another ticket, under the same key"}.JSON()

		gate.Hold()
		running := s.Send(first.URL(), key, body)
		gate.AwaitHeld()

		// Within the process the other command is known at once, and is no reason to wait for the first.
		conflict, again := s.Send(first.URL(), key, other), s.Send(first.URL(), key, body)
		if s.SQLite() {
			gate.AwaitHeld() // they too; the lock can't be held for longer than services wait for it
		} else {
			s.conflicts("another command while the first runs", conflict.Answer())
			s.inProgress("the same command while the first runs", again)
			s.inProgress("the same command at another replica", s.Send(second.URL(), key, body))
			conflict, again = s.Send(first.URL(), key, other), s.Send(first.URL(), key, body)
		}
		gate.Release()

		created := running.Answer()
		s.Executed("the first command", created)
		s.Replayed("the same command, sent while the first ran", again.Answer(), created)
		s.conflicts("another command, sent while the first ran", conflict.Answer())
		for _, base := range []string{first.URL(), second.URL()} {
			conflict := s.Create(base, key, other)
			s.conflicts("another command after the first", conflict)
			s.Check(conflict.Text("operation_id") == created.Header.Get("Operation-Id") && conflict.Text("operation_state") == "succeeded",
				"got %v, want the id and state of the operation", conflict)
			for _, secret := range []string{"v1:", created.Text("title")} {
				s.Check(!bytes.Contains(conflict.Body, []byte(secret)), "the refusal tells of the stored command: %s", conflict.Body)
			}
			s.Replayed("the same command after the first", s.Create(base, key, body), created)
		}
		s.Notef("another command got 422 while the first ran and afterwards, at both replicas")
		return 1
	},
}

func (s *Stage) conflicts(what string, a harness.Answer) {
	s.Problem(what, a, http.StatusUnprocessableEntity, "idempotency-key-reused")
	s.Check(a.Outcome() == "conflict" && a.Text("retry") == "never", "%s: got %v, want outcome conflict and retry never", what, a)
}

// inProgress waits for an answer that must say: not finished, ask again.
func (s *Stage) inProgress(what string, sent *Sent) {
	answer := sent.Answer()
	s.Problem(what, answer, http.StatusConflict, "operation-in-progress")
	s.Check(answer.Outcome() == "in_progress" && answer.Text("retry") == "same_key" && answer.Header.Get("Retry-After") != "",
		"%s: got %v, want outcome in_progress, retry same_key and a Retry-After", what, answer)
}
