package audit

import (
	"strconv"
	"time"

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

// newEvent is an event with its name.
func newEvent(id string, e idempotency.Event) Event {
	return Event{
		Version: EventVersion, ID: id, Account: e.Account, Type: e.Type, At: Time(e.At), Principal: e.Principal, AgentRun: e.AgentRun, RequestID: e.RequestID,
		OperationID: e.OperationID, AttemptID: e.AttemptID, KeyHash: e.KeyHash, Fingerprint: e.Fingerprint, Route: e.Route, EffectKey: e.EffectKey,
		Reference: e.Reference, From: e.From, To: e.To,
	}
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

// Canonical is the text that a leaf is the hash of: RFC 8785 (JCS) of the event. A byte that is no UTF-8 is replaced: it must not keep everything
// that comes after it from being sealed.
//
// It is written by hand, with the members in their order: every event of every account is spelled, and a general encoder takes ten times as long.
func (e Event) Canonical() []byte {
	text := make([]byte, 0, 768) // most have some 500 bytes
	text = append(text, '{')
	member := func(name, value string) {
		if value == "" {
			return
		}
		text = append(text, '"')
		text = append(text, name...)
		text = append(text, `":`...)
		text, _ = jsontext.AppendQuote(text, value) // its error is about what it has replaced
		text = append(text, ',')
	}
	member("account", e.Account)
	member("agent_run", e.AgentRun)
	member("at", e.At.String())
	member("attempt_id", e.AttemptID)
	member("effect_key", e.EffectKey)
	member("fingerprint", string(e.Fingerprint))
	member("from", string(e.From))
	member("id", e.ID)
	member("key_hash", e.KeyHash)
	member("operation_id", e.OperationID)
	member("principal", e.Principal)
	member("reference", e.Reference)
	member("request_id", e.RequestID)
	member("route", e.Route)
	member("to", string(e.To))
	member("type", string(e.Type))
	text = append(text, `"v":`...)
	text = strconv.AppendInt(text, int64(e.Version), 10)
	return append(text, '}')
}

// leafHash is the event's leaf in the tree.
func (e Event) leafHash() tlog.Hash { return tlog.RecordHash(e.Canonical()) }

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
