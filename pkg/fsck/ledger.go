package fsck

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

// Ledger says how the effects of a service stand in the ledger of what is outside, as the simulator keeps one: every effect that really
// happened, never changed or removed.
type Ledger struct {
	Target string // as the ledger calls it

	// SQL returns a row for each effect that the database knows: account_id, id, operation_id, effect_key, reference, kind (as the ledger calls it), state,
	// amount_minor (-1: not known any more) and artifact (empty: it has none). reference names what was made, or else what it was to be done to.
	SQL string

	// Undo is the kind that undoes another effect, under that one's key; empty: nothing does.
	Undo string

	// Begun are kinds of which the ledger tells that one began, however it ended; of every other, that it is done.
	Begun []string
}

// entry is one effect in the ledger.
type entry struct {
	Kind        string `json:"kind"`
	EffectKey   string `json:"effect_key"`
	Reference   string `json:"reference"`
	Account     string `json:"account"`
	AmountMinor int64  `json:"amount_minor"`
	Parent      string `json:"parent"`
	Digest      string `json:"digest"`
}

// known is one effect as the database knows it.
type known struct {
	AccountID, ID, EffectKey, Reference, Kind, State string
	AmountMinor                                      int64
	Artifact                                         string
	Asked                                            bool // a person was, about evidence against its end
}

// is reports whether an entry tells what was asked for, as far as both say.
func (k known) is(e entry) bool {
	return (k.AmountMinor < 0 || k.AmountMinor == e.AmountMinor) && (e.Digest == "" || strings.HasSuffix(k.Artifact, "@"+e.Digest))
}

// The checks of a ledger.
const (
	once      = "what has succeeded is in the ledger, once"
	twice     = "nothing is in the ledger twice"
	owned     = "every entry of the ledger has its effect here"
	notDone   = "what failed or was canceled is not in the ledger, or was undone, or a person was asked"
	sameThing = "the ledger tells what was asked for: account, amount, digest"
)

// LedgerChecks are they, with what to do. They have no statement: Ledger.Against compares.
var LedgerChecks = []Check{
	{Name: once, Advice: "Callers were told that it happened. Ask the target for the effect key; if nothing is there, tell them, and begin a new operation."},
	{Name: twice, Advice: "It has happened twice under one effect key: the target did not keep what it was declared to. Undo one of them there, and correct the declared ability."},
	{Name: owned, Advice: "The target was changed by nobody here: by another installation under the same namespace, by hand, or by an operation that a restore has lost. Find its account and effect key in the logs."},
	{Name: notDone, Advice: "Callers were told that it did not happen. Reconcile what is there by hand, and find out why no review was opened."},
	{Name: sameThing, Advice: "Something else was done than was asked for. Compare the entry with the operation, and correct it at the target."},
}

// Against compares the database with the ledger at url. The ledger is read before and after the database's snapshot, so that what happens
// meanwhile is no violation: an entry of before must be known here, and what is done here must be there after.
func (l Ledger) Against(ctx context.Context, db *database.DB, url string) ([]Violation, error) {
	before, err := l.read(ctx, url)
	if err != nil {
		return nil, err
	}
	var effects []known
	err = db.Snapshot(ctx, func(read *gorm.DB) error {
		return read.Raw(`SELECT k.*, EXISTS (SELECT 1 FROM reviews r WHERE r.account_id = k.account_id AND r.operation_id = k.operation_id
			AND r.kind = 'contradiction') AS asked FROM (` + l.SQL + `) k`).Scan(&effects).Error
	})
	if err != nil {
		return nil, fmt.Errorf("read effects: %w", err)
	}
	after, err := l.read(ctx, url)
	if err != nil {
		return nil, err
	}
	return l.compare(effects, before, after), nil
}

func (l Ledger) compare(effects []known, before, after []entry) (violations []Violation) {
	violated := func(check, account, id string) {
		for _, c := range LedgerChecks {
			if c.Name == check {
				violations = append(violations, Violation{Check: check, Account: account, ID: id, Advice: c.Advice})
			}
		}
	}
	type of struct{ kind, name string } // by effect key, or by reference: what somebody else did to the same object is what was asked for, too
	there, undone, begun := map[of][]entry{}, map[string]bool{}, map[string]bool{}
	for _, e := range after {
		there[of{e.Kind, e.EffectKey}] = append(there[of{e.Kind, e.EffectKey}], e)
		if e.Kind == l.Undo {
			undone[e.Parent] = true
		}
	}
	objects := map[of][]entry{}
	for _, e := range after {
		objects[of{e.Kind, e.Reference}] = append(objects[of{e.Kind, e.Reference}], e)
		if e.Parent != "" && e.Parent != e.Reference {
			objects[of{e.Kind, e.Parent}] = append(objects[of{e.Kind, e.Parent}], e)
		}
	}
	for _, kind := range l.Begun {
		begun[kind] = true
	}
	ours := map[of]bool{}
	for _, k := range effects {
		ours[of{k.Kind, k.EffectKey}], ours[of{l.Undo, k.EffectKey}] = true, true
		entries := there[of{k.Kind, k.EffectKey}]
		if len(entries) == 0 && k.State == "succeeded" {
			entries = objects[of{k.Kind, k.Reference}]
		}
		if k.Reference != "" {
			ours[of{k.Kind, k.Reference}] = true
		}
		switch {
		case k.State == "succeeded" && len(entries) == 0:
			violated(once, k.AccountID, k.ID)
		case (k.State == "failed" || k.State == "canceled") && len(entries) > 0 && !begun[k.Kind] && !k.Asked && !undone[entries[0].Reference]:
			violated(notDone, k.AccountID, k.ID)
		}
		for _, e := range entries {
			if e.Account != "" && e.Account != k.AccountID || k.State == "succeeded" && !k.is(e) {
				violated(sameThing, k.AccountID, k.ID)
			}
		}
	}
	for of, entries := range there {
		if len(entries) > 1 {
			violated(twice, entries[0].Account, of.kind+" "+of.name)
		}
	}
	for _, e := range before {
		if !ours[of{e.Kind, e.EffectKey}] && !ours[of{e.Kind, e.Reference}] && (e.Parent == "" || !ours[of{e.Kind, e.Parent}]) {
			violated(owned, e.Account, e.Kind+" "+e.EffectKey+" "+e.Reference)
		}
	}
	return violations
}

// readTimeout bounds the reading of a ledger: a hundred thousand entries take a second.
const readTimeout = time.Minute

// read reads the ledger.
func (l Ledger) read(ctx context.Context, base string) ([]entry, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/_ledger?target="+url.QueryEscape(l.Target), nil)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w; give the simulator's URL, as in http://127.0.0.1:8090", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w; is the simulator there?", err)
	}
	defer answer.Body.Close()
	var all []entry
	if answer.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16))
		return nil, fmt.Errorf("read ledger: %s answers %s; give the simulator's URL, as in http://127.0.0.1:8090", request.URL.Redacted(), answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&all); err != nil {
		return nil, fmt.Errorf("read ledger: %s is no ledger: %w", request.URL.Redacted(), err)
	}
	return all, nil
}
