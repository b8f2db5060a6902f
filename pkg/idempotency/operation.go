package idempotency

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// Operation is the row of one operation. It is written at the claim and when the operation settles; what retention then takes from it,
// and that it takes the row, is none of this package's doing.
type Operation struct {
	AccountID      string      `gorm:"primaryKey"`
	IdempotencyKey Key         `gorm:"primaryKey"`
	ID             string      // op_…
	Type           string      // as in the catalogue: ticket.create
	State          State       //
	Fingerprint    Fingerprint //
	Route          string      // method and concrete path of the attempt that claimed it
	Principal      string      // who made that attempt
	AgentRun       string      // its Agent-Run-Id, or empty
	RequestID      string      // its X-Request-Id
	Resource       Resource    `gorm:"embedded;embeddedPrefix:resource_"`

	ResponseStatus   int    // of the final answer; 0 while there is none
	ResponseLocation string // empty: no Location header
	ResponseBody     []byte // byte for byte as first sent; nil once its retention has passed

	CreatedAt         time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt         time.Time `gorm:"autoUpdateTime:false"`
	CompletedAt       *time.Time
	ResponseExpiredAt *time.Time // when the body was dropped

	// Effect is what Options.Describe adds; it is not part of the row.
	Effect *Effect `gorm:"-"`
}

// Effect is what is known of an operation's effect outside the database.
type Effect struct {
	Target    string
	Key       string // that the target knows it by
	InDoubt   bool   // a send may still arrive
	Reference string // the target's name for it
	ReviewID  string // of the question to a person, if there is one

	ApprovalID string     // of the yes that it needs from a person; empty: none
	Deadline   *time.Time // nothing is sent after it
	Sends      []Send
}

// Send is one call that may have had the effect.
type Send struct {
	ID        string
	StartedAt time.Time
	EndedAt   *time.Time // nil: under way, or its process died
	Outcome   string     // confirmed, refused, not_sent, ambiguous; empty while EndedAt is nil
	Error     string
	Reference string
}

// Resource names what an operation made or changed.
type Resource struct {
	Type string `json:"type"` // ticket
	ID   string `json:"id"`   // tkt_…
	Href string `json:"href"` // /v1/tickets/tkt_…
}

// Answer is what an operation says to its caller. With a final state it is stored and replayed byte for byte; with queued or
// awaiting_approval only State and Resource count, and the final answer comes with Settle.
type Answer struct {
	State    State
	Status   int // HTTP
	Location string
	Body     []byte
	Resource Resource
}

// Answer is the stored final answer.
func (o Operation) Answer() Answer {
	return Answer{State: o.State, Status: o.ResponseStatus, Location: o.ResponseLocation, Body: o.ResponseBody, Resource: o.Resource}
}

// expired reports whether the final answer is past its retention, dropped or not. Open operations never expire.
func (o Operation) expired(now time.Time, retention time.Duration) bool {
	return o.State.Final() && (o.ResponseExpiredAt != nil || now.Sub(*o.CompletedAt) > retention)
}

// take puts an answer into the row. An answer that names no resource leaves the one that the operation was accepted with.
func (o *Operation) take(a Answer, now time.Time) {
	o.State, o.UpdatedAt = a.State, now
	if a.Resource != (Resource{}) {
		o.Resource = a.Resource
	}
	if a.State.Final() {
		// An empty body is one too: null is for a body that was dropped.
		o.ResponseStatus, o.ResponseLocation, o.ResponseBody = a.Status, a.Location, append([]byte{}, a.Body...)
		o.CompletedAt = &now
	}
}

// NewID makes an identifier: prefix, underscore, and a UUIDv7 (RFC 9562, section 5.7) of the given time with the part of the
// millisecond in the twelve bits after it (section 6.2, method 3). Made from a transaction's time, ids sort by the database's
// clock whatever the clock of the process that made them, which is also what keeps indexes on them local.
func NewID(prefix string, at time.Time) string {
	var u [16]byte
	rand.Read(u[8:]) // never fails (crypto/rand)
	milli := at.UnixMilli()
	for i := range 6 {
		u[i] = byte(milli >> (8 * (5 - i)))
	}
	fraction := at.Nanosecond() % 1e6 * 4096 / 1e6
	u[6] = 0x70 | byte(fraction>>8)
	u[7] = byte(fraction)
	u[8] = 0x80 | u[8]&0x3f

	text := make([]byte, 0, len(prefix)+1+36)
	text = append(text, prefix...)
	text = append(text, '_')
	for i, group := range [][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, group)
	}
	return string(text)
}
