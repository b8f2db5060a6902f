package payments

import (
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

// errNotFound: the account has no such order, payment or refund.
var errNotFound = errors.New("not found")

// store reads and writes orders, payments and refunds. What is decided about a row is decided by a statement that names the state in
// which the row must be, and that reports whether it was (docs/protocol.md, rule 10).
type store struct {
	db *database.DB
}

// changed is the result of such a statement.
func changed(what string, result *gorm.DB) (bool, error) {
	if result.Error != nil {
		return false, fmt.Errorf("%s: %w", what, result.Error)
	}
	return result.RowsAffected == 1, nil
}

// must is one that nobody can have been faster with.
func must(what string, result *gorm.DB) error {
	ok, err := changed(what, result)
	if err == nil && !ok {
		err = fmt.Errorf("%s: %d rows are as they must be", what, result.RowsAffected)
	}
	return err
}

// before restricts a list to what comes after the row that a page ended with.
func before(query *gorm.DB, column, last string) *gorm.DB {
	if last == "" {
		return query
	}
	return query.Where(column+" < ?", last)
}
