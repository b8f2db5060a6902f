package outbox

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// An effect key that the target knows with another command is not ours alone: another installation has the same namespace, or this
// one has asked for something else under it. What the target shows under the key may be that, so nothing that is found by it settles
// the effect, whoever asks. A person decides.

func toPersonAsReused(e Effect) step {
	return step{to: idempotency.Unknown, askPerson: true, change: func(tx database.Tx) (bool, error) { return reused(tx, e) }}
}

// reused leaves an effect to a person whose key is not its own: whoever has taken it meanwhile, it is not asked about. It raises the
// fence, so that nothing follows from a look under way.
func reused(tx database.Tx, e Effect) (bool, error) {
	return changeAnyFence(tx, e, released(map[string]any{"state": idempotency.Unknown, "next_at": nil, "fence": gorm.Expr("fence + 1")}))
}

// notReused is the condition of an effect whose key is its own, as far as any send has shown.
const notReused = `NOT EXISTS (SELECT 1 FROM attempts a
	WHERE a.account_id = effects.account_id AND a.operation_id = effects.operation_id AND a.outcome = '` + string(Reused) + `')`

// ifKeyIsOwn takes a step from what was found under the effect's key only if that is its own.
func ifKeyIsOwn(e Effect, s step) step {
	take := s.change
	s.change = func(tx database.Tx) (bool, error) {
		// The row is held since before this look: a send that shows otherwise has settled that, or finds the effect ended.
		if own, err := hasOwnKey(tx, e); err != nil || !own {
			return false, err
		}
		return take(tx)
	}
	return s
}

// hasOwnKey reports whether no send has shown that the effect's key is another's.
func hasOwnKey(tx database.Tx, e Effect) (bool, error) {
	var own []string
	if err := rowOf(e, tx.DB).Table("effects").Where(notReused).Pluck("id", &own).Error; err != nil {
		return false, fmt.Errorf("read effect: %w", err)
	}
	return len(own) == 1, nil
}
