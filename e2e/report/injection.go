package report

import (
	"maps"
	"slices"
	"strings"

	"github.com/einmal/einmal/e2e/record"
)

// Injection is what was done to a place, and how often.
type Injection struct {
	Where, What string
	Times       int
}

// injections are what the scenario broke, the first first.
func (s *story) injections() (all []Injection) {
	add := func(where, what string, times int) {
		i := slices.IndexFunc(all, func(known Injection) bool { return known.Where == where && known.What == what })
		if i < 0 {
			i = len(all)
			all = append(all, Injection{Where: where, What: what})
		}
		all[i].Times += times
	}
	for _, one := range s.steps {
		where, _ := s.lives.name(one.from)
		switch {
		case one.isMark() && one.tone == broken, one.isMark() && strings.HasPrefix(one.label, "armed: "):
			add(where, nth.ReplaceAllString(one.label, ""), 1)
		case one.lost && s.lives.places[one.from].Kind == record.Proxy && (one.label == string(record.RequestLost) || one.label == string(record.AnswerLost)):
			add(where, one.label, 1)
		case one.answer && one.lost && one.label == hungUp:
			where, _ = s.lives.name(one.to)
			add(where, one.label, 1)
		}
	}
	struck := map[string]int{}
	for _, c := range s.calls {
		if c.Faulted {
			struck[c.Target]++
		}
	}
	for _, target := range slices.Sorted(maps.Keys(struck)) {
		add(target, "calls that the armed faults struck", struck[target])
	}
	return all
}
