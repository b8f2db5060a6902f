package tickets

import (
	"bytes"
	"context"
	"errors"
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

// deskName is the target of mirrors.
const deskName = "desk"

const (
	// deskSends and deskAsks bound the calls under way. A desk is a small system of somebody else's: sixteen at once are what
	// it takes at a few milliseconds each to keep up with a busy day, and looks have places of their own.
	deskSends = 16
	deskFirst = 2 // no mirror has priority yet
	deskAsks  = 4

	// maxAsks is how many look-ups in a row may find nothing before a person is asked: with growing pauses, some minutes, which
	// an index that lags usually needs less than.
	maxAsks = 8
)

// deskAbility is what the desk is declared to be able to do.
func deskAbility(config Config) outbox.Ability {
	switch config.DeskAbility {
	case "key":
		return outbox.Ability{Key: true, KeyWindow: config.KeyWindow, Lookup: true}
	case "close":
		return outbox.Ability{Close: true, Floor: true}
	case "lookup":
		return outbox.Ability{Lookup: true}
	}
	return outbox.Ability{}
}

// mirrorCommand is what an effect of ticket.mirror tells the desk.
type mirrorCommand struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Project     string `json:"project"`
	ExternalID  string `json:"external_id"` // our ticket's id
	Account     string `json:"account"`
}

// provider calls the external desk. Each method is one call: redirects are not followed, nothing is sent again by itself, and
// what a call has shown is told from answers and from the kind of failure, never from the text of an error.
type provider struct {
	base      string
	token     string // may send
	readToken string // may only look
	client    *http.Client
}

func newProvider(config Config) provider {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: config.ProviderTimeout}).DialContext,
		MaxIdleConnsPerHost: deskSends + deskFirst + deskAsks,
		IdleConnTimeout:     30 * time.Second,
	}
	return provider{
		base: strings.TrimSuffix(config.ProviderURL, "/"), token: config.ProviderToken, readToken: config.ProviderReadToken,
		client: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// deskTicket is the desk's answer about a ticket.
type deskTicket struct {
	Reference string `json:"reference"`
}

// Send opens the ticket at the desk.
func (p provider) Send(ctx context.Context, e outbox.Effect) outbox.Evidence {
	var answer struct {
		deskTicket
		Code string `json:"code"`
	}
	status, retryAfter, err := p.call(ctx, http.MethodPost, "/desk/v1/tickets", p.token, e, e.Command, &answer)
	says := fmt.Sprintf("answered %d %s", status, answer.Code)
	switch {
	case err != nil:
		return failed(err)
	case status == http.StatusCreated && answer.Reference != "":
		return outbox.Evidence{Finding: outbox.Confirmed, Reference: answer.Reference, Says: says}
	case status == http.StatusUnprocessableEntity && answer.Code == "refused":
		return outbox.Evidence{Finding: outbox.Verdict, Says: says}
	case status == http.StatusConflict && answer.Code == "closed", status == http.StatusTooManyRequests,
		status == http.StatusUnauthorized, status == http.StatusForbidden: // a token that an operator will mend is no verdict
		return outbox.Evidence{Finding: outbox.NotSent, Says: says, RetryAfter: retryAfter}
	case status == http.StatusConflict, // the first send with this key is in progress there,
		answer.Code == "key_reused": // or was answered, for another body
		return outbox.Evidence{Finding: outbox.Ambiguous, Says: says}
	case status >= 400 && status < 500 && status != http.StatusRequestTimeout:
		return outbox.Evidence{Finding: outbox.Refused, Says: says}
	}
	return outbox.Evidence{Finding: outbox.Ambiguous, Says: says}
}

// Lookup asks the desk for the ticket by its effect key.
func (p provider) Lookup(ctx context.Context, e outbox.Effect) outbox.Evidence {
	var answer struct {
		Items []deskTicket `json:"items"`
	}
	status, _, err := p.call(ctx, http.MethodGet, "/desk/v1/tickets?effect_key="+url.QueryEscape(e.EffectKey), p.readToken, e, nil, &answer)
	switch {
	case err != nil:
		return unanswered(err)
	case status != http.StatusOK:
		return outbox.Evidence{Finding: outbox.Ambiguous, Says: fmt.Sprintf("the look-up was answered %d", status)}
	case len(answer.Items) == 0:
		return outbox.Evidence{Finding: outbox.NotFound, Says: "the desk shows no such ticket"}
	}
	return outbox.Evidence{Finding: outbox.Confirmed, Reference: answer.Items[0].Reference, Says: "found by look-up"}
}

// Close raises the floor below which the desk takes no send of this effect any more, and says whether one had taken effect.
func (p provider) Close(ctx context.Context, e outbox.Effect) outbox.Evidence {
	var answer struct {
		Happened  bool   `json:"happened"`
		Reference string `json:"reference"`
	}
	body := []byte(`{"floor":` + strconv.FormatInt(e.Fence, 10) + `}`)
	status, _, err := p.call(ctx, http.MethodPost, "/desk/v1/effects/"+url.PathEscape(e.EffectKey)+"/close", p.token, e, body, &answer)
	switch {
	case err != nil:
		return unanswered(err)
	case status != http.StatusOK:
		return outbox.Evidence{Finding: outbox.Ambiguous, Says: fmt.Sprintf("the close was answered %d", status)}
	case answer.Happened:
		return outbox.Evidence{Finding: outbox.Confirmed, Reference: answer.Reference, Says: "closed after it had happened"}
	}
	return outbox.Evidence{Finding: outbox.Closed, Says: "closed, nothing had happened"}
}

// headerFence tells the desk under which fence a send was taken, so that it can refuse those below a floor.
const headerFence = "Effect-Fence"

// maxAnswer bounds what is read of an answer: a reference and a little more.
const maxAnswer = 64 << 10

// call makes one request. An error means that there was no whole answer.
func (p provider) call(ctx context.Context, method, path, token string, e outbox.Effect, body []byte, answer any) (status int, retryAfter time.Duration, err error) {
	// A body without GetBody can't be sent a second time, which net/http would do by itself on a connection that dies before
	// its answer, seeing an Idempotency-Key.
	var reader io.Reader
	if body != nil {
		reader = io.NopCloser(bytes.NewReader(body))
	}
	req, err := http.NewRequestWithContext(ctx, method, p.base+path, reader)
	if err != nil {
		return 0, 0, err
	}
	req.ContentLength = int64(len(body))
	req.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", e.EffectKey)
		req.Header.Set(headerFence, strconv.FormatInt(e.Fence, 10))
	}
	res, err := p.client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return 0, 0, err
	}
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
		retryAfter = time.Duration(seconds) * time.Second
	}
	// What can't be read is no evidence of success: the members stay empty, and the status decides.
	_ = json.Unmarshal(text, answer)
	return res.StatusCode, retryAfter, nil
}

// failed is the evidence of a send without a whole answer. Only a connection that was never made proves that nothing was sent.
func failed(err error) outbox.Evidence {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return outbox.Evidence{Finding: outbox.NotSent, Says: "no connection to the desk"}
	}
	return unanswered(err)
}

// unanswered is the evidence of a call without a whole answer: none.
func unanswered(err error) outbox.Evidence {
	says := "the connection was lost before the answer was complete"
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		says = "no answer in time"
	}
	return outbox.Evidence{Finding: outbox.Ambiguous, Says: says}
}
