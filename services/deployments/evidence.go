package deployments

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/einmal/einmal/pkg/outbox"
)

// reply is a whole answer to a call, of the cluster or of something on the way that speaks for itself: a proxy, a gateway, a page to
// log in. What ends an effect, or makes certain that there was none, is believed only in the cluster's own words.
type reply struct {
	status     int
	retryAfter time.Duration
	body       []byte
}

// bodyOf reads the body of a reply, and reports whether it is one that the cluster writes. Half of what can't be read is nothing.
func bodyOf[T any](r reply) (answer T, ok bool) {
	if json.Unmarshal(r.body, &answer) != nil {
		var nothing T
		return nothing, false
	}
	return answer, true
}

// rollout is what the cluster says of a rollout.
type rollout struct {
	Reference   string `json:"reference"`
	EffectKey   string `json:"effect_key"`
	Environment string `json:"environment"`
	Service     string `json:"service"`
	Artifact    string `json:"artifact"` // that was asked for
	State       string `json:"state"`
	Runs        string `json:"runs"` // of the service, now
	Floor       int64  `json:"floor"`
}

// isAbout reports whether it is the rollout of an effect key. One of another key, or without a name, is the answer to somebody else's
// question, or none of the cluster's.
func (r rollout) isAbout(effectKey string) bool {
	return r.Reference != "" && r.EffectKey == effectKey
}

// errorCode is how the cluster writes its codes.
var errorCode = regexp.MustCompile(`^[a-z_]{1,64}$`)

// turnedAway is the evidence of a send that was answered, and not with what it was for.
//
//	400, 413, 422 invalid   a final no to a request that it can't read
//	422 refused             a final no of what was asked for
//	422 key_reused          the cluster has been sent something else under our key
//	401, 403 unauthorized   the cluster has turned this send away at its door: a token that an operator will mend. Who else says so, 425 too,
//	                        may have let it through, and have kept back the answer
//	429 with a code         so it has for the moment: a limit
//	all else                nothing is known. 404, 405, 410: a wrong URL, or a proxy, says nothing about the cluster. 408, 5xx: it may have been
//	                        at work. 3xx: not followed, and given after the work by some. 409: another send of the key is in progress.
//	                        2xx without a reference, or about another effect key: the cluster, or not even that.
func (r reply) turnedAway(code string) outbox.Evidence {
	if !errorCode.MatchString(code) {
		code = "" // people are told codes, not what else somebody may have put there
	}
	ev := outbox.Evidence{Finding: outbox.Ambiguous, Says: strings.TrimSpace(fmt.Sprintf("answered %d %s", r.status, code)), RetryAfter: r.retryAfter}
	switch r.status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		switch {
		case code == "invalid", code == "refused" && r.status == http.StatusUnprocessableEntity:
			ev.Finding = outbox.Refused
		case code == "key_reused" && r.status == http.StatusUnprocessableEntity:
			ev.Finding = outbox.Reused
		}
	case http.StatusUnauthorized, http.StatusForbidden:
		if code == "unauthorized" {
			ev.Finding = outbox.NotSent
		}
	case http.StatusTooManyRequests:
		if code != "" {
			ev.Finding = outbox.NotSent
		}
	}
	return ev
}

// shown are the rollouts that an answer to a look-up shows under an effect key, the last first. A list that isn't there is not an empty
// one, and one with somebody else's rollouts is not about the key.
func (r reply) shown(effectKey string) (all []rollout, ok bool) {
	answer, ok := bodyOf[struct {
		Items []rollout `json:"items"`
	}](r)
	if !ok || r.status != http.StatusOK || answer.Items == nil {
		return nil, false
	}
	if slices.ContainsFunc(answer.Items, func(item rollout) bool { return !item.isAbout(effectKey) }) {
		return nil, false
	}
	slices.Reverse(answer.Items)
	return answer.Items, true
}

// unreadable is the evidence of an answer that is none to what was asked.
func (r reply) unreadable(call string) outbox.Evidence {
	return outbox.Evidence{Finding: outbox.Ambiguous, Says: fmt.Sprintf("the %s was answered %d", call, r.status), RetryAfter: r.retryAfter}
}
