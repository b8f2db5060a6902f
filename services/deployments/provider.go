package deployments

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/einmal/einmal/pkg/outbox"
)

// The targets: rollouts, and the stops that break them off, which have places of their own.
const (
	clusterName = "cluster"
	stopsName   = "cluster stops"
)

const (
	// clusterSends and clusterAsks bound the calls under way. A cluster begins a rollout in milliseconds, and one environment has
	// one: sixteen serve some hundred environments. Questions after rollouts that go on have places of their own.
	clusterSends = 16
	clusterFirst = 2 // no rollout has priority
	clusterAsks  = 8
	stopCalls    = 4

	// maxAsks is how many questions in a row may find nothing out before a person is asked: with growing pauses some seconds. A
	// rollout of which nothing is known keeps an environment locked, so somebody should hear of it soon.
	maxAsks = 5
)

// cluster makes calls to the cluster. Each is one: redirects are not followed, nothing is sent again by itself, and what a call has shown
// is told from answers and from the kind of failure, never from the text of an error.
type cluster struct {
	base      string
	token     string // may change
	readToken string // may only look
	client    *http.Client
}

func newCluster(config Config) cluster {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: config.ProviderTimeout}).DialContext,
		MaxIdleConnsPerHost: clusterSends + clusterFirst + clusterAsks + stopCalls,
		IdleConnTimeout:     30 * time.Second,
	}
	return cluster{
		base: strings.TrimSuffix(config.ProviderURL, "/"), token: config.ProviderToken, readToken: config.ProviderReadToken,
		client: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// rollout is what the cluster says of a rollout.
type rollout struct {
	Reference string `json:"reference"`
	EffectKey string `json:"effect_key"`
	Artifact  string `json:"artifact"` // that was asked for
	State     string `json:"state"`
	Runs      string `json:"runs"` // of the service, now
	Floor     int64  `json:"floor"`
}

// isAbout reports whether it is the rollout of an effect key. One of another key, or without a name, is the answer to somebody else's
// question, or none of the cluster's.
func (r rollout) isAbout(effectKey string) bool {
	return r.Reference != "" && r.EffectKey == effectKey
}

// errorCode is how the cluster writes its codes.
var errorCode = regexp.MustCompile(`^[a-z_]{1,64}$`)

// look finds the last rollout under an effect key; nil: the cluster shows none. Of the evidence only that of a failed look counts.
func (c cluster) look(ctx context.Context, effectKey string) (*rollout, *outbox.Evidence) {
	var answer struct {
		Items []rollout `json:"items"`
	}
	status, _, err := c.call(ctx, call{method: http.MethodGet, path: "/cluster/v1/rollouts?effect_key=" + url.QueryEscape(effectKey)}, &answer)
	switch {
	case err != nil:
		ev := outbox.FailedAsk(err)
		return nil, &ev
	case len(answer.Items) == 0 && answer.Items != nil && status == http.StatusOK:
		return nil, nil
	case status != http.StatusOK || len(answer.Items) == 0: // a list that isn't there is not an empty one
		return nil, &outbox.Evidence{Finding: outbox.Ambiguous, Says: fmt.Sprintf("the look-up was answered %d", status)}
	}
	last := &answer.Items[len(answer.Items)-1]
	if !last.isAbout(effectKey) {
		return nil, &outbox.Evidence{Finding: outbox.Ambiguous, Says: "the look-up was answered about another rollout"}
	}
	return last, nil
}

// call is one request. Without a body it only looks.
type call struct {
	method, path string
	effectKey    string // of a send; empty: none
	token        int64  // fencing token of a send
	body         any
}

// maxAnswer bounds what is read of an answer: some rollouts.
const maxAnswer = 256 << 10

// call makes one request. An error means that there was no whole answer.
func (c cluster) call(ctx context.Context, of call, answer any) (status int, retryAfter time.Duration, err error) {
	// A body without GetBody can't be sent a second time, which net/http would do by itself on a connection that dies before
	// its answer, seeing an Idempotency-Key.
	var reader io.Reader
	var body []byte
	if of.body != nil {
		if body, err = json.Marshal(of.body); err != nil {
			return 0, 0, err
		}
		reader = io.NopCloser(bytes.NewReader(body))
	}
	req, err := http.NewRequestWithContext(ctx, of.method, c.base+of.path, reader)
	if err != nil {
		return 0, 0, err
	}
	req.ContentLength = int64(len(body))
	req.Header.Set("Authorization", "Bearer "+c.readToken)
	if of.body != nil {
		req.Header.Set("Authorization", "Bearer "+c.token)
		req.Header.Set("Content-Type", "application/json")
	}
	if of.effectKey != "" {
		req.Header.Set("Idempotency-Key", of.effectKey)
		req.Header.Set("Fencing-Token", strconv.FormatInt(of.token, 10))
	}
	res, err := c.client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return 0, 0, err
	}
	retryAfter = outbox.RetryAfter(res.Header.Get("Retry-After"), time.Now())
	if json.Unmarshal(text, answer) != nil { // half of what can't be read is nothing: the status decides
		reflect.ValueOf(answer).Elem().SetZero()
	}
	return res.StatusCode, retryAfter, nil
}

// notBegun is the evidence of a send that was answered, and not with what it was for. Somebody on the way may have said that: a proxy, a
// gateway, a page to log in. What ends an effect is believed only in the cluster's own words.
//
//	400, 413 invalid, 422 refused    this send is refused, and the next would be
//	401, 403, 429                    somebody at the door has turned it away: a token that an operator will mend, a limit
//	all else                         nothing is known. 404, 405, 410: a wrong URL, or a proxy. 408, 5xx: it may have been at work. 3xx: not
//	                                 followed. 409: another send of the key is in progress. 422 key_reused: an earlier one was answered.
func notBegun(status int, code string, retryAfter time.Duration) outbox.Evidence {
	if !errorCode.MatchString(code) {
		code = "" // people are told codes, not what else somebody may have put there
	}
	ev := outbox.Evidence{Finding: outbox.Ambiguous, Says: strings.TrimSpace(fmt.Sprintf("answered %d %s", status, code)), RetryAfter: retryAfter}
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		if code == "invalid" {
			ev.Finding = outbox.Refused
		}
	case http.StatusUnprocessableEntity:
		if code == "refused" {
			ev.Finding = outbox.Refused
		}
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		ev.Finding = outbox.NotSent
	}
	return ev
}
