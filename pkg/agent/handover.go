package agent

import (
	"fmt"
	"net/http"
	"time"

	"github.com/einmal/einmal/pkg/problem"
)

// Report is everything that was gathered about an entry: what a person needs who has to decide, and a program that has asked.
type Report struct {
	Run       string         `json:"run"`
	Step      string         `json:"step"`
	Outcome   Outcome        `json:"outcome"` // "" while it is open and nobody has been asked
	ExitCode  int            `json:"exit_code"`
	Effect    problem.Effect `json:"effect"`
	Reason    string         `json:"reason,omitzero"`
	Shortage  *Shortage      `json:"shortage,omitzero"`
	Advice    string         `json:"advice"`
	Key       string         `json:"key"`
	URL       string         `json:"url"`
	Ability   Ability        `json:"ability"`
	Command   Command        `json:"command"`
	Retry     Retry          `json:"retry"`
	RetryOf   string         `json:"retry_of,omitzero"`
	Budget    Budget         `json:"budget"`
	BegunAt   time.Time      `json:"begun_at"`
	Operation Operation      `json:"operation,omitzero"`
	Requests  []Request      `json:"requests"` // attempts and looks, with their times and what was seen
	Response  *Response      `json:"response,omitzero"`
}

// Report gathers it.
func (e *Entry) Report() Report {
	requests := append([]Request{}, e.Requests...)
	for i := range requests {
		requests[i].Seen.Response = nil // the final one stands by itself
	}
	return Report{
		Run: e.Run, Step: e.Step, Outcome: e.End.Outcome, ExitCode: e.Standing().ExitCode(), Effect: e.Effect(), Reason: e.End.Reason, Shortage: e.End.Shortage, Advice: e.advice(),
		Key: e.Key, URL: e.URL, Ability: e.Ability, Command: e.Command, Retry: e.Retry, RetryOf: e.RetryOf, Budget: e.Budget,
		BegunAt: e.At, Operation: e.Operation(), Requests: requests, Response: e.Response(),
	}
}

// Standing is the entry's outcome; of one that is open it is what is known now.
func (e *Entry) Standing() Outcome {
	if e.End.Outcome == "" {
		return handedOver(e, "").Outcome
	}
	return e.End.Outcome
}

// Effect is what is known about the effect.
func (e *Entry) Effect() problem.Effect {
	switch e.Standing() {
	case Executed, Replayed:
		return problem.EffectApplied
	case Unknown:
		return problem.EffectUnknown
	case Refused, Conflict, NeedsPerson:
	}
	return problem.EffectNone
}

// advice is what to do, in words that never invite to send the same under another key.
func (e *Entry) advice() string {
	lookUp := fmt.Sprintf("Look it up: GET %s/v1/operations with Idempotency-Key: %s.", e.URL, e.Key)
	switch e.Standing() {
	case Executed, Replayed:
		return "It is done; the same step again is answered from here."
	case Refused:
		return e.adviceRefused()
	case Conflict:
		return "The key belongs to another command at the target, and nothing was done for this one. Find out which of the two was meant; never choose another key for it. " + lookUp
	case NeedsPerson:
		return e.adviceForPerson()
	case Unknown:
	}
	const doubt = "It may have happened. Don't send it under another key. "
	switch op := e.Operation(); {
	case op.State == "awaiting_approval" && op.ApprovalID != "":
		return fmt.Sprintf("%sWhen it was last seen, approval %s had to be decided, and somebody may have said yes since. %s Resume asks again.", doubt, op.ApprovalID, lookUp)
	case e.Ability == Operations && e.End.Shortage != nil:
		return doubt + lookUp + " Resume asks again. To let it go on under this key, " + e.relief() + "."
	case e.Ability == Operations:
		return doubt + lookUp + " Resume asks again, and sends under this key only."
	case e.Ability == Keys && e.Retry != Never && e.End.Shortage != nil:
		return doubt + "The target remembers this one. To send the same under it again, " + e.relief() + "."
	case e.Ability == Keys && e.Retry != Never:
		return doubt + "The target remembers this one: mend what the reason says, and resume: it sends the same again."
	}
	return "It may have happened, and the target can't tell. Look there for what the command asks for before anything is sent: only if it is not there, name another step."
}

// adviceRefused is for what has not happened, and will not be tried again.
func (e *Entry) adviceRefused() string {
	again := "What is changed is another step, which says retry_of: " + e.Step + "."
	last := e.last().Seen
	switch {
	case last.Reading == Code(problem.RouteNotFound), last.Reading == Code(problem.MethodNotAllowed),
		last.Reading == StatusRefused && (last.Status == http.StatusNotFound || last.Status == http.StatusMethodNotAllowed):
		return fmt.Sprintf("It has not happened: there is no %s %s at %s. Both are part of the step, the target's URL as well as the command. %s", e.Command.Method, e.Command.Path, e.URL, again)
	}
	return "It has not happened, and the same is not tried again. " + again
}

// adviceForPerson is for what has not happened, and may yet.
func (e *Entry) adviceForPerson() string {
	switch last := e.last().Seen; {
	case e.Operation().ApprovalID != "":
		return fmt.Sprintf("Nothing has happened yet: approval %s has to be decided. Then resume.", e.Operation().ApprovalID)
	case first(e) == HandOver: // as the target or the step says, it is sent once
		return "Nothing has happened, and it is not sent again under this name. Mend what the reason says, and name another step."
	case last.Reading == Code(problem.Unauthenticated), last.Reading == StatusNotLetIn:
		return "Nothing has happened. Give the token that the target knows (EINMAL_AGENT_TOKEN), and resume: it goes on under the same key."
	case last.Reading == NotConnected && e.End.Shortage != nil:
		return fmt.Sprintf("Nothing has happened. If %s is the right place, %s: it goes on under the same key. If not, begin another run: the target's URL is part of the step.", e.URL, e.relief())
	case e.End.Shortage != nil:
		return fmt.Sprintf("Nothing has happened. Mend what the reason says, and %s: it goes on under the same key.", e.relief())
	}
	return "Nothing has happened. Mend what the reason says, and resume: it goes on under the same key."
}
