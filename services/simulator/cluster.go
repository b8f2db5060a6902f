package simulator

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// cluster runs releases, one rollout at a time in each environment. Each rollout is an effect of kind rollout; each that was broken off
// is one of kind stop as well. Every call that changes something carries a fencing token in the header Fencing-Token: an environment has
// a floor, refuses tokens below it, and a token that has begun a rollout is below it from then on.
//
//	POST /cluster/v1/rollouts                     send: begins a rollout; header Idempotency-Key is the effect key
//	GET  /cluster/v1/rollouts?effect_key=KEY      lookup: the rollouts under the key, as they are now; or ?reference=REFERENCE
//	POST /cluster/v1/effects/{effect_key}/close   close: raises the floor, and says what there is under the key and what runs
//	POST /cluster/v1/stops                        stop: raises the floor above its token, and breaks the rollout of an effect key off,
//	                                              after which the release before it runs again
var cluster = target{
	name:       "cluster",
	operations: []string{clusterSend, clusterLookup, clusterClose, clusterStop},
	actions:    slices.Concat(everywhere, ofRollouts),
	no:         turnedAway,
	fault:      wordless,
}

const (
	clusterSend   = "send"
	clusterLookup = "lookup"
	clusterClose  = "close"
	clusterStop   = "stop"

	kindRollout = "rollout"
	kindStop    = "stop"

	// refusedService is the one service that the cluster takes no release of; a release of failingService never gets well.
	refusedService = "refused"
	failingService = "failing"
)

// ofRollouts are the actions that become of a rollout rather than of a request. A fault with one of them strikes when a rollout begins,
// half also when one is broken off.
var ofRollouts = []Action{Half, OtherDigest}

func (s *Service) clusterRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /cluster/v1/rollouts", s.handle(operation{
		target: cluster, kind: clusterSend, sends: true, effectKey: keyHeader, decide: s.rollOut,
	}))
	mux.HandleFunc("GET /cluster/v1/rollouts", s.handle(operation{
		target: cluster, kind: clusterLookup, reads: true, effectKey: keyOrReference, decide: lookUpRollouts,
	}))
	mux.HandleFunc("POST /cluster/v1/effects/{effect_key}/close", s.handle(operation{
		target: cluster, kind: clusterClose, decide: closeRollout,
		effectKey: func(r *http.Request) (string, error) { return parseKey(r.PathValue("effect_key")) },
	}))
	mux.HandleFunc("POST /cluster/v1/stops", s.handle(operation{
		target: cluster, kind: clusterStop, sends: true, effectKey: keyHeader, decide: stopRollout,
	}))
}

// keyOrReference is the effect key of a look-up, empty where it is by reference.
func keyOrReference(r *http.Request) (string, error) {
	query := r.URL.Query()
	if query.Get("reference") != "" {
		return "", nil
	}
	return parseKey(query.Get("effect_key"))
}

// place is where a call wants something to happen: an environment of an account.
type place struct {
	Account     string `json:"account"`
	Environment string `json:"environment"`
}

func (p place) validate() error {
	for _, name := range []string{p.Account, p.Environment} {
		if _, err := parseKey(name); err != nil {
			return errors.New("account and environment must have 1 to 255 characters, all visible ASCII")
		}
	}
	return nil
}

// tokenHeader is the fencing token of a call.
func tokenHeader(r *http.Request) (int64, error) {
	lines := r.Header.Values("Fencing-Token")
	if len(lines) != 1 {
		return 0, errors.New("send one header Fencing-Token")
	}
	token, err := strconv.ParseInt(lines[0], 10, 64)
	if err != nil || token < 1 {
		return 0, errors.New("the header Fencing-Token must be a whole number from 1 on")
	}
	return token, nil
}

// digestOf is what an artifact is known by: its digest or commit.
func digestOf(artifact string) (digest string, ok bool) {
	at := strings.LastIndexByte(artifact, '@')
	return artifact[at+1:], at > 0 && at < len(artifact)-1
}
