package deployments

import (
	"bytes"
	"context"
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
func (c cluster) call(ctx context.Context, of call) (reply, error) {
	// A body without GetBody can't be sent a second time, which net/http would do by itself on a connection that dies before
	// its answer, seeing an Idempotency-Key.
	var reader io.Reader
	var body []byte
	if of.body != nil {
		var err error
		if body, err = json.Marshal(of.body); err != nil {
			return reply{}, err
		}
		reader = io.NopCloser(bytes.NewReader(body))
	}
	req, err := http.NewRequestWithContext(ctx, of.method, c.base+of.path, reader)
	if err != nil {
		return reply{}, err
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
		return reply{}, err
	}
	defer res.Body.Close()
	r := reply{status: res.StatusCode}
	if r.body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer)); err != nil {
		return reply{}, err
	}
	r.retryAfter = outbox.RetryAfter(res.Header.Get("Retry-After"), time.Now())
	return r, nil
}

// look asks for the rollouts under an effect key.
func (c cluster) look(ctx context.Context, effectKey string) (reply, error) {
	return c.call(ctx, call{method: http.MethodGet, path: "/cluster/v1/rollouts?effect_key=" + url.QueryEscape(effectKey)})
}
