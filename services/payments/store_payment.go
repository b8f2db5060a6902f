package payments

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/money"
)

// paymentRow is a row of payments.
type paymentRow struct {
	AccountID           string `gorm:"primaryKey"`
	ID                  string `gorm:"primaryKey"`
	OrderID             string
	AmountMinor         int64
	Currency            string
	State               PaymentState
	CapturedMinor       int64
	RefundReservedMinor int64
	RefundedMinor       int64
	Refunds             int64
	Reference           string
	OperationID         string
	OpenOperationID     string
	CreatedAt           time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt           time.Time `gorm:"autoUpdateTime:false"`
}

func (paymentRow) TableName() string { return "payments" }

// insertPayment writes a new payment and reports whether it did: not if its order has one that has not come to nothing. It waits for
// an open transaction that is about to insert one, at most for the lock time-out.
func (s store) insertPayment(tx database.Tx, p Payment) (bool, error) {
	return changed("insert payment", tx.Clauses(onLivePayment).Create(&paymentRow{
		AccountID: p.AccountID, ID: p.ID, OrderID: p.OrderID, AmountMinor: p.Amount.Minor, Currency: p.Amount.Currency.String(), State: p.State,
		OperationID: p.OperationID, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
	}))
}

// onLivePayment names the one index whose violation is an answer; any other is an error.
var onLivePayment = clause.OnConflict{
	Columns:     []clause.Column{{Name: "account_id"}, {Name: "order_id"}},
	TargetWhere: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "state NOT IN ('failed', 'canceled')"}}},
	DoNothing:   true,
}

// beginChange notes that an operation captures or cancels a payment, and reports whether it may: the payment is authorized for this
// much at least, and no other operation is at it.
func (s store) beginChange(tx database.Tx, account, id, operationID string, least int64) (bool, error) {
	return changed("begin to change payment", tx.Exec(`UPDATE payments SET open_operation_id = ?, updated_at = ?
		WHERE account_id = ? AND id = ? AND state = ? AND open_operation_id = '' AND amount_minor >= ?`,
		operationID, tx.Now, account, id, Authorized, least))
}

// endChange notes how a capture or cancel ended: in which state the payment is now, and how much is captured.
func (s store) endChange(tx database.Tx, account, id, operationID string, state PaymentState, captured int64) error {
	return must("end change of payment", tx.Exec(`UPDATE payments SET state = ?, captured_minor = ?, open_operation_id = '', updated_at = ?
		WHERE account_id = ? AND id = ? AND state = ? AND open_operation_id = ?`,
		state, captured, tx.Now, account, id, Authorized, operationID))
}

// endAuthorizing notes how the authorising of a payment ended, and what the provider calls it.
func (s store) endAuthorizing(tx database.Tx, account, id string, state PaymentState, reference string) error {
	return must("end authorising of payment", tx.Exec(`UPDATE payments SET state = ?, reference = ?, updated_at = ?
		WHERE account_id = ? AND id = ? AND state = ?`, state, reference, tx.Now, account, id, Pending))
}

// reserve sets aside what a refund takes, and reports whether that much was left.
func (s store) reserve(tx database.Tx, account, id string, minor int64) (bool, error) {
	return changed("reserve refund", tx.Exec(`UPDATE payments SET refund_reserved_minor = refund_reserved_minor + ?, refunds = refunds + 1, updated_at = ?
		WHERE account_id = ? AND id = ? AND state = ? AND captured_minor - refund_reserved_minor - refunded_minor >= ?`,
		minor, tx.Now, account, id, Captured, minor))
}

// inTurn lets what is decided about the refunds of a payment wait for one another until tx ends.
func (s store) inTurn(tx database.Tx, account, id string) error {
	return must("take turns at payment", tx.Exec("UPDATE payments SET updated_at = updated_at WHERE account_id = ? AND id = ?", account, id))
}

// endReservation releases what a refund took, and counts what was refunded; 0: nothing was.
func (s store) endReservation(tx database.Tx, account, id string, reserved, refunded int64) error {
	return must("end reservation", tx.Exec(`UPDATE payments SET refund_reserved_minor = refund_reserved_minor - ?, refunded_minor = refunded_minor + ?, updated_at = ?
		WHERE account_id = ? AND id = ? AND refund_reserved_minor >= ?`, reserved, refunded, tx.Now, account, id, reserved))
}

// payment reads one payment, inside a transaction or not, or errNotFound.
func (s store) payment(read *gorm.DB, account, id string) (Payment, error) {
	return onePayment(read.Where("account_id = ? AND id = ?", account, id))
}

// liveOf reads the payment of an order that has not come to nothing, or errNotFound.
func (s store) liveOf(tx database.Tx, account, orderID string) (Payment, error) {
	return onePayment(tx.Where("account_id = ? AND order_id = ? AND state NOT IN ('failed', 'canceled')", account, orderID))
}

// listPayments reads up to limit payments of an order (empty: of all) in a state (empty: any), newest first, older than last.
func (s store) listPayments(ctx context.Context, account, orderID string, state PaymentState, last string, limit int) ([]Payment, error) {
	query := before(s.db.Read(ctx).Where("account_id = ?", account), "id", last)
	if orderID != "" {
		query = query.Where("order_id = ?", orderID)
	}
	switch state {
	case "":
	case Unknown:
		query = query.Where("state = ? AND "+isUnknown, Pending)
	case Pending:
		query = query.Where("state = ? AND NOT "+isUnknown, Pending)
	default:
		query = query.Where("state = ?", state)
	}
	return readPayments(query.Order("id DESC").Limit(limit))
}

// effectOf is the effect by which a payment is authorised; isUnknown, that nobody can say yet whether it has happened.
const (
	effectOf  = "FROM effects e WHERE e.account_id = payments.account_id AND e.operation_id = payments.operation_id"
	isUnknown = "EXISTS (SELECT 1 " + effectOf + " AND e.state = 'unknown')"
)

// paymentColumns are those of a row. Until the authorising has ended, its effect knows more than the row.
const paymentColumns = `account_id, id, order_id, amount_minor, currency, captured_minor, refund_reserved_minor, refunded_minor, refunds,
	operation_id, open_operation_id, created_at, updated_at,
	CASE WHEN state = 'pending' AND ` + isUnknown + ` THEN 'unknown' ELSE state END AS state,
	CASE WHEN state = 'pending' THEN coalesce((SELECT e.reference ` + effectOf + `), '') ELSE reference END AS reference`

func onePayment(query *gorm.DB) (Payment, error) {
	found, err := readPayments(query.Limit(1))
	if err == nil && len(found) == 0 {
		err = errNotFound
	}
	if err != nil {
		return Payment{}, err
	}
	return found[0], nil
}

func readPayments(query *gorm.DB) ([]Payment, error) {
	var rows []paymentRow
	if err := query.Select(paymentColumns).Find(&rows).Error; err != nil {
		return nil, database.Classify(fmt.Errorf("read payments: %w", err))
	}
	payments := make([]Payment, len(rows))
	for i, r := range rows {
		amount, err := money.FromMinor(r.AmountMinor, r.Currency)
		if err != nil {
			return nil, fmt.Errorf("read payments: amount of %s: %w", r.ID, err)
		}
		payments[i] = Payment{
			AccountID: r.AccountID, ID: r.ID, OrderID: r.OrderID, Amount: amount, State: r.State,
			CapturedMinor: r.CapturedMinor, ReservedMinor: r.RefundReservedMinor, RefundedMinor: r.RefundedMinor, Refunds: r.Refunds,
			Reference: r.Reference, OperationID: r.OperationID, OpenOperationID: r.OpenOperationID, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		}
	}
	return payments, nil
}
