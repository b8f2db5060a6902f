package payments

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stripe/stripe-go/v82"

	"github.com/einmal/einmal/pkg/money"
	"github.com/einmal/einmal/pkg/outbox"
)

// result is what a call has shown. What ends an effect, or makes certain that there was none, is believed only in the provider's own
// words: on the way to it there are proxies, gateways and pages to log in, which speak for themselves.
type result struct {
	wire
	no *stripe.Error // what the provider says, where it says no in its own form
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

// refuses reports whether the provider itself has answered so.
func (r result) refuses(status int, kind stripe.ErrorType) bool {
	return r.no != nil && r.status == status && r.no.Type == kind
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
	text := strings.TrimSpace(fmt.Sprintf("answered %d %s", r.status, r.code()))
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

// atTheDoor are the statuses of what was turned away before anything was done.
var atTheDoor = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests}

// failedSend is the evidence of a send that was not answered as asked.
//
//	402 card_error              the card's bank has declined, and the provider keeps that under our key: so is every copy of the send
//	400 about the state         the object is not as the send needs it, maybe by an earlier send of ours: it is looked up
//	400 idempotency_error       the provider has answered another request under our key
//	400, 404 invalid_request    this send can't be made: a wrong parameter, an object that is not there
//	401, 403, 429 invalid_request the provider has turned this send away at its door: a key that an operator will mend, a limit. Who else
//	                            says so, 425 too, may have let it through, and have kept back the answer.
//	all else                    nothing is known. 409: another send with our key is being worked on. 5xx: it may have been at work, and that
//	                            this is a replay tells nothing more. 3xx: not followed. And whatever is not in the provider's form.
func (r result) failedSend() outbox.Evidence {
	ev := outbox.Evidence{Finding: outbox.Ambiguous, Says: r.says(), RetryAfter: r.retryAfter}
	switch {
	case r.err != nil && r.status == 0:
		return outbox.FailedSend(r.err)
	case r.err != nil:
		return outbox.FailedAsk(r.err)
	case r.refuses(http.StatusPaymentRequired, stripe.ErrorTypeCard):
		ev.Finding = outbox.Verdict
	case r.refuses(http.StatusBadRequest, stripe.ErrorTypeIdempotency):
		ev.Finding = outbox.Reused
	case aboutState[r.code()]:
	case r.refuses(http.StatusBadRequest, stripe.ErrorTypeInvalidRequest), r.refuses(http.StatusNotFound, stripe.ErrorTypeInvalidRequest):
		ev.Finding = outbox.Refused
	case slices.ContainsFunc(atTheDoor, func(status int) bool { return r.refuses(status, stripe.ErrorTypeInvalidRequest) }):
		ev.Finding = outbox.NotSent
	}
	return ev
}

// failedAsk is the evidence of any other call that was not answered as asked: none. A list that isn't there is not an empty one.
func (r result) failedAsk() outbox.Evidence {
	if r.err != nil {
		return outbox.FailedAsk(r.err)
	}
	return outbox.Evidence{Finding: outbox.Ambiguous, Says: "the look-up was " + r.says(), RetryAfter: r.retryAfter}
}

// weights are the findings about objects, in the order in which they count where several are under one key: what may be an effect counts
// more than what is certainly none.
var weights = []outbox.Finding{outbox.NotFound, outbox.Verdict, outbox.Ambiguous, outbox.Accepted, outbox.Different, outbox.Confirmed}

// together is the evidence of all that a look through a list has found under one key: of more than one effect, done or under way, the
// rest is told, too.
func together(found []outbox.Evidence) outbox.Evidence {
	best := stands(outbox.NotFound, "", "nothing")
	var effects []string
	for _, ev := range found {
		if slices.Index(weights, ev.Finding) > slices.Index(weights, best.Finding) {
			best = ev
		}
		if slices.Index(weights, ev.Finding) > slices.Index(weights, outbox.Ambiguous) {
			effects = append(effects, ev.Reference)
		}
	}
	best.More = slices.DeleteFunc(effects, func(reference string) bool { return reference == best.Reference })
	return best
}

// differs is the evidence of an amount that is there and is not what was asked for.
func differs(reference, done string, shown amountShown, asked int64) outbox.Evidence {
	return outbox.Evidence{
		Finding: outbox.Different, Reference: reference, Shows: shown.String(), Says: fmt.Sprintf("the provider has %s %s, asked were %d", done, shown, asked),
	}
}

// amountShown is what the provider shows of an amount, in minor units and in its spelling of the currency.
type amountShown struct {
	minor    int64
	currency stripe.Currency
}

func (a amountShown) String() string { return fmt.Sprintf("%d %s", a.minor, a.currency) }

// is reports whether the amount is in a currency.
func (a amountShown) is(c money.Currency) bool {
	return strings.EqualFold(string(a.currency), c.String())
}

// readShown is what was kept of another amount than was asked for, if any was seen.
func readShown(shows string) (a amountShown, seen bool) {
	_, err := fmt.Sscanf(shows, "%d %s", &a.minor, &a.currency)
	return a, err == nil
}

// stands is the evidence of a finding about an object that is in a state.
func stands(finding outbox.Finding, reference string, status any) outbox.Evidence {
	return outbox.Evidence{Finding: finding, Reference: reference, Says: fmt.Sprintf("the provider shows it as %s", status)}
}
