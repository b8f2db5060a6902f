package approvalhttp

import (
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/approval"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
)

// decision is the command of POST /v1/approvals/:id/decision.
type decision struct {
	Decision    string                  `json:"decision"`
	Fingerprint idempotency.Fingerprint `json:"fingerprint"`
	Reason      *string                 `json:"reason"`
}

const (
	approve = "approve"
	reject  = "reject"

	maxReason      = 500 // characters: a sentence or two, as for a refund
	maxFingerprint = 100 // characters: more than any has; what is compared, not what is kept
)

// Validate returns everything that is wrong.
func (d *decision) Validate() (all []problem.Violation) {
	if d.Decision != approve && d.Decision != reject {
		all = append(all, problem.Violation{Pointer: "/decision", Detail: "must be approve or reject"})
	}
	if d.Fingerprint == "" || utf8.RuneCountInString(string(d.Fingerprint)) > maxFingerprint {
		all = append(all, problem.Violation{Pointer: "/fingerprint", Detail: "must be the fingerprint that the approval shows: it says what is decided"})
	}
	if d.Reason != nil {
		if n := utf8.RuneCountInString(*d.Reason); n < 1 || n > maxReason {
			all = append(all, problem.Violation{Pointer: "/reason", Detail: "must have 1 to 500 characters; leave it out if there is none"})
		}
	}
	return all
}

// by is the decision as somebody has made it.
func (d *decision) by(req idempotency.Request) approval.Decision {
	said := approval.Decision{
		By: req.Principal, Approve: d.Decision == approve, Fingerprint: d.Fingerprint, AgentRun: req.AgentRun, RequestID: req.RequestID,
	}
	if d.Reason != nil {
		said.Reason = *d.Reason
	}
	return said
}

// decide answers POST /v1/approvals/:id/decision.
func (h Handlers) decide(c echo.Context) error {
	call, err := idemhttp.Begin(c, h.Caller(c))
	if err != nil {
		return err
	}
	command := &decision{}
	if err := call.Decode(command); err != nil {
		return err
	}
	req, account, id := call.Request(catalogue.ApprovalDecide, command), h.Caller(c).Account, c.Param("id")
	var about string // which operation
	result, err := h.Executor.Do(c.Request().Context(), req, func(tx database.Tx, own idempotency.Operation) (idempotency.Answer, error) {
		a, err := h.Outbox.DecideApproval(tx, account, id, command.by(req))
		about = a.OperationID
		switch {
		case errors.Is(err, approval.ErrNotFound):
			return idempotency.Answer{}, noApproval()
		case errors.Is(err, approval.ErrRequester): // another person may use this very request
			return idempotency.Answer{}, problem.New(problem.RequesterCannotApprove, "You have asked for this operation yourself.")
		case errors.Is(err, approval.ErrOtherFingerprint):
			return idempotency.Answer{}, h.refuse(tx, own, a, problem.New(problem.ApprovalStale, "The approval has another fingerprint: it is about something else than this decision, and waits as before. Read it again."))
		case errors.Is(err, outbox.ErrNotServed):
			return idempotency.Answer{}, problem.New(problem.TargetNotServed, "This process does not serve the target of the operation's effect, so it can't let it go out; nothing was done.")
		case errors.Is(err, approval.ErrDecided):
			if a, err = approval.Get(tx.DB, account, id); err != nil {
				return idempotency.Answer{}, err
			}
			return idempotency.Answer{}, h.refuse(tx, own, a, closed(a))
		case err != nil:
			return idempotency.Answer{}, err
		case a.State == approval.Expired, a.State == approval.Stale:
			return h.tooLate(tx, own, a)
		}
		return decided(a)
	})
	if err != nil {
		return err
	}
	h.Outbox.Announce(about)
	h.Outbox.Nudge()
	return idemhttp.Write(c, result)
}

// closed says why an approval can't be decided any more.
func closed(a approval.Approval) *problem.Problem {
	switch {
	case a.DecidedBy != "":
		return problem.New(problem.ApprovalDecided, a.DecidedBy+" has decided this approval, which is "+string(a.State)+".")
	case a.State == approval.Expired:
		return problem.New(problem.ApprovalExpired, "Nobody had decided in time, and the operation is canceled. If it is still wanted, it is a new operation and a new question.")
	case a.State == approval.Stale:
		return problem.New(problem.ApprovalStale, a.Reason+" The operation is canceled. If it is still wanted, it is a new operation and a new question.")
	}
	return problem.New(problem.ApprovalDecided, "Somebody is deciding this approval at this moment.")
}

// tooLate is the final answer of a decision that has found the question to be over, and has ended the operation with that.
func (h Handlers) tooLate(tx database.Tx, own idempotency.Operation, a approval.Approval) (idempotency.Answer, error) {
	var r *idempotency.Refusal
	if err := h.refuse(tx, own, a, closed(a)); !errors.As(err, &r) {
		return idempotency.Answer{}, err
	}
	return r.Answer, nil
}

// refuse says why a decision does not count, with the operation that it is about. That may be forgotten, and the approval is not.
func (h Handlers) refuse(tx database.Tx, own idempotency.Operation, a approval.Approval, p *problem.Problem) error {
	op, err := h.Executor.Row(tx, a.AccountID, a.OperationID)
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return idemhttp.RefusalFinal(own, p)
	case err != nil:
		return err
	}
	if err := outbox.DescribeIn(tx, &op); err != nil {
		return err
	}
	return idemhttp.RefusalAbout(op, p)
}

// decided is the final answer of a decision.
func decided(a approval.Approval) (idempotency.Answer, error) {
	done, err := idemhttp.Success(http.StatusOK, newApproval(a))
	done.Location = "/v1/approvals/" + a.ID
	done.Resource = idempotency.Resource{Type: "approval", ID: a.ID, Href: done.Location}
	return done, err
}
