package outbox

import (
	"errors"

	"github.com/einmal/einmal/pkg/database"
)

// Lock is what a service does for a target whose effects each hold a lock (docs/protocol.md, rule 14): who holds it is a row of the
// service, and the target refuses tokens below a floor. Each function runs in the transaction that it is about.
type Lock struct {
	// Draw returns the token that a send goes out under, higher than any before, in the send's take. An error undoes the take: an
	// effect that does not hold its lock is not sent.
	Draw func(tx database.Tx, e Effect) (token int64, err error)

	// Read returns the highest token that was drawn for an effect, in a take to ask.
	Read func(tx database.Tx, e Effect) (token int64, err error)

	// Learn keeps what evidence tells beside its finding (Floor, Runs), whoever has learned it and whatever follows from it.
	Learn func(tx database.Tx, e Effect, ev Evidence) error

	// MayDecide returns ErrNotClosed while a send may still arrive: then a person's word does not set the lock free, a close does.
	MayDecide func(tx database.Tx, e Effect) error
}

// ErrNotClosed means that the target has not confirmed that no send of the effect can arrive any more.
var ErrNotClosed = errors.New("effect is not closed at its target")

// taking adds to the statement of a take what draws or reads the token. The token is kept here, not in the row: a take that is read
// back after a lost COMMIT has it still.
func (t Target) taking(e Effect, token *int64, of func(l *Lock) func(database.Tx, Effect) (int64, error),
	statement func(tx database.Tx, by string) (bool, error),
) func(tx database.Tx, by string) (bool, error) {
	if t.Lock == nil {
		return statement
	}
	return func(tx database.Tx, by string) (bool, error) {
		won, err := statement(tx, by)
		if err != nil || !won {
			return false, err
		}
		*token, err = of(t.Lock)(tx, e)
		return err == nil, err
	}
}

func draw(l *Lock) func(database.Tx, Effect) (int64, error)    { return l.Draw }
func highest(l *Lock) func(database.Tx, Effect) (int64, error) { return l.Read }

// learn keeps what evidence tells of a lock.
func (t Target) learn(tx database.Tx, e Effect, ev Evidence) error {
	if t.Lock == nil || ev.Finding == "" {
		return nil
	}
	return t.Lock.Learn(tx, e, ev)
}
