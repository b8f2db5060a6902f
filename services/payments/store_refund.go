package payments

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/money"
)

// refundRow is a row of refunds.
type refundRow struct {
	AccountID   string `gorm:"primaryKey"`
	ID          string `gorm:"primaryKey"`
	PaymentID   string
	Number      int64
	AmountMinor int64
	Currency    string
	Reason      string
	Reference   string
	OperationID string
	CreatedAt   time.Time `gorm:"autoCreateTime:false"`

	State idempotency.State `gorm:"->"` // of the effect; read only
}

func (refundRow) TableName() string { return "refunds" }

// insertRefund writes a refund for which this transaction has reserved the amount.
func (s store) insertRefund(tx database.Tx, r Refund) error {
	err := tx.AtCommit().Create(&refundRow{
		AccountID: r.AccountID, ID: r.ID, PaymentID: r.PaymentID, Number: r.Number, AmountMinor: r.Amount.Minor, Currency: r.Amount.Currency.String(),
		Reason: r.Reason, OperationID: r.OperationID, CreatedAt: r.CreatedAt,
	}).Error
	if err != nil {
		return fmt.Errorf("insert refund: %w", err)
	}
	return nil
}

// letGo is how much of a payment the refunds beside one take that have gone out or may: not those that came to nothing, nor those
// that wait for a person, nor those that a person has let go after this one, who was shown that it takes its part.
func (s store) letGo(tx database.Tx, account, paymentID, refundID string) (minor int64, err error) {
	err = tx.Raw(`SELECT coalesce(sum(r.amount_minor), 0) FROM refunds r
		JOIN effects e ON e.account_id = r.account_id AND e.operation_id = r.operation_id AND e.state IN ('queued', 'running', 'unknown', 'succeeded')
		LEFT JOIN approvals a ON a.account_id = e.account_id AND a.id = e.approval_id
		WHERE r.account_id = ? AND r.payment_id = ? AND r.id <> ? AND NOT coalesce(a.decided_at >=
			(SELECT own.decided_at FROM approvals own JOIN refunds this ON this.account_id = own.account_id AND this.operation_id = own.operation_id
			WHERE this.account_id = r.account_id AND this.id = ?), false)`, account, paymentID, refundID, refundID).Scan(&minor).Error
	if err != nil {
		return 0, fmt.Errorf("sum refunds up: %w", err)
	}
	return minor, nil
}

// noteRefund notes what the provider calls a refund.
func (s store) noteRefund(tx database.Tx, account, id, reference string) error {
	return must("note refund", tx.Exec("UPDATE refunds SET reference = ? WHERE account_id = ? AND id = ?", reference, account, id))
}

// amendRefund notes that another amount was refunded than was asked for.
func (s store) amendRefund(tx database.Tx, account, id string, minor int64) error {
	return must("amend refund", tx.Exec("UPDATE refunds SET amount_minor = ? WHERE account_id = ? AND id = ?", minor, account, id))
}

// refund reads one refund, inside a transaction or not, or errNotFound.
func (s store) refund(read *gorm.DB, account, id string) (Refund, error) {
	found, err := readRefunds(read.Where("account_id = ? AND id = ?", account, id).Limit(1))
	if err == nil && len(found) == 0 {
		err = errNotFound
	}
	if err != nil {
		return Refund{}, err
	}
	return found[0], nil
}

// listRefunds reads up to limit refunds of a payment in a state (empty: any), newest first, older than last.
func (s store) listRefunds(ctx context.Context, account, paymentID string, state idempotency.State, last string, limit int) ([]Refund, error) {
	query := before(s.db.Read(ctx).Where("account_id = ? AND payment_id = ?", account, paymentID), "id", last)
	if state != "" {
		query = query.Where(refundState+" = ?", state)
	}
	return readRefunds(query.Order("id DESC").Limit(limit))
}

// refundState is a refund's state, which is its effect's.
const refundState = "(SELECT e.state FROM effects e WHERE e.account_id = refunds.account_id AND e.operation_id = refunds.operation_id)"

const refundColumns = `account_id, id, payment_id, number, amount_minor, currency, reason, reference, operation_id, created_at,
	coalesce(` + refundState + `, 'queued') AS state`

func readRefunds(query *gorm.DB) ([]Refund, error) {
	var rows []refundRow
	if err := query.Select(refundColumns).Find(&rows).Error; err != nil {
		return nil, database.Classify(fmt.Errorf("read refunds: %w", err))
	}
	refunds := make([]Refund, len(rows))
	for i, r := range rows {
		amount, err := money.FromMinor(r.AmountMinor, r.Currency)
		if err != nil {
			return nil, fmt.Errorf("read refunds: amount of %s: %w", r.ID, err)
		}
		refunds[i] = Refund{
			AccountID: r.AccountID, ID: r.ID, PaymentID: r.PaymentID, Number: r.Number, Amount: amount, Reason: r.Reason,
			Reference: r.Reference, OperationID: r.OperationID, State: r.State, CreatedAt: r.CreatedAt,
		}
	}
	return refunds, nil
}
