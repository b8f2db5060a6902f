package tickets

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/einmal/einmal/pkg/outbox"
)

// reply is a whole answer to a call, of the desk or of something on the way that speaks for itself: a proxy, a gateway, a page to
// log in. What ends an effect, or makes certain that there was none, is believed only in the desk's own words.
type reply struct {
	status     int
	retryAfter time.Duration
	body       []byte
}

// read reads the body, and reports whether it is one that the desk writes.
func (r reply) read(into any) bool { return json.Unmarshal(r.body, into) == nil }

// deskTicket is what the desk says of a ticket.
type deskTicket struct {
	Reference string `json:"reference"`
	EffectKey string `json:"effect_key"` // that it was opened with; a desk may leave it out
}

// isAbout reports whether the ticket may be that of an effect key. One with another key is not: the desk, or a cache before it, has
// answered somebody else's question, or has not understood by what it was asked to look.
func (t deskTicket) isAbout(effectKey string) bool {
	return t.EffectKey == "" || t.EffectKey == effectKey
}

// errorCode is how the desk writes its codes.
var errorCode = regexp.MustCompile(`^[a-z_]{1,64}$`)

// afterSend is the evidence of an answer to a send.
//
//	201 with a reference    it happened
//	422 refused             the desk's final no, which it keeps under the key
//	400, 413, 422 invalid   so is this of a request that it can't read, and keeps nothing of
//	422 key_reused          the desk has opened another ticket under our key
//	409 closed              the send came below the floor; it had no effect, a later one may have
//	401, 403 unauthorized   the desk has turned this send away at its door: a token that an operator will mend. Who else says so, 425 too,
//	                        may have let it through, and have kept back the answer
//	429 with a code         so it has for the moment: a limit
//	all else                nothing is known. 404, 405, 410: a wrong URL, or a proxy, says nothing about the desk. 408, 5xx: it may have been
//	                        at work. 3xx: not followed, and given after the work by some. 409: another send of the key is in progress.
//	                        2xx without a reference, or about another effect key: the desk, or not even that.
func (r reply) afterSend(effectKey string) outbox.Evidence {
	var answer struct {
		deskTicket
		Code string `json:"code"`
	}
	if !r.read(&answer) {
		answer.Code, answer.Reference = "", "" // half of what can't be read is nothing
	}
	if !errorCode.MatchString(answer.Code) {
		answer.Code = "" // people are told codes, not what else somebody may have put there
	}
	ev := outbox.Evidence{Finding: outbox.Ambiguous, Says: strings.TrimSpace(fmt.Sprintf("answered %d %s", r.status, answer.Code)), RetryAfter: r.retryAfter}
	switch r.status {
	case http.StatusCreated:
		if answer.Reference != "" && answer.isAbout(effectKey) {
			ev.Finding, ev.Reference = outbox.Confirmed, answer.Reference
		}
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		switch {
		case answer.Code == "refused" && r.status == http.StatusUnprocessableEntity:
			ev.Finding = outbox.Verdict
		case answer.Code == "invalid":
			ev.Finding = outbox.Refused
		case answer.Code == "key_reused" && r.status == http.StatusUnprocessableEntity:
			ev.Finding = outbox.Reused
		}
	case http.StatusConflict:
		if answer.Code == "closed" {
			ev.Finding = outbox.NotSent
		}
	case http.StatusUnauthorized, http.StatusForbidden:
		if answer.Code == "unauthorized" {
			ev.Finding = outbox.NotSent
		}
	case http.StatusTooManyRequests:
		if answer.Code != "" {
			ev.Finding = outbox.NotSent
		}
	}
	return ev
}

// afterLookup is the evidence of an answer to a look-up. A list that isn't there is not an empty one.
func (r reply) afterLookup(effectKey string) outbox.Evidence {
	var answer struct {
		Items []deskTicket `json:"items"`
	}
	if r.status != http.StatusOK || !r.read(&answer) || answer.Items == nil {
		return r.unreadable("look-up")
	}
	if len(answer.Items) == 0 {
		return outbox.Evidence{Finding: outbox.NotFound, Says: "the desk shows no such ticket"}
	}
	var found []string
	for _, item := range answer.Items {
		if item.Reference == "" || !item.isAbout(effectKey) {
			return r.unreadable("look-up")
		}
		found = append(found, item.Reference)
	}
	return outbox.Evidence{Finding: outbox.Confirmed, Reference: found[0], More: found[1:], Says: "found by look-up"}
}

// afterClose is the evidence of an answer to a close, which is conclusive only if it says so.
func (r reply) afterClose(effectKey string) outbox.Evidence {
	var answer struct {
		deskTicket
		Happened *bool `json:"happened"`
	}
	switch {
	case r.status != http.StatusOK || !r.read(&answer) || answer.Happened == nil || *answer.Happened && answer.Reference == "" || !answer.isAbout(effectKey):
		return r.unreadable("close")
	case !*answer.Happened:
		return outbox.Evidence{Finding: outbox.Closed, Says: "closed, nothing had happened"}
	}
	return outbox.Evidence{Finding: outbox.Confirmed, Reference: answer.Reference, Says: "closed after it had happened"}
}

// unreadable is the evidence of an answer that is none to what was asked.
func (r reply) unreadable(call string) outbox.Evidence {
	return outbox.Evidence{Finding: outbox.Ambiguous, Says: fmt.Sprintf("the %s was answered %d", call, r.status), RetryAfter: r.retryAfter}
}
