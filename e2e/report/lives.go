package report

import (
	"slices"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/record"
)

// state is what a process is doing.
type state int

const (
	absent state = iota
	starting
	alive
	frozen
	passive // it is no process of ours
)

func (s state) String() string {
	return [...]string{"absent", "starting", "alive", "frozen", "passive"}[s]
}

// lives tells of each place what it is, and of each process when it lived.
type lives struct {
	places map[string]record.Place
	order  []string
	marks  map[string][]record.Mark

	targets map[string]string // what a simulator simulates, by its address
	callers int
}

func livesOf(r record.Recording) lives {
	l := lives{places: map[string]record.Place{}, marks: map[string][]record.Mark{}, targets: map[string]string{}}
	for _, p := range r.Places {
		l.places[p.Address] = p
		l.order = append(l.order, p.Address)
	}
	for _, m := range r.Marks {
		l.marks[m.Place] = append(l.marks[m.Place], m)
	}
	for _, marks := range l.marks { // they come from several goroutines
		slices.SortStableFunc(marks, func(a, b record.Mark) int { return a.At.Compare(b.At) })
	}
	callers := map[string]bool{}
	for _, m := range r.Messages {
		if _, known := l.places[m.From]; !known && strings.HasPrefix(m.From, "caller ") {
			callers[m.From] = true
		}
	}
	l.callers = len(callers)
	for _, w := range r.Worlds {
		var names []string
		for _, c := range w.Calls {
			names = append(names, c.Target)
		}
		slices.Sort(names)
		l.targets[w.Address] = strings.Join(slices.Compact(names), ", ")
	}
	return l
}

// at is what the process at an address does at a moment.
func (l lives) at(address string, moment time.Time) state {
	now := absent
	for _, m := range l.marks[address] {
		if m.At.After(moment) {
			break
		}
		switch m.Event {
		case record.Started:
			now = starting
		case record.Ready, record.Thawed:
			now = alive
		case record.Frozen:
			now = frozen
		case record.Killed, record.Ended:
			now = absent
		}
	}
	return now
}

// isDown tells whether a process can send nothing at a moment.
func (l lives) isDown(address string, moment time.Time) bool {
	is := l.at(address, moment)
	return is == absent || is == frozen
}

// before are the addresses that a proxy stands in front of.
func (l lives) before(address string) []string { return l.places[address].Before }

// isWorld tells whether a simulator is at an address.
func (l lives) isWorld(address string) bool {
	return l.places[address].Kind == record.Process && l.places[address].Name == "simulator"
}

// somebody stands for one of several processes: it was not recorded which one.
const somebody = "one of the replicas"

// sender is the process that sends to a simulator at a moment: somebody, unless only one can.
func (l lives) sender(moment time.Time) string {
	found := ""
	for _, address := range l.order {
		if l.places[address].Kind != record.Process || l.isWorld(address) || l.isDown(address, moment) {
			continue
		}
		if found != "" {
			return somebody
		}
		found = address
	}
	if found == "" {
		return somebody
	}
	return found
}
