package tickets

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

// Send opens the ticket at the desk.
func (p provider) Send(ctx context.Context, e outbox.Effect) outbox.Evidence {
	r, err := p.call(ctx, http.MethodPost, "/desk/v1/tickets", p.token, e, e.Command)
	if err != nil {
		return outbox.FailedSend(err)
	}
	return r.afterSend(e.EffectKey)
}

// Lookup asks the desk for the ticket by its effect key.
func (p provider) Lookup(ctx context.Context, e outbox.Effect) outbox.Evidence {
	r, err := p.call(ctx, http.MethodGet, "/desk/v1/tickets?effect_key="+url.QueryEscape(e.EffectKey), p.readToken, e, nil)
	if err != nil {
		return outbox.FailedAsk(err)
	}
	return r.afterLookup(e.EffectKey)
}

// Close raises the floor below which the desk takes no send of this effect any more, and says whether one had taken effect.
func (p provider) Close(ctx context.Context, e outbox.Effect) outbox.Evidence {
	body := []byte(`{"floor":` + strconv.FormatInt(e.Fence, 10) + `}`)
	r, err := p.call(ctx, http.MethodPost, "/desk/v1/effects/"+url.PathEscape(e.EffectKey)+"/close", p.token, e, body)
	if err != nil {
		return outbox.FailedAsk(err)
	}
	return r.afterClose(e.EffectKey)
}

// headerFence tells the desk under which fence a send was taken, so that it can refuse those below a floor.
const headerFence = "Effect-Fence"

// maxAnswer bounds what is read of an answer: a reference and a little more.
const maxAnswer = 64 << 10

// call makes one request. An error means that there was no whole answer.
func (p provider) call(ctx context.Context, method, path, token string, e outbox.Effect, body []byte) (reply, error) {
	// A body without GetBody can't be sent a second time, which net/http would do by itself on a connection that dies before
	// its answer, seeing an Idempotency-Key.
	var reader io.Reader
	if body != nil {
		reader = io.NopCloser(bytes.NewReader(body))
	}
	req, err := http.NewRequestWithContext(ctx, method, p.base+path, reader)
	if err != nil {
		return reply{}, err
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
