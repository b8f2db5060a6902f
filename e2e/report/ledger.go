package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/einmal/einmal/e2e/record"
)

// Ledger is what a simulator says of calls and effects, by effect key.
type Ledger struct {
	World   string
	Err     string
	Calls   int
	Effects int
	Keys    []LedgerKey
	More    int // keys that are not shown: one effect each
}

// LedgerKey is what happened under one effect key.
type LedgerKey struct {
	Key, Full  string
	Calls      string // "send ×2, lookup"
	Struck     int
	Effects    int
	Most       int // effects of one kind, which a key names one of; 0 of those without a key, which nobody has promised anything of
	References []string
}

// ledgers are what the simulators say, and the most effects of one kind that one of them has under one key.
func (s *story) ledgers() (all []Ledger, most int) {
	for _, w := range s.Worlds {
		name, _ := s.lives.name(w.Address)
		l := Ledger{World: name, Err: w.Err, Calls: len(w.Calls), Effects: len(w.Ledger)}
		l.Keys = keysOf(w)
		for _, k := range l.Keys {
			most = max(most, k.Most)
		}
		// What is not one call and one effect is what a reader looks for.
		slices.SortStableFunc(l.Keys, func(a, b LedgerKey) int { return cmp.Compare(b.oddness(), a.oddness()) })
		l.More = max(0, len(l.Keys)-rowsShown)
		l.Keys = l.Keys[:len(l.Keys)-l.More]
		all = append(all, l)
	}
	return all, most
}

func (k LedgerKey) oddness() int {
	switch {
	case k.Most > 1:
		return 3
	case k.Effects == 0:
		return 2
	case k.Struck > 0 || k.Calls != "send":
		return 1
	}
	return 0
}

func keysOf(w record.World) []LedgerKey {
	var keys []LedgerKey
	index := map[string]int{}
	of := func(key string) *LedgerKey {
		i, known := index[key]
		if !known {
			i = len(keys)
			index[key] = i
			keys = append(keys, LedgerKey{Key: shorten(cmp.Or(key, "none")), Full: key})
		}
		return &keys[i]
	}
	type kind struct {
		name string
		n    int
	}
	calls := map[string][]kind{} // by effect key, in the order in which the first of each kind came
	for _, c := range w.Calls {
		k := of(c.EffectKey)
		if c.Faulted {
			k.Struck++
		}
		i := slices.IndexFunc(calls[c.EffectKey], func(known kind) bool { return known.name == c.Kind })
		if i < 0 {
			i = len(calls[c.EffectKey])
			calls[c.EffectKey] = append(calls[c.EffectKey], kind{name: c.Kind})
		}
		calls[c.EffectKey][i].n++
	}
	times := map[[2]string]int{} // by effect key and kind
	for _, e := range w.Ledger {
		k := of(e.EffectKey)
		k.Effects++
		if of := [2]string{e.EffectKey, e.Kind}; e.EffectKey != "" {
			times[of]++
			k.Most = max(k.Most, times[of])
		}
		k.References = append(k.References, shorten(e.Reference))
	}
	for i := range keys {
		var parts []string
		for _, k := range calls[keys[i].Full] {
			if k.n > 1 {
				k.name = fmt.Sprintf("%s ×%d", k.name, k.n)
			}
			parts = append(parts, k.name)
		}
		keys[i].Calls = strings.Join(parts, ", ")
	}
	return keys
}
