package simulator

import (
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// Call is a request that reached a target, whatever became of it. One that was cut off while it arrived did not reach it.
type Call struct {
	Target    string    `json:"target" gorm:"primaryKey"`
	ID        string    `json:"-" gorm:"primaryKey"`
	Kind      string    `json:"kind"`
	EffectKey string    `json:"effect_key"` // empty: not said, or malformed
	At        time.Time `json:"at"`
	Faulted   bool      `json:"faulted,omitzero"` // a fault struck it, before or after
}

// record keeps a call.
func (c Call) record(tx database.Tx) error { return tx.AtCommit().Create(&c).Error }

// markFaulted says of a call that was recorded that a fault struck it.
func (c Call) markFaulted(tx database.Tx) error {
	return tx.AtCommit().Model(&Call{}).Where("target = ? AND id = ?", c.Target, c.ID).Update("faulted", true).Error
}
