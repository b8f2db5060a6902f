package tickets

import (
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
	Version         string           `json:"version"`
	TruncatedAlerts int64            `json:"truncatedAlerts"` // left out by Alertmanager because of its max_alerts
	Alerts          []jsontext.Value `json:"alerts"`          // each read by itself: one that can't be read must not keep the others from it
}

// receipt is the answer: what became of the alerts.
type receipt struct {
	Alerts    int                 `json:"alerts"`
	Created   int                 `json:"created"`  // tickets
	Existing  int                 `json:"existing"` // their event had a ticket that somebody else made
	Resolved  int                 `json:"resolved"`
	Repeated  int                 `json:"repeated"`  // told before; nothing was done
	Rejected  []problem.Violation `json:"rejected"`  // can never be taken
	Truncated int64               `json:"truncated"` // not in the notification
	deferred  int                 // a later try can help
	failure   error               // the first of those, or of those that nobody foresaw
}

// take does what the alerts of a notification ask for, each for itself.
func (h alertmanager) take(ctx context.Context, req idempotency.Request, body []byte) (r receipt) {
	r.Rejected = []problem.Violation{}
	reject := func(pointer, detail string) {
		r.Rejected = append(r.Rejected, problem.Violation{Pointer: pointer, Detail: detail})
	}

	var n notification
	// Strictness about what is not ours to judge would only lose alerts: names that stand twice count as the last says, bytes that are no
	// text as U+FFFD.
	err := json.Unmarshal(body, &n, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	switch {
	case len(body) > maxNotification:
		reject("", fmt.Sprintf("the notification has more than %d bytes; set max_alerts in its webhook_config", maxNotification))
		return r
	case err != nil || n.Alerts == nil:
		reject("", "this is no notification of Alertmanager: its body is one JSON object with version, as text, and alerts, as list")
		return r
	case n.Version != "4":
		reject("/version", `must be "4", the version of Alertmanager's webhook that is understood here`)
		return r
	}
	r.Alerts, r.Truncated = len(n.Alerts), max(0, n.TruncatedAlerts)
	for i, raw := range n.Alerts {
		at := fmt.Sprintf("/alerts/%d", i)
		var a alert
		if json.Unmarshal(raw, &a, jsontext.AllowInvalidUTF8(true)) != nil {
			reject(at, "this is no alert: status, fingerprint and startsAt are texts, labels and annotations objects of texts, none of them twice")
			continue
		}
		if member, wrong := a.check(); wrong != "" {
			reject(at+"/"+member, wrong)
			continue
		}
		if ctx.Err() != nil { // nobody waits for it any more
			r.deferred += len(n.Alerts) - i
			return r
		}
		result, err := h.tell(ctx, req, a)
		if err != nil && r.failure == nil {
			r.failure = err
		}
		switch _, passes := idemhttp.StoreProblem(err); {
		case errors.Is(err, database.ErrUnavailable): // which is so for the rest too
			r.deferred += len(n.Alerts) - i
			return r
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
	}
	return r
}

// tell does what one alert asks for.
func (h alertmanager) tell(ctx context.Context, req idempotency.Request, a alert) (idempotency.Result, error) {
	project := a.project(h.projectLabel, h.otherwise)
	if a.Status == resolved {
		return h.commands.resolve(ctx, req, a, project)
	}
	return h.commands.fire(ctx, req, a, project)
}
