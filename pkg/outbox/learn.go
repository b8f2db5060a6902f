package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/einmal/einmal/pkg/database"
)

// Learn commits what the target calls that which the send of e is about to move, for a provider that must make something before it
// can move it. False: somebody else has taken e meanwhile, or it is known by another name; then no further call may be made. So
// of all that copies of a send have made, only one is ever moved, and a look or a close under a newer fence knows which.
func Learn(ctx context.Context, db *database.DB, e Effect, reference string) (bool, error) {
	for {
		ours := false
		err := db.InTx(ctx, func(tx database.Tx) (err error) {
			ours, err = learned(tx, e, reference)
			return err
		})
		switch {
		case errors.Is(err, database.ErrCommitUnknown) && ctx.Err() == nil: // said again, it is the same
		case err != nil:
			return false, fmt.Errorf("learn reference: %w", err)
		default:
			return ours, nil
		}
	}
}
