package deployments

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
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
	case status != http.StatusOK:
		return nil, &outbox.Evidence{Finding: outbox.Ambiguous, Says: fmt.Sprintf("the look-up was answered %d", status)}
	case len(answer.Items) == 0:
		return nil, nil
	}
	return &answer.Items[len(answer.Items)-1], nil
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
	// What can't be read is no evidence of success: the members stay empty, and the status decides.
	_ = json.Unmarshal(text, answer)
	return res.StatusCode, retryAfter, nil
}

// notBegun is the evidence of a send that was turned away with one of the statuses that mean the same for every send.
func notBegun(status int, code, says string, retryAfter time.Duration) outbox.Evidence {
	switch {
	case status == http.StatusTooManyRequests,
		status == http.StatusUnauthorized, status == http.StatusForbidden: // a token that an operator will mend is no verdict
		return outbox.Evidence{Finding: outbox.NotSent, Says: says, RetryAfter: retryAfter}
	case status == http.StatusConflict, // the first send with this key is in progress there,
		code == "key_reused": // or was answered, for another body
		return outbox.Evidence{Finding: outbox.Ambiguous, Says: says}
	case status >= 400 && status < 500 && status != http.StatusRequestTimeout:
		return outbox.Evidence{Finding: outbox.Refused, Says: says}
	}
	return outbox.Evidence{Finding: outbox.Ambiguous, Says: says}
}
