package tickets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

// notification is what is read of the webhook's body, version 4. Members that are not named here are Alertmanager's own business.
type notification struct {
	Version         string         `json:"version"`
	TruncatedAlerts int64          `json:"truncatedAlerts"` // left out by Alertmanager because of its max_alerts
	Alerts          jsontext.Value `json:"alerts"`          // a list, of which each is read by itself: one that can't be read must not keep the others from it
}

// each calls f with every alert of a list that was read before, until it returns false.
func (n notification) each(f func(i int, raw jsontext.Value) bool) {
	tokens := jsontext.NewDecoder(bytes.NewReader(n.Alerts), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, _ = tokens.ReadToken() // [
	for i := 0; tokens.PeekKind() != ']'; i++ {
		if raw, err := tokens.ReadValue(); err != nil || !f(i, raw) {
			return
		}
	}
}

// receipt is the answer: what became of the alerts.
type receipt struct {
	Alerts      int                 `json:"alerts"`
	Created     int                 `json:"created"`  // tickets
	Existing    int                 `json:"existing"` // their event had a ticket that somebody else made
	Resolved    int                 `json:"resolved"`
	Repeated    int                 `json:"repeated"`  // told before; nothing was done
	Rejected    []problem.Violation `json:"rejected"`  // can never be taken; the first of them
	Truncated   int64               `json:"truncated"` // not in the notification
	allRejected int                 // all of them
	deferred    int                 // a later try can help
	failure     error               // the first of those, or of those that nobody foresaw
}

// maxTold bounds how many rejected alerts are told of. A person reads them, if anybody.
const maxTold = 100

func (r *receipt) reject(pointer, detail string) {
	if r.allRejected++; r.allRejected <= maxTold {
		r.Rejected = append(r.Rejected, problem.Violation{Pointer: pointer, Detail: detail})
	}
}

// take does what the alerts of a notification ask for, each for itself.
func (h alertmanager) take(ctx context.Context, req idempotency.Request, body []byte) receipt {
	r := receipt{Rejected: []problem.Violation{}}
	var n notification
	// Strictness about what is not ours to judge would only lose alerts: names that stand twice count as the last says, bytes that are no
	// text as U+FFFD.
	err := json.Unmarshal(body, &n, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	switch {
	case len(body) > maxNotification:
		r.reject("", fmt.Sprintf("the notification has more than %d bytes; set max_alerts in its webhook_config", maxNotification))
		return r
	case err != nil || n.Alerts.Kind() != '[':
		r.reject("", "this is no notification of Alertmanager: its body is one JSON object with version, as text, and alerts, as list")
		return r
	case n.Version != "4":
		r.reject("/version", `must be "4", the version of Alertmanager's webhook that is understood here`)
		return r
	}
	r.Truncated = max(0, n.TruncatedAlerts)
	n.each(func(int, jsontext.Value) bool { r.Alerts++; return true })
	n.each(func(i int, raw jsontext.Value) bool {
		later := ctx.Err() != nil // nobody waits for it any more
		if !later {
			later = errors.Is(h.takeOne(ctx, req, &r, i, raw), database.ErrUnavailable) // which is so for the rest too
		}
		if later {
			r.deferred += r.Alerts - i
		}
		return !later
	})
	return r
}

// takeOne does what one alert asks for, and notes what became of it. An error means that this one and all after it have to wait.
func (h alertmanager) takeOne(ctx context.Context, req idempotency.Request, r *receipt, i int, raw jsontext.Value) error {
	at := fmt.Sprintf("/alerts/%d", i)
	var a alert
	if json.Unmarshal(raw, &a, jsontext.AllowInvalidUTF8(true)) != nil {
		r.reject(at, "this is no alert: status, fingerprint and startsAt are texts, labels and annotations objects of texts, none of them twice")
		return nil
	}
	if member, wrong := a.check(); wrong != "" {
		r.reject(at+"/"+member, wrong)
		return nil
	}
	result, err := h.tell(ctx, req, a)
	if err != nil && r.failure == nil {
		r.failure = err
	}
	switch _, passes := idemhttp.StoreProblem(err); {
	case errors.Is(err, database.ErrUnavailable):
		return err
	case passes:
		r.deferred++
	case err != nil: // the others may fare better
	case result.Outcome == idempotency.OutcomeInProgress:
		r.deferred++
	case result.Outcome != idempotency.OutcomeExecuted:
		r.Repeated++
	case a.Status == resolved:
		r.Resolved++
	case result.Answer.Status == http.StatusCreated:
		r.Created++
	default:
		r.Existing++
	}
	return nil
}

// tell does what one alert asks for.
func (h alertmanager) tell(ctx context.Context, req idempotency.Request, a alert) (idempotency.Result, error) {
	project := a.project(h.projectLabel, h.otherwise)
	if a.Status == resolved {
		return h.commands.resolve(ctx, req, a, project)
	}
	return h.commands.fire(ctx, req, a, project)
}
