package simulator

import (
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
)

// Machine codes of answers that are not what was asked for. With any of them but error and internal_error this request had no
// effect. What became of earlier sends of its key only a replay, a look-up or a close tells.
const (
	codeInvalid       = "invalid"        // 400, 413: the request is not one of this API
	codeUnauthorized  = "unauthorized"   // 401: this token may not
	codeRouteNotFound = "not_found"      // 404: no such route
	codeInProgress    = "in_progress"    // 409: another request with this effect key is being worked on
	codeClosed        = "closed"         // 409: the effect key was closed before this send took effect
	codeBelowFloor    = "below_floor"    // 409: the token is below the environment's floor
	codeBusy          = "busy"           // 409: another rollout goes on in the environment
	codeRefused       = "refused"        // 422: the target's final no
	codeKeyReused     = "key_reused"     // 422: the effect key belongs to another body
	codeError         = "error"          // a fault of action status
	codeInternal      = "internal_error" // 500: the simulator itself failed
	codeNotOffered    = "not_offered"    // 501: the target lacks this ability
)

// Answer is what a target says.
type Answer struct {
	Status int
	Body   []byte

	// Decided: the request was dealt with, for good or for ill: an effect, a refusal, a look-up, a close, or the answer of
	// one once more. Only such an answer can be struck by a fault after it.
	Decided bool

	// Replayed: an earlier request was given this answer.
	Replayed bool
}

// failure is the body of every answer that is not what was asked for.
type failure struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// decided is an answer to a request that was dealt with.
func decided(status int, body any) Answer {
	return Answer{Status: status, Body: encode(body), Decided: true}
}

// turnedAway is an answer to a request that was not dealt with.
func turnedAway(status int, code, detail string) Answer {
	return Answer{Status: status, Body: encode(failure{code, detail})}
}

func encode(body any) []byte {
	text, err := json.Marshal(body, json.Deterministic(true)) // maps have no order, and what is said twice is said alike
	if err != nil {
		panic(err) // every body is a struct of texts, numbers and times
	}
	return text
}

func (a Answer) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	h.Set("Cache-Control", "no-store")
	if a.Replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the caller may have left; what was done stays done
}
