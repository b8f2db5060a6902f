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

// orderRow is a row of orders.
type orderRow struct {
	AccountID        string `gorm:"primaryKey"`
	ID               string `gorm:"primaryKey"`
	Position         string
	AmountMinor      int64
	Currency         string
	Payee            string
	InvoiceReference *string
	Version          int64
	Frozen           bool
	CreatedAt        time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt        time.Time `gorm:"autoUpdateTime:false"`

	PaymentID    string       `gorm:"->"` // of the live payment; read only
	PaymentState PaymentState `gorm:"->"`
}

func (orderRow) TableName() string { return "orders" }

// insertOrder writes a new order and reports whether it did: not if there is one of that name.
func (s store) insertOrder(tx database.Tx, o Order) (bool, error) {
	return changed("insert order", tx.Clauses(onOrder).Create(&orderRow{
		AccountID: o.AccountID, ID: o.ID, Position: o.Position, AmountMinor: o.Amount.Minor, Currency: o.Amount.Currency.String(),
		Payee: o.Payee, InvoiceReference: o.InvoiceReference, Version: o.Version, CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
	}))
}

// onOrder names the one index whose violation is an answer; any other is an error.
var onOrder = clause.OnConflict{Columns: []clause.Column{{Name: "account_id"}, {Name: "id"}}, DoNothing: true}

// changeOrder writes the content of an order that was read in the version before, and reports whether it still was in that version
// and no payment refers to it.
func (s store) changeOrder(tx database.Tx, o Order) (bool, error) {
	return changed("change order", tx.Exec(`UPDATE orders SET amount_minor = ?, currency = ?, payee = ?, invoice_reference = ?, version = ?, updated_at = ?
		WHERE account_id = ? AND id = ? AND version = ? AND NOT frozen`,
		o.Amount.Minor, o.Amount.Currency.String(), o.Payee, o.InvoiceReference, o.Version, o.UpdatedAt, o.AccountID, o.ID, o.Version-1))
}

// freezeOrder keeps the content of an order as it is from now on, and reports whether that is this amount.
func (s store) freezeOrder(tx database.Tx, account, id string, amount money.Amount) (bool, error) {
	return changed("freeze order", tx.Exec(`UPDATE orders SET frozen = ? WHERE account_id = ? AND id = ? AND amount_minor = ? AND currency = ?`,
		true, account, id, amount.Minor, amount.Currency.String()))
}

// order reads one order, inside a transaction or not, or errNotFound.
func (s store) order(read *gorm.DB, account, id string) (Order, error) {
	found, err := readOrders(read.Where("account_id = ? AND id = ?", account, id).Limit(1))
	if err == nil && len(found) == 0 {
		err = errNotFound
	}
	if err != nil {
		return Order{}, err
	}
	return found[0], nil
}

// listOrders reads up to limit orders in a state (empty: any), newest first, that come after a position (empty: all).
func (s store) listOrders(ctx context.Context, account string, state OrderState, last string, limit int) ([]Order, error) {
	query := before(s.db.Read(ctx).Where("account_id = ?", account), "position", last)
	switch state {
	case OrderOpen:
		query = query.Where("NOT EXISTS (SELECT 1 " + livePayment + ")")
	case OrderBusy:
		query = query.Where("EXISTS (SELECT 1 "+livePayment+" AND p.state <> ?)", Captured)
	case OrderPaid:
		query = query.Where("EXISTS (SELECT 1 "+livePayment+" AND p.state = ?)", Captured)
	}
	return readOrders(query.Order("position DESC").Limit(limit))
}

// livePayment is the payment of an order that has not come to nothing, as the index payments_live says it.
const livePayment = `FROM payments p WHERE p.account_id = orders.account_id AND p.order_id = orders.id AND p.state NOT IN ('failed', 'canceled')`

const orderColumns = `account_id, id, position, amount_minor, currency, payee, invoice_reference, version, frozen, created_at, updated_at,
	coalesce((SELECT p.id ` + livePayment + `), '') AS payment_id, coalesce((SELECT p.state ` + livePayment + `), '') AS payment_state`

func readOrders(query *gorm.DB) ([]Order, error) {
	var rows []orderRow
	if err := query.Select(orderColumns).Find(&rows).Error; err != nil {
		return nil, database.Classify(fmt.Errorf("read orders: %w", err))
	}
	orders := make([]Order, len(rows))
	for i, r := range rows {
		amount, err := money.FromMinor(r.AmountMinor, r.Currency)
		if err != nil {
			return nil, fmt.Errorf("read orders: amount of %s: %w", r.ID, err)
		}
		orders[i] = Order{
			AccountID: r.AccountID, ID: r.ID, Position: r.Position, Amount: amount, Payee: r.Payee, InvoiceReference: r.InvoiceReference,
			Version: r.Version, Frozen: r.Frozen, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
			PaymentID: r.PaymentID, PaymentState: r.PaymentState,
		}
	}
	return orders, nil
}
