// Package approval keeps what a person must agree to before it happens. A question is asked when an operation is accepted; the yes
// is bound to that operation, its fingerprint, a time until which it holds, and the state of the world that whoever decides has seen.
//
// The package keeps the questions and who has answered them. That nothing is sent without a yes that holds is for whoever sends to see
// to, in the very statement that lets a byte leave: [Holds] is the condition.
//
//	approval.go  a question and its answer
//	ask.go       putting the question
//	decide.go    one answer, and what ends a question without one
//	overdue.go   questions that nobody has answered in time
//	count.go     what an operator watches
package approval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// State says where a question stands. It leaves pending once. An approved one may still expire or go stale before it is used.
type State string

const (
	Pending  State = "pending"
	Approved State = "approved"
	Rejected State = "rejected"
	Expired  State = "expired" // nobody has decided in time, or what was approved has not gone out in time
	Stale    State = "stale"   // what it was about is not there any more: the world has changed, or the operation was withdrawn
)

// States are all of them.
var States = []State{Pending, Approved, Rejected, Expired, Stale}

// Approval is one question to a person, and the answer.
type Approval struct {
	AccountID      string                  `gorm:"primaryKey"`
	ID             string                  `gorm:"primaryKey"` // apr_…
	OperationID    string                  // what it is about, and so are the key and the fingerprint
	IdempotencyKey idempotency.Key         //
	Fingerprint    idempotency.Fingerprint //
	WorldVersion   string                  // what was there when the question was asked
	RequestedBy    string                  // who must not decide
	Facts          string                  // a JSON object: what exactly will happen
	Consequence    string                  // the same in one sentence
	State          State
	DecidedBy      string    // empty: nobody has
	Approved       bool      // a person has said yes, whatever has become of it since
	Reason         string    // theirs, or why it has ended without them
	CreatedAt      time.Time `gorm:"autoCreateTime:false"`
	ExpiresAt      time.Time // of the question, and of the yes
	DecidedAt      *time.Time
}

var (
	// ErrNotFound: the account has no such approval.
	ErrNotFound = errors.New("approval not found")

	// ErrRequester: whoever has asked for an operation does not approve it.
	ErrRequester = errors.New("the requester can't decide")

	// ErrOtherFingerprint: the decision is about something else than the question.
	ErrOtherFingerprint = errors.New("the decision names another fingerprint")

	// ErrDecided: it is not pending any more.
	ErrDecided = errors.New("approval is decided")
)

// Get reads one approval.
func Get(db *gorm.DB, account, id string) (Approval, error) {
	return one(db.Where("account_id = ? AND id = ?", account, id))
}

func one(query *gorm.DB) (Approval, error) {
	var found []Approval
	switch err := query.Limit(1).Find(&found).Error; {
	case err != nil:
		return Approval{}, database.Classify(fmt.Errorf("read approval: %w", err))
	case len(found) == 0:
		return Approval{}, ErrNotFound
	}
	return found[0], nil
}

// isPending is the condition of two indexes, word by word: a few are pending of all that were ever asked.
const isPending = "state = '" + string(Pending) + "'"

// List reads up to limit approvals, newest first, in a state (empty: any), older than the one named before (empty: all).
func List(ctx context.Context, db *database.DB, account string, state State, before string, limit int) ([]Approval, error) {
	query := db.Read(ctx).Where("account_id = ?", account)
	switch state {
	case "":
	case Pending:
		query = query.Where(isPending)
	default:
		query = query.Where("state = ?", state)
	}
	if before != "" {
		query = query.Where("id < ?", before)
	}
	var found []Approval
	if err := query.Order("id DESC").Limit(limit).Find(&found).Error; err != nil {
		return nil, database.Classify(fmt.Errorf("list approvals: %w", err))
	}
	return found, nil
}

// Holds is the condition on a row of effects that its approval is valid: a person has said yes to this operation with this
// fingerprint, and that holds beyond a moment. It takes that moment.
const Holds = `EXISTS (SELECT 1 FROM approvals a JOIN operations o ON o.account_id = a.account_id AND o.id = a.operation_id
	WHERE a.account_id = effects.account_id AND a.id = effects.approval_id AND a.operation_id = effects.operation_id
	AND a.state = 'approved' AND a.fingerprint = o.fingerprint AND a.expires_at > ?)`
