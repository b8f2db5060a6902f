package payments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
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
	status     int // 0: no answer
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
	res, err := o.RoundTripper.RoundTrip(&once)
	if seen == nil {
		return res, err
	}
	*seen = wire{err: err}
	if err == nil {
		seen.status, seen.replayed = res.StatusCode, res.Header.Get("Idempotent-Replayed") == "true"
		if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
			seen.retryAfter = time.Duration(seconds) * time.Second
		}
	}
	return res, err
}

// result is what a call has shown.
type result struct {
	wire
	no *stripe.Error // what the provider says, where it says no in a form that can be read
}

// ask makes a call and returns what it has shown. ok: it was answered as asked, and the answer could be read.
func ask(ctx context.Context, call func(ctx context.Context) error) (r result, ok bool) {
	err := call(context.WithValue(ctx, wireKey{}, &r.wire))
	if err == nil {
		return r, r.status/100 == 2
	}
	if !errors.As(err, &r.no) && r.status/100 == 2 {
		r.err = err // cut off, or not what it should be
	}
	return r, false
}

// code is what the provider calls its no; empty: it has no name for it.
func (r result) code() stripe.ErrorCode {
	if r.no == nil {
		return ""
	}
	return r.no.Code
}

// says is what was observed, for people.
func (r result) says() string {
	text := fmt.Sprintf("answered %d %s", r.status, r.code())
	if r.replayed {
		text += ", as to an earlier send"
	}
	return text
}

// aboutState are refusals that tell of the object, not of the send: of one that was captured, maybe by us, a capture is refused. Where
// the object stands is looked up (docs/protocol.md, rule 5).
var aboutState = map[stripe.ErrorCode]bool{
	stripe.ErrorCodePaymentIntentUnexpectedState: true,
	stripe.ErrorCodeIntentInvalidState:           true,
	stripe.ErrorCodeChargeAlreadyCaptured:        true,
	stripe.ErrorCodeChargeExpiredForCapture:      true,
	stripe.ErrorCodeChargeAlreadyRefunded:        true,
	stripe.ErrorCodeChargeNotRefundable:          true,
	stripe.ErrorCodeChargeDisputed:               true,
}

// failedSend is the evidence of a send that was not answered as asked.
func (r result) failedSend() outbox.Evidence {
	says := outbox.Evidence{Finding: outbox.Ambiguous, Says: r.says()}
	switch {
	case r.err != nil && r.status == 0:
		return outbox.FailedSend(r.err)
	case r.err != nil:
		return outbox.FailedAsk(r.err)
	case r.status == http.StatusPaymentRequired: // kept under our key: every copy of the send is declined
		says.Finding = outbox.Verdict
	case r.status == http.StatusTooManyRequests, // whatever it says: nothing was begun
		r.status == http.StatusUnauthorized, r.status == http.StatusForbidden: // a key that an operator will mend is no verdict
		says.Finding, says.RetryAfter = outbox.NotSent, r.retryAfter
	case r.status == http.StatusConflict, // another send with our key is being worked on,
		r.no != nil && r.no.Type == stripe.ErrorTypeIdempotency, // or was answered, for another body
		aboutState[r.code()]:
	case r.status >= 400 && r.status < 500 && r.status != http.StatusRequestTimeout:
		says.Finding = outbox.Refused
	}
	return says // of a 5xx too, the first time and when it is replayed: it tells nothing
}

// failedAsk is the evidence of any other call that was not answered as asked: none.
func (r result) failedAsk() outbox.Evidence {
	if r.err != nil {
		return outbox.FailedAsk(r.err)
	}
	return outbox.Evidence{Finding: outbox.Ambiguous, Says: "the look-up was " + r.says()}
}

// intent reads a payment at the provider.
func (p psp) intent(ctx context.Context, reference string) (*stripe.PaymentIntent, result, bool) {
	var intent *stripe.PaymentIntent
	r, ok := ask(ctx, func(ctx context.Context) (err error) {
		intent, err = p.read.V1PaymentIntents.Retrieve(ctx, reference, nil)
		return err
	})
	return intent, r, ok
}

// about reads the command of an effect. One that can't be read is of a release that is not this one.
func about[C any](e outbox.Effect) (command C, ok bool) {
	return command, json.Unmarshal(e.Command, &command) == nil
}

// unreadable is the evidence of a send that this process doesn't know how to make.
var unreadable = outbox.Evidence{Finding: outbox.NotSent, Says: "this release can't read what is to be sent"}

// differs is the evidence of something that is there and is not what was asked for.
func differs(reference, format string, args ...any) outbox.Evidence {
	return outbox.Evidence{Finding: outbox.Different, Reference: reference, Says: fmt.Sprintf(format, args...)}
}

// stands is the evidence of a finding about an object that is in a state.
func stands(finding outbox.Finding, reference string, status any) outbox.Evidence {
	return outbox.Evidence{Finding: finding, Reference: reference, Says: fmt.Sprintf("the provider shows it as %s", status)}
}

// cannotClose is what the targets are that are asked by looking up.
type cannotClose struct{}

// Close is never called: the targets' abilities do not declare it.
func (cannotClose) Close(context.Context, outbox.Effect) outbox.Evidence { return outbox.Evidence{} }
