package idemhttp

import (
	"errors"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/problem"
)

// StoreProblem says what an error of the executor or the database means to a caller, for an application's error handler. It is
// false for every other error. What it says of the effect is true: only a COMMIT without an answer leaves it unknown.
func StoreProblem(err error) (*problem.Problem, bool) {
	switch {
	case errors.Is(err, database.ErrCommitUnknown): // before the others: it may wrap why the connection was lost
		p := problem.New(problem.StoreUnavailable, "The work may or may not be done: the database is out of reach after a commit of this key. The same request with the same key finds out.")
		p.Effect = problem.EffectUnknown
		return p, true
	case errors.Is(err, idempotency.ErrFingerprintVersion):
		return problem.New(problem.FingerprintVersionUnknown, "A newer release has stored this key; nothing was done."), true
	case errors.Is(err, idempotency.ErrRewound):
		return problem.New(problem.StoreRewound, "The database has forgotten what this service did before: it is an older copy, or another one. Nothing is written or sent until an operator has accepted that."), true
	case errors.Is(err, database.ErrUnavailable):
		return problem.New(problem.StoreUnavailable, "The database cannot be reached or written; nothing was done."), true
	case errors.Is(err, database.ErrNotMigrated):
		return problem.New(problem.StoreUnavailable, "The database lacks a table or a column that this release needs; nothing was done. Whoever runs the service has to migrate it."), true
	case errors.Is(err, database.ErrBusy), errors.Is(err, database.ErrSerialization):
		return problem.New(problem.StoreUnavailable, "The database is too busy; nothing was done."), true
	}
	return nil, false
}
