package simulator

import (
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// Event is something that a target tells a webhook until it is accepted, and how far that is.
type Event struct {
	Target    string    `json:"target" gorm:"primaryKey"`
	ID        string    `json:"id" gorm:"primaryKey"`
	Type      string    `json:"type"`
	Reference string    `json:"reference"` // what it is about
	Body      []byte    `json:"-"`
	At        time.Time `json:"at"`
	DueAt     time.Time `json:"-"` // of the next attempt
	Attempts  int64     `json:"attempts"`
	Copies    int64     `json:"pending"`          // how many more times it is to be accepted; 0: it was, or is lost
	Behind    bool      `json:"-"`                // waits until a later event was accepted
	Faulted   bool      `json:"faulted,omitzero"` // a fault struck it
}

// TableName is where events are.
func (Event) TableName() string { return "webhook_events" }

// reorderPatience is how long an event that shall come out of order waits for another to come first: long enough for a person to
// cause one by hand, and then better in order than not at all.
const reorderPatience = 10 * time.Second

// emit makes an event happen in the transaction of what it tells; a fault that strikes it is taken there, too. Without a webhook
// there is nobody to tell.
func (h *webhooks) emit(tx database.Tx, e Event) error {
	hook, err := h.webhookOf(tx.DB, e.Target)
	if err != nil || hook.URL == "" {
		return err
	}
	e.At, e.DueAt, e.Copies = tx.Now, tx.Now, 1
	fault, err := takeWebhookFault(tx, e.Target)
	if err != nil {
		return err
	}
	if fault != nil {
		e.suffer(fault)
	}
	return tx.Create(&e).Error
}

// suffer does to an event what the fault says.
func (e *Event) suffer(f *Fault) {
	e.Faulted = true
	switch f.Action {
	case Delay:
		e.DueAt = e.DueAt.Add(time.Duration(f.DelayMS) * time.Millisecond)
	case Duplicate:
		e.Copies = 2
	case Reorder:
		e.Behind, e.DueAt = true, e.DueAt.Add(reorderPatience)
	case Lose:
		e.Copies = 0
	}
}

// accepted says that the webhook took the event. Those that waited for it are due now.
func (e Event) accepted(tx database.Tx) error {
	err := tx.Model(&Event{}).Where("target = ? AND id < ? AND behind AND copies > 0", e.Target, e.ID).
		Updates(map[string]any{"behind": false, "due_at": tx.Now}).Error
	if err != nil {
		return err
	}
	return e.change(tx, map[string]any{"attempts": e.Attempts + 1, "copies": e.Copies - 1, "due_at": tx.Now})
}

// The first attempts follow each other fast, as scenarios are short; a receiver that is down for long is not hammered.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// refused says that the webhook did not take the event, which is sent again.
func (e Event) refused(tx database.Tx) error {
	wait := lastRetry
	if e.Attempts < 6 { // 100 ms, doubled 6 times, is more than lastRetry
		wait = firstRetry << e.Attempts
	}
	return e.change(tx, map[string]any{"attempts": e.Attempts + 1, "due_at": tx.Now.Add(wait)})
}

func (e Event) change(tx database.Tx, columns map[string]any) error {
	return tx.Model(&Event{}).Where("target = ? AND id = ?", e.Target, e.ID).Updates(columns).Error
}
