package report

import (
	"slices"
	"time"

	"github.com/einmal/einmal/e2e/record"
)

// reuse lets processes of one role that never lived at the same time share a lifeline, as if each were the last one started again: a scenario that
// kills twenty of them, one after the other, is about one place that is always taken again.
func reuse(r record.Recording) record.Recording {
	lives := livesOf(r)
	instead := map[string]string{} // address → that of the process whose lifeline it takes
	var lifelines []string
	for _, p := range r.Places {
		marks := lives.marks[p.Address]
		if p.Kind != record.Process || lives.isWorld(p.Address) || len(marks) == 0 {
			continue
		}
		free := slices.IndexFunc(lifelines, func(address string) bool {
			return lives.places[address].Name == p.Name && lives.overAt(address, marks[0].At)
		})
		if free < 0 {
			lifelines = append(lifelines, p.Address)
			continue
		}
		first := lifelines[free]
		instead[p.Address] = first
		lives.marks[first] = append(lives.marks[first], marks...)
	}
	if len(instead) == 0 {
		return r
	}
	is := func(address string) string {
		if other, found := instead[address]; found {
			return other
		}
		return address
	}
	r.Places = slices.DeleteFunc(slices.Clone(r.Places), func(p record.Place) bool { return instead[p.Address] != "" })
	for i, p := range r.Places {
		p.Before = slices.Clone(p.Before)
		for k, address := range p.Before {
			p.Before[k] = is(address)
		}
		r.Places[i] = p
	}
	r.Messages, r.Marks = slices.Clone(r.Messages), slices.Clone(r.Marks)
	for i, m := range r.Messages {
		r.Messages[i].From, r.Messages[i].To = is(m.From), is(m.To)
	}
	for i, m := range r.Marks {
		r.Marks[i].Place = is(m.Place)
	}
	return r
}

// overAt tells whether a process had ended for good at a moment.
func (l lives) overAt(address string, moment time.Time) bool {
	marks := l.marks[address]
	last := marks[len(marks)-1]
	return (last.Event == record.Ended || last.Event == record.Killed) && last.At.Before(moment)
}
