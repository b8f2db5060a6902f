package outboxhttp

import (
	"errors"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/review"
)

// OperatorWrites are the routes that only an operator may use.
func (h Handlers) OperatorWrites() []idemhttp.Route {
	return []idemhttp.Route{
		{Method: http.MethodPost, Path: "/v1/reviews/:id/resolution", Type: catalogue.ReviewResolve, Command: func() idemhttp.Command { return &resolution{} }, Handler: h.resolve},
	}
}

// resolution is the command of POST /v1/reviews/:id/resolution.
type resolution struct {
	State     *idempotency.State `json:"state"`
	Evidence  string             `json:"evidence"`
	Reference string             `json:"reference"`
}

const (
	maxEvidence  = 2000 // characters: what a person has seen, and where
	maxReference = 255  // characters
)

// Validate returns everything that is wrong.
func (r *resolution) Validate() (all []problem.Violation) {
	if r.State != nil && !r.State.Final() {
		all = append(all, problem.Violation{Pointer: "/state", Detail: "must be succeeded, failed or canceled, or absent if the operation is not unknown"})
	}
	if n := utf8.RuneCountInString(r.Evidence); n < 1 || n > maxEvidence {
		all = append(all, problem.Violation{Pointer: "/evidence", Detail: "must say in 1 to 2000 characters what was seen and where"})
	}
	if utf8.RuneCountInString(r.Reference) > maxReference {
		all = append(all, problem.Violation{Pointer: "/reference", Detail: "must have at most 255 characters"})
	}
	return all
}

// reviewResource is a review as clients see it.
type reviewResource struct {
	ID          string            `json:"id"`
	Kind        review.Kind       `json:"kind"`
	OperationID string            `json:"operation_id,omitzero"`
	Owner       string            `json:"owner"`
	OpenedAt    idemhttp.Time     `json:"opened_at"`
	DueAt       idemhttp.Time     `json:"due_at"`
	Escalation  string            `json:"escalation,omitzero"`
	EscalatedAt *idemhttp.Time    `json:"escalated_at,omitzero"`
	Evidence    []reviewEvidence  `json:"evidence"`
	State       string            `json:"state"`
	ResolvedBy  string            `json:"resolved_by,omitzero"`
	ResolvedAt  *idemhttp.Time    `json:"resolved_at,omitzero"`
	ResolvedAs  idempotency.State `json:"resolved_as,omitzero"`
}

type reviewEvidence struct {
	Source string        `json:"source"`
	At     idemhttp.Time `json:"at"`
	Says   string        `json:"says"`
}

// newReview is a review with what calls have shown beside its own evidence, in the order in which all became known.
func newReview(r review.Review, calls []review.Evidence) reviewResource {
	resource := reviewResource{
		ID: r.ID, Kind: r.Kind, OperationID: r.OperationID, Owner: r.Owner, OpenedAt: idemhttp.Time(r.OpenedAt), DueAt: idemhttp.Time(r.DueAt),
		Escalation: r.Escalation, EscalatedAt: (*idemhttp.Time)(r.EscalatedAt), State: r.State,
		ResolvedBy: r.ResolvedBy, ResolvedAt: (*idemhttp.Time)(r.ResolvedAt), ResolvedAs: r.ResolvedAs, Evidence: []reviewEvidence{},
	}
	known := slices.Concat(calls, r.Evidence)
	slices.SortStableFunc(known, func(a, b review.Evidence) int { return a.At.Compare(b.At) })
	for _, e := range known {
		resource.Evidence = append(resource.Evidence, reviewEvidence{e.Source, idemhttp.Time(e.At), e.Says})
	}
	return resource
}

// withCalls is a review with all that is known.
func (h Handlers) withCalls(db *gorm.DB, r review.Review) (reviewResource, error) {
	until := h.DB.Now()
	if r.ResolvedAt != nil {
		until = *r.ResolvedAt
	}
	calls, err := outbox.Calls(db, r.AccountID, r.OperationID, until)
	return newReview(r, calls), err
}

// ListReviews answers GET /v1/reviews?state&kind&overdue&limit&cursor. What calls have shown is in each review by itself.
func (h Handlers) ListReviews(c echo.Context) error {
	query := idemhttp.ReadQuery(c)
	page, filter := query.Page(), review.Filter{State: query.Text("state"), Kind: review.Kind(query.Text("kind"))}
	if !slices.Contains([]string{"", review.StateOpen, review.StateResolved}, filter.State) {
		query.Wrong("state", "must be open or resolved")
	}
	if filter.Kind != "" && !slices.Contains(review.Kinds, filter.Kind) {
		query.Wrong("kind", "must be unknown, deadline, contradiction or unmatched")
	}
	switch query.Text("overdue") {
	case "":
	case "true":
		filter.Overdue = h.DB.Now()
	default:
		query.Wrong("overdue", "must be true, or left out")
	}
	if err := query.Err(); err != nil {
		return err
	}
	fetch := func(before string, limit int) ([]review.Review, error) {
		return review.List(c.Request().Context(), h.DB, h.Caller(c).Account, filter, before, limit)
	}
	return idemhttp.WritePage(c, page, fetch, func(r review.Review) (string, any) { return r.ID, newReview(r, nil) })
}

// GetReview answers GET /v1/reviews/:id.
func (h Handlers) GetReview(c echo.Context) error {
	db := h.DB.Read(c.Request().Context())
	r, err := review.Get(db, h.Caller(c).Account, c.Param("id"))
	if errors.Is(err, review.ErrNotFound) {
		return noReview()
	}
	if err != nil {
		return err
	}
	resource, err := h.withCalls(db, r)
	if err != nil {
		return err
	}
	return idemhttp.WriteResource(c, resource)
}

func noReview() *problem.Problem {
	return problem.New(problem.NotFound, "This account has no review with this id.")
}

// resolve answers POST /v1/reviews/:id/resolution. With a state it ends the unknown operation that the review is about.
func (h Handlers) resolve(c echo.Context) error {
	call, err := idemhttp.Begin(c, h.Caller(c))
	if err != nil {
		return err
	}
	command := &resolution{}
	if err := call.Decode(command); err != nil {
		return err
	}
	who, id := h.Caller(c), c.Param("id")
	var about string // which operation
	result, err := h.Executor.Do(c.Request().Context(), call.Request(catalogue.ReviewResolve, command), func(tx database.Tx, own idempotency.Operation) (idempotency.Answer, error) {
		r, err := review.Resolve(tx, who.Account, id, who.Principal, command.state(), review.Evidence{Source: who.Principal, At: tx.Now, Says: command.Evidence})
		switch {
		case errors.Is(err, review.ErrNotFound):
			return idempotency.Answer{}, noReview()
		case errors.Is(err, review.ErrResolved):
			return idempotency.Answer{}, idemhttp.RefusalFinal(own, problem.New(problem.ReviewResolved, "Somebody has resolved this review."))
		case err != nil:
			return idempotency.Answer{}, err
		}
		about = r.OperationID
		if err := h.follow(tx, own, r, command); err != nil {
			return idempotency.Answer{}, err
		}
		resource, err := h.withCalls(tx.DB, r)
		if err != nil {
			return idempotency.Answer{}, err
		}
		body, err := idemhttp.Marshal(resource)
		href := "/v1/reviews/" + r.ID
		return idempotency.Answer{
			State: idempotency.Succeeded, Status: http.StatusOK, Location: href, Body: body,
			Resource: idempotency.Resource{Type: "review", ID: r.ID, Href: href},
		}, err
	})
	if err != nil {
		return err
	}
	h.Outbox.Announce(about)
	h.Outbox.Nudge() // it may have to be closed first, or somebody has waited for what it held
	return idemhttp.Write(c, result)
}

// undecided is the answer to a resolution after which the operation would have no end.
func undecided() *problem.Problem {
	return problem.Invalid(problem.Violation{Pointer: "/state", Detail: "must say how the operation ended: succeeded, failed or canceled"})
}

// state is what the operation is declared to be; empty: nothing is said of it.
func (r *resolution) state() idempotency.State {
	if r.State == nil {
		return ""
	}
	return *r.State
}

// notClosedWait is the time that a close takes, and some, in seconds.
const notClosedWait = 2

// follow does what follows for the operation of a review, which the resolution may end.
func (h Handlers) follow(tx database.Tx, own idempotency.Operation, r review.Review, command *resolution) error {
	err := h.Outbox.Resolve(tx, r, command.state(), command.Reference)
	switch {
	case errors.Is(err, outbox.ErrUndecided):
		return undecided()
	case errors.Is(err, outbox.ErrNoEffect):
		return idemhttp.RefusalFinal(own, problem.New(problem.OperationFinal, "The operation has ended; resolve the review without a state."))
	case errors.Is(err, outbox.ErrNotClosed):
		open := problem.New(problem.OperationRunning, "The target has not confirmed that nothing of this operation can arrive there any more. "+
			"It is asked for that by itself, and at once by POST /v1/operations/"+r.OperationID+"/reconcile. Then send this again.")
		open.RetryAfterSeconds, open.Retry, open.NextAction = notClosedWait, problem.RetrySameKey, problem.NextRetrySameKey
		return idemhttp.RefusalForNow(open)
	case errors.Is(err, outbox.ErrRunning):
		busy := problem.New(problem.OperationRunning, "The operation is being sent, or its target is being asked at this moment. Try again; it can be decided while it is unknown.")
		busy.RetryAfterSeconds, busy.Retry, busy.NextAction = 1, problem.RetrySameKey, problem.NextRetrySameKey
		return idemhttp.RefusalForNow(busy)
	case errors.Is(err, outbox.ErrNotServed):
		return notServed()
	}
	return err
}
