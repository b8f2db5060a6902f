package payments

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stripe/stripe-go/v82"

	"github.com/einmal/einmal/pkg/outbox"
)

// The targets are the things that the provider can be asked to do, since it can do different things about each: only an authorising
// can be closed. The effects' names are part of their keys.
const (
	targetAuthorize = "psp_authorize"
	targetCapture   = "psp_capture"
	targetCancel    = "psp_cancel"
	targetRefund    = "psp_refund"

	effectAuthorize = "authorize"
	effectCapture   = "capture"
	effectCancel    = "cancel"
	effectRefund    = "refund"
)

const (
	// providerSends and providerAsks bound the calls of one target under way: what fifty payments a second take at a few tenths of
	// a second each, well below the hundred a second that Stripe allows. Looks have places of their own.
	providerSends = 16
	providerFirst = 2 // nothing has priority yet
	providerAsks  = 8

	// maxAsks is how many look-ups in a row may find nothing before a person is asked: with growing pauses, some minutes.
	maxAsks = 8
)

// Metadata that tell the provider's objects as ours. Objects without them were made by somebody else.
const (
	metaEffectKey = "einmal_effect_key"
	metaAccount   = "account_id"
	metaOrder     = "order_id"
	metaPayment   = "payment_id"
	metaRefund    = "refund_id"
)

// psp calls the payment provider through its own library, whose retries are off. What a call has shown is told from what passed over
// the wire, never from the text of an error.
type psp struct {
	write *stripe.Client // may send
	read  *stripe.Client // may only look
}

func newPSP(config Config) psp {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: config.ProviderTimeout}).DialContext,
		MaxIdleConnsPerHost: 4 * (providerSends + providerFirst + providerAsks),
		IdleConnTimeout:     30 * time.Second,
	}
	origin, path := config.providerBase()
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL:               stripe.String(origin),
		MaxNetworkRetries: stripe.Int64(0),
		EnableTelemetry:   stripe.Bool(false),
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull}, // it would log bodies
		HTTPClient: &http.Client{
			Transport:     onceOnly{transport, path},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	})
	client := func(key string) *stripe.Client {
		return stripe.NewClient(key, stripe.WithBackends(&stripe.Backends{API: backend, Connect: backend, Uploads: backend, MeterEvents: backend}))
	}
	return psp{write: client(config.ProviderToken), read: client(config.ProviderReadToken)}
}

// wire is what passed over the wire in a call, whatever the library makes of it.
type wire struct {
	status     int    // 0: no whole answer
	object     string // what the answer says that it is
	replayed   bool
	retryAfter time.Duration
	err        error // why there was no whole answer
}

type wireKey struct{}

// onceOnly sends a request once, below a path, and notes what comes back. By itself net/http sends a request with an Idempotency-Key again when a
// connection dies before its answer, unless the request has a body that can't be had a second time.
type onceOnly struct {
	http.RoundTripper
	path string
}

func (o onceOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	seen, _ := r.Context().Value(wireKey{}).(*wire)
	once, at := *r, *r.URL // a RoundTripper must not change what it is given
	at.Path = o.path + at.Path
	once.URL = &at
	if r.Method == http.MethodPost {
		once.GetBody = nil
		if r.Body == nil {
			once.Body = io.NopCloser(http.NoBody)
		}
	}
	res, body, err := whole(o.RoundTripper.RoundTrip(&once))
	if seen == nil {
		return res, err
	}
	*seen = wire{err: err}
	if err == nil {
		var is struct {
			Object string `json:"object"`
		}
		_ = json.Unmarshal(body, &is) // what can't be read says nothing
		seen.status, seen.object, seen.replayed = res.StatusCode, is.Object, res.Header.Get("Idempotent-Replayed") == "true"
		seen.retryAfter = outbox.RetryAfter(res.Header.Get("Retry-After"), time.Now())
	}
	return res, err
}

// maxAnswer bounds what is read of an answer: a page of a hundred payments is some 300 KiB.
const maxAnswer = 4 << 20

// whole reads an answer to its end. One that is cut off is none.
func whole(res *http.Response, err error) (*http.Response, []byte, error) {
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, body, nil
}

// intent reads a payment at the provider. An answer about another is none.
func (p psp) intent(ctx context.Context, reference string) (*stripe.PaymentIntent, result, bool) {
	var intent *stripe.PaymentIntent
	r, ok := ask(ctx, func(ctx context.Context) (err error) {
		intent, err = p.read.V1PaymentIntents.Retrieve(ctx, reference, nil)
		return err
	})
	return intent, r, ok && intent.ID == reference
}

// about reads the command of an effect. One that can't be read is of a release that is not this one.
func about[C any](e outbox.Effect) (command C, ok bool) {
	return command, json.Unmarshal(e.Command, &command) == nil
}

// unreadable is the evidence of a send that this process doesn't know how to make.
var unreadable = outbox.Evidence{Finding: outbox.NotSent, Says: "this release can't read what is to be sent"}

// cannotClose is what the targets are that are asked by looking up.
type cannotClose struct{}

// Close is never called: the targets' abilities do not declare it.
func (cannotClose) Close(context.Context, outbox.Effect) outbox.Evidence { return outbox.Evidence{} }
