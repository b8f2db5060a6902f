package simulator

import (
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// Effect is something that really happened in a target. The ledger is append-only: nothing that later becomes of an effect
// makes it not have happened. Of one that takes its time, the end alone is noted later.
type Effect struct {
	Target    string `json:"target" gorm:"primaryKey"`
	ID        string `json:"-" gorm:"primaryKey"`
	Kind      string `json:"kind"`
	EffectKey string `json:"effect_key"`
	Reference string `json:"reference"`
	Account   string `json:"account,omitzero"`

	// Of effects that move money.
	AmountMinor int64  `json:"amount_minor,omitzero"`
	Currency    string `json:"currency,omitzero"` // upper-case, as ISO 4217 writes it
	OrderID     string `json:"order_id,omitzero"`
	Parent      string `json:"parent,omitzero"` // the reference of what it was done to

	// Of rollouts and stops.
	Environment string     `json:"environment,omitzero"`
	Digest      string     `json:"digest,omitzero"`
	Token       int64      `json:"token,omitzero"`
	StartedAt   *time.Time `json:"started_at,omitzero"`
	EndedAt     *time.Time `json:"ended_at,omitzero"` // absent while it goes on

	At time.Time `json:"at"`
}

// TableName is where effects are.
func (Effect) TableName() string { return "ledger" }

// record makes the effect happen: it has when tx commits.
func (e Effect) record(tx database.Tx) error { return tx.Create(&e).Error }

// effectsOf are the effects under one effect key, the first first.
func effectsOf(tx database.Tx, target, effectKey string) ([]Effect, error) {
	effects := []Effect{}
	err := tx.Where("target = ? AND effect_key = ?", target, effectKey).Order("id").Find(&effects).Error
	return effects, err
}
