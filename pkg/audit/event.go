package audit

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/einmal/einmal/pkg/idempotency"
)

// EventVersion is that of the spelling below. Leaves of several versions may be in one tree: each event says its own.
const EventVersion = 1

// Event is an event as it is shown, exported and hashed. A member that is empty is left out.
type Event struct {
	Version     int                     `json:"v"`
	ID          string                  `json:"id"` // evt_…
	Account     string                  `json:"account"`
	Type        idempotency.EventType   `json:"type"`
	At          Time                    `json:"at"`
	Principal   string                  `json:"principal,omitzero"`
	AgentRun    string                  `json:"agent_run,omitzero"`
	RequestID   string                  `json:"request_id,omitzero"`
	OperationID string                  `json:"operation_id,omitzero"`
	AttemptID   string                  `json:"attempt_id,omitzero"`
	KeyHash     string                  `json:"key_hash,omitzero"`
	Fingerprint idempotency.Fingerprint `json:"fingerprint,omitzero"`
	Route       string                  `json:"route,omitzero"`
	EffectKey   string                  `json:"effect_key,omitzero"`
	Reference   string                  `json:"reference,omitzero"`
	From        idempotency.State       `json:"from,omitzero"`
	To          idempotency.State       `json:"to,omitzero"`
}

// Time is a time as events spell it: UTC, microseconds, RFC 3339, always with six digits.
type Time time.Time

const timeFormat = "2006-01-02T15:04:05.000000Z"

// String is the text.
func (t Time) String() string { return time.Time(t).UTC().Format(timeFormat) }

// MarshalText is String.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads that spelling and no other.
func (t *Time) UnmarshalText(text []byte) error {
	parsed, err := time.Parse(timeFormat, string(text))
	*t = Time(parsed)
	return err
}

// Canonical is the text that a leaf is the hash of: RFC 8785 (JCS) of the event.
func (e Event) Canonical() ([]byte, error) {
	// A byte that is no UTF-8 must not keep everything that comes after it from being sealed.
	text, err := json.Marshal(e, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("canonicalise event: %w", err)
	}
	canonical := jsontext.Value(text)
	if err := canonical.Canonicalize(); err != nil {
		return nil, fmt.Errorf("canonicalise event: %w", err)
	}
	return canonical, nil
}

// leafHash is the event's leaf in the tree.
func (e Event) leafHash() (tlog.Hash, error) {
	canonical, err := e.Canonical()
	if err != nil {
		return tlog.Hash{}, err
	}
	return tlog.RecordHash(canonical), nil
}

// eventColumns are those of events e, in the order in which fields wants them.
const eventColumns = `e.id, e.account_id, e.type, e.at, e.principal, e.agent_run, e.request_id, e.operation_id, e.attempt_id,
	e.key_hash, e.fingerprint, e.route, e.effect_key, e.reference, e.from_state, e.to_state`

// fields are where a row of eventColumns goes.
func (e *Event) fields() []any {
	e.Version = EventVersion
	return []any{
		&e.ID, &e.Account, &e.Type, (*time.Time)(&e.At), &e.Principal, &e.AgentRun, &e.RequestID, &e.OperationID, &e.AttemptID,
		&e.KeyHash, &e.Fingerprint, &e.Route, &e.EffectKey, &e.Reference, &e.From, &e.To,
	}
}
