package approvalhttp

import (
	"errors"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
)

// Handlers answer about the approvals of one service.
type Handlers struct {
	DB       *database.DB
	Executor *idempotency.Executor
	Outbox   *outbox.Outbox
	Caller   func(echo.Context) idemhttp.Caller
}

// ApproverWrites are the routes that only an approver may use.
func (h Handlers) ApproverWrites() []idemhttp.Route {
	return []idemhttp.Route{
		{Method: http.MethodPost, Path: "/v1/approvals/:id/decision", Type: catalogue.ApprovalDecide, Command: func() idemhttp.Command { return &decision{} }, Handler: h.decide},
	}
}

// approvalResource is an approval as clients see it.
type approvalResource struct {
	ID             string                  `json:"id"`
	State          approval.State          `json:"state"`
	OperationID    string                  `json:"operation_id"`
	IdempotencyKey idempotency.Key         `json:"idempotency_key"`
	Fingerprint    idempotency.Fingerprint `json:"fingerprint"`
	WorldVersion   string                  `json:"world_version"`
	RequestedBy    string                  `json:"requested_by"`
	ApprovedBy     string                  `json:"approved_by,omitzero"` // stays when what was approved expires or goes stale
	DecidedBy      string                  `json:"decided_by,omitzero"`
	Reason         string                  `json:"reason,omitzero"`
	CreatedAt      idemhttp.Time           `json:"created_at"`
	ExpiresAt      idemhttp.Time           `json:"expires_at"`
	DecidedAt      *idemhttp.Time          `json:"decided_at,omitzero"`
	Facts          jsontext.Value          `json:"facts"`
	Consequence    string                  `json:"consequence"`
}

func newApproval(a approval.Approval) approvalResource {
	resource := approvalResource{
		ID: a.ID, State: a.State, OperationID: a.OperationID, IdempotencyKey: a.IdempotencyKey, Fingerprint: a.Fingerprint, WorldVersion: a.WorldVersion,
		RequestedBy: a.RequestedBy, DecidedBy: a.DecidedBy, Reason: a.Reason, CreatedAt: idemhttp.Time(a.CreatedAt), ExpiresAt: idemhttp.Time(a.ExpiresAt),
		DecidedAt: (*idemhttp.Time)(a.DecidedAt), Facts: jsontext.Value(a.Facts), Consequence: a.Consequence,
	}
	if a.Approved {
		resource.ApprovedBy = a.DecidedBy
	}
	return resource
}

// List answers GET /v1/approvals?state&limit&cursor.
func (h Handlers) List(c echo.Context) error {
	query := idemhttp.ReadQuery(c)
	page, state := query.Page(), approval.State(query.Text("state"))
	if state != "" && !slices.Contains(approval.States, state) {
		query.Wrong("state", "must be one of pending, approved, rejected, expired, stale")
	}
	if err := query.Err(); err != nil {
		return err
	}
	fetch := func(before string, limit int) ([]approval.Approval, error) {
		return approval.List(c.Request().Context(), h.DB, h.Caller(c).Account, state, before, limit)
	}
	return idemhttp.WritePage(c, page, fetch, func(a approval.Approval) (string, any) { return a.ID, newApproval(a) })
}

// Get answers GET /v1/approvals/:id.
func (h Handlers) Get(c echo.Context) error {
	a, err := approval.Get(h.DB.Read(c.Request().Context()), h.Caller(c).Account, c.Param("id"))
	if errors.Is(err, approval.ErrNotFound) {
		return noApproval()
	}
	if err != nil {
		return err
	}
	return idemhttp.WriteResource(c, newApproval(a))
}

func noApproval() *problem.Problem {
	return problem.New(problem.NotFound, "This account has no approval with this id.")
}
