package tickets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

// errNoComment: the ticket has no such comment.
var errNoComment = errors.New("comment not found")

// commentRow is a row of comments.
type commentRow struct {
	AccountID   string `gorm:"primaryKey"`
	TicketID    string `gorm:"primaryKey"`
	ID          string `gorm:"primaryKey"`
	Author      string
	Body        string
	OperationID string
	CreatedAt   time.Time `gorm:"autoCreateTime:false"`
}

func (commentRow) TableName() string { return "comments" }

// countComment counts a comment at its ticket, which this transaction will insert, and reports whether the account has that ticket. The count is
// raised where it is: a read before it would count two comments as one.
func (s store) countComment(tx database.Tx, account, ticketID string) (counted bool, err error) {
	update := tx.Exec("UPDATE tickets SET comment_count = comment_count + 1, updated_at = ? WHERE account_id = ? AND id = ?", tx.Now, account, ticketID)
	if update.Error != nil {
		return false, fmt.Errorf("count comment: %w", update.Error)
	}
	return update.RowsAffected == 1, nil
}

// insertComment writes a new comment.
func (s store) insertComment(tx database.Tx, c Comment) error {
	r := commentRow(c)
	if err := tx.AtCommit().Create(&r).Error; err != nil {
		return fmt.Errorf("insert comment: %w", err)
	}
	return nil
}

// comment reads one comment, or errNoComment.
func (s store) comment(ctx context.Context, account, ticketID, id string) (Comment, error) {
	found, err := readComments(s.db.Read(ctx).Where("account_id = ? AND ticket_id = ? AND id = ?", account, ticketID, id).Limit(1))
	if err == nil && len(found) == 0 {
		err = errNoComment
	}
	if err != nil {
		return Comment{}, err
	}
	return found[0], nil
}

// comments reads up to limit comments of a ticket, newest first, that are older than the one named before (empty: all).
func (s store) comments(ctx context.Context, account, ticketID, before string, limit int) ([]Comment, error) {
	query := s.db.Read(ctx).Where("account_id = ? AND ticket_id = ?", account, ticketID)
	if before != "" {
		query = query.Where("id < ?", before)
	}
	return readComments(query.Order("id DESC").Limit(limit))
}

func readComments(query *gorm.DB) ([]Comment, error) {
	var rows []commentRow
	if err := query.Find(&rows).Error; err != nil {
		return nil, database.Classify(fmt.Errorf("read comments: %w", err))
	}
	comments := make([]Comment, len(rows))
	for i, r := range rows {
		comments[i] = Comment(r)
	}
	return comments, nil
}
