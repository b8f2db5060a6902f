package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"
	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// ErrUnsealed means that an event of the operation is in no leaf yet.
var ErrUnsealed = errors.New("an event is not sealed yet")

// SealedEvent is an event with the index of its leaf; nil: it has none yet.
type SealedEvent struct {
	Event
	Seq *int64
}

// Receipt proves the events of one operation to whoever has the public key, and nothing else.
type Receipt struct {
	Operation   jsontext.Value `json:"operation"`    // as it is now, for reading: what is proven are the events
	Events      []Event        `json:"events"`       // in the order in which they were sealed
	LeafIndexes []int64        `json:"leaf_indexes"` // of each event
	Proofs      [][]tlog.Hash  `json:"proofs"`       // of each event: the hashes beside its way to the root
	Checkpoint  string         `json:"checkpoint"`   // signed
	PublicKey   string         `json:"public_key"`   // that it says it is signed with; who verifies has it from elsewhere
}

// EventsOf reads events of one operation, the newest first, that came before the one named before (empty: all).
func EventsOf(ctx context.Context, db *database.DB, account, operationID, before string, limit int) ([]SealedEvent, error) {
	if before == "" {
		before = "~" // comes after every id
	}
	read := db.Read(ctx)
	events, err := readEvents(read, `WHERE e.account_id = ? AND e.operation_id = ? AND e.id < ? ORDER BY e.id DESC LIMIT ?`, account, operationID, before, limit)
	if err == nil {
		err = findLeaves(read, events)
	}
	return events, database.Classify(err)
}

func readEvents(db *gorm.DB, where string, args ...any) (events []SealedEvent, err error) {
	rows, err := db.Raw("SELECT "+eventColumns+" FROM events e "+where, args...).Rows()
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var e SealedEvent
		if err := rows.Scan(e.fields()...); err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		events = append(events, e)
	}
	return events, rows.Err()
}

// findLeaves finds the leaves of events that are in the order of their ids.
func findLeaves(db *gorm.DB, events []SealedEvent) error {
	for len(events) > 0 {
		n := 1 // how many begin like the first
		for n < len(events) && beginning(events[n].ID) == beginning(events[0].ID) {
			n++
		}
		sealed, err := sealedAmong(db, min(events[0].ID, events[n-1].ID), max(events[0].ID, events[n-1].ID))
		if err != nil {
			return err
		}
		for i, e := range events[:n] {
			if index, there := sealed[name{e.Account, e.ID}]; there {
				events[i].Seq = &index
			}
		}
		events = events[n:]
	}
	return nil
}

// Receipt makes the receipt of an operation, which the caller shows as it is now. What is not sealed yet is sealed first, if this process seals.
// ErrUnsealed: it does not, and another has not yet.
func (s *Sealer) Receipt(ctx context.Context, account, operationID string, operation []byte) (*Receipt, error) {
	r, err := s.receipt(ctx, account, operationID, operation)
	if errors.Is(err, ErrUnsealed) && s.every > 0 {
		if err := s.SealAll(ctx); err != nil {
			return nil, err
		}
		r, err = s.receipt(ctx, account, operationID, operation)
	}
	return r, err
}

func (s *Sealer) receipt(ctx context.Context, account, operationID string, operation []byte) (*Receipt, error) {
	r := &Receipt{Operation: operation, Events: []Event{}, LeafIndexes: []int64{}, Proofs: [][]tlog.Hash{}}
	keys, err := s.files.Keys()
	if err != nil {
		return nil, err
	}
	// In one snapshot, so that the checkpoint is of a tree with these leaves.
	err = s.db.Snapshot(ctx, func(read *gorm.DB) error {
		events, err := readEvents(read, `WHERE e.account_id = ? AND e.operation_id = ? ORDER BY e.id`, account, operationID)
		if err == nil {
			err = findLeaves(read, events)
		}
		if err != nil {
			return err
		}
		if slices.ContainsFunc(events, func(e SealedEvent) bool { return e.Seq == nil }) {
			return fmt.Errorf("make receipt: %w", ErrUnsealed)
		}
		slices.SortFunc(events, func(a, b SealedEvent) int { return cmp.Compare(*a.Seq, *b.Seq) })
		t, err := readTree(read)
		if err != nil {
			return err
		}
		if r.Checkpoint, err = readCheckpoint(read, t.Checkpoints); err != nil {
			return err
		}
		for _, e := range events {
			proof, err := tlog.ProveRecord(t.Size, *e.Seq, storedHashes{read})
			if err != nil {
				return fmt.Errorf("make receipt: %w", err)
			}
			if proof == nil {
				proof = []tlog.Hash{} // of a tree of one leaf
			}
			r.Events, r.LeafIndexes, r.Proofs = append(r.Events, e.Event), append(r.LeafIndexes, *e.Seq), append(r.Proofs, proof)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	_, by, err := OpenCheckpoint(r.Checkpoint, keys)
	if r.PublicKey = keys.named(by); err != nil {
		return nil, fmt.Errorf("make receipt: %w", err)
	}
	return r, nil
}

// ErrNotProven means that a receipt does not prove what it says.
var ErrNotProven = errors.New("the receipt proves nothing")

// ReadReceipt reads the JSON of a receipt.
func ReadReceipt(text []byte) (r Receipt, err error) {
	if err := json.Unmarshal(text, &r, json.RejectUnknownMembers(true)); err != nil {
		return r, fmt.Errorf("read receipt: %w", err)
	}
	return r, nil
}

// Verify holds a receipt against keys that are believed: each of its events is in the log that the checkpoint was signed for, and all of them are of
// the operation that it shows. It returns the checkpoint.
func (r Receipt) Verify(keys Keys) (Checkpoint, error) {
	c, by, err := OpenCheckpoint(r.Checkpoint, keys)
	if err != nil {
		return c, fmt.Errorf("%w: signed by %q: %w", ErrNotProven, by, err)
	}
	var operation shownOperation
	if err := json.Unmarshal(r.Operation, &operation); err != nil {
		return c, fmt.Errorf("%w: it shows no operation: %w", ErrNotProven, err)
	}
	if len(r.Events) == 0 || len(r.LeafIndexes) != len(r.Events) || len(r.Proofs) != len(r.Events) {
		return c, fmt.Errorf("%w: it has %d events, %d indexes and %d proofs", ErrNotProven, len(r.Events), len(r.LeafIndexes), len(r.Proofs))
	}
	for i, e := range r.Events {
		if e.OperationID != operation.ID || i > 0 && (r.LeafIndexes[i] <= r.LeafIndexes[i-1] || e.Account != r.Events[0].Account) {
			return c, fmt.Errorf("%w: event %s is not of operation %s, or not at its place", ErrNotProven, e.ID, operation.ID)
		}
		var err error
		if r.LeafIndexes[i] < 0 || r.LeafIndexes[i] >= c.Size {
			err = fmt.Errorf("leaf %d is not among %d", r.LeafIndexes[i], c.Size)
		}
		if err == nil {
			err = tlog.CheckRecord(r.Proofs[i], c.Size, c.Root, r.LeafIndexes[i], e.leafHash())
		}
		if err != nil {
			return c, fmt.Errorf("%w: event %s: %w", ErrNotProven, e.ID, err)
		}
	}
	if member := operation.contradicts(r.Events); member != "" {
		return c, fmt.Errorf("%w: it shows an operation whose %s is not the one that its events tell", ErrNotProven, member)
	}
	return c, nil
}

// shownOperation is what of an operation its events tell as well.
type shownOperation struct {
	ID        string            `json:"id"`
	State     idempotency.State `json:"state"`
	AgentRun  string            `json:"agent_run"`
	EffectKey string            `json:"effect_key"`
	Reference string            `json:"reference"`
}

// contradicts names a member that no event tells; empty: there is none. An effect has its key before an event tells it, and may have its reference, as
// long as it goes on: what is about to be moved has its name first. An end that is told is the only state: it is never left.
func (o shownOperation) contradicts(events []Event) string {
	told := func(value string, of func(Event) string) bool {
		return slices.ContainsFunc(events, func(e Event) bool { return of(e) == value })
	}
	claimed := slices.IndexFunc(events, func(e Event) bool { return e.Type == idempotency.Attempted })
	effect, reference := func(e Event) string { return e.EffectKey }, func(e Event) string { return e.Reference }
	ended := slices.IndexFunc(events, func(e Event) bool { return e.To.Final() })
	switch {
	case claimed < 0 || events[claimed].AgentRun != o.AgentRun:
		return "agent_run"
	case ended >= 0 && events[ended].To != o.State, !told(string(o.State), func(e Event) string { return string(e.To) }):
		return "state"
	case o.Reference != "" && !told(o.Reference, reference) && (ended >= 0 || slices.ContainsFunc(events, func(e Event) bool { return reference(e) != "" })):
		return "reference"
	case o.EffectKey != "" && !told(o.EffectKey, effect) && slices.ContainsFunc(events, func(e Event) bool { return effect(e) != "" }):
		return "effect_key"
	}
	return ""
}
