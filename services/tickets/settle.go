package tickets

import (
	"net/http"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
)

// settler writes down how a mirror ended: at the ticket, and as the operation's final answer.
type settler struct {
	store store
}

// mirrored is called once, in the transaction that ends the effect.
func (s settler) mirrored(tx database.Tx, e outbox.Effect, end outbox.End) (idempotency.Answer, error) {
	if end.State != idempotency.Succeeded {
		return idemhttp.Failure(e.OperationID, end.State, failure(end)), nil
	}
	if err := s.store.noteReference(tx, e.AccountID, e.OperationID, e.Reference); err != nil {
		return idempotency.Answer{}, err
	}
	ticket, err := s.store.byMirror(tx, e.AccountID, e.OperationID)
	if err != nil {
		return idempotency.Answer{}, err
	}
	return answer(http.StatusOK, ticket, ticket.resource())
}

// failure says why a ticket is not mirrored.
func failure(end outbox.End) *problem.Problem {
	switch end.Reason {
	case outbox.ByVerdict, outbox.ByRefusal:
		return problem.New(problem.EffectRefused, "The desk does not take this ticket: it "+end.Evidence.Says+".")
	case outbox.ByPerson:
		if end.State == idempotency.Canceled {
			return problem.New(problem.OperationCanceled, "The mirror was withdrawn; the desk has no ticket.")
		}
		return problem.New(problem.EffectRefused, "A person has found that the desk has no ticket.")
	case outbox.ByDeadline:
		return problem.New(problem.DeadlineExceeded, "The desk could not be brought to take this ticket before the deadline; it has none.")
	}
	if end.State == idempotency.Canceled {
		return problem.New(problem.OperationCanceled, "The mirror was withdrawn, and closed at the desk before it took effect.")
	}
	return problem.New(problem.AttemptsExhausted, "The desk could not be reached within the attempts; it has no ticket.")
}
