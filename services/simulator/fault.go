package simulator

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

// Fault is a misfortune that awaits the next requests to a target.
type Fault struct {
	ID string `json:"id" gorm:"primaryKey"`
	Misfortune
	Fired int64 `json:"fired"` // how many requests it struck
}

// Misfortune is what a fault does, to which requests, and how often.
type Misfortune struct {
	Target    string `json:"target"`
	Operation string `json:"operation,omitzero"` // a kind of call; empty: any
	When      Moment `json:"when" gorm:"column:moment"`
	Action    Action `json:"action"`
	Status    int    `json:"status,omitzero"`
	DelayMS   int64  `json:"delay_ms,omitzero"`
	Times     int64  `json:"times"`
}

// Moment is when a fault strikes a request.
type Moment string

const (
	// Before anything is done. There is no effect then or later, unless the action is delay.
	Before Moment = "before"
	// After what the request asks is done and durable: only its answer suffers. Requests that are turned away (in progress,
	// closed, malformed …) are left alone: a fault after them would be one of nothing.
	After Moment = "after"
)

// Action is what a fault does; see strike.
type Action string

const (
	Hang        Action = "hang"         // no answer for as long as the caller waits
	Reset       Action = "reset"        // the connection is reset
	Lose        Action = "lose"         // the connection ends without an answer
	Status      Action = "status"       // an answer that is not the target's
	Delay       Action = "delay"        // it takes its time, whether or not the caller waits
	Duplicate   Action = "duplicate"    // of webhooks: sent twice
	Reorder     Action = "reorder"      // of webhooks: sent out of order
	Half        Action = "half"         // of rollouts: stops half-way
	OtherDigest Action = "other_digest" // of rollouts: another artifact runs than was asked for
)

// everywhere are the actions that every target has: what becomes of a request and its answer on the way.
var everywhere = []Action{Hang, Reset, Status, Delay, Lose}

// elsewhere says what the other actions need, so that a target without it can say why not.
var elsewhere = map[Action]string{
	Duplicate: "is for targets that send webhooks", Reorder: "is for targets that send webhooks",
	Half: "is for targets that roll out", OtherDigest: "is for targets that roll out",
}

// webhookOperation is the kind of what a target sends by itself: faults of this operation strike events, not requests.
const webhookOperation = "webhook"

// onlyWebhooks are the actions that only an event can suffer, webhookActions all that it can.
var (
	onlyWebhooks   = []Action{Duplicate, Reorder}
	webhookActions = []Action{Delay, Lose, Duplicate, Reorder}
)

// maxTimes is enough to be for ever in a scenario.
const maxTimes = 1_000_000

// decodeMisfortune reads what to arm. The error is a sentence.
func decodeMisfortune(body []byte) (Misfortune, error) {
	var m Misfortune
	if err := decode(body, &m, "target", "when", "action", "times"); err != nil {
		return m, err
	}
	target, err := targetNamed(m.Target)
	if err != nil {
		return m, err
	}
	switch {
	case m.Operation != "" && !slices.Contains(target.operations, m.Operation):
		return m, fmt.Errorf("operation must be one of %s, or left out for any", strings.Join(target.operations, ", "))
	case m.Operation == webhookOperation && !slices.Contains(webhookActions, m.Action):
		return m, fmt.Errorf("action must be one that webhooks have: %s", list(webhookActions))
	case m.When != Before && m.When != After:
		return m, errors.New("when must be before or after")
	case elsewhere[m.Action] != "" && !slices.Contains(target.actions, m.Action):
		return m, fmt.Errorf("the target %s has no action %s, which %s", target.name, m.Action, elsewhere[m.Action])
	case !slices.Contains(target.actions, m.Action):
		return m, fmt.Errorf("action must be one that %s has: %s", target.name, list(target.actions))
	case slices.Contains(onlyWebhooks, m.Action) && m.Operation != "" && m.Operation != webhookOperation:
		return m, fmt.Errorf("the action %s is for the operation %s", m.Action, webhookOperation)
	case m.Action == Status && (m.Status < 300 || m.Status > 599):
		return m, errors.New("status must be between 300 and 599 for the action status")
	case m.Action != Status && m.Status != 0:
		return m, fmt.Errorf("status is for the action status, not for %s", m.Action)
	case m.Action == Delay && (m.DelayMS < 1 || m.DelayMS > maxMS):
		return m, fmt.Errorf("delay_ms must be between 1 and %d for the action delay", maxMS)
	case m.Action != Delay && m.DelayMS != 0:
		return m, fmt.Errorf("delay_ms is for the action delay, not for %s", m.Action)
	case m.Times < 1 || m.Times > maxTimes:
		return m, fmt.Errorf("times must be between 1 and %d", maxTimes)
	}
	return m, nil
}

func list(actions []Action) string {
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}

// arm makes the misfortune a fault that has not struck yet.
func (m Misfortune) arm(tx database.Tx) (Fault, error) {
	f := Fault{ID: uuid.Must(uuid.NewV7()).String(), Misfortune: m}
	return f, tx.Create(&f).Error
}

// disarm forgets all faults. A request that one of them has struck stays struck.
func disarm(tx database.Tx) error {
	return tx.Where("true").Delete(&Fault{}).Error
}

// takeFault takes the first armed fault for this call and moment, or nil. It has struck when tx commits, together with what
// it strikes: neither an effect that did not happen nor a fault that did not strike is counted.
func takeFault(tx database.Tx, call Call, when Moment) (*Fault, error) {
	return takeFirst(tx, call.Target, func(armed *gorm.DB) *gorm.DB {
		return armed.Where("operation IN ? AND moment = ? AND action NOT IN ?", []string{"", call.Kind}, when, slices.Concat(onlyWebhooks, ofRollouts))
	})
}

// takeRolloutFault is takeFault for what becomes of a rollout, rather than of the call that begins it or breaks it off: one of actions. When says
// nothing there.
func takeRolloutFault(tx database.Tx, call Call, actions ...Action) (*Fault, error) {
	fault, err := takeFirst(tx, call.Target, func(armed *gorm.DB) *gorm.DB {
		return armed.Where("operation IN ? AND action IN ?", []string{"", call.Kind}, actions)
	})
	if fault == nil || err != nil {
		return nil, err
	}
	return fault, call.markFaulted(tx)
}

// takeWebhookFault is takeFault for an event that is about to be sent to a webhook. When says nothing there.
func takeWebhookFault(tx database.Tx, target string) (*Fault, error) {
	return takeFirst(tx, target, func(armed *gorm.DB) *gorm.DB {
		return armed.Where("(operation = ? OR operation = '' AND action IN ?)", webhookOperation, onlyWebhooks)
	})
}

func takeFirst(tx database.Tx, target string, fitting func(armed *gorm.DB) *gorm.DB) (*Fault, error) {
	for {
		var armed []Fault
		err := fitting(tx.Where("target = ? AND fired < times", target)).Order("id").Limit(1).Find(&armed).Error
		if len(armed) == 0 || err != nil {
			return nil, err
		}
		f := &armed[0]
		taken := tx.Model(&Fault{}).Where("id = ? AND fired < times", f.ID).Update("fired", gorm.Expr("fired + 1"))
		if taken.Error != nil || taken.RowsAffected == 1 {
			return f, taken.Error
		}
		// A concurrent request has had its last time. There may be another.
	}
}
