package simulator

import (
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/einmal/einmal/pkg/database"
)

// Abilities are what a target can do for a caller that does not know what became of a send. They are independent of each
// other, and a change holds for every request that is decided after it:
//
//	keys    honour: a send with an effect key that was answered within the key window gets that answer again, whether it
//	        was an effect or a refusal. ignore: every send is a new one.
//	lookup  effects can be looked up by their effect key, each from lag after it happened.
//	close   an effect key can be closed. What was closed stays closed when the ability is taken away.
type Abilities struct {
	Target      string `json:"target" gorm:"primaryKey"`
	Keys        Keys   `json:"keys"`
	KeyWindowMS int64  `json:"key_window_ms,omitzero"`
	Lookup      bool   `json:"lookup"`
	LagMS       int64  `json:"lag_ms,omitzero"`
	Close       bool   `json:"close"`
}

// Keys is what a target does with effect keys.
type Keys string

const (
	Honour Keys = "honour"
	Ignore Keys = "ignore"
)

// defaultKeyWindow is how long payment providers and other keyed APIs commonly remember a key.
const defaultKeyWindow = 24 * time.Hour

// maxMS keeps any number of milliseconds exact as a time.Duration.
const maxMS = int64(1<<53-1) / int64(time.Millisecond)

// defaultAbilities are those of a target of which nothing was said: everything, at once.
func defaultAbilities(target string) Abilities {
	return Abilities{Target: target, Keys: Honour, KeyWindowMS: defaultKeyWindow.Milliseconds(), Lookup: true, Close: true}
}

// decodeAbilities reads all abilities of one target. The error is a sentence.
func decodeAbilities(body []byte) (Abilities, error) {
	a := Abilities{KeyWindowMS: defaultKeyWindow.Milliseconds()}
	if err := decode(body, &a, "target", "keys", "lookup", "close"); err != nil {
		return a, err
	}
	_, err := targetNamed(a.Target)
	switch {
	case err != nil:
		return a, err
	case a.Keys != Honour && a.Keys != Ignore:
		return a, errors.New("keys must be honour or ignore")
	case a.KeyWindowMS < 1 || a.KeyWindowMS > maxMS:
		return a, fmt.Errorf("key_window_ms must be between 1 and %d", maxMS)
	case a.LagMS < 0 || a.LagMS > maxMS:
		return a, fmt.Errorf("lag_ms must be between 0 and %d", maxMS)
	}
	return a, nil
}

// set replaces the abilities of the target.
func (a Abilities) set(tx database.Tx) error {
	return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "target"}}, UpdateAll: true}).Create(&a).Error
}

// abilitiesOf reads what a target can do.
func abilitiesOf(read *gorm.DB, target string) (Abilities, error) {
	var changed []Abilities
	if err := read.Where("target = ?", target).Limit(1).Find(&changed).Error; err != nil {
		return Abilities{}, err
	}
	if len(changed) == 0 {
		return defaultAbilities(target), nil
	}
	return changed[0], nil
}

func (a Abilities) keyWindow() time.Duration { return time.Duration(a.KeyWindowMS) * time.Millisecond }
func (a Abilities) lag() time.Duration       { return time.Duration(a.LagMS) * time.Millisecond }
