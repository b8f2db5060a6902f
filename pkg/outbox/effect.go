package outbox

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/einmal/einmal/pkg/idempotency"
)

// Effect is a row of effects: one change of one target for one operation.
type Effect struct {
	AccountID      string          `gorm:"primaryKey"`
	ID             string          `gorm:"primaryKey"` // eff_…
	OperationID    string          //
	IdempotencyKey idempotency.Key // of the operation
	Type           string          // of the operation
	Target         string
	EffectKey      string
	Command        []byte // what the provider is to do; its own format

	State         idempotency.State // the operation's while it is open
	Fence         int64             // raised by every taker
	Doubt         *int64            // the lowest fence whose send may still arrive; nil: no send may
	FirstSentAt   *time.Time        // where the key window begins
	AcceptedAt    *time.Time        // the target has said that it goes on there
	CancelAskedAt *time.Time
	LeasedBy      string // who has taken it, under a name of its own for each take; empty: nobody
	LeaseUntil    *time.Time
	SendBy        *time.Time // no byte leaves after this
	QuietUntil    *time.Time // no call before that, which the target has asked for
	NextAt        *time.Time // when it is due; nil: not by itself (approval, review, final)
	Attempts      int        // sends
	Asks          int        // since the last send
	Priority      bool
	Reference     string // the target's name for what it did
	Shown         string // what the target shows in place of what was asked for, in the provider's format; empty: nothing else was seen
	ReviewID      string
	Deadline      *time.Time // nothing is sent after it; nil: accepted before there were deadlines
	OverdueAt     *time.Time // when it was noticed that it is open past that, and a person was asked
	ApprovalID    string     // that it may not be sent without; empty: it needs none
	ApprovedUntil *time.Time // when that ends to be valid
	Token         int64      `gorm:"-"` // of its lock, for the provider: drawn for a send, else the highest that was

	CreatedAt time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt time.Time `gorm:"autoUpdateTime:false"`
}

// inDoubt reports whether a send may still arrive.
func (e Effect) inDoubt() bool { return e.Doubt != nil }

// onlyDoubt reports whether the send under e's own fence is the only one that may still arrive.
func (e Effect) onlyDoubt() bool { return e.Doubt == nil || *e.Doubt == e.Fence }

// approvalOver reports whether it needs an approval and has none that is valid any more.
func (e Effect) approvalOver(now time.Time) bool {
	return e.ApprovedUntil != nil && !now.Before(*e.ApprovedUntil)
}

// whileAsked is the state that an effect has while its target is asked: what was accepted goes on there.
func (e Effect) whileAsked() idempotency.State {
	if e.State == idempotency.Running && e.AcceptedAt != nil {
		return idempotency.Running
	}
	return idempotency.Unknown
}

// Key derives the effect key that is sent downstream. It depends on what the caller intends and on nothing that we make up: an
// operation that a failover has forgotten, and that is claimed again, must send the same key. The namespace keeps two
// installations apart that share a target.
func Key(namespace, service, account string, key idempotency.Key, effect string) string {
	h := sha256.New()
	for _, part := range []string{"einmal effect v1", namespace, service, account, string(key), effect} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}
