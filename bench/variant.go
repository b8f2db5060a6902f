package main

import (
	"bytes"
	"fmt"
	"time"

	"github.com/einmal/einmal/pkg/idempotency"
)

// variant is one kind of request.
type variant struct {
	name     string
	bare     bool // asked of the bare service, not of the tickets service
	unsealed bool // asked of a tickets service that seals nothing

	// prepare makes what the caller's requests will meet, outside the measured time. Nil: nothing.
	prepare func(c *caller) error

	// request returns the key and the body of the caller's next request.
	request func(c *caller) (key string, body []byte)

	// Every request must be answered with this, and leave this behind.
	status  int
	outcome string
	leaves  tally

	// sameBody demands the bytes of the answer that the caller got when it first sent this request.
	sameBody bool
}

// targets are the services that requests are for.
type targets struct{ bare, tickets, unsealed *target }

// target is the one that the variant's requests are for.
func (v variant) target(of targets) *target {
	switch {
	case v.bare:
		return of.bare
	case v.unsealed:
		return of.unsealed
	}
	return of.tickets
}

// tally counts rows.
type tally struct {
	Tickets    int64
	Operations int64
	Events     int64
}

func (t tally) times(n int) tally {
	m := int64(n)
	return tally{t.Tickets * m, t.Operations * m, t.Events * m}
}

func (t tally) plus(u tally) tally {
	return tally{t.Tickets + u.Tickets, t.Operations + u.Operations, t.Events + u.Events}
}

// aCreation is what creating one ticket leaves behind: the claim and the answer are one row, and each has its event.
var aCreation = tally{Tickets: 1, Operations: 1, Events: 2}

// variants are all there are.
var variants = []variant{
	{
		name: "bare", bare: true, request: newTicket,
		status: 201, outcome: "", leaves: tally{Tickets: 1},
	},
	{
		// A new key each time: the claim, the ticket, the answer and two events, which are sealed beside it.
		name: "create", request: newTicket,
		status: 201, outcome: "executed", leaves: aCreation,
	},
	{
		// The same at a service that leaves sealing to another.
		name: "unsealed", unsealed: true, request: newTicket,
		status: 201, outcome: "executed", leaves: aCreation,
	},
	{
		// Keys that were used a moment ago, as in a retry: the stored answer, and an event that is written later with others.
		name: "replay", prepare: sendOriginals, request: repeated,
		status: 201, outcome: "replayed", leaves: tally{Events: 1}, sameBody: true,
	},
	{
		// As create, and the ticket is unique for its event.
		name: "event", request: newEvent,
		status: 201, outcome: "executed", leaves: aCreation,
	},
	{
		// New keys for an event that has its ticket: the operation is stored, a ticket is not.
		name: "existing", prepare: sendEvent, request: sameEvent,
		status: 200, outcome: "executed", leaves: tally{Operations: 1, Events: 2},
	},
}

// caller is one client of a measurement.
type caller struct {
	*client
	among     int             // how many callers there are
	originals []original      // what its preparation sent
	turn      int             // which of them is next
	body      []byte          // of the request that it is sending, where that is another each time
	took      []time.Duration // by each request
}

// original is a request that is met again later, and its answer.
type original struct {
	key    string
	body   []byte
	answer []byte
}

// A ticket as an alert might open it: about 400 bytes of JSON.
var ticket = []byte(`{"project":"checkout","title":"p99 latency of the checkout above 2 s for 10 minutes","description":"` +
	`The alert fires when the 99th percentile of the request duration stays above two seconds. Look at the payment provider first: ` +
	`its time-outs have been the cause in nine of ten cases so far.","priority":"high","labels":{"service":"checkout","team":"payments"}}`)

// about writes the ticket with an event into buffer.
func about(event string, buffer []byte) []byte {
	buffer = append(buffer[:0], bytes.TrimSuffix(ticket, []byte("}"))...)
	buffer = append(buffer, `,"source_event_id":"`...)
	buffer = append(buffer, event...)
	return append(buffer, `"}`...)
}

// newKey is a UUIDv7, as the contract recommends.
func newKey() string { return idempotency.NewID("key", time.Now()) }

func newTicket(*caller) (string, []byte) { return newKey(), ticket }

func newEvent(c *caller) (string, []byte) {
	key := newKey()
	c.body = about(key, c.body)
	return key, c.body
}

// replayedKeys is how many keys the callers of a measurement repeat in turn, all together: enough for a key not to come again at
// once, few enough to be made quickly.
const replayedKeys = 256

func sendOriginals(c *caller) error {
	for range max(1, replayedKeys/c.among) {
		if err := c.sendOriginal(newKey(), ticket); err != nil {
			return err
		}
	}
	return nil
}

func repeated(c *caller) (string, []byte) {
	c.turn = (c.turn + 1) % len(c.originals)
	return c.originals[c.turn].key, c.originals[c.turn].body
}

func sendEvent(c *caller) error {
	key := newKey()
	return c.sendOriginal(key, about(key, nil))
}

func sameEvent(c *caller) (string, []byte) { return newKey(), c.originals[0].body }

func (c *caller) sendOriginal(key string, body []byte) error {
	a, err := c.post(key, body)
	if err != nil {
		return err
	}
	if a.status != 201 || string(a.outcome) != "executed" {
		return fmt.Errorf("an original was answered %d %s: %s", a.status, a.outcome, a.body)
	}
	c.originals = append(c.originals, original{key, body, bytes.Clone(a.body)})
	return nil
}
